"""How a change of templates reaches what runs, and which version of them anything has."""

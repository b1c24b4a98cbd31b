"""What is allowed and what is filled in: rules over objects, as values. Pure."""

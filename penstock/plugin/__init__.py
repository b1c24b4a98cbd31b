"""What `kubectl penstock` shows of a cluster: read once, decided as `gangs` would, and drawn."""

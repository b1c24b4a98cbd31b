"""The placement engine: a snapshot goes in, a plan comes out. Pure."""

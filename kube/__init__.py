"""The only code that speaks HTTP to the API server."""

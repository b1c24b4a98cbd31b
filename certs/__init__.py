"""Certificates as values: issued from names and an instant, never from a clock. Pure."""

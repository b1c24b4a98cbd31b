"""Gangs that have lacked their minimum for too long are made anew."""

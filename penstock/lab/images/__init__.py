"""Container images that the lab makes by itself, with no builder and no registry."""

"""The two controllers: `workloads` makes pods, `gangs` releases them."""

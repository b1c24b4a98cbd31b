"""What a set, its groups and its cliques say of themselves: statuses and Events."""

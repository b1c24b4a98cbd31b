"""Which nodes pods may use apart from room, filter by filter as kube-scheduler has them. Pure."""

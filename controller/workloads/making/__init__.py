"""What is made for a set: PodCliques, pods, PodGangs, and all that hangs on them."""

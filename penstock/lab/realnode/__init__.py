"""A real node in a lab: a kubelet, containerd and containers beside the pretend nodes."""

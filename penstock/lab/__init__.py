"""A local control plane with pretend nodes, for trying manifests and policies."""

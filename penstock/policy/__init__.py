"""The policy offline: looked through, tried on manifests, and compared with another."""

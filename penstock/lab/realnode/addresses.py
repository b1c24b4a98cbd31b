"""The addresses of a real node. They exist inside its own network namespace and nowhere else."""

from typing import Final

NODE_NAME: Final = "real-0"
NODE_ADDRESS: Final = "10.99.0.1"
"""Of the node, and so of the API server as pods know it."""

PODS: Final = "10.88.0.0/16"
SERVICES: Final = "10.96.0.0/16"
API_SERVICE: Final = "10.96.0.1"
PRETEND_PODS: Final = "10.128.0.0/9"
"""Addresses of pods on pretend nodes; nobody answers there, so they must be nobody else's."""

KIND_LABEL: Final = "lab.penstock.dev/node"
"""The label, and the key of the taint, that tell the real node from pretend ones."""
REAL: Final = "real"

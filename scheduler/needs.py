"""What a pod takes of its node."""

from api.needs import of_pod

__all__ = ["of_pod"]

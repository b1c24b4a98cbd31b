"""What a pod takes of its node."""

from api import needs
from api.streams import Pod


def of_pod(pod: Pod) -> dict[str, int]:
    """Give what the pod takes, counted the way Kubernetes counts it."""
    return needs.of_spec(pod.spec)

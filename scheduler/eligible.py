"""Which nodes a pod may use by what the node itself says: one node, filter by filter.

The same for all nodes at once is in `filters.masks`; this is for one node, and to check that.
"""

from api.streams import Node
from scheduler.filters.classes import CORDONED, NOT_READY, NOT_SELECTED, TAINTED, VOLUMES
from scheduler.filters.constraints import Constraints
from scheduler.filters.selecting import UNSCHEDULABLE, bars, selected, tolerated

__all__ = [
    "CORDONED",
    "NOT_READY",
    "NOT_SELECTED",
    "TAINTED",
    "VOLUMES",
    "Constraints",
    "chosen",
    "obstacle",
]


def obstacle(node: Node, constraints: Constraints) -> str:
    """Name the first filter that keeps the pod off the node, or "" when none does."""
    if not node.ready:
        return NOT_READY
    if node.spec.unschedulable and not tolerated(UNSCHEDULABLE, constraints.tolerations):
        return CORDONED
    if not all(tolerated(t, constraints.tolerations) for t in node.spec.taints if bars(t)):
        return TAINTED
    if not chosen(node, constraints):
        return NOT_SELECTED
    return "" if all(selected(node, volume) for volume in constraints.volumes) else VOLUMES


def chosen(node: Node, constraints: Constraints) -> bool:
    """Whether the pod's selector and required affinity choose the node."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in constraints.selector):
        return False
    return constraints.required is None or selected(node, constraints.required)

"""What every plan must satisfy, checked apart from the search that made it.

1. A placed gang has a node for every pod of its minimum, and for no pod twice.
2. No node gives more than it had free, in any resource.
3. No pod is on a node that one of its filters excludes.
"""

from collections.abc import Iterable

from scheduler.answers import Placement
from scheduler.eligible import obstacle
from scheduler.snapshot import Snapshot


class BrokenPlanError(AssertionError):
    """The engine contradicts itself; nothing of the plan may be used."""


def check(snapshot: Snapshot, placements: Iterable[Placement]) -> None:
    """Raise BrokenPlanError, naming gang and node, if an invariant does not hold."""
    left = snapshot.free.copy()
    touched: set[int] = set()
    for placement in placements:
        _whole(placement)
        for placed in placement.placed:
            row = snapshot.row_of[placed.node]
            vector = snapshot.vector(placed.want.need)
            reason = obstacle(snapshot.nodes[row], placed.want.constraints)
            if vector is None or reason:
                raise BrokenPlanError(f"{placement.gang.name} on {placed.node}: {reason or 'need'}")
            left[row] -= vector
            touched.add(row)
            # Only what the pod asks for counts: a node may be overdrawn in something else.
            if (left[row][vector > 0] < 0).any():
                raise BrokenPlanError(f"{placement.gang.name} overcommits {placed.node}")


def _whole(placement: Placement) -> None:
    slots = [(placed.want.clique, placed.want.index) for placed in placement.placed]
    wanted = {(want.clique, want.index) for want in placement.gang.minimum}
    if len(set(slots)) != len(slots) or not wanted <= set(slots):
        raise BrokenPlanError(f"{placement.gang.name} is not whole: {slots} for {wanted}")

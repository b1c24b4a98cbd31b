"""The least anybody could do: each pod on the first node with room, one after the other.

No levels, no filters but room, no second thoughts, no explanation and no check of the result. What
it needs is read out of snapshot and requests before the clock runs.
"""

from collections.abc import Sequence

import numpy as np

from scheduler.requests import GangRequest
from scheduler.snapshot import Snapshot
from scheduler.topology import Ints

Asked = list[list[tuple[int, int]]]
"""For each pod, what it asks for: column and amount."""


def columns(taken: Snapshot) -> list[Ints]:
    """What is free, each resource by itself."""
    return [np.ascontiguousarray(taken.free[:, i]) for i in range(len(taken.resources))]


def asked(taken: Snapshot, gangs: Sequence[GangRequest]) -> Asked:
    """What the pods of these gangs ask for; those who ask for what nobody has are left out."""
    found: Asked = []
    for gang in gangs:
        for want in gang.minimum:
            if all(name in taken.resources for name in want.need):
                found.append([(taken.resources.index(n), a) for n, a in want.need.items() if a])
    return found


def greedy(free: Sequence[Ints], pods: Asked) -> int:
    """Give each pod the first node with room; returns how many found one."""
    left = [column.copy() for column in free]
    placed = 0
    for pod in pods:
        first, amount = pod[0]
        fits = left[first] >= amount
        for column, amount in pod[1:]:
            fits &= left[column] >= amount
        row = int(np.argmax(fits))
        if fits[row]:
            placed += 1
            for column, amount in pod:
                left[column][row] -= amount
    return placed

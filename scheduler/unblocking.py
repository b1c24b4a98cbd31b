"""What would unblock a refused gang: each remedy is tried by first fit before it is told. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from api import names
from api.quantities import plus
from scheduler.answers import AskFewer, FreeRoom, Loosen, MoreNodes, Remedy, Uncordon, Widen
from scheduler.firstfit import Attempt, LeftOut, Packing, Run, whole
from scheduler.parts import Part, tree, widened
from scheduler.surveying import Survey, room_for
from scheduler.topology import Bools, Ints

Floats: TypeAlias = npt.NDArray[np.float64]

_MOST_PODS: Final = 64  # beyond it nobody frees room node by node
_LOOKED_AT: Final = (
    128  # nodes, for one to have more of, or beyond one for each pod to make room on
)


def remedies(survey: Survey, root: Part, nearest: Attempt) -> tuple[Remedy, ...]:
    """List what would let the gang in, each by itself; the least trouble first."""
    return (
        *_uncordoned(survey, root, nearest.part.name),
        *_widened(survey, root, nearest.part),
        *_loosened(survey, root, nearest.part.name),
        *_freed(survey, nearest),
        *_grown(survey, root, nearest),
        *_fewer(survey, nearest),
    )


def _uncordoned(survey: Survey, root: Part, name: str) -> Iterator[Remedy]:
    if np.array_equal(survey.uncordoned, survey.usable):
        return
    found = whole(survey, root, name, survey.uncordoned)
    if found is None:
        return
    first, placed = found.packing.run[0], found.packing.placed
    barred = ~survey.usable[:, first : first + placed.shape[1]]
    used = np.flatnonzero(((placed > 0) & barred).any(axis=0))
    yield Uncordon(tuple(survey.name(first + int(i)) for i in used))


def _widened(survey: Survey, root: Part, part: Part) -> Iterator[Remedy]:
    """Find the narrowest wider level that would do."""
    narrower = (
        survey.levels.index(part.level) if part.level in survey.levels else len(survey.levels)
    )
    for level in reversed(survey.levels[:narrower]):
        asked = widened(survey.request, part.name, level)
        other = tree(asked, survey.shapes, survey.depths)
        name = part.name if other.way(part.name) else root.name
        found = whole(survey, other, name, survey.usable)
        if found is not None:
            yield Widen(part.name, part.level, level, found.path)
            return


def _loosened(survey: Survey, root: Part, name: str) -> Iterator[Remedy]:
    if not survey.apart.all():
        for level, usable in survey.loosened:
            if whole(survey, root, name, usable) is not None:
                yield Loosen(level)


def _fewer(survey: Survey, nearest: Attempt) -> Iterator[Remedy]:
    root_out = {each.shape: each.count for each in nearest.packing.out}
    pods: dict[str, int] = {}
    for i, shape in enumerate(survey.shapes):
        pods[shape.clique] = pods.get(shape.clique, 0) + shape.count - root_out.get(i, 0)
    if survey.request.minimum and all(pods.values()):
        yield AskFewer(nearest.path, pods)


@dataclass(eq=False)
class _Freeing:
    """What is made free for those who were left out, from a position on; resources x rows."""

    packing: Packing
    first: int
    left: Ints
    freed: Ints
    given: Ints  # to those who were left out

    def most(self, rows: Ints) -> Ints:
        """Give all that could be free in these rows yet, whoever is there now; by row."""
        packing, positions = self.packing, rows + self.first
        placed = packing.placed[:, positions - packing.run[0]]
        taken: Ints = placed.T @ packing.survey.vectors
        found: Ints = packing.survey.offered(positions) - taken - self.given[:, rows].T
        return found


def _freed(survey: Survey, nearest: Attempt) -> Iterator[Remedy]:
    """Find each pod that was left out the node where the least must go for it."""
    packing = nearest.packing
    if packing.missing > _MOST_PODS:
        return
    first = min(out.run[0] for out in packing.out)
    stop = max(out.run[1] for out in packing.out)
    left = packing.left_by_resource((first, stop))
    nothing = (np.zeros(left.shape, dtype=np.int64) for _ in range(2))
    freeing = _Freeing(packing, first, left, *nothing)
    if not all(_made_room(freeing, out) for out in packing.out):
        return
    nodes = {
        survey.name(first + row): {
            survey.resource(c): int(freeing.freed[c, row])
            for c in np.flatnonzero(freeing.freed[:, row]).tolist()
        }
        for row in np.flatnonzero(freeing.freed.any(axis=0)).tolist()
    }
    total: dict[str, int] = {}
    for each in nodes.values():
        total = plus(total, each)
    if total:
        yield FreeRoom(nearest.path, dict(sorted(total.items())), nodes)


def _made_room(freeing: _Freeing, out: LeftOut) -> bool:
    """Free room for pods of a shape, one on a node at a time; tell whether all found theirs."""
    survey = freeing.packing.survey
    vector, count = survey.vectors[out.shape], out.count
    asked = [column for column in survey.asked if vector[column]]
    may = np.flatnonzero(survey.usable[out.shape, slice(*out.run)]) + out.run[0] - freeing.first
    while count and may.size:
        cost = np.zeros(freeing.left.shape[1])
        for column in asked:
            # By the share of what a pod asks for, so that bytes do not outweigh devices.
            need = int(vector[column])
            cost += np.maximum(need - freeing.left[column], 0) / need
        may = may[_least(cost[may], count * 2 + _LOOKED_AT)]
        may = may[(freeing.most(may) >= vector)[:, asked].all(axis=1)][:count]
        own = vector[:, None]
        lack = np.where(own > 0, np.maximum(own - freeing.left[:, may], 0), 0)
        freeing.freed[:, may] += lack
        freeing.given[:, may] += own
        freeing.left[:, may] += lack - own
        count -= may.size
    return count == 0


def _least(cost: Floats, most: int) -> Ints:
    """Give the places of so many of the least, in their order; of equal ones the first."""
    if cost.size <= most:
        return np.argsort(cost, kind="stable")
    last = np.partition(cost, most - 1)[most - 1]
    less = np.flatnonzero(cost < last)
    less = less[np.argsort(cost[less], kind="stable")]
    return np.concatenate([less, np.flatnonzero(cost == last)[: most - less.size]])


def _grown(survey: Survey, root: Part, nearest: Attempt) -> Iterator[Remedy]:
    """Find of what kind the fewest more nodes would do, where all who lack one must be."""
    out = nearest.packing.out
    if len({each.run for each in out}) != 1 or out[0].run[0] == out[0].run[1]:
        return
    run, level = out[0].run, out[0].level
    needs = [(survey.vectors[each.shape], each.count) for each in out]
    if level == names.HOSTNAME_KEY:  # a node by itself: one more must take all of the part
        part = next(p for p in root.walk() if p.level == level and out[0].shape in p.shapes)
        chosen = list(part.shapes)
        needs = [(survey.counts[chosen] @ survey.vectors[chosen], 1)]
        level = next((p.level for p in root.walk() if part in p.inner), "")
    ranges = survey.domains(level)
    (domain,) = np.flatnonzero(ranges.holds([run[0]])).tolist()
    run = ranges.run(domain)
    like = _like(survey, [each.shape for each in out], needs, run)
    if like is not None and survey.apart[slice(*run)].any():  # else siblings have it
        yield MoreNodes(survey.path(ranges, domain), *like)


def _like(
    survey: Survey, chosen: list[int], needs: Sequence[tuple[Ints, int]], run: Run
) -> tuple[int, str] | None:
    """Name a node of which the fewest more would do, of those near the run, and say how many."""
    everyone: Bools = np.all(survey.usable[chosen], axis=0)
    near = np.flatnonzero(everyone[slice(*run)]) + run[0]
    if not near.size:
        near = np.flatnonzero(everyone)
    if not near.size:
        return None
    near = near[:: 1 + near.size // _LOOKED_AT]
    offered = survey.offered(near)
    unlike = np.flatnonzero((offered != offered[:1]).any(axis=1))  # mostly none
    kinds: dict[tuple[int, ...], int] = {}
    for i in (0, *unlike.tolist()):
        kinds.setdefault(tuple(offered[i].tolist()), int(near[i]))
    counted = [
        (count, at)
        for has, at in kinds.items()
        if (count := _nodes_needed(needs, np.array(has, dtype=np.int64)))
    ]
    if not counted:
        return None
    count, at = min(counted)
    return count, survey.name(at)


def _nodes_needed(needs: Sequence[tuple[Ints, int]], has: Ints) -> int:
    """Count the empty nodes that so many of these pods take; 0 if one is too large for any."""
    nodes: Ints = np.zeros((0, has.size), dtype=np.int64)
    for vector, asked in needs:
        most = int(room_for(vector, has[None, :])[0])
        if not most:
            return 0
        room = np.minimum(np.cumsum(room_for(vector, nodes)), asked)
        given: Ints = np.diff(room, prepend=np.int64(0))
        nodes = nodes - given[:, None] * vector
        rest = asked - int(given.sum())
        fresh = -(-rest // most)
        on_each = np.full(fresh, most)
        on_each[fresh - 1 :] = rest - most * (fresh - 1)
        nodes = np.concatenate([nodes, has - on_each[:, None] * vector])
    return len(nodes)

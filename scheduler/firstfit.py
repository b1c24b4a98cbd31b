"""First fit, largest pods first: how much of a refused gang one domain would take. Pure.

This is no search: it serves explanations, which need a number and a proof, not the best place.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from scheduler.parts import Part
from scheduler.ranges import Ranges
from scheduler.surveying import MANY, Survey, room_for
from scheduler.tightest import tightest
from scheduler.topology import Bools, Ints

_TRIED: Final = 3  # domains that are tried before a part is left short
_FEW: Final = 200  # nodes that are looked at for all shapes at once

Run = tuple[int, int]
"""Positions from the first up to, and without, the second."""


@dataclass(frozen=True)
class LeftOut:
    """Pods of a shape that found no node in the run where they had to be."""

    shape: int
    count: int
    run: Run
    level: str  # of which the run is a domain


@dataclass(eq=False)
class Packing:
    """What was packed into a run of positions, what is left there, and who found no node."""

    survey: Survey
    run: Run
    slots: Ints  # shapes x positions of the run: how many more would fit
    placed: Ints  # the same: how many were packed
    whole: bool  # nothing more is packed once somebody was left out
    out: list[LeftOut] = field(default_factory=list)
    stale: list[Ints] = field(default_factory=list)  # rows where slots are to be counted again

    def recount(self) -> None:
        """Count slots again where something was packed since."""
        for rows in self.stale:
            left = self.left(rows)
            if rows.size <= _FEW:
                self.slots[:, rows] = np.minimum(
                    self.slots[:, rows], _room_for_all(self.survey, left)
                )
                continue
            for shape in np.flatnonzero(self.slots[:, rows].any(axis=1)).tolist():
                room = room_for(self.survey.vectors[shape], left)
                self.slots[shape, rows] = np.minimum(self.slots[shape, rows], room)
        self.stale.clear()

    def kept(self, run: Run) -> "Packing":
        """Remember what is packed within a run of this one, for `restore`."""
        first, last = run[0] - self.run[0], run[1] - self.run[0]
        slots, placed = self.slots[:, first:last].copy(), self.placed[:, first:last].copy()
        return Packing(self.survey, run, slots, placed, self.whole, list(self.out))

    def restore(self, run: Run, kept: "Packing") -> None:
        """Have there what was once, and nothing that was packed since left out."""
        first, last = run[0] - self.run[0], run[1] - self.run[0]
        self.slots[:, first:last], self.placed[:, first:last] = kept.slots, kept.placed
        self.out[:] = kept.out
        self.stale.clear()

    def left(self, rows: Ints) -> Ints:
        """What is left in these rows of the run; rows x resources."""
        taken: Ints = self.placed[:, rows].T @ self.survey.vectors
        found: Ints = self.survey.free[rows + self.run[0]] - taken
        return found

    def left_by_resource(self, run: Run) -> Ints:
        """What is left at the positions of a run within this one; resources x positions."""
        found: Ints = np.array(self.survey.free.T[:, slice(*run)])
        placed = self.placed[:, run[0] - self.run[0] : run[1] - self.run[0]]
        used = np.flatnonzero(placed.any(axis=0))
        found[:, used] -= self.survey.vectors.T @ placed[:, used]
        return found

    @property
    def missing(self) -> int:
        """How many pods were left out."""
        return sum(each.count for each in self.out)

    def left_out(self, part: Part) -> dict[str, int]:
        """Count who was left out of a part, by clique."""
        found: dict[str, int] = {}
        for each in self.out:
            clique = self.survey.shapes[each.shape].clique
            if each.shape in part.shapes:
                found[clique] = found.get(clique, 0) + each.count
        return found


@dataclass(frozen=True, eq=False)
class Attempt:
    """A gang packed around one domain of one of its parts."""

    part: Part
    ranges: Ranges
    domain: int
    packing: Packing

    @property
    def path(self) -> tuple[str, ...]:
        """Name the domain."""
        return self.packing.survey.path(self.ranges, self.domain)

    @property
    def fits(self) -> int:
        """How many pods of the part were packed."""
        asked = int(self.packing.survey.counts[list(self.part.shapes)].sum())
        return asked - sum(self.packing.left_out(self.part).values())


def nearest(survey: Survey, root: Part, name: str) -> list[Attempt]:
    """Pack a part of the gang into the domains that the bounds like best; best first.

    The rest of the gang is packed too, around the first of them. Domains that may not take the part
    at all, since its pods or siblings are elsewhere, are left out.
    """
    part, where = root.way(name)[-1], survey.usable
    ranked = _ranked(survey, part, where)
    # Where there is nothing to compare with, none is looked at for being alike.
    alike: dict[bytes, Packing] | None = {} if len(ranked) > 1 and not part.inner else None
    found = [
        Attempt(part, ranges, domain, _packed_alone(survey, part, ranges.run(domain), alike))
        for ranges, domain in ranked
    ]
    found.sort(key=lambda each: -each.fits)
    for i, each in enumerate(found):
        forced = _forced(survey, root, name, each.ranges.run(each.domain))
        if forced is not None and each.part is root:
            return found
        if forced is not None:
            first = replace(each, packing=_packed(survey, root, where, forced))
            return [first, *found[:i], *found[i + 1 :]]
    return []


def whole(survey: Survey, root: Part, name: str, where: Bools) -> Attempt | None:
    """Pack all of the gang, where `where` lets it, around some domain of a part; None if it fails.

    What is found is a proof that there is room; not to find any proves nothing.
    """
    part = root.way(name)[-1]
    ranked = _ranked(survey, part, where, whole=True)
    others = (each for each in root.walk() if each is not part)
    if not ranked or not all(_ranked(survey, each, where, whole=True) for each in others):
        return None  # a bound forbids one of its parts
    for ranges, domain in ranked:
        forced = _forced(survey, root, name, ranges.run(domain))
        if forced is not None:
            if _known_hopeless(survey, root, where, forced):
                return None
            packing = _packed(survey, root, where, forced, whole=True)
            if not packing.missing:
                return Attempt(part, ranges, domain, packing)
            _learn(survey, root, where, forced, packing)
    return None


_Alone: TypeAlias = tuple[int, Part, Run]
"""A part within a run, and by its identity the mask of where it may go."""

_hopeless: WeakKeyDictionary[Survey, set[_Alone]] = WeakKeyDictionary()


def _known_hopeless(survey: Survey, root: Part, where: Bools, forced: dict[str, Run]) -> bool:
    """Whether a part that may go anywhere in the gang's run is known not to fit there alone."""
    known = _hopeless.get(survey)
    if not known:
        return False
    run = forced[root.name]
    return any((id(where), each, run) in known for each in root.inner if each.name not in forced)


def _learn(
    survey: Survey, root: Part, where: Bools, forced: dict[str, Run], packing: Packing
) -> None:
    """See whether who was left out fits alone; if not it need not be tried beside others again."""
    run, out = forced[root.name], {each.shape for each in packing.out}
    first = not packing.placed.any()  # then it was alone already
    if not first and len(forced) == 1:
        return  # little else will be tried
    for part in root.inner:
        if part.name in forced or out.isdisjoint(part.shapes):
            continue
        by_itself = replace(root, shapes=part.shapes, inner=(part,))
        if first or _packed(survey, by_itself, where, {root.name: run}, whole=True).missing:
            _hopeless.setdefault(survey, set()).add((id(where), part, run))


def _ranked(
    survey: Survey, part: Part, where: Bools, *, whole: bool = False
) -> list[tuple[Ranges, int]]:
    """Choose a few domains for a part, those first of which the bounds allow most, or all of it."""
    ranges = survey.domains(part.level)
    pods = survey.pods(part.shapes, ranges, where)
    least = survey.counts[list(part.shapes)].sum() if whole else 0
    may = np.flatnonzero(ranges.holds(survey.positions(part.anchors)) & (pods >= least))
    order = may[np.argsort(-pods[may], kind="stable")][:_TRIED]
    return [(ranges, domain) for domain in order.tolist()]


def _forced(survey: Survey, root: Part, name: str, run: Run) -> dict[str, Run] | None:
    """Say where the parts around a part must be if that is in this run; None if they cannot."""
    *outer, _ = root.way(name)
    forced = {name: run}
    for around in outer:
        forced |= _around(survey, around, run)
    return forced if len(forced) == len(outer) + 1 else None


def _around(survey: Survey, part: Part, run: Run) -> dict[str, Run]:
    """Find the domain of a part's level that holds the run and its anchors, if there is one."""
    ranges = survey.domains(part.level)
    may = ranges.holds([run[0], run[1] - 1, *survey.positions(part.anchors)])
    found = [(int(ranges.starts[i]), int(ranges.stops[i])) for i in np.flatnonzero(may)]
    return {part.name: found[0]} if found else {}


def _packed(
    survey: Survey, root: Part, where: Bools, forced: dict[str, Run], *, whole: bool = False
) -> Packing:
    run = forced[root.name]
    slots = survey.left(where, run)
    packing = Packing(survey, run, slots, np.zeros(slots.shape, dtype=np.int64), whole)
    _fill(packing, root, run, forced)
    return packing


def _packed_alone(
    survey: Survey, part: Part, run: Run, alike: dict[bytes, Packing] | None
) -> Packing:
    """Pack a part into one of its domains; those whose nodes are alike take it alike."""
    if alike is None:
        return _packed(survey, part, survey.usable, {part.name: run})
    look = survey.left(survey.usable, run).tobytes() + survey.free[slice(*run)].tobytes()
    known = alike.get(look)
    if known is None:
        found = _packed(survey, part, survey.usable, {part.name: run})
        return alike.setdefault(look, found)
    return replace(known, run=run, out=[replace(each, run=run) for each in known.out])


def _fill(packing: Packing, part: Part, run: Run, forced: dict[str, Run]) -> None:
    survey = packing.survey
    for inner in sorted(part.inner, key=lambda each: _weight(survey, each.shapes)):
        if not (packing.whole and packing.out):
            _settle(packing, inner, run, forced)
    rest = set(part.shapes).difference(*(inner.shapes for inner in part.inner))
    for shape in sorted(rest, key=lambda i: (survey.weights[i], i)):
        if not (packing.whole and packing.out):
            _place(packing, shape, run, part.level)


def _settle(packing: Packing, part: Part, run: Run, forced: dict[str, Run]) -> None:
    """Find an inner part a domain: the tightest that takes all of it, or else the best one."""
    packing.recount()
    runs = [forced[part.name]] if part.name in forced else _candidates(packing, part, run)
    best: tuple[Run, Packing] | None = None
    for each in runs:
        before = packing.kept(each)
        _fill(packing, part, each, forced)
        if packing.missing == before.missing or len(runs) == 1:
            return
        if best is None or packing.missing < best[1].missing:
            packing.recount()
            best = each, packing.kept(each)
        packing.restore(each, before)
    if best is not None and not packing.whole:
        packing.restore(*best)
        return
    nowhere, counts = (run[0], run[0]), packing.survey.counts
    packing.out += [LeftOut(i, int(counts[i]), nowhere, part.level) for i in part.shapes]


def _candidates(packing: Packing, part: Part, run: Run) -> list[Run]:
    ranges = packing.survey.domains(part.level)
    inside = ranges.inside(run)
    if part.anchors:
        inside = inside[ranges.holds(packing.survey.positions(part.anchors))[inside]]
    if inside.size == 0:
        return []
    first, chosen = packing.run[0], list(part.shapes)
    slots = packing.slots[chosen, run[0] - first : run[1] - first]
    starts, stops = ranges.starts[inside], ranges.stops[inside]
    room = ranges.within(run, slots, inside)
    counts = packing.survey.counts[chosen]
    fits = np.minimum(room, counts[:, None]).sum(axis=0)
    # Of pods that are alike no other domain can take more than the first.
    most = 1 if len(chosen) == 1 and not part.inner else _TRIED
    order = np.lexsort((room.sum(axis=0), -fits))[:most]  # of equal ones the first
    if packing.whole:  # then a domain is of no use that cannot take all of it
        order = order[fits[order] == counts.sum()]
    return [(int(starts[i]), int(stops[i])) for i in order]


def _place(packing: Packing, shape: int, run: Run, level: str) -> None:
    """Place pods of a shape where the fewest more of them would fit."""
    packing.recount()
    wanted = int(packing.survey.counts[shape])
    first = run[0] - packing.run[0]
    slots = np.minimum(packing.slots[shape, first : first + run[1] - run[0]], wanted)
    rows = tightest(slots, wanted)
    given = slots[rows]
    missing = wanted - int(given.sum())
    if missing < 0:
        given[-1] += missing
    rows = rows + first
    packing.placed[shape, rows] += given
    packing.slots[shape, rows] = 0  # it is not asked again for this shape
    packing.stale.append(rows)  # nobody may ask again
    if missing > 0:
        packing.out.append(LeftOut(shape, missing, run, level))


def _room_for_all(survey: Survey, left: Ints) -> Ints:
    """Tell how many pods of each shape there is room for in each of a few rows; shapes x rows."""
    vectors, nothing = survey.dividing
    times = left[:, list(survey.asked)] // vectors
    np.copyto(times, MANY, where=nothing)
    found: Ints = times.min(axis=2, initial=MANY)
    return np.maximum(found, 0, out=found)


def _weight(survey: Survey, chosen: Iterable[int]) -> tuple[int, ...]:
    """Rank what is hard to place first: by the largest pod, the scarcest resource before others."""
    return min(survey.weights[i] for i in chosen)

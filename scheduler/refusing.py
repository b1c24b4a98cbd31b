"""Why a gang was refused, worked out from bounds and a few packings by first fit. Pure.

Nothing is searched again: it costs a few passes over the nodes, and only refused gangs pay for it.
"""

from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

import numpy as np

from scheduler.answers import (
    FILTERED,
    FRAGMENTED,
    GROUPED,
    SPREAD,
    Cause,
    CliqueReport,
    DomainReport,
    LevelReport,
    Nearest,
    NoFit,
)
from scheduler.eligible import Constraints
from scheduler.firstfit import Attempt, nearest
from scheduler.parts import Part, crossing, tree
from scheduler.ranges import Judged
from scheduler.requests import GangRequest
from scheduler.room import Room
from scheduler.surveying import Survey
from scheduler.topology import Bools, Ints
from scheduler.unblocking import remedies

_BEST: Final = 3  # domains of a level that are told of


@dataclass(frozen=True)
class _Finding:
    """What a refusal is put down to."""

    cause: Cause
    part: str = ""
    level: str = ""
    subject: str = ""


def refuse(room: Room, request: GangRequest, *, exhausted: bool = False, steps: int = 0) -> NoFit:
    """Say why the request was refused with this much room, and what would unblock it.

    The room is not written. `exhausted` says that the search ended with its budget; then a place
    may have been overlooked.
    """
    survey = Survey(room, request)
    finding = _wrong(survey)
    if finding is not None:
        return replace(_bare(survey, finding), exhausted=exhausted, steps=steps)
    root = tree(request, survey.shapes, survey.depths)
    finding = _finding(survey, root, exhausted=exhausted)
    found = nearest(survey, root, finding.part)
    refusal = replace(
        _bare(survey, finding),
        exhausted=exhausted,
        steps=steps,
        levels=_levels(survey, root, found),
        cliques=_cliques(survey, found[0] if found else None),
    )
    if not found:
        return refusal
    best = found[0]
    if not best.packing.missing:
        # There is room, so it must be what pods mean for each other.
        refusal = replace(refusal, cause=Cause.COMPANY, remedies=())
        return replace(refusal, nearest=_nearest(best))
    return replace(
        refusal,
        fitted=best.fits if request.minimum else 0,
        nearest=_nearest(best),
        remedies=remedies(survey, root, best),
    )


def _wrong(survey: Survey) -> _Finding | None:
    """Find what is wrong with the request whatever room there is."""
    request, snapshot = survey.request, survey.snapshot
    if snapshot.topology(request.topology) is None:
        return _Finding(Cause.TOPOLOGY, subject=request.topology)
    required = [("", request.near.required), *((g.name, g.near.required) for g in request.groups)]
    for part, level in required:
        if level and survey.ranges(level) is None:
            return _Finding(Cause.LEVEL, part, level)
    for spread in request.spread:
        if spread.hard and survey.depths.get(spread.level, 0) == 0:
            return _Finding(Cause.LEVEL, "", spread.level)
    crossed = crossing(request)
    if crossed:
        return _Finding(Cause.NESTING, crossed)
    if survey.unknown:
        return _Finding(Cause.RESOURCE, subject=survey.unknown)
    return None


def _finding(survey: Survey, root: Part, *, exhausted: bool) -> _Finding:
    """Name the first bound that forbids the gang: of the cluster, of a level, or none."""
    anywhere = _in_the_cluster(survey, root)
    if anywhere is not None:
        return anywhere
    for part in root.walk():
        if part.level:
            found = _of_level(survey, part)
            if found is not None:
                return found
    if exhausted:
        return _Finding(Cause.BUDGET)
    required = any(part.level for part in root.walk())
    return _Finding(Cause.COMBINATION if required else Cause.NODES)


def _in_the_cluster(survey: Survey, root: Part) -> _Finding | None:
    stop = survey.judged(replace(root, name="", inner=(), anchors=()), "").stop(0)
    large = _too_large(survey) if stop else None
    if large is not None:
        return _Finding(Cause.LARGE, subject=large)
    if stop == FRAGMENTED:
        return _Finding(Cause.NODES)
    if stop == FILTERED:
        return _Finding(Cause.FILTERS)
    if stop == SPREAD:
        return _Finding(Cause.SPREAD, level=root.level)
    return _Finding(Cause.TOTAL, subject=stop) if stop else None


def _of_level(survey: Survey, part: Part) -> _Finding | None:
    judged = survey.judged(part, part.level)
    if judged.enough.any():
        return None
    if part.anchors:
        holds = judged.ranges.holds(survey.positions(part.anchors))
        return _Finding(Cause.ANCHORS if holds.any() else Cause.APART, part.name, part.level)
    stopped = judged.stopped()
    if GROUPED in stopped:
        inner = (_of_level(survey, each) for each in part.inner)
        sharper = next((found for found in inner if found is not None), None)
        return sharper or _Finding(Cause.COMBINATION, part.name, part.level)
    if SPREAD in stopped:
        return _Finding(Cause.SPREAD, part.name, part.level)
    return _Finding(Cause.GROUP if part.name else Cause.DOMAINS, part.name, part.level)


def _too_large(survey: Survey) -> str | None:
    """Name what a pod asks more of than any node has, "" where it is all together; else None."""
    for i in np.flatnonzero(survey.fits(survey.everywhere) == 0).tolist():
        vector = survey.vectors[i]
        asked = [column for column in survey.asked if vector[column]]
        enough = np.ones(survey.size, dtype=np.bool_)
        for column in asked:
            enough &= _offered(survey, column) >= vector[column]
        if not enough.any():
            over = (c for c in asked if vector[c] > _offered(survey, c).max(initial=0))
            return next(map(survey.resource, over), "")
    return None


def _offered(survey: Survey, column: int) -> Ints:
    """What each node has to offer of one resource, by row."""
    capacity = survey.snapshot.capacity
    if column < capacity.shape[1]:
        return capacity[:, column]
    return np.ones(len(capacity), dtype=np.int64)  # what a node has once


def _bare(survey: Survey, finding: _Finding) -> NoFit:
    """Say what is needed and what there is, over all nodes."""
    request, snapshot = survey.request, survey.snapshot
    needed: dict[str, int] = {}
    for shape in survey.plain:
        for name, amount in shape.need.items():
            needed[name] = needed.get(name, 0) + amount * shape.count
    for column in survey.asked[::-1] if survey.shapes else ():
        if column >= survey.room.resources:  # what a node has once
            needed[survey.resource(column)] = int(survey.counts @ survey.vectors[:, column])
    anyone: Bools = np.any(survey.allowed, axis=0)
    # Also where a pod asks for something that no node knows, the rest of it is told as it is.
    free = {
        name: survey.free_in_all(column, anyone)
        for column, name in enumerate(survey.resources)
        if name in needed
    }
    return NoFit(
        request,
        0,
        needed,
        {name: free.get(name, 0) for name in needed},
        int(np.count_nonzero(anyone)),
        len(snapshot.nodes),
        _obstacles(survey, survey.shapes[0].constraints, ~anyone) if survey.shapes else {},
        cause=finding.cause,
        part=finding.part,
        level=finding.level,
        subject=finding.subject,
    )


def _obstacles(survey: Survey, constraints: Constraints, where: Bools) -> dict[str, int]:
    if not where.any():
        return {}
    left: Bools = where[survey.topology.position]
    counts: dict[str, int] = {}
    for reason, excluded in survey.snapshot.masks.barriers(constraints):
        count = int(np.count_nonzero(left & excluded))
        if count:
            counts[reason] = count
            left &= ~excluded
    return dict(sorted(counts.items()))


def _levels(survey: Survey, root: Part, found: list[Attempt]) -> tuple[LevelReport, ...]:
    """Report each level down to the one the gang requires, then those its groups require."""
    wider = list(takewhile(lambda level: level != root.level, survey.levels))
    reports = [_level(survey, replace(root, level=level), found, required=False) for level in wider]
    rest = [_level(survey, part, found, required=bool(part.level)) for part in root.walk()]
    return (*reports, *rest)


def _level(survey: Survey, part: Part, found: list[Attempt], *, required: bool) -> LevelReport:
    judged = survey.judged(part, part.level)
    near = [each for each in found if (each.part.name, each.part.level) == (part.name, part.level)]
    return LevelReport(
        part.name,
        part.level,
        required,
        judged.codes.size,
        int(judged.enough.sum()),
        judged.stopped(),
        tuple(_domain(each, judged) for each in near[:_BEST]),
    )


def _domain(attempt: Attempt, judged: Judged) -> DomainReport:
    return DomainReport(attempt.path, attempt.fits, _lacks(attempt), judged.stop(attempt.domain))


def _lacks(attempt: Attempt) -> dict[str, int]:
    """Tell by how much the domain's room falls short in sum, the scarcest resource first."""
    survey, chosen = attempt.packing.survey, attempt.part.shapes
    short = survey.lacking(chosen, attempt.ranges, survey.usable)[:, attempt.domain].tolist()
    lacks = zip(survey.asked, short, strict=True)
    return {survey.resource(column): amount for column, amount in lacks if amount}


def _nearest(attempt: Attempt) -> Nearest:
    asked = int(attempt.packing.survey.counts[list(attempt.part.shapes)].sum())
    return Nearest(
        attempt.part.name,
        attempt.part.level,
        attempt.path,
        attempt.fits,
        asked,
        _lacks(attempt),
        attempt.packing.left_out(attempt.part),
    )


def _cliques(survey: Survey, attempt: Attempt | None) -> tuple[CliqueReport, ...]:
    out = {each.shape: each.count for each in attempt.packing.out} if attempt else {}
    obstacles: dict[Constraints, dict[str, int]] = {}
    found = []
    room = survey.fits(survey.usable).tolist()
    for i, shape in enumerate(survey.shapes):
        if shape.constraints not in obstacles:
            barred = _obstacles(survey, shape.constraints, ~survey.allowed[i])
            obstacles[shape.constraints] = barred
        found.append(
            CliqueReport(
                shape.clique,
                shape.count,
                shape.count - out.get(i, 0 if attempt else shape.count),
                room[i],
                int(np.count_nonzero(survey.usable[i])),
                obstacles[shape.constraints],
                shape.need,
            )
        )
    return tuple(found)

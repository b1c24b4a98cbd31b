"""A gang as the explanations see it: shapes of pods, and the parts that must lie in one domain."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from api.quantities import PODS, Amounts
from scheduler.eligible import Constraints
from scheduler.requests import GangRequest, Group, Want


@dataclass(frozen=True)
class Shape:
    """Pods of one clique that are alike, and how many of them are asked for."""

    clique: str
    need: Amounts
    constraints: Constraints
    count: int


@dataclass(frozen=True)
class Part:
    """What must lie in one domain of a level: the whole gang (no name), a group or a clique."""

    name: str
    level: str  # empty: anywhere
    shapes: tuple[int, ...]  # all of it, those of inner parts too
    inner: tuple["Part", ...] = ()
    anchors: tuple[str, ...] = ()  # nodes of its pods that are there already

    def walk(self) -> Iterator["Part"]:
        """Give this part and all within it, wider ones first."""
        yield self
        for part in self.inner:
            yield from part.walk()

    def way(self, name: str) -> list["Part"]:
        """List the parts from this one down to the one of that name, or none if it is not here."""
        if self.name == name:
            return [self]
        return next(([self, *way] for part in self.inner if (way := part.way(name))), [])


def shapes(
    wants: Sequence[Want], settled: Callable[[Constraints], Constraints] = lambda same: same
) -> tuple[Shape, ...]:
    """Put wants that are alike together, in the order they come.

    `settled` leaves out of constraints what makes no difference, so that more are alike.
    """
    runs: list[Shape] = []
    for first, number in _runs(wants):
        runs.append(Shape(first.clique, first.need, first.constraints, number))
    return together(runs, settled)


def together(
    runs: Iterable[Shape], settled: Callable[[Constraints], Constraints] = lambda same: same
) -> tuple[Shape, ...]:
    """Put shapes that are alike together, in the order they come."""
    found: dict[tuple[str, tuple[tuple[str, int], ...], Constraints], Shape] = {}
    for each in runs:
        constraints = settled(each.constraints)
        alike = (each.clique, tuple(sorted(each.need.items())), constraints)
        before = found[alike].count if alike in found else 0
        found[alike] = Shape(each.clique, each.need, constraints, before + each.count)
    return tuple(found.values())


def _runs(wants: Sequence[Want]) -> Iterator[tuple[Want, int]]:
    """Count wants that are alike and follow each other."""
    start, first = 0, None
    for i, want in enumerate(wants):
        if first is None or not _alike(first, want):
            if first is not None:
                yield first, i - start
            start, first = i, want
    if first is not None:
        yield first, len(wants) - start


def _alike(one: Want, other: Want) -> bool:
    """Whether they are of one shape, as wants that follow each other mostly show at once."""
    return (
        one.need is other.need
        and one.clique == other.clique
        and (one.constraints is other.constraints or one.constraints == other.constraints)
    )


def crossing(request: GangRequest) -> str:
    """Name a group that shares cliques with another without lying within it, or give ""."""
    groups = sorted(request.groups, key=lambda group: -len(set(group.cliques)))
    for i, group in enumerate(groups):
        cliques = set(group.cliques)
        if any(not cliques.isdisjoint(g.cliques) and cliques - {*g.cliques} for g in groups[:i]):
            return group.name
    return ""


def widened(request: GangRequest, part: str, level: str) -> GangRequest:
    """Give the same request with another level required of one part."""
    if not part:
        return replace(request, near=replace(request.near, required=level))
    groups = [
        replace(group, near=replace(group.near, required=level)) if group.name == part else group
        for group in request.groups
    ]
    return replace(request, groups=tuple(groups))


def tree(request: GangRequest, asked: Sequence[Shape], depths: Mapping[str, int]) -> Part:
    """Build the gang's tree of what must lie in one domain.

    A group that requires no more than what it lies in, or of which nothing is asked for, is left
    out. `depths` says how deep each level lies.
    """
    everything = tuple(range(len(asked)))
    groups = sorted(request.groups, key=lambda group: -len(set(group.cliques)))
    found = [Part("", request.near.required, everything, (), _anchors(request, None))]
    held: list[frozenset[str]] = [frozenset(c for group in groups for c in group.cliques)]
    inside: list[list[int]] = [[]]
    for group in groups:  # larger ones come first, so the last that holds it is the nearest
        cliques = frozenset(group.cliques)
        chosen = tuple(i for i in everything if asked[i].clique in cliques)
        around = max(i for i, of in enumerate(held) if cliques <= of)
        if not chosen or depths[group.near.required] <= depths[found[around].level]:
            continue
        inside[around].append(len(found))
        anchors = _anchors(request, group)
        found.append(Part(group.name, group.near.required, chosen, (), anchors))
        held.append(cliques)
        inside.append([])
    for i in reversed(range(len(found))):
        found[i] = replace(found[i], inner=tuple(found[j] for j in inside[i]))
    return found[0]


def _anchors(request: GangRequest, group: Group | None) -> tuple[str, ...]:
    """Name the nodes of pods that bind a part; those of the base gang bind nothing."""
    own = [a for a in request.anchors if a.clique and (group is None or a.clique in group.cliques)]
    return tuple(sorted({anchor.node for anchor in own}))


def scarcity(resource: str) -> tuple[int, str]:
    """Rank resources: devices first, then what machines are made of, then pod slots."""
    rank = 0 if "/" in resource else 2 if resource == PODS else 1
    return rank, resource

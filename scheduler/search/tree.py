"""A request as the search sees it: parts within parts, and in them how many pods of each kind.

A part is what must lie in one domain of a depth: the gang, or groups whose required level is deeper
than that of what they lie in. Groups that require no more than that dissolve in it, and pods that
must share a node become one large pod. Parts that are alike are one part, several times.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from api import names
from scheduler.cells import Layout
from scheduler.requests import Closeness, GangRequest, Group, Want
from scheduler.room import Room, Shape
from scheduler.search.mates import Mates
from scheduler.topology import Bools

Pods: TypeAlias = tuple[Want, ...]
"""What goes to one node in one piece: a pod, or all pods that must share a node."""

Deepened: TypeAlias = Mapping[int, int]
"""Depths that branches are to keep to beyond what they require, by their index; for preferences."""


class UnplaceableError(Exception):
    """No search is needed: what is asked for contradicts itself or the cluster."""


@dataclass(eq=False)
class Branch:
    """The gang, a group or a clique as it was asked for."""

    index: int
    cliques: frozenset[str]
    near: Closeness
    inner: list["Branch"] = field(default_factory=list)
    own: tuple[str, ...] = ()  # cliques that are in none of the inner ones
    rows: tuple[int, ...] = ()  # of its pods that are there already


@dataclass(eq=False)
class Asked:
    """A request read once: its branches, wider ones first, and its pods by clique and shape."""

    branches: list[Branch]
    pods: dict[str, dict[Shape, list[Want]]]


@dataclass(frozen=True)
class Kind:
    """Pods that are alike in all that matters to a search: their shape, and how many at a time."""

    shape: Shape
    size: int  # pods in one piece


@dataclass(eq=False)
class Draft:
    """One part, and the very pods in it."""

    depth: int
    pin: int = -1
    own: dict[Kind, list[Pods]] = field(default_factory=dict)
    inner: list["Draft"] = field(default_factory=list)
    pieces: list[list[Pods]] = field(default_factory=list)  # its own, by kind as its part has them
    alike: list[list["Draft"]] = field(default_factory=list)  # the inner ones, likewise


@dataclass(eq=False)
class Part:
    """Pods that must lie in one domain of this depth; `times` is how often there is such a part
    in the one around it.
    """

    depth: int
    pin: int  # the only cell of its depth that it may be in; -1 for any
    times: int
    own: tuple[tuple[int, int], ...]  # kind and count, of each instance
    inner: tuple["Part", ...]
    total: tuple[tuple[int, int], ...] = field(init=False)  # the same, inner parts included

    def __post_init__(self) -> None:
        found = dict(self.own)
        for part in self.inner:
            for kind, count in part.total:
                found[kind] = found.get(kind, 0) + count * part.times
        self.total = tuple(found.items())

    def walk(self) -> Iterator["Part"]:
        """Give this part and all within."""
        yield self
        for part in self.inner:
            yield from part.walk()


@dataclass(eq=False)
class Tree:
    """The whole gang: its root part, all kinds of pods by index, and who they are."""

    root: Part
    kinds: list[Kind]
    draft: Draft
    counts: list[int] = field(init=False)  # pieces of each kind
    pods: int = field(init=False)

    def __post_init__(self) -> None:
        found = dict(self.root.total)
        self.counts = [found[kind] for kind in range(len(self.kinds))]
        self.pods = sum([found[i] * kind.size for i, kind in enumerate(self.kinds)])


def read(room: Room, request: GangRequest, mates: Mates) -> Asked:
    """Read a request; its extras are no part of the tree."""
    pods: dict[str, dict[Shape, list[Want]]] = {}
    seen: dict[tuple[int, int], Shape] = {}
    before: Want | None = None
    alike: list[Want] = []
    for want in sorted(request.minimum, key=lambda want: (want.clique, want.index)):
        # Most share both with the one before.
        if (
            before is not None
            and want.need is before.need
            and want.constraints is before.constraints
            and want.clique == before.clique
        ):
            alike.append(want)
            continue
        before = want
        key = id(want.need), id(want.constraints)
        shape = seen.get(key)
        if shape is None:
            shape = room.shape(want.need, want.constraints, mates.constraints)
            if shape is None:
                raise UnplaceableError(want.clique)
            seen[key] = shape
        alike = pods.setdefault(want.clique, {}).setdefault(shape, [])
        alike.append(want)
    return Asked(_branches(room, request, pods), pods)


def _branches(room: Room, request: GangRequest, pods: Mapping[str, object]) -> list[Branch]:
    """Nest the groups; the gang itself is the first branch."""
    every = frozenset({*pods, *(c for g in request.groups for c in g.cliques)})
    every |= {a.clique for a in request.anchors if a.clique}
    groups = sorted(request.groups, key=lambda g: (-len(set(g.cliques)), sorted(g.cliques), g.name))
    branches = [Branch(0, every, request.near)]
    for group in groups:
        branches.append(_nested(branches, group))
    row_of = room.snapshot.row_of
    for branch in branches:
        within = frozenset[str]().union(*(each.cliques for each in branch.inner))
        branch.own = tuple(sorted(branch.cliques - within))
        branch.rows = tuple(
            row_of[a.node]
            for a in request.anchors
            if a.clique in branch.cliques and a.node in row_of
        )
    return branches


def _nested(branches: Sequence[Branch], group: Group) -> Branch:
    """Hang a group below the smallest branch that it lies within."""
    cliques = frozenset(group.cliques)
    around = branches[0]
    for branch in branches[1:]:
        if cliques <= branch.cliques:
            around = branch
        elif cliques & branch.cliques:
            raise UnplaceableError(group.name)
    made = Branch(len(branches), cliques, group.near)
    around.inner.append(made)
    return made


def depth_of(where: Layout, key: str) -> int | None:
    """How deep a level lies; a node by itself is one deeper than the deepest."""
    if not key:
        return 0
    found = where.topology.depth_of(key)
    if found is None and key == names.HOSTNAME_KEY:
        return where.deepest + 1
    return found


def grown(asked: Asked, where: Layout, deepened: Deepened, room: Room) -> Tree:
    """Grow the tree of parts, some branches kept closer together than they require."""
    draft = _draft(_Growing(asked, where, deepened, room), asked.branches[0], 0)
    if draft.depth > where.deepest:
        draft = _as_one(draft, where, room)
    kinds: list[Kind] = []
    return Tree(_part([draft], 1, kinds), kinds, draft)


def _part(drafts: Sequence[Draft], times: int, kinds: list[Kind]) -> Part:
    """Make one part of drafts that are alike."""
    like = drafts[0]
    own = []
    for kind, pieces in like.own.items():
        own.append((len(kinds), len(pieces)))
        kinds.append(kind)
    keys = list(_counted(like.inner))
    for draft in drafts:
        by_key: dict[object, list[Draft]] = {key: [] for key in keys}
        for each in draft.inner:
            by_key[_key(each)].append(each)
        draft.alike = list(by_key.values())
        draft.pieces = [draft.own[kind] for kind in like.own]
    inner = tuple(
        _part([each for draft in drafts for each in draft.alike[i]], len(like.alike[i]), kinds)
        for i in range(len(keys))
    )
    return Part(like.depth, like.pin, times, tuple(own), inner)


@dataclass(frozen=True)
class _Growing:
    asked: Asked
    where: Layout
    deepened: Deepened
    room: Room


def _draft(
    growing: _Growing, branch: Branch, floor: int, labelled: tuple[Bools, ...] = ()
) -> Draft:
    """Make a branch's part; its pods keep to rows that are `labelled` for each level required."""
    where = growing.where
    required = depth_of(where, branch.near.required)
    if required is None:
        raise UnplaceableError(branch.near.required)
    depth = max(floor, required, growing.deepened.get(branch.index, 0))
    if 0 < required <= where.deepest:
        rows = where.labelled(required)
        labelled = labelled if rows is None else (*labelled, rows)
    draft = Draft(depth)
    for clique in branch.own:
        for shape, wants in growing.asked.pods.get(clique, {}).items():
            mask = shape.mask
            for rows in labelled:
                mask = growing.room.within(mask, rows)
            kind = Kind(Shape(shape.need, mask), 1)
            draft.own.setdefault(kind, []).extend((want,) for want in wants)
    for each in branch.inner:
        _hang(draft, _draft(growing, each, depth, labelled), growing)
    if depth and branch.rows and (draft.own or draft.inner):
        draft.pin = _pinned(branch, where, depth)
    return draft


def _hang(draft: Draft, inner: Draft, growing: _Growing) -> None:
    if not inner.own and not inner.inner:
        return
    if inner.depth > draft.depth and inner.depth > growing.where.deepest:
        inner = _as_one(inner, growing.where, growing.room)
        inner.depth = draft.depth
    if inner.depth == draft.depth:
        for kind, pieces in inner.own.items():
            draft.own.setdefault(kind, []).extend(pieces)
        draft.inner += inner.inner
    else:
        draft.inner.append(inner)


def _as_one(draft: Draft, where: Layout, room: Room) -> Draft:
    """Make one large pod of a part whose pods must share a node."""
    need: dict[int, int] = {}
    pods: list[Want] = []
    masks: dict[int, None] = {}
    for kind, pieces in draft.own.items():
        masks[kind.shape.mask] = None
        for at, amount in kind.shape.need:
            need[at] = need.get(at, 0) + amount * len(pieces)
        pods += [want for piece in pieces for want in piece]
    if not pods:
        return Draft(0)
    mask, *others = masks
    for other in others:
        mask = room.both(mask, other)
    if draft.pin >= 0:
        mask = room.within(mask, where.rows[draft.pin])
    shape = Shape(tuple(sorted(need.items())), mask)
    return Draft(0, own={Kind(shape, len(pods)): [tuple(pods)]})


def _pinned(branch: Branch, where: Layout, depth: int) -> int:
    """Name the cell that a branch's pods are in already; a position below the deepest cells."""
    positions = {where.positions[row] for row in branch.rows}
    if depth > where.deepest:
        cells = positions
    else:
        level = where.depths[depth]
        cells = {level.at_list[position] for position in positions}
        if not all(level.real[cell] for cell in cells):
            raise UnplaceableError(branch.near.required)
    if len(cells) > 1:
        raise UnplaceableError(branch.near.required)
    return min(cells)


def _signature(draft: Draft) -> tuple[object, ...]:
    own = frozenset((kind, len(pieces)) for kind, pieces in draft.own.items())
    return draft.depth, own, frozenset(_counted(draft.inner).items())


def _counted(drafts: Sequence[Draft]) -> dict[tuple[object, ...], int]:
    found: dict[tuple[object, ...], int] = {}
    for draft in drafts:
        key = _key(draft)
        found[key] = found.get(key, 0) + 1
    return found


def _key(draft: Draft) -> tuple[object, ...]:
    # Those that are tied to a place are like no other.
    return _signature(draft) if draft.pin < 0 else (draft.pin, id(draft))

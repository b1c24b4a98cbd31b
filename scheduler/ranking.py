"""Deals a gang's pods out over the rows found, so that consecutive ranks are neighbours."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from scheduler.cells import Layout
from scheduler.requests import Want
from scheduler.search.tree import Draft, Part, Pods, Tree

Put: TypeAlias = tuple[int, int, int]
"""Position, kind and how many pieces."""


def dealt(tree: Tree, where: Layout, put: Iterable[Put]) -> list[tuple[Want, int]]:
    """Give each pod its position.

    Pods of a clique are dealt by index over positions in the order of the network; of parts that
    are alike the first gets the first domain.
    """
    positions: dict[int, list[int]] = {kind: [] for kind in range(len(tree.kinds))}
    for position, kind, count in put:
        positions[kind] += [position] * count
    for each in positions.values():
        each.sort()
    found: list[tuple[Want, int]] = []
    _deal(tree.root, [tree.draft], positions, where, found)
    return found


def _deal(
    part: Part,
    drafts: Sequence[Draft],
    positions: Mapping[int, Sequence[int]],
    where: Layout,
    found: list[tuple[Want, int]],
) -> None:
    """Deal out a part's instances within one domain of the part around them."""
    at = where.depths[part.depth].at_list
    by_cell: dict[int, dict[int, list[int]]] = {}
    for kind, _ in part.total:
        for position in positions[kind]:
            by_cell.setdefault(at[position], {}).setdefault(kind, []).append(position)
    taken = 0
    for _, here in sorted(by_cell.items()):
        kind, each = part.total[0]
        count = len(here[kind]) // each
        _deal_here(part, drafts[taken : taken + count], here, where, found)
        taken += count


def _deal_here(
    part: Part,
    drafts: Sequence[Draft],
    here: Mapping[int, Sequence[int]],
    where: Layout,
    found: list[tuple[Want, int]],
) -> None:
    """Deal out the instances that share one domain."""
    for i, (kind, _) in enumerate(part.own):
        pieces: list[Pods] = [piece for draft in drafts for piece in draft.pieces[i]]
        for piece, position in zip(pieces, here[kind], strict=True):
            found += [(want, position) for want in piece]
    for i, inner in enumerate(part.inner):
        _deal(inner, [each for draft in drafts for each in draft.alike[i]], here, where, found)

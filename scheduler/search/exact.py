"""Small questions answered exactly: for each cell, everything it could take and what that is worth.

What a cell may take is a vector of counts between nothing and all that is asked for; all vectors
together are a box, and a table has a value for each of them. Tables of cells are made of those of
the cells within: a node adds its largest vectors, clipped to what is left. A part that must lie in
one domain is single pods below its depth and one thing above.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from scheduler.ranking import Put
from scheduler.search.board import Board, TooMuchError
from scheduler.search.boxes import Box, Vector, largest
from scheduler.search.pulling import Pull
from scheduler.search.tree import Part
from scheduler.topology import Ints

LARGEST: Final = 20_000  # vectors in a box
_SPLITS: Final = 1_000  # ways to limit parts that are looked at
_STEP: Final = 512  # vectors that are worked out for one step
_LEAF_STEP: Final = 2_048  # the same where only what is possible counts, not what it is worth
_NEVER: Final = -(10**15)


@dataclass(frozen=True)
class Item:
    """What is counted in a cell: pieces of a kind, or closed parts."""

    most: int
    size: int  # pods of one
    kind: int = -1
    part: Part | None = None


@dataclass(eq=False)
class Table:
    """What a cell may take, before its parts are closed, and how that was found."""

    values: Ints  # _NEVER where it cannot be
    stages: list[Ints]  # after each of `of`, the first with none
    of: list[int]  # positions, or cells one deeper
    tops: list[list[Vector]]
    closed: list[Ints]  # values of each cell one deeper


class Exact:
    """Tables for the cells of one layout and one part, made as they are asked for.

    `limits` say of parts that no more of them come into question.
    """

    def __init__(
        self, board: Board, root: Part, pull: Pull, limits: tuple[tuple[int, int], ...] = ()
    ) -> None:
        self._board = board
        self._budget = board.budget
        self._limits = dict(limits)
        self._subs: dict[tuple[tuple[int, int], ...], Exact] = {}
        self._split: dict[tuple[int, int], list[Exact]] = {}
        self._root = root
        self._pull = pull
        self._where = board.where
        sizes = [kind.size for kind in board.kinds]
        self._items = [self._listed(depth, sizes) for depth in range(self._where.deepest + 1)]
        self._boxes: dict[int, Box] = {}
        self._tables: dict[tuple[int, int], Table] = {}
        self._closed: dict[tuple[int, int], Ints] = {}
        self._nodes: dict[tuple[int, ...], list[Vector]] = {}
        self._leaves: dict[tuple[object, ...], list[Ints]] = {}
        self._expansions: dict[int, Ints] = {}
        asked = {at for kind, _ in root.total for at, _ in board.needs[kind]}
        self._asked = sorted(asked)

    def worth(self, depth: int, cell: int) -> int | None:
        """What pairs of pods share if the cell takes all that is asked for; None if it cannot.

        TooMuchError if that would take too long to find out.
        """
        values = self._table(depth, cell).values
        most = int(values[self._full(depth)])
        return most if most >= 0 else None

    def put(self, depth: int, cell: int) -> tuple[Put, ...]:
        """Say where all goes in a cell that can take it."""
        found: list[Put] = []
        self._trace(depth, cell, self._full(depth), found)
        return tuple(found)

    def forget(self) -> None:
        """Let all tables go; the board may then change."""
        self._tables.clear()
        self._closed.clear()
        self._leaves.clear()
        self._subs.clear()
        self._split.clear()

    def _full(self, depth: int) -> int:
        return self._box(depth).number([item.most for item in self._items[depth]])

    def _listed(self, depth: int, sizes: Sequence[int]) -> list[Item]:
        """List what is counted in cells of a depth before they are closed."""
        found: list[Item] = []

        def add(part: Part, times: int) -> None:
            for kind, count in part.own:
                found.append(Item(count * times, sizes[kind], kind))
            for inner in part.inner:
                most = min(inner.times * times, self._limits.get(id(inner), inner.times * times))
                if inner.depth <= depth:
                    add(inner, most)
                else:
                    pods = sum(count * sizes[kind] for kind, count in inner.total)
                    found.append(Item(most, pods, part=inner))

        add(self._root, 1)
        return found

    def _box(self, depth: int) -> Box:
        found = self._boxes.get(depth)
        if found is None:
            items = self._items[depth]
            found = Box(tuple(item.most for item in items), tuple(item.size for item in items))
            self._boxes[depth] = found
        return found

    def _table(self, depth: int, cell: int) -> Table:
        key = depth, cell
        found = self._tables.get(key)
        if found is None:
            if self._budget.out or self._box(depth).size > LARGEST:
                raise TooMuchError
            deepest = depth == self._where.deepest
            found = self._leaf(cell) if deepest else self._wider(depth, cell)
            if depth:
                there = self._pull.own[depth][cell] if self._pull.own is not None else 0
                pods = self._box(depth).pods
                found.values = found.values + pods * (pods - 1) // 2 + pods * there
            self._tables[key] = found
        return found

    def _leaf(self, cell: int) -> Table:
        """Make the table of one of the deepest cells from its nodes, the tightest first."""
        box = self._box(self._where.deepest)
        start, stop = self._where.depths[-1].runs[cell]
        nodes = []
        for position in range(start, stop):
            tops = self._tops(position)
            if tops:
                nodes.append((tops, position))
        nodes.sort(key=lambda node: (sum(map(sum, node[0])), node[0], node[1]))
        key = tuple(id(tops) for tops, _ in nodes)
        stages = self._leaves.get(key)
        if stages is None:
            first = np.zeros(box.size, dtype=np.int64)
            first[0] = 1
            stages = [first]
            for tops, _ in nodes:
                stage = stages[-1].copy()
                for top in tops:
                    self._budget.charge(1 + box.size // _LEAF_STEP)
                    stage |= stages[-1][box.clipped(top)[1]]
                stages.append(stage)
            self._leaves[key] = stages
        values = np.where(stages[-1], 0, _NEVER)
        return Table(values, stages, [p for _, p in nodes], [tops for tops, _ in nodes], [])

    def _tops(self, position: int) -> list[Vector]:
        """List the largest vectors that a node takes."""
        board = self._board
        slots = board.slots(position)
        free = board.free(position)
        key = (*[free[at] for at in self._asked], *[n > 0 for n in slots])
        found = self._nodes.get(key)
        if found is None:
            items = self._items[-1]
            order = [item.kind for item in items]
            most = [min(item.most, slots[item.kind]) for item in items]
            found = largest([board.needs[kind] for kind in order], most, free, self._budget)
            self._nodes[key] = found
        return found

    def _wider(self, depth: int, cell: int) -> Table:
        """Make a cell's table from those of the cells in it, the roomiest first."""
        box = self._box(depth)
        first, last = self._where.depths[depth].children[cell]
        children = []
        for child in range(first, last):
            closed = self._closed_table(depth + 1, child)
            able = closed >= 0
            if able[1:].any():
                self._budget.charge(1 + box.size // _STEP)
                tops = box.tops(able)
                most = int(box.pods[able].max())
                children.append((-most, child, tops, closed))
        children.sort(key=lambda each: each[:2])
        stage = np.full(box.size, _NEVER, dtype=np.int64)
        stage[0] = 0
        stages = [stage]
        for _, _, tops, closed in children:
            before = stages[-1]
            stage = before.copy()
            for top in tops:
                self._budget.charge(1 + box.size // _STEP)
                taken, left = box.clipped(top)
                np.maximum(stage, closed[taken] + before[left], out=stage)
            stages.append(stage)
        return Table(
            stages[-1],
            stages,
            [child for _, child, _, _ in children],
            [tops for _, _, tops, _ in children],
            [closed for _, _, _, closed in children],
        )

    def _closed_table(self, depth: int, cell: int) -> Ints:
        """What a cell may take, as the cell around it counts."""
        key = depth, cell
        found = self._closed.get(key)
        if found is None and self._box(depth).size > LARGEST:
            found = self._closed[key] = self._by_limits(depth, cell)
        if found is None:
            values = self._table(depth, cell).values[self._expanded(depth)]
            real = bool(self._where.depths[depth].real[cell])
            box = self._box(depth - 1)
            for i, item in enumerate(self._items[depth - 1]):
                part = item.part
                if part is None or part.depth != depth:
                    continue
                if not real or part.pin not in (-1, cell):
                    having = np.arange(box.size) // box.strides[i] % (item.most + 1) > 0
                    values = np.where(having, _NEVER, values)
            found = self._closed[key] = values
        return found

    def _by_limits(self, depth: int, cell: int) -> Ints:
        """Make a closed table of several, each with only so many parts as could be here at once."""
        box = self._box(depth - 1)
        values = np.full(box.size, _NEVER, dtype=np.int64)
        subs = self._split[depth, cell] = []
        for limits in self._largest_limits(depth, cell):
            sub = self._subs.get(limits)
            if sub is None:
                known = tuple((part, most) for part, most in self._limits.items())
                sub = Exact(self._board, self._root, self._pull, (*known, *limits))
                self._subs[limits] = sub
            if sub._box(depth).size > LARGEST:
                raise TooMuchError
            closed = sub._closed_table(depth, cell)
            numbers = sub._numbers(depth - 1, box)
            values[numbers] = np.maximum(values[numbers], closed)
            subs.append(sub)
        return values

    def _numbers(self, depth: int, box: Box) -> Ints:
        """The number of each vector in a larger box of the same items."""
        found = np.zeros(1, dtype=np.int64)
        for item, stride in zip(self._items[depth], box.strides, strict=True):
            found = (found[:, None] + np.arange(item.most + 1) * stride).ravel()
        return found

    def _largest_limits(self, depth: int, cell: int) -> list[tuple[tuple[int, int], ...]]:
        """List how many of each part a cell may hold at once, as far as its room tells."""
        parts = [
            (item.part, item.most)
            for item in self._items[depth - 1]
            if item.part is not None and item.part.depth == depth
        ]
        ways = 1
        for _, most in parts:
            ways *= most + 1
        if ways > _SPLITS:
            raise TooMuchError
        found: list[Vector] = []
        for times in sorted(product(*[range(most, -1, -1) for _, most in parts]), key=sum)[::-1]:
            if any(all(a <= b for a, b in zip(times, each, strict=True)) for each in found):
                continue
            if self._room_for(
                [(part, n) for (part, _), n in zip(parts, times, strict=True)], depth, cell
            ):
                found.append(times)
        return [
            tuple((id(part), n) for (part, _), n in zip(parts, times, strict=True))
            for times in found
        ]

    def _room_for(self, parts: Sequence[tuple[Part, int]], depth: int, cell: int) -> bool:
        """Whether there is room in sum for so many of these parts."""
        board = self._board
        capacity = board.capacity(depth, cell)
        total: dict[int, int] = {}
        for part, times in parts:
            for kind, count in part.total:
                if count * times > capacity[kind]:
                    return False
                for at, amount in board.needs[kind]:
                    total[at] = total.get(at, 0) + amount * count * times
        sums = board.room.totals(self._where).sums[depth][cell]
        return all(sums[at] >= n for at, n in total.items() if at < board.room.resources)

    def _expanded(self, depth: int) -> Ints:
        """For each vector as the cell around counts, its number in a cell's own box."""
        found = self._expansions.get(depth)
        if found is None:
            within = self._box(depth)
            place = {
                (item.kind, id(item.part)): stride
                for item, stride in zip(self._items[depth], within.strides, strict=True)
            }
            found = np.zeros(1, dtype=np.int64)
            for item in self._items[depth - 1]:
                stride = self._stride(item, depth, place)
                found = (found[:, None] + np.arange(item.most + 1) * stride).ravel()
            self._expansions[depth] = found
        return found

    def _stride(self, item: Item, depth: int, place: Mapping[tuple[int, int], int]) -> int:
        """What one of an item adds to a number in the box of this depth."""
        part = item.part
        if part is None or part.depth > depth:
            return place[item.kind, id(part)]
        own = sum(count * place[kind, id(None)] for kind, count in part.own)
        return own + sum(
            inner.times * self._stride(Item(1, 1, part=inner), depth, place) for inner in part.inner
        )

    def _trace(self, depth: int, cell: int, number: int, found: list[Put]) -> None:
        """Find out how a cell came to take a vector."""
        table, box = self._table(depth, cell), self._box(depth)
        leaf = depth == self._where.deepest
        for i in range(len(table.of) - 1, -1, -1):
            before = table.stages[i]
            if before[number] == table.stages[i + 1][number]:
                continue
            taken = self._taken(table, i, box, number, leaf=leaf)
            if leaf:
                vector = box.vector(taken)
                for item, count in zip(self._items[depth], vector, strict=True):
                    if count:
                        found.append((table.of[i], item.kind, count))
            else:
                self._trace_closed(depth + 1, table.of[i], taken, found)
            number -= taken

    def _trace_closed(self, depth: int, cell: int, number: int, found: list[Put]) -> None:
        subs = self._split.get((depth, cell))
        if subs is None:
            self._trace(depth, cell, int(self._expanded(depth)[number]), found)
            return
        box = self._box(depth - 1)
        for sub in subs:
            mine = np.flatnonzero(sub._numbers(depth - 1, box) == number)  # noqa: SLF001 - one of its own kind
            closed = sub._closed_table(depth, cell)  # noqa: SLF001 - one of its own kind
            if mine.size and closed[mine[0]] == self._closed[depth, cell][number]:
                sub._trace_closed(depth, cell, int(mine[0]), found)  # noqa: SLF001 - one of its own kind
                return
        raise AssertionError("a table was not made of its limits")

    def _taken(self, table: Table, i: int, box: Box, number: int, *, leaf: bool) -> int:
        before, after = table.stages[i], table.stages[i + 1]
        for top in table.tops[i]:
            taken, left = (int(each[number]) for each in box.clipped(top))
            if leaf:
                if before[left]:
                    return taken
            elif before[left] + table.closed[i][taken] == after[number]:
                return taken
        raise AssertionError("a table was not made of its stages")

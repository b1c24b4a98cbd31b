"""Vectors of counts, all of them numbered, and the largest ones that fit a node."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np

from scheduler.search.board import Budget
from scheduler.topology import Bools, Ints

_A_STEP: Final = 8  # vectors that are enumerated for one step

Vector: TypeAlias = tuple[int, ...]


@dataclass(eq=False)
class Box:
    """All vectors up to the most of each item, numbered."""

    most: Vector
    sizes: Vector  # pods of one item
    _clipped: dict[Vector, tuple[Ints, Ints]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        strides, size = [], 1
        for most in reversed(self.most):
            strides.append(size)
            size *= most + 1
        self.strides: Vector = tuple(reversed(strides))
        self.size = size

    def number(self, vector: Iterable[int]) -> int:
        """Give a vector's number."""
        return sum(n * stride for n, stride in zip(vector, self.strides, strict=True))

    def vector(self, number: int) -> Vector:
        """Give the vector of a number."""
        return tuple(
            number // stride % (most + 1)
            for stride, most in zip(self.strides, self.most, strict=True)
        )

    def clipped(self, vector: Vector) -> tuple[Ints, Ints]:
        """For each vector of the box, as numbers: what this one takes of it, and what it leaves."""
        found = self._clipped.get(vector)
        if found is None:
            taken = self._outer([np.minimum(np.arange(m + 1), v) for m, v in self._axes(vector)])
            left = np.arange(self.size) - taken
            found = self._clipped[vector] = taken, left
        return found

    @cached_property
    def pods(self) -> Ints:
        """How many pods each vector has."""
        found = np.zeros(1, dtype=np.int64)
        for most, size in zip(self.most, self.sizes, strict=True):
            found = (found[:, None] + np.arange(most + 1) * size).ravel()
        return found

    def tops(self, table: Bools) -> list[Vector]:
        """List the vectors of a table that no other one of it exceeds, those of most pods first."""
        grid = table.reshape([most + 1 for most in self.most])
        top = grid.copy()
        for axis, most in enumerate(self.most):
            if most:
                lower = [slice(None)] * grid.ndim
                upper = [slice(None)] * grid.ndim
                lower[axis], upper[axis] = slice(0, -1), slice(1, None)
                top[tuple(lower)] &= ~grid[tuple(upper)]
        numbers = np.flatnonzero(top.ravel())
        order = np.argsort(-self.pods[numbers], kind="stable")
        return [self.vector(number) for number in numbers[order].tolist()]

    def _axes(self, vector: Vector) -> Iterable[tuple[int, int]]:
        return zip(self.most, vector, strict=True)

    def _outer(self, axes: Sequence[Ints]) -> Ints:
        found = np.zeros(1, dtype=np.int64)
        for axis, stride in zip(axes, self.strides, strict=True):
            found = (found[:, None] + axis * stride).ravel()
        return found


def largest(
    needs: Sequence[Sequence[tuple[int, int]]],
    most: Sequence[int],
    free: Sequence[int],
    budget: Budget,
) -> list[Vector]:
    """List the vectors of counts that fit into what is free and cannot be added to.

    TooMuchError if there are more to look at than the budget allows.
    """
    seen = 0
    found: list[Vector] = []
    left = list(free)
    counts = [0] * len(needs)

    def fits(kind: int) -> int:
        return min([most[kind], *(max(0, left[at] // amount) for at, amount in needs[kind])])

    def go(kind: int) -> None:
        nonlocal seen
        if kind == len(needs):
            seen += 1
            if seen % _A_STEP == 1:
                budget.charge(1)
            if all(counts[k] >= most[k] or fits(k) == 0 for k in range(len(needs))):
                found.append(tuple(counts))
            return
        there = fits(kind)
        # Whoever comes last takes all that is left, or could be added to.
        for count in range(there, there - 1 if kind == len(needs) - 1 else -1, -1):
            counts[kind] = count
            for at, amount in needs[kind]:
                left[at] -= amount * count
            go(kind + 1)
            for at, amount in needs[kind]:
                left[at] += amount * count
        counts[kind] = 0

    if any(most):
        go(0)
    return [vector for vector in found if any(vector)]

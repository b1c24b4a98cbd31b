"""What the page shows, as values, and the difference between two such views. Pure.

A view is a few tables, rows by key. A delta names the rows that are new or other than they were,
and those that are gone; applied to the one view it gives the other. A viewer that begins is sent
the delta from the empty view, in pieces.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final, TypeAlias, TypeVar

import msgspec

R = TypeVar("R")

Rows: TypeAlias = dict[str, R | None]
"""Rows by key as they are now; None for one that is gone."""


class Part(msgspec.Struct, frozen=True, array_like=True):
    """What one gang has of a node; `held` of it is kept for pods that are not bound yet.

    What is taken by no gang has no name.
    """

    gang: str
    amount: int
    held: int = 0


class Cell(msgspec.Struct, frozen=True, array_like=True):
    """A node: its domain of each level, and what there is of the resource that is shown."""

    path: tuple[str, ...]
    has: int
    used: int
    state: str = ""
    parts: tuple[Part, ...] = ()


class GangRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A gang in short. `stamp` is another whenever anything may be, so that details are asked anew.

    `since` is from when on it has waited; "" for one that does not.
    """

    phase: str
    scheduled: bool = False
    reason: str = ""
    message: str = ""
    since: str = ""
    made: str = ""
    queue: str = ""
    pods: int = 0
    bound: int = 0
    amount: int = 0
    stamp: int = 0


class QueueRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A queue, and how its gangs are doing; `known` says that the policy has it."""

    gangs: int = 0
    waiting: int = 0
    pods: int = 0
    devices: dict[str, int] = {}
    known: bool = False
    default: bool = False
    namespaces: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()


class Violation(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rule that a refused spec broke, and where."""

    rule: str
    message: str
    path: str = ""


class RefusalRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A spec that was refused, as the audit log has it."""

    at: str
    what: str
    operation: str
    user: str = ""
    violations: tuple[Violation, ...] = ()
    more: int = 0


class Head(msgspec.Struct, frozen=True):
    """What is shown of which cluster. `notes` say what cannot be shown, and why."""

    cluster: str = ""
    resource: str = ""
    levels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    audited: bool = False


class View(msgspec.Struct, frozen=True):
    """All that the page shows at one instant."""

    head: Head = Head()
    nodes: Mapping[str, Cell] = {}
    gangs: Mapping[str, GangRow] = {}
    queues: Mapping[str, QueueRow] = {}
    refusals: Mapping[str, RefusalRow] = {}


EMPTY: Final = View()


class Delta(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is other in a later view."""

    head: Head | None = None
    nodes: Rows[Cell] = {}
    gangs: Rows[GangRow] = {}
    queues: Rows[QueueRow] = {}
    refusals: Rows[RefusalRow] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing has changed."""
        tables = self.nodes or self.gangs or self.queues or self.refusals
        return self.head is None and not tables


def delta(before: View, after: View) -> Delta:
    """Give what turns the one view into the other."""
    return Delta(
        after.head if after.head != before.head else None,
        _changed(before.nodes, after.nodes),
        _changed(before.gangs, after.gangs),
        _changed(before.queues, after.queues),
        _changed(before.refusals, after.refusals),
    )


def applied(before: View, what: Delta) -> View:
    """Give the view that follows."""
    return View(
        what.head or before.head,
        _merged(before.nodes, what.nodes),
        _merged(before.gangs, what.gangs),
        _merged(before.queues, what.queues),
        _merged(before.refusals, what.refusals),
    )


def pieces(view: View, rows: int) -> Iterator[Delta]:
    """Give what turns the empty view into this one, in pieces of at most so many rows a table.

    None takes a browser long, so that it can draw and answer in between.
    """
    whole = delta(EMPTY, view)
    nodes, gangs = iter(whole.nodes.items()), iter(whole.gangs.items())
    yield Delta(
        whole.head, dict(islice(nodes, rows)), dict(islice(gangs, rows)),
        whole.queues, whole.refusals,
    )  # fmt: skip
    while True:
        piece = Delta(None, dict(islice(nodes, rows)), dict(islice(gangs, rows)))
        if piece.is_empty:
            return
        yield piece


def _changed(before: Mapping[str, R], after: Mapping[str, R]) -> Rows[R]:
    found: Rows[R] = {}
    for key, row in after.items():
        old = before.get(key)
        if old is not row and old != row:
            found[key] = row
    if len(after) < len(before) + sum(key not in before for key in found):
        found.update(dict.fromkeys(before.keys() - after.keys()))
    return found


def _merged(before: Mapping[str, R], changed: Rows[R]) -> dict[str, R]:
    found = {key: row for key, row in before.items() if key not in changed}
    found.update({key: row for key, row in changed.items() if row is not None})
    return found

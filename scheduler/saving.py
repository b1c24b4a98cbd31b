"""What the engine was asked, and about which cluster, as JSON that can be read back and replayed.

What is read back gives the same snapshot, to the last bit, and so the same plan.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from api.daemonsets import DaemonSet
from api.streams import Node
from scheduler.requests import GangRequest
from scheduler.settings import DEFAULTS, Settings
from scheduler.snapshot import Hold, Snapshot, build
from scheduler.stock import Stock
from scheduler.topology import Levels

VERSION: Final = 1


class UnreadableError(ValueError):
    """The bytes are no snapshot that this version can read; says why in one line."""


class Saved(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that a plan is made from."""

    levels: tuple[Levels, ...]
    nodes: tuple[Node, ...]
    holds: tuple[Hold, ...] = ()
    daemonsets: tuple[DaemonSet, ...] = ()
    requests: tuple[GangRequest, ...] = ()
    settings: Settings = DEFAULTS

    def snapshot(self) -> Snapshot:
        """Take stock of the saved cluster."""
        return build(self.nodes, self.holds, self.levels, self.daemonsets)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    saved: Saved


class _Head(msgspec.Struct, frozen=True):
    version: int


def of_stock(
    stock: Stock, requests: Iterable[GangRequest] = (), settings: Settings = DEFAULTS
) -> Saved:
    """Save what a stock holds now, and what is asked of it."""
    return Saved(
        stock.levels,
        tuple(stock.nodes()),
        tuple(stock.holds()),
        tuple(stock.daemonsets()),
        tuple(requests),
        settings,
    )


def dumps(saved: Saved) -> bytes:
    """Write it as JSON."""
    return msgspec.json.encode(_File(VERSION, saved))


def loads(data: bytes) -> Saved:
    """Read it back, or raise UnreadableError."""
    try:
        version = msgspec.json.decode(data, type=_Head).version
        if version != VERSION:
            raise UnreadableError(
                f"a saved snapshot of version {version}; this engine reads version {VERSION}"
            )
        return msgspec.json.decode(data, type=_File).saved
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableError(f"no saved snapshot: {error}") from error

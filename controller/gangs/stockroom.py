"""The engine's stock as the caches have it: told of every change, and counted anew where one was.

Pods and gangs that changed are noted as they do, and looked at together when the next snapshot is
asked for, however often they changed until then.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from itertools import islice
from typing import Final

import msgspec

from api.daemonsets import DaemonSet
from api.quantities import Amounts
from api.streams import Node, Pod
from controller.gangs import stocktaking
from controller.gangs.shelves import Shelves, stocked
from controller.gangs.stocktaking import Spoken
from controller.gangs.views import GangView, Reservation, SlotKey
from kube.cache import Change, Deleted
from kube.objects import Key
from scheduler import saving
from scheduler.emptied import Emptied
from scheduler.filters.counted import merged
from scheduler.requests import GangRequest
from scheduler.saving import Saved
from scheduler.snapshot import Hold, Snapshot
from scheduler.stock import Stock
from scheduler.topology import Levels

_NOTHING: Final = Spoken()
_ALL: Final = 2**31


class Stockroom:
    """Knows what is taken. `look` shows a gang, and `left_by` what one that is gone has left."""

    def __init__(
        self,
        pods: Mapping[Key, Pod],
        look: Callable[[Key], GangView | None],
        left_by: Callable[[Key], Reservation | None],
        levels: Sequence[Levels],
        shelves: Shelves | None = None,
    ) -> None:
        self._shelves = shelves or Shelves()
        self._nodes: dict[str, Node] = {}  # as they say themselves what they have
        self._owed: set[Key] = set()  # pods that were counted with what their claims will take
        self._pods = pods
        self._look = look
        self._left_by = left_by
        self._stock = Stock(levels)
        self._changed_pods: set[Key] = set()
        self._leaving: set[Hashable] = set()  # holds that others may speak for too, or soon nobody
        self._changed_gangs: set[Key] = set()
        self._spoken: dict[Key, Spoken] = {}
        self._speakers: dict[Key, int] = {}  # for each pod, by how many gangs' slots it is counted
        self._kept: dict[Key, frozenset[Hashable]] = {}  # by people, as holds

    def touch(self, gang: Key) -> None:
        """Something that could matter to the gang has changed."""
        self._changed_gangs.add(gang)

    def on_pod(self, change: Change[Pod]) -> None:
        """A pod has changed."""
        meta = (change.old if isinstance(change, Deleted) else change.new).metadata
        self._changed_pods.add((meta.namespace, meta.name))

    def on_node(self, change: Change[Node]) -> None:
        """A node has changed."""
        if isinstance(change, Deleted):
            name = change.old.metadata.name
            self._nodes.pop(name, None)
            self._stock.drop_node(name)
            self._stock.drop(_on_shelf(name))
        else:
            self._nodes[change.new.metadata.name] = change.new
            self._put_node(change.new)

    def on_daemonset(self, change: Change[DaemonSet]) -> None:
        """A DaemonSet has changed."""
        if isinstance(change, Deleted):
            meta = change.old.metadata
            self._stock.drop_daemonset((meta.namespace, meta.name))
        else:
            self._stock.put_daemonset(change.new)

    def snapshot(
        self, levels: Sequence[Levels], moving: Set[tuple[Key, SlotKey]] = frozenset()
    ) -> Snapshot:
        """Take stock. Slots that are `moving` do not count: what is planned takes their place."""
        self._stock.arrange(levels)
        for node in self._shelves.changed(self._nodes.values()):
            self._put_node(node)
        self._catch_up()
        with self._without(moving):
            return self._stock.snapshot()

    def shares(self) -> Iterator[tuple[Key | None, Hold]]:
        """List all that was taken when the last snapshot was, and by which gang's slots it is.

        None stands for pods that are there, or need no slot, and for what people keep.
        """
        slots: dict[Hashable, Key] = {
            (gang, slot): gang for gang, spoken in self._spoken.items() for slot in spoken.slots
        }
        return ((slots.get(key), hold) for key, hold in self._stock.entries())

    def emptied(self) -> Emptied:
        """Give the cluster of the last snapshot as if nobody were on it."""
        return self._stock.emptied()

    def overdrawn(self, node: str) -> frozenset[str]:
        """Name the resources of which a node has less than is spoken for there by now.

        Pods that are being deleted do not count, nor slots of gangs that are gone: both may be
        there beside each other for the same room.
        """
        self._catch_up()
        return self._stock.overdrawn(node, self._leaving)

    def short_of(self, kept: Mapping[str, Amounts]) -> frozenset[str]:
        """Name the nodes on which what people keep cannot be had beside all others."""
        self._catch_up()
        ours = {key for keys in self._kept.values() for key in keys}
        leaving = self._leaving - ours
        return frozenset(
            node
            for node, amounts in kept.items()
            if not self._stock.overdrawn(node, leaving).isdisjoint(amounts)
        )

    def keep(self, by: Key, room: Mapping[str, Amounts]) -> None:
        """Count this as taken on nodes for a person's reservation, in the place of what was.

        It gives way to slots of gangs that have begun: these are not held up for it.
        """
        before = self._kept.pop(by, frozenset())
        now = {_kept_on(by, node): Hold(node, amounts) for node, amounts in room.items()}
        for key in before - now.keys():
            self._stock.drop(key)
        for key, hold in now.items():
            self._stock.put(key, hold)
        self._leaving -= before
        self._leaving |= now.keys()
        if now:
            self._kept[by] = frozenset(now)

    def saved(
        self, requests: Iterable[GangRequest], moving: Set[tuple[Key, SlotKey]] = frozenset()
    ) -> Saved:
        """Give what the last snapshot was made of, and what is asked of it, for a file."""
        with self._without(moving):
            return saving.of_stock(self._stock, requests)

    def catch_up(self, most: int) -> bool:
        """Count some of what has changed, so many gangs and pods; tells whether more is left."""
        gangs = list(islice(self._changed_gangs, most))
        for gang in gangs:
            self._count(gang)
        self._changed_gangs.difference_update(gangs)
        pods = list(islice(self._changed_pods, most))
        for pod in pods:
            self._put(pod, self._claim(pod))
            there = self._pods.get(pod)
            if there is not None and there.metadata.deletion_timestamp is not None:
                self._leaving.add(pod)
            else:
                self._leaving.discard(pod)
        self._changed_pods.difference_update(pods)
        if not self._changed_pods:
            self._changed_pods = set()  # an emptied one keeps the room it had
        return bool(self._changed_gangs or self._changed_pods)

    def _catch_up(self) -> None:
        if self._shelves.moved:
            self._shelves.moved = False
            self._changed_pods |= self._owed
        while self.catch_up(_ALL):
            pass

    def _count(self, gang: Key) -> None:
        """Count the gang's slots again, and its pods as far as no slot speaks for them."""
        view, left = self._look(gang), self._left_by(gang)
        now = stocktaking.of_gang(view) if view is not None else _NOTHING
        if left is not None:
            now = Spoken(stocktaking.of_orphan(left), now.pods)
        self._leaving -= {(gang, slot) for slot in self._spoken.get(gang, _NOTHING).slots}
        if left is not None:  # its pods may be there still, and then count beside these
            self._leaving |= {(gang, slot) for slot in now.slots}
        before = self._spoken.pop(gang, _NOTHING)
        if now != _NOTHING:
            self._spoken[gang] = now
        for slot in before.slots.keys() - now.slots.keys():
            self._stock.drop((gang, slot))
        for slot, hold in now.slots.items():
            self._stock.put((gang, slot), hold)
        for pod in before.pods - now.pods:
            self._speakers[pod] -= 1
            if not self._speakers[pod]:
                del self._speakers[pod]
        for pod in now.pods - before.pods:
            self._speakers[pod] = self._speakers.get(pod, 0) + 1
        self._changed_pods |= before.pods ^ now.pods

    def _claim(self, key: Key) -> Hold | None:
        self._owed.discard(key)
        pod = self._pods.get(key)
        hold = None if pod is None or key in self._speakers else stocktaking.hold_of(pod)
        owed = self._shelves.claimed(pod) if pod is not None and hold is not None else {}
        if not owed or hold is None:
            return hold
        # Its claims have been met, or are about to be, and nobody has told us yet.
        self._owed.add(key)
        return msgspec.structs.replace(hold, need=merged(hold.need, owed))

    def _put_node(self, node: Node) -> None:
        shelf = self._shelves.on(node)
        name = node.metadata.name
        self._stock.put_node(stocked(node, shelf.has))
        self._put(_on_shelf(name), Hold(name, shelf.taken) if shelf.taken else None)

    def _put(self, key: Hashable, hold: Hold | None) -> None:
        if hold is None:
            self._stock.drop(key)
        else:
            self._stock.put(key, hold)

    @contextmanager
    def _without(self, moving: Set[tuple[Key, SlotKey]]) -> Iterator[None]:
        held = {
            (gang, slot): hold
            for gang, slot in moving
            if (hold := self._spoken.get(gang, _NOTHING).slots.get(slot)) is not None
        }
        for key in held:
            self._stock.drop(key)
        try:
            yield
        finally:
            for key, hold in held.items():
                self._stock.put(key, hold)


def _kept_on(by: Key, node: str) -> Hashable:
    """Name the hold of what a person keeps on a node."""
    return "kept", by, node


def _on_shelf(node: str) -> Hashable:
    """Name the hold of what is taken on a node whoever is there: no pod's, and no gang's."""
    return "on the shelf", node

"""What nodes have beside what they say themselves: devices and local volumes, told of by events."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from api import names
from api.claims import (
    DeviceClaim,
    DeviceClass,
    PersistentVolume,
    PersistentVolumeClaim,
    ResourceSlice,
    StorageClass,
)
from api.quantities import Amounts
from api.streams import Node, Pod
from kube.cache import Added, Change, Deleted
from kube.objects import KubeObject
from scheduler.filters.counted import Shelf, merged
from scheduler.filters.devices import Devices
from scheduler.filters.disks import Disks

T = TypeVar("T", bound=KubeObject)


class Shelves:
    """Counts them node by node. `claimed` tells what a pod takes that nobody has given it yet."""

    def __init__(self) -> None:
        self.devices = Devices()
        self.disks = Disks()
        self.claimed: Callable[[Pod], Amounts] = _nothing
        self.moved = False  # whether what claims say is not what it was

    def use(self, disks: Disks, claimed: Callable[[Pod], Amounts]) -> None:
        """Go by these from now on."""
        self.disks, self.claimed = disks, claimed

    def on(self, node: Node) -> Shelf:
        """Count what a node has."""
        devices, disks = self.devices.on(node), self.disks.on(node)
        return Shelf(merged(devices.has, disks.has), merged(devices.taken, disks.taken))

    def changed(self, nodes: Iterable[Node]) -> Iterator[Node]:
        """List those of the nodes that may not have what they had."""
        by_name, by_host = self.devices.changed(), self.disks.changed()
        if by_name is None or by_host is None:
            yield from nodes
        elif by_name or by_host:
            for node in nodes:
                meta = node.metadata
                if meta.name in by_name or meta.labels.get(names.HOSTNAME_KEY) in by_host:
                    yield node

    def on_class(self, change: Change[DeviceClass]) -> None:
        """A DeviceClass has changed."""
        self.moved = True
        self.devices.drop_class(_last(change).metadata.name)
        if not isinstance(change, Deleted):
            self.devices.put_class(change.new)

    def on_slice(self, change: Change[ResourceSlice]) -> None:
        """A ResourceSlice has changed."""
        self.devices.drop_slice(_last(change).metadata.name)
        if not isinstance(change, Deleted):
            self.devices.put_slice(change.new)

    def on_devices(self, change: Change[DeviceClaim]) -> None:
        """A ResourceClaim has changed."""
        self.moved = True
        meta = _last(change).metadata
        self.devices.drop_claim((meta.namespace, meta.name))
        if not isinstance(change, Deleted):
            self.devices.put_claim(change.new)

    def on_volume(self, change: Change[PersistentVolume]) -> None:
        """A PersistentVolume has changed."""
        self.moved = True
        if not isinstance(change, Added):
            self.disks.drop_volume(change.old)
        if not isinstance(change, Deleted):
            self.disks.put_volume(change.new)

    def on_claim(self, change: Change[PersistentVolumeClaim]) -> None:
        """A claim to a volume has changed."""
        self.moved = True
        if isinstance(change, Deleted):
            meta = change.old.metadata
            self.disks.drop_claim((meta.namespace, meta.name))
        else:
            self.disks.put_claim(change.new)

    def on_storage(self, _change: Change[StorageClass]) -> None:
        """A StorageClass has changed."""
        self.moved = True
        self.disks.classes_changed()


def stocked(node: Node, has: Amounts) -> Node:
    """Give the node as if it said itself what it has."""
    if not has:
        return node
    more = {name: str(amount) for name, amount in has.items()}
    allocatable = {**node.status.allocatable, **more}
    status = msgspec.structs.replace(node.status, allocatable=allocatable)
    return msgspec.structs.replace(node, status=status)


def _last(change: Change[T]) -> T:
    return change.old if isinstance(change, Deleted) else change.new


def _nothing(_pod: Pod) -> Amounts:
    return {}

"""How many devices of each class every node has, how many are given away, what claims take of them.

Kept up by events. What drivers say in ResourceSlices is counted per node and class; what claims
were given is taken off. Where a class's selectors cannot be read, all devices that might be of it
are counted: then there are at most so many.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from api.claims import (
    Device,
    DeviceClaim,
    DeviceClaimSpec,
    DeviceClass,
    DeviceRequest,
    DeviceRequests,
    ResourceSlice,
    SliceSpec,
)
from api.quantities import Amounts
from api.streams import Node, NodeSelector
from scheduler.filters.counted import Shelf, devices_of, least, merged, within
from scheduler.filters.expressions import Conditions, read
from scheduler.filters.selecting import selected

DeviceId: TypeAlias = tuple[str, str, str]  # driver, pool and name
Classes: TypeAlias = frozenset[str]

_ALL: Final = NodeSelector()  # stands for every node, which no selector of its own says
_MARKS: Final = ("NoSchedule", "NoExecute")


@dataclass(frozen=True)
class Asked:
    """What claims take, by column.

    `left` says that only kube-scheduler tells the rest; `local`, that whoever uses the claim must
    be on the node that has the devices.
    """

    takes: Amounts
    left: bool = False
    local: bool = True


class _Counted(msgspec.Struct, frozen=True, gc=False):
    """A device that counts: where it is, by a node's name or a selector, and its classes."""

    name: DeviceId
    where: str | NodeSelector
    classes: Classes
    several: bool  # several claims may have it


class Devices:
    """What there is of devices, and who has it."""

    def __init__(self) -> None:
        self._classes: dict[str, Conditions] = {}
        self._telling: tuple[str, ...] = ()  # attributes that classes ask for, as drivers say them
        self._kinds: dict[object, Classes] = {}
        self._slices: dict[str, SliceSpec] = {}
        self._pools: dict[tuple[str, str], dict[str, SliceSpec]] = {}
        self._counted: dict[tuple[str, str], tuple[_Counted, ...]] = {}
        self._local: dict[str, dict[DeviceId, Classes]] = {}
        self._wide: dict[DeviceId, _Counted] = {}
        self._reached: dict[NodeSelector, Shelf] | None = None  # of the wide ones, by who does
        self._together: Counter[Classes] = Counter()
        self._several: Counter[str] = Counter()
        self._given: dict[tuple[str, str], tuple[DeviceId, ...]] = {}
        self._taken: Counter[DeviceId] = Counter()
        self._home: dict[DeviceId, str] = {}
        self._stale: set[tuple[str, str]] = set()
        self._touched: set[str] = set()
        self._everywhere = False

    def put_class(self, found: DeviceClass) -> None:
        """A class is there, or is another."""
        self._classes[found.metadata.name] = read(found.spec.selectors)
        self._judge_again()

    def drop_class(self, name: str) -> None:
        """A class is gone."""
        if self._classes.pop(name, None) is not None:
            self._judge_again()

    def put_slice(self, found: ResourceSlice) -> None:
        """A slice is there, or is another."""
        name, spec = found.metadata.name, found.spec
        self.drop_slice(name)
        pool = spec.driver, spec.pool.name
        self._slices[name] = spec
        self._pools.setdefault(pool, {})[name] = spec
        self._stale.add(pool)

    def drop_slice(self, name: str) -> None:
        """A slice is gone."""
        spec = self._slices.pop(name, None)
        if spec is not None:
            pool = spec.driver, spec.pool.name
            del self._pools[pool][name]
            self._stale.add(pool)

    def put_claim(self, found: DeviceClaim) -> None:
        """A claim is there, or is another."""
        meta, allocation = found.metadata, found.status.allocation
        self.drop_claim((meta.namespace, meta.name))
        results = allocation.devices.results if allocation else ()
        given = tuple((r.driver, r.pool, r.device) for r in results if not r.admin_access)
        if given:
            self._given[meta.namespace, meta.name] = given
            self._count(given, 1)

    def drop_claim(self, key: tuple[str, str]) -> None:
        """A claim is gone."""
        self._count(self._given.pop(key, ()), -1)

    def changed(self) -> frozenset[str] | None:
        """Name the nodes whose devices may not be what they were; None for any node.

        What was named once is named again only when it has changed again.
        """
        self._settle()
        found = None if self._everywhere else frozenset(self._touched)
        self._everywhere = False
        self._touched.clear()
        return found

    def on(self, node: Node) -> Shelf:
        """Count what a node has and what of it is given away, by column."""
        self._settle()
        local = self._local.get(node.metadata.name)
        if not local and not self._wide:
            return Shelf()
        shelf = self._shelf((local or {}).items())
        for where, wide in self._of_several().items():
            if where == _ALL or selected(node, where):
                shelf = Shelf(merged(shelf.has, wide.has), merged(shelf.taken, wide.taken))
        return shelf

    def asked(self, spec: DeviceClaimSpec) -> Asked:
        """Tell what a claim takes that nobody has met yet."""
        self._settle()
        takes: Amounts = {}
        left = local = False
        for request in spec.devices.requests:
            found = self._asked(request)
            takes, left = merged(takes, found.takes), left or found.left
            local = local or found.local
        return Asked(takes, left, local)

    def _asked(self, request: DeviceRequests) -> Asked:
        if request.exactly is not None:
            return self._of(request.exactly)
        found = [self._of(each) for each in request.first_available]
        if not found:
            return Asked({}, left=True)
        # Whichever of them is met, so much is taken.
        local = all(each.local for each in found)
        return Asked(least(each.takes for each in found), left=True, local=local)

    def _of(self, request: DeviceRequest) -> Asked:
        name = request.device_class_name
        local = not any(name in wide.classes for wide in self._wide.values())
        if request.admin_access:
            return Asked({}, local=local)  # it has what others have
        if request.tolerations or self._several[name]:
            return Asked({}, left=True, local=local)
        conditions = self._classes.get(name, Conditions())
        every = request.allocation_mode != "ExactCount"
        left = every or bool(request.selectors) or not conditions.whole
        count = 1 if every else request.count
        return Asked({devices_of(each): count for each in sorted(self._around(name))}, left, local)

    def _around(self, name: str) -> Iterator[str]:
        """List the classes that devices of this one are of as well, as far as that is certain."""
        for each in within(self._together, name):
            conditions = self._classes.get(each)
            if each == name or (conditions and conditions.whole and not self._several[each]):
                yield each

    def _shelf(self, devices: Iterable[tuple[DeviceId, Classes]]) -> Shelf:
        has: Counter[str] = Counter()
        taken: Counter[str] = Counter()
        for name, classes in devices:
            has.update(classes)
            if name in self._taken:
                taken.update(classes)
        return Shelf(_by_column(has), _by_column(taken))

    def _of_several(self) -> Mapping[NodeSelector, Shelf]:
        """Count the devices that several nodes may reach, by which nodes do."""
        if self._reached is None:
            there: dict[NodeSelector, list[tuple[DeviceId, Classes]]] = {}
            for device in self._wide.values():
                if isinstance(device.where, NodeSelector):
                    there.setdefault(device.where, []).append((device.name, device.classes))
            self._reached = {where: self._shelf(found) for where, found in there.items()}
        return self._reached

    def _count(self, given: Iterable[DeviceId], sign: int) -> None:
        for name in given:
            self._taken[name] += sign
            if not self._taken[name]:
                del self._taken[name]
            if name in self._wide:
                self._widely()
            elif name in self._home:
                self._touched.add(self._home[name])

    def _judge_again(self) -> None:
        every = [each for found in self._classes.values() for each in found.every]
        asked = {name for each in every for name in each.spellings}
        self._telling = tuple(sorted(asked))
        self._kinds.clear()
        self._stale |= self._pools.keys()

    def _settle(self) -> None:
        """Count again the pools that are not what they were."""
        if not self._stale:
            return
        stale, self._stale = self._stale, set()
        for pool in stale:
            for device in self._counted.pop(pool, ()):
                self._take_off(device)
            counted = tuple(self._devices(pool))
            if counted:
                self._counted[pool] = counted
            self._put_on(counted)
            if not self._pools[pool]:
                del self._pools[pool]

    def _devices(self, pool: tuple[str, str]) -> Iterator[_Counted]:
        """List the devices that a pool has; kube-scheduler uses none of one that is not whole."""
        slices = self._pools[pool].values()
        newest = max((each.pool.generation for each in slices), default=0)
        latest = [each for each in slices if each.pool.generation == newest]
        if any(len(latest) < each.pool.resource_slice_count for each in latest):
            return
        for spec in latest:
            for device in spec.devices:
                where = _place(spec, device)
                if where and not _marked(device):
                    several = bool(device.allow_multiple_allocations)
                    name = (*pool, device.name)
                    yield _Counted(name, where, self._classes_of(spec.driver, device), several)

    def _classes_of(self, driver: str, device: Device) -> Classes:
        told = device.attributes.get
        key = driver, tuple([told(name) for name in self._telling])
        found = self._kinds.get(key)
        if found is None:
            found = self._kinds[key] = frozenset(
                name
                for name, conditions in self._classes.items()
                if conditions.hold(driver, device.attributes)
            )
        return found

    def _put_on(self, devices: Sequence[_Counted]) -> None:
        self._together.update([device.classes for device in devices])
        for device in devices:
            if device.several:
                self._several.update(device.classes)
            if isinstance(device.where, str):
                self._local.setdefault(device.where, {})[device.name] = device.classes
                self._home[device.name] = device.where
                self._touched.add(device.where)
            else:
                self._wide[device.name] = device
                self._widely()

    def _take_off(self, device: _Counted) -> None:
        self._together[device.classes] -= 1
        if not self._together[device.classes]:
            del self._together[device.classes]
        if device.several:
            self._several.subtract(device.classes)
        if isinstance(device.where, str):
            there = self._local[device.where]
            there.pop(device.name, None)
            if not there:
                del self._local[device.where]
            self._home.pop(device.name, None)
            self._touched.add(device.where)
        else:
            self._wide.pop(device.name, None)
            self._widely()

    def _widely(self) -> None:
        self._everywhere, self._reached = True, None


def _place(spec: SliceSpec, device: Device) -> str | NodeSelector:
    """Tell who reaches a device: one node, those that are selected, or all; "" for nobody."""
    told = device if spec.per_device_node_selection else spec
    if told.node_name:
        return told.node_name
    return _ALL if told.all_nodes else told.node_selector or ""


def _marked(device: Device) -> bool:
    """Whether claims are kept off it unless they tolerate that."""
    return bool(device.taints) and any(taint.effect in _MARKS for taint in device.taints)


def _by_column(counts: Counter[str]) -> Amounts:
    return {devices_of(name): count for name, count in counts.items()}

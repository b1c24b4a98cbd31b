"""What only the engine must know of a cluster: levels, what pods claim, what nodes are to run."""

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, Protocol, TypeVar

from typing_extensions import override

from api.claims import (
    DeviceClaim,
    DeviceClass,
    DeviceTemplate,
    PersistentVolume,
    PersistentVolumeClaim,
    ResourceSlice,
    StorageClass,
)
from api.daemonsets import DaemonSet
from api.streams import Custom
from controller.gangs import owners
from controller.gangs.shelves import Shelves
from kube.cache import Added, Cache, Change, Deleted, Modified, Source
from kube.client import Client
from kube.objects import KubeObject
from kube.resources import (
    CLAIM_TEMPLATES,
    DAEMONSETS,
    DEVICE_CLASSES,
    DEVICE_SLICES,
    RESOURCE_CLAIMS,
    STORAGE_CLASSES,
    TOPOLOGY_BINDINGS,
    VOLUME_CLAIMS,
    VOLUMES,
    Resource,
)
from scheduler.filters.claims import Claims
from scheduler.filters.disks import Disks

T = TypeVar("T", bound=KubeObject)


class Following(Protocol):
    """A cache of any kind."""

    @property
    def is_synced(self) -> bool:
        """Whether the first list has arrived."""
        ...

    async def run(self) -> None:
        """Follow until cancelled."""
        ...

    async def synced(self) -> None:
        """Return once the first list has arrived."""
        ...

    async def relist(self, reason: str) -> None:
        """List once more."""
        ...


@dataclass(frozen=True)
class Sources:
    """What is followed for it. A cluster need not serve all of these kinds.

    `missing` are those that it did not serve to us when they were last asked for.
    """

    bindings: Cache[Custom]
    daemonsets: Cache[DaemonSet]
    claims: Cache[PersistentVolumeClaim]
    volumes: Cache[PersistentVolume]
    classes: Cache[StorageClass]
    devices: Cache[DeviceClaim]
    templates: Cache[DeviceTemplate]
    slices: Cache[ResourceSlice]
    device_classes: Cache[DeviceClass]
    missing: set[Resource] = field(default_factory=set)

    @classmethod
    def of(cls, source: Source, rng: random.Random) -> "Sources":
        """Make the caches."""
        return cls(
            Cache(source, TOPOLOGY_BINDINGS, Custom, rng),
            Cache(source, DAEMONSETS, DaemonSet, rng),
            Cache(source, VOLUME_CLAIMS, PersistentVolumeClaim, rng),
            Cache(source, VOLUMES, PersistentVolume, rng),
            Cache(source, STORAGE_CLASSES, StorageClass, rng),
            Cache(source, RESOURCE_CLAIMS, DeviceClaim, rng),
            Cache(source, CLAIM_TEMPLATES, DeviceTemplate, rng),
            Cache(source, DEVICE_SLICES, ResourceSlice, rng),
            Cache(source, DEVICE_CLASSES, DeviceClass, rng),
        )

    async def run(self, client: Client) -> None:
        """Keep them up to date until cancelled."""
        async with asyncio.TaskGroup() as group:
            for kind, cache in self._each():
                group.create_task(owners.follow(client, kind, cache.run))

    async def settled(self, client: Client) -> None:
        """Return once all that is served has been listed."""
        for kind, cache in self._each():
            if await owners.served(client, kind):
                await cache.synced()
            else:
                self.missing.add(kind)

    def known(self, kind: Resource) -> bool:
        """Whether what there is of a kind can be told; one may come to be served later."""
        return kind not in self.missing or dict(self._each())[kind].is_synced

    async def relist(self, reason: str) -> None:
        """List what has been listed once more."""
        for _, cache in self._each():
            if cache.is_synced:
                await cache.relist(reason)

    def _each(self) -> tuple[tuple[Resource, Following], ...]:
        return (
            (TOPOLOGY_BINDINGS, self.bindings),
            (DAEMONSETS, self.daemonsets),
            (VOLUME_CLAIMS, self.claims),
            (VOLUMES, self.volumes),
            (STORAGE_CLASSES, self.classes),
            (RESOURCE_CLAIMS, self.devices),
            (CLAIM_TEMPLATES, self.templates),
            (DEVICE_SLICES, self.slices),
            (DEVICE_CLASSES, self.device_classes),
        )


class Supplies:
    """Keeps them for the engine; `changed` is called when what a pod claims may have become more.

    Until `follow` is called nothing is known, so that a pod which claims a volume fits nowhere.
    """

    def __init__(
        self,
        on_daemonset: Callable[[Change[DaemonSet]], None],
        changed: Callable[[], None],
        shelves: Shelves,
    ) -> None:
        self._known: Callable[[], Claims] = Claims
        self._tell = on_daemonset
        self._changed = changed
        self._shelves = shelves

    @property
    def claims(self) -> Claims:
        """What there is to claim, as far as it can be told."""
        return self._known()

    def follow(self, sources: Sources) -> None:
        """Know all that there is and will be."""
        shelves = self._shelves
        kinds = ByName(sources.classes)
        shelves.use(Disks(kinds), lambda pod: self.claims.of(pod).needs)
        whole = Claims(
            sources.claims.objects,
            ByName(sources.volumes),
            kinds,
            sources.devices.objects,
            sources.templates.objects,
            shelves.disks,
            shelves.devices,
        )
        self._known = partial(_told, whole, sources)
        sources.daemonsets.subscribe(self._on_daemonset)
        # What is counted comes first: whoever is told of more room may look at once.
        sources.claims.subscribe(shelves.on_claim)
        sources.claims.subscribe(self._on_claim)
        sources.volumes.subscribe(shelves.on_volume)
        sources.volumes.subscribe(self._on_volume)
        sources.classes.subscribe(shelves.on_storage)
        sources.classes.subscribe(lambda _: self._changed())
        sources.devices.subscribe(shelves.on_devices)
        sources.devices.subscribe(self._on_devices)
        sources.templates.subscribe(self._on_template)
        sources.slices.subscribe(shelves.on_slice)
        sources.slices.subscribe(self._on_slice)
        sources.device_classes.subscribe(shelves.on_class)
        sources.device_classes.subscribe(lambda _: self._changed())

    def _on_daemonset(self, change: Change[DaemonSet]) -> None:
        if isinstance(change, Modified) and _same_pods(change.old, change.new):
            return  # its status counts pods all the time
        self._tell(change)
        if not isinstance(change, Added):
            self._changed()

    def _on_claim(self, change: Change[PersistentVolumeClaim]) -> None:
        if isinstance(change, Deleted):
            return
        if isinstance(change, Modified) and _same_claim(change.old, change.new):
            return
        self._changed()

    def _on_volume(self, change: Change[PersistentVolume]) -> None:
        if isinstance(change, Added):
            self._changed()
        elif isinstance(change, Modified):
            old, new = change.old, change.new
            if (old.spec, old.status) != (new.spec, new.status):
                self._changed()

    def _on_devices(self, change: Change[DeviceClaim]) -> None:
        # That devices are given frees no room.
        if isinstance(change, Added) or change.old.status.allocation is not None:
            if isinstance(change, Modified) and change.old.status == change.new.status:
                return
            self._changed()

    def _on_template(self, change: Change[DeviceTemplate]) -> None:
        if isinstance(change, Added):
            self._changed()

    def _on_slice(self, change: Change[ResourceSlice]) -> None:
        if not isinstance(change, Modified) or change.old.spec != change.new.spec:
            self._changed()


class ByName(Mapping[str, T], Generic[T]):
    """A cache of a kind that is the whole cluster's, as a mapping by name."""

    def __init__(self, cache: Cache[T]) -> None:
        self._cache = cache

    @override
    def __getitem__(self, key: str) -> T:
        found = self._cache.get("", key)
        if found is None:
            raise KeyError(key)
        return found

    @override
    def __iter__(self) -> Iterator[str]:
        return iter([name for (_, name), _ in self._cache.items()])

    @override
    def __len__(self) -> int:
        return len(self._cache)


def _told(whole: Claims, sources: Sources) -> Claims:
    """Leave out what is not served: there may be any number of it."""
    if not sources.missing:
        return whole
    known = sources.known
    counted = known(DEVICE_SLICES) and known(DEVICE_CLASSES)
    return Claims(
        whole.claims if known(VOLUME_CLAIMS) else None,
        whole.volumes if known(VOLUMES) else None,
        whole.classes if known(STORAGE_CLASSES) else None,
        whole.devices if known(RESOURCE_CLAIMS) else None,
        whole.templates if known(CLAIM_TEMPLATES) else None,
        whole.disks,
        whole.offered if counted else None,
    )


def _same_pods(old: DaemonSet, new: DaemonSet) -> bool:
    """Whether the same pods are expected of it."""
    going = (old.metadata.deletion_timestamp, new.metadata.deletion_timestamp)
    return old.spec == new.spec and going[0] == going[1]


def _same_claim(old: PersistentVolumeClaim, new: PersistentVolumeClaim) -> bool:
    """Whether it says the same of nodes."""
    return (
        old.spec == new.spec
        and old.status == new.status
        and old.metadata.annotations == new.metadata.annotations
    )

"""A cluster as it is at one instant, in the very caches and views that `gangs` decides on.

It is read by one pass of lists and then followed no further. What is told of it is worked out by
the code that `gangs` runs, so that both say the same.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol, TypeVar, cast

import msgspec

from api import exits
from api.streams import Custom, Meta
from controller.gangs.caches import Caches
from controller.gangs.modes import ALONE, Mode
from controller.gangs.supplies import Sources
from controller.gangs.world import World
from kube.cache import Cache, Source
from kube.client import Listing, Scope, WatchStart
from kube.clock import Clock
from kube.errors import ApiError, Forbidden, NotFound
from kube.objects import Key, KubeObject
from kube.resources import (
    CLAIM_TEMPLATES,
    DAEMONSETS,
    DEVICE_CLASSES,
    DEVICE_SLICES,
    NODES,
    PODCLIQUES,
    PODCLIQUESETS,
    PODGANGS,
    PODS,
    PRIORITY_CLASSES,
    RESERVATIONS,
    RESOURCE_CLAIMS,
    SCALING_GROUPS,
    STORAGE_CLASSES,
    TOPOLOGY_BINDINGS,
    VOLUME_CLAIMS,
    VOLUMES,
    Resource,
)
from penstock.ending import AskedWronglyError
from policies.policy import BUILT_IN, Policy

D = TypeVar("D")

VIEWER: Final = "penstock-viewer"  # the ClusterRole that the chart has for readers

# Without these nothing can be told. Others need not be served: then there is nothing of them.
NEEDED: Final = (NODES, PODS, PODGANGS, RESERVATIONS)
_KUBERNETES: Final = (NODES, PODS)
KINDS: Final = (
    *NEEDED, PODCLIQUES, SCALING_GROUPS, PODCLIQUESETS, TOPOLOGY_BINDINGS, DAEMONSETS,
    VOLUME_CLAIMS, VOLUMES, STORAGE_CLASSES, RESOURCE_CLAIMS, CLAIM_TEMPLATES, DEVICE_SLICES,
    DEVICE_CLASSES, PRIORITY_CLASSES,
)  # fmt: skip
"""All that is listed."""


class Followed(Protocol):
    """A cache of any kind."""

    @property
    def objects(self) -> Mapping[Key, KubeObject]:
        """Return all objects by key."""
        ...

    async def relist(self, reason: str) -> None:
        """List once."""
        ...

    async def run(self) -> None:
        """Follow until cancelled."""
        ...

    async def synced(self) -> None:
        """Return once the first list has arrived."""
        ...


class PriorityClass(msgspec.Struct, frozen=True, rename="camel"):
    """What a priority class stands for."""

    metadata: Meta
    value: int = 0
    global_default: bool = False


@dataclass(frozen=True)
class Scene:
    """What was read, and when. `absent` are kinds that the cluster does not serve."""

    caches: Caches
    sources: Sources
    sets: Cache[Custom]
    classes: Cache[PriorityClass]
    world: World
    now: datetime
    policy: Policy
    absent: frozenset[Resource]
    _every: Mapping[Resource, Followed]

    def contents(self) -> dict[Resource, list[KubeObject]]:
        """Give all that was read, by kind; another scene may be made of it."""
        return {
            kind: list(cache.objects.values())
            for kind, cache in self._every.items()
            if kind not in self.absent
        }

    async def with_contents(self, contents: Mapping[Resource, Sequence[KubeObject]]) -> "Scene":
        """Give the same cluster with other objects in it."""
        return await scene(
            Kept(StillClock(self.now), contents), self.now, self.caches.mode, self.policy
        )


class StillClock:
    """Shows one instant; whoever would wait goes on at once."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def now(self) -> datetime:
        """Return that instant."""
        return self._now

    def monotonic(self) -> float:
        """Return the same number always."""
        return 0.0

    async def sleep(self, seconds: float) -> None:  # noqa: ARG002 - no time passes here
        """Let others run."""
        await asyncio.sleep(0)


class Kept:
    """Lists that were read before, or were never anywhere but here."""

    def __init__(self, clock: Clock, contents: Mapping[Resource, Sequence[KubeObject]]) -> None:
        self.clock = clock
        self._contents = contents

    async def list_with(
        self,
        resource: Resource,
        decode: Callable[[msgspec.Raw], D],  # noqa: ARG002 - they are decoded
        scope: Scope,  # noqa: ARG002 - there is all of a kind or nothing
    ) -> Listing[D]:
        """Give all objects of the kind, in the type they were put in."""
        found = self._contents.get(resource)
        if found is None:
            raise NotFound(404, "NotFound", f"{resource.full_name} are not served")
        return Listing(cast("list[D]", list(found)), "1")

    def watch(
        self, resource: Resource, scope: Scope, start: WatchStart
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Refuse: what is kept does not change."""
        raise NotImplementedError


@dataclass(frozen=True)
class Reading:
    """All that a scene is made of, before anything of it has been read."""

    caches: Caches
    sources: Sources
    sets: Cache[Custom]
    classes: Cache[PriorityClass]
    world: World

    @classmethod
    def of(
        cls,
        source: Source,
        rng: random.Random,
        mode: Mode = ALONE,
        touched: Callable[[Key], None] | None = None,
    ) -> "Reading":
        """Make the caches; `touched` is told of each gang that something has changed for."""
        caches, sources = Caches.of(source, rng, mode), Sources.of(source, rng)
        sets = Cache(source, PODCLIQUESETS, Custom, rng)
        classes = Cache(source, PRIORITY_CLASSES, PriorityClass, rng)
        world = World(caches, touched or _nobody, _nothing)
        world.follow(sources)
        return cls(caches, sources, sets, classes, world)

    def every(self) -> dict[Resource, Followed]:
        """Give each cache by its kind."""
        caches, sources = self.caches, self.sources
        return {
            NODES: caches.nodes,
            PODS: caches.pods,
            PODGANGS: caches.gangs,
            RESERVATIONS: caches.reservations,
            PODCLIQUES: caches.cliques,
            SCALING_GROUPS: caches.scaling_groups,
            PODCLIQUESETS: self.sets,
            TOPOLOGY_BINDINGS: sources.bindings,
            DAEMONSETS: sources.daemonsets,
            VOLUME_CLAIMS: sources.claims,
            VOLUMES: sources.volumes,
            STORAGE_CLASSES: sources.classes,
            RESOURCE_CLAIMS: sources.devices,
            CLAIM_TEMPLATES: sources.templates,
            DEVICE_SLICES: sources.slices,
            DEVICE_CLASSES: sources.device_classes,
            PRIORITY_CLASSES: self.classes,
        }


async def scene(
    source: Source, now: datetime, mode: Mode = ALONE, policy: Policy = BUILT_IN
) -> Scene:
    """Read all that bears on where gangs go; raises what says who must do what first."""
    rng = random.Random(0)  # noqa: S311 - nothing is followed, so no chance comes into it
    made = Reading.of(source, rng, mode)
    every = made.every()
    refused = await asyncio.gather(*(_listed(cache) for cache in every.values()))
    errors = {kind: error for kind, error in zip(every, refused, strict=True) if error is not None}
    see_that_enough_was_read(errors)
    made.sources.missing.update(errors)
    return Scene(
        made.caches, made.sources, made.sets, made.classes, made.world, now, policy,
        frozenset(errors), every,
    )  # fmt: skip


async def _listed(cache: Followed) -> ApiError | None:
    try:
        await cache.relist("asked")
    except (NotFound, Forbidden) as error:
        return error
    return None


def see_that_enough_was_read(errors: Mapping[Resource, ApiError]) -> None:
    """Raise what says why a cluster of which these kinds cannot be listed tells nothing."""
    forbidden = [kind for kind, error in errors.items() if isinstance(error, Forbidden)]
    if forbidden:
        raise AskedWronglyError(no_right(forbidden), exits.BAD_CREDENTIALS)
    if lacking := [kind for kind in NEEDED if kind in errors]:
        raise not_served(lacking)


def not_served(kinds: Sequence[Resource]) -> AskedWronglyError:
    """Say that a cluster has not these kinds, and what to do about it."""
    said = f"the cluster serves no {' and no '.join(kind.full_name for kind in kinds)}"
    if any(kind not in _KUBERNETES for kind in kinds):
        said += ": Penstock is not installed there; docs/install.md says how it is, or"
        said += " choose another cluster with --context or --kubeconfig"
    return AskedWronglyError(said, exits.MISSING_KIND)


def no_right(kinds: Iterable[Resource]) -> str:
    """Say which rights are missing, and how to come by them."""
    named = ", ".join(kind.full_name for kind in kinds)
    return (
        f"you may not list {named} in all namespaces: ask for the ClusterRole {VIEWER}, by"
        f" `kubectl create clusterrolebinding NAME --clusterrole={VIEWER} --user=YOU`"
    )


def _nobody(_key: Key) -> None:
    pass


def _nothing() -> None:
    pass

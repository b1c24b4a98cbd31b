"""What the rules may know of the cluster, kept in memory by lists and watches.

Questions come from the threads that answer reviews; everything else happens in the event loop that
`run` runs in. When the API server goes away, answers go on from what was seen last.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Final

import msgspec
from pydantic import ValidationError

from api import names
from api.capacity import Capacity
from api.streams import Custom
from api.topology import ClusterTopologyBindingSpec
from kube.access import Credentials
from kube.cache import Added, Cache, Change, Deleted, Modified
from kube.client import Client, Scope
from kube.clock import Clock
from kube.errors import ApiError, Forbidden, NotFound
from kube.objects import ObjectMeta
from kube.resources import CONFIGMAPS, PODCLIQUESETS, TOPOLOGY_BINDINGS, Resource
from kube.tallies import CallTally

LOG: Final = logging.getLogger(__name__)

KINDS: Final[tuple[Resource, ...]] = (TOPOLOGY_BINDINGS, PODCLIQUESETS)
"""What is followed over the whole cluster; our own ConfigMap comes on top."""

ASK_SECONDS: Final = 0.5
"""How long a review may wait for the API server, for a binding that memory does not hold."""

# A binding that is not there is asked for again after this, however often it is named.
ABSENT_SECONDS: Final = 1.0
# A server that does not answer is left alone for so long.
SILENT_SECONDS: Final = 5.0
MOST_ASKING: Final = 8
MOST_ABSENT: Final = 1024
LONGEST_NAME: Final = 253
OUR_PREFIXES: Final = (f"{names.GROVE_GROUP}/", f"{names.GROUP}/")
RETRY_SECONDS: Final = 5.0


class _SetMeta(ObjectMeta, frozen=True, rename="camel"):
    annotations: dict[str, str] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        # Of thousands of sets; what kubectl notes down about each is the whole manifest.
        ours = {k: v for k, v in self.annotations.items() if k.startswith(OUR_PREFIXES)}
        msgspec.structs.force_setattr(self, "annotations", ours or _NO_ANNOTATIONS)


class _Set(msgspec.Struct, frozen=True):
    metadata: _SetMeta


class _ConfigMap(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    data: dict[str, str] = {}


_NO_ANNOTATIONS: Final[dict[str, str]] = {}


class Knowledge:
    """A Known (see policies) about a live cluster."""

    def __init__(
        self,
        credentials: Credentials,
        namespace: str,
        clock: Clock,
        rng: random.Random,
        on_policy: Callable[[Mapping[str, str] | None], None] | None = None,
        *,
        needed: bool = True,
    ) -> None:
        """Tell `on_policy`, if there is one, what the policy's ConfigMap says; None if it goes.

        Unless they are `needed`, Grove's kinds are followed only from when they are served.
        """
        self._needed = needed
        self._credentials = credentials
        self._namespace = namespace
        self._clock = clock
        self._rng = rng
        self._on_policy = on_policy
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Client | None = None
        self._bindings: Cache[Custom] | None = None
        self._sets: Cache[_Set] | None = None
        # Never changed in place: other threads read it.
        self._topologies: Mapping[str, ClusterTopologyBindingSpec] = {}
        self._capacity: Capacity | None = None
        self._absent: dict[str, float] = {}
        self._silent_until = float("-inf")
        self._asking = 0
        self.calls = CallTally()
        self.synced = False

    def binding(self, name: str) -> ClusterTopologyBindingSpec | None:
        """Give the levels of a binding; one that is not in memory is asked for, once and briefly.

        That is for a binding and a set that are applied in one go: the second may be here before
        the watch has told of the first.
        """
        found = self._topologies.get(name)
        loop = self._loop
        if found is not None or loop is None or not 0 < len(name) <= LONGEST_NAME:
            return found
        if not self._worth_asking(name):
            return None
        try:
            asking = asyncio.run_coroutine_threadsafe(self._ask(name), loop)
        except RuntimeError:  # the loop has ended meanwhile
            return None
        try:
            asking.result(2 * ASK_SECONDS)
        except (TimeoutError, CancelledError):
            asking.cancel()
        return self._topologies.get(name)

    def bindings(self) -> list[str]:
        """Give the names of all bindings."""
        return sorted(self._topologies)

    def capacity(self) -> Capacity | None:
        """Give what the largest node and domains hold, as `gangs` wrote it last."""
        return self._capacity

    def set_annotations(self, namespace: str, name: str) -> Mapping[str, str] | None:
        """Give those annotations of a set that are ours or Grove's."""
        found = self._sets.get(namespace, name) if self._sets is not None else None
        return None if found is None else found.metadata.annotations

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        self._loop = asyncio.get_running_loop()
        try:
            async with Client(
                self._credentials, "webhook", self._clock, tally=self.calls
            ) as client:
                self._client = client
                while True:
                    await self._follow(client)
                    await self._clock.sleep(RETRY_SECONDS)
        finally:
            self._loop = None

    async def _follow(self, client: Client) -> None:
        """Run the caches; returns when one of them cannot even begin."""
        bindings = Cache(client, TOPOLOGY_BINDINGS, Custom, self._rng)
        sets = Cache(client, PODCLIQUESETS, _Set, self._rng, Scope(metadata_only=True))
        capacity = self._config(client, names.CAPACITY_CONFIG)
        policy = self._config(client, names.POLICY_CONFIG)
        bindings.subscribe(self._binding_changed)
        capacity.subscribe(self._capacity_changed)
        policy.subscribe(self._policy_changed)
        self._bindings = bindings
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(capacity.run())
                group.create_task(policy.run())
                if self._needed:
                    group.create_task(bindings.run())
                    group.create_task(sets.run())
                    await bindings.synced()
                    await sets.synced()
                else:
                    group.create_task(self._when_served(client, TOPOLOGY_BINDINGS, bindings.run))
                await capacity.synced()
                await policy.synced()
                # Not sooner: an empty cache would forget what an earlier one knew.
                self._sets = sets
                self._topologies = {
                    name: spec
                    for name, spec in self._topologies.items()
                    if bindings.get(None, name) is not None
                }
                self.synced = True
        except* ApiError as failed:
            LOG.error(  # noqa: TRY400 - the trace would show nothing but the client
                "cannot follow the cluster, next try in %g s: %s",
                RETRY_SECONDS,
                failed.exceptions[0],
            )

    async def _when_served(
        self, client: Client, kind: Resource, run: Callable[[], Awaitable[None]]
    ) -> None:
        while True:
            with suppress(NotFound, Forbidden):
                await client.probe(kind)
                await run()
            await self._clock.sleep(RETRY_SECONDS)

    def _binding_changed(self, change: Change[Custom]) -> None:
        match change:
            case Added(new) | Modified(_, new):
                try:
                    spec = ClusterTopologyBindingSpec.model_validate_json(bytes(new.spec))
                except ValidationError as error:
                    LOG.warning(
                        "%s %s stays as it was, since it cannot be read: %s",
                        TOPOLOGY_BINDINGS.kind,
                        new.metadata.name,
                        error,
                    )
                    return
                self._topologies = {**self._topologies, new.metadata.name: spec}
            case Deleted(old):
                rest = {k: v for k, v in self._topologies.items() if k != old.metadata.name}
                self._topologies = rest

    def _config(self, client: Client, name: str) -> Cache[_ConfigMap]:
        """Make a cache of one ConfigMap of ours."""
        scope = Scope(self._namespace, fields=f"metadata.name={name}")
        return Cache(client, CONFIGMAPS, _ConfigMap, self._rng, scope)

    def _policy_changed(self, change: Change[_ConfigMap]) -> None:
        if self._on_policy is not None:
            self._on_policy(None if isinstance(change, Deleted) else change.new.data)

    def _capacity_changed(self, change: Change[_ConfigMap]) -> None:
        if isinstance(change, Deleted):
            self._capacity = None
            return
        try:
            text = change.new.data.get(names.CAPACITY_KEY)
            self._capacity = msgspec.json.decode(text, type=Capacity) if text else None
        except msgspec.MsgspecError as error:
            LOG.warning("ConfigMap %s cannot be read: %s", names.CAPACITY_CONFIG, error)

    def _worth_asking(self, name: str) -> bool:
        now = self._clock.monotonic()
        return (
            now >= self._silent_until
            and now >= self._absent.get(name, now)
            and self._asking < MOST_ASKING
        )

    async def _ask(self, name: str) -> None:
        """Ask the API server for a binding, and have the cache take it in."""
        client, cache = self._client, self._bindings
        if client is None or cache is None or not self._worth_asking(name):
            return
        self._asking += 1
        try:
            async with asyncio.timeout(ASK_SECONDS):
                cache.observe(await client.raw_get(TOPOLOGY_BINDINGS.path(None, name)))
        except NotFound:
            if len(self._absent) >= MOST_ABSENT:
                self._absent.clear()
            self._absent[name] = self._clock.monotonic() + ABSENT_SECONDS
        except (ApiError, TimeoutError) as error:
            self._silent_until = self._clock.monotonic() + SILENT_SECONDS
            LOG.warning("cannot ask for %s %s: %s", TOPOLOGY_BINDINGS.kind, name, error)
        finally:
            self._asking -= 1

"""Tells the webhook how much the largest node and the largest domains hold.

Kept up from the caches, change by change, and written only when it differs, some seconds after the
change, so that nodes which come up together are told together.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import msgspec

from api import names
from api.capacity import Capacity
from api.streams import Custom, Node
from controller.gangs import topologies
from controller.gangs.topologies import Followed
from kube.cache import Added, Change, Deleted, Modified
from kube.client import Client
from kube.clock import Clock
from kube.errors import ApiError
from kube.objects import ObjectMeta
from kube.resources import CONFIGMAPS
from scheduler.tally import Levels, Tally

_log = logging.getLogger(__name__)

WRITE_EVERY: Final = 3.0  # seconds between a change and its being told
BUILT_IN: Final = topologies.BUILT_IN.levels.keys


class _ConfigMap(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    data: dict[str, str] | None = None


class CapacityReporter:
    """Counts from the start, so that a standby is warm; writes while leading."""

    def __init__(
        self, client: Client, clock: Clock, namespace: str, fenced: Callable[[], int | None]
    ) -> None:
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._fenced = fenced
        self._topologies: dict[str, Levels] = {}
        self._tally = Tally([BUILT_IN])
        self._changed = asyncio.Event()

    def follow(self, nodes: Followed[Node], bindings: Followed[Custom]) -> None:
        """Count every node there is and will be, by built-in topology and by all bindings."""
        nodes.subscribe(self._on_node)
        bindings.subscribe(self._on_binding)

    async def run(self) -> None:
        """Write what is new until cancelled; what fails is logged and tried again."""
        told: Capacity | None = None
        while True:
            await self._clock.sleep(WRITE_EVERY)
            await self._changed.wait()
            self._changed.clear()
            found = self._tally.capacity()
            try:
                if self._fenced() is None:
                    self._changed.set()
                elif found != told:
                    await self._tell(found)
                    told = found
            except ApiError as error:
                _log.warning("the cluster's capacity cannot be told now: %s", error)
                self._changed.set()

    async def _tell(self, found: Capacity) -> None:
        config = names.CAPACITY_CONFIG
        before = await self._client.get(CONFIGMAPS, _ConfigMap, config, self._namespace)
        text = msgspec.json.encode(found).decode()
        if (before.data or {}).get(names.CAPACITY_KEY) != text:
            body = {"data": {names.CAPACITY_KEY: text}}
            await self._client.merge_patch(CONFIGMAPS, config, body, self._namespace)
            _log.info("told the webhook of the largest node and domains")

    def _on_node(self, change: Change[Node]) -> None:
        match change:
            case Added(new):
                self._told(self._tally.put(new))
            case Modified(old, new):
                if (
                    old.status.allocatable != new.status.allocatable
                    or old.metadata.labels != new.metadata.labels
                ):
                    self._told(self._tally.put(new))
            case Deleted(old):
                self._told(self._tally.drop(old.metadata.name))

    def _on_binding(self, change: Change[Custom]) -> None:
        name = (change.old if isinstance(change, Deleted) else change.new).metadata.name
        before = dict(self._topologies)
        self._topologies.pop(name, None)
        if not isinstance(change, Deleted):
            self._topologies[name] = tuple(topologies.read(change.new).values())
        if self._topologies != before:
            self._tally = self._tally.retold([BUILT_IN, *self._topologies.values()])
            self._told(changed=True)

    def _told(self, changed: bool) -> None:  # noqa: FBT001 - handed on from the tally
        if changed:
            self._changed.set()

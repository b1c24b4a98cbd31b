"""Lets sets be while they are switched off: what is deleted goes, as nobody here follows it.

Only our finalizers are taken off; whatever was made for a set stays and runs. They come off once no
pod of a set waits behind our gate any more: until `gangs` has let all go, a set is held together.
Each write is decided from the objects as they are, so a successor takes off what is left.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from api import names
from api.jsons import JsonObject
from api.streams import Meta
from controller import pace
from controller.workloads.caches import Caches
from kube.client import Client
from kube.clock import Clock
from kube.errors import Conflict, NotFound
from kube.resources import (
    COMPUTE_DOMAINS,
    PODCLIQUES,
    PODCLIQUESETS,
    PODS,
    SCALING_GROUPS,
    Resource,
)

_log = logging.getLogger(__name__)

FINALIZERS: Final[Mapping[Resource, str]] = {
    PODCLIQUESETS: names.SET_FINALIZER,
    SCALING_GROUPS: names.GROUP_FINALIZER,
    PODCLIQUES: names.CLIQUE_FINALIZER,
    COMPUTE_DOMAINS: names.DOMAIN_FINALIZER,
}
FOLLOWED: Final = (*FINALIZERS, PODS)
LOOK_EVERY: Final = 1.0  # seconds
AT_ONCE: Final = 16


class LettingGo:
    """Looks from time to time which objects still have a finalizer of ours."""

    def __init__(
        self, client: Client, clock: Clock, caches: Caches, may_write: Callable[[], bool]
    ) -> None:
        self._client = client
        self._clock = clock
        self._caches = caches
        self._may_write = may_write
        self._told = ""

    async def run(self) -> None:
        """Take finalizers off until cancelled."""
        while True:
            await self.look()
            await self._clock.sleep(LOOK_EVERY)

    async def look(self) -> None:
        """Take off what is there now, or say what that waits for."""
        held = list(self._held())
        gated = sum(names.GATE in pod.gates for pod in self._caches.pods)
        if held and gated:
            self._say(f"finalizers stay until gangs has lifted {gated} pods of sets")
            return
        if held:
            self._say(f"taking finalizers off {len(held)} objects: sets are switched off")
        requests = [partial(self._take_off, kind, meta) for kind, meta in held]
        for error in await pace.all_of(requests, AT_ONCE):
            if not isinstance(error, Conflict | NotFound):
                _log.warning("a finalizer stays for now: %s", error)

    def _held(self) -> Iterator[tuple[Resource, Meta]]:
        for kind, finalizer in FINALIZERS.items():
            for each in self._caches.all[kind]:
                if finalizer in each.metadata.finalizers:
                    yield kind, each.metadata

    async def _take_off(self, kind: Resource, meta: Meta) -> None:
        if not self._may_write():
            return
        rest = [each for each in meta.finalizers if each != FINALIZERS[kind]]
        body: JsonObject = {
            # Guards whatever others have put on meanwhile.
            "metadata": {"finalizers": [*rest], "resourceVersion": meta.resource_version}
        }
        answer = await self._client.merge_patch(kind, meta.name, body, meta.namespace)
        self._caches.observe(kind, answer)

    def _say(self, line: str) -> None:
        if line != self._told:
            _log.info("%s", line)
        self._told = line

"""Writes the PodGangs of plain gangs: looks, decides purely, acts thinly.

Pods come and go one by one, and are told together: as few writes as do, and none that only repeats.
"""

import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from typing import Final

from api import names
from api.jsons import JsonObject
from api.streams import Custom
from controller.gangs import companion, plain_bodies
from controller.gangs.caches import Caches
from controller.gangs.plain_deciding import (
    RETRIED_SECONDS,
    Amend,
    Confirm,
    Make,
    PlainStep,
    PlainView,
    Rest,
    Taken,
    Unmake,
    decide,
    is_remembered,
    vacant,
)
from controller.gangs.plain_world import Listeners, PlainWorld
from kube import logs
from kube.cache import Cache
from kube.client import Client, Deletion
from kube.clock import Clock
from kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from kube.objects import Key
from kube.resources import EVENTS, PODGANGS
from kube.workqueue import Workqueue

_log = logging.getLogger(__name__)

GATHER_SECONDS: Final = 0.03  # pods that come together are told together
GATHER_SECONDS_PER_POD: Final = 0.0001  # a large gang, which takes long to look at, less often
AMEND_SECONDS: Final = 0.5  # and what starts nobody, not more often than this
GANGS_AT_ONCE: Final = 4
MOST_TOLD: Final = 4096  # remembered of pods that were told; who is forgotten is told once more
_WHOLE: Final = -1  # in place of a slot: the gang, all of whose pods are gone


class PlainMaker:
    """Does for one plain gang the one thing its PodGang needs, each time its key comes up."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        caches: Caches,
        bindings: Cache[Custom],
        fenced: Callable[[], int | None],
        schedulers: Collection[str],
    ) -> None:
        self.queue: Workqueue[Key] = Workqueue(clock)
        self._client = client
        self._clock = clock
        self._gangs = caches.gangs
        self._mode = caches.mode
        self._fenced = fenced
        listeners = Listeners(self.queue.add, self._gather)
        self._world = PlainWorld(caches, bindings, schedulers, listeners)
        self._amended: dict[Key, float] = {}
        self._vacant_since: dict[Key, dict[int, float]] = {}
        self._told: dict[tuple[str, str], None] = {}  # holder and pod, by UID; the oldest first

    async def run(self) -> None:
        """Keep all PodGangs of plain gangs until cancelled."""
        await self.queue.run(logs.of("PodGang", self.reconcile), GANGS_AT_ONCE)

    async def reconcile(self, key: Key) -> None:
        """Take one step for the gang; what changes by it brings the key up again."""
        view = self._world.view(key)
        if view is None or self._fenced() is None:
            return
        if view.there is None:
            self._amended.pop(key, None)
        view = self._patient(view)
        step = decide(view)
        try:
            await self._take(key, step)
        except (AlreadyExists, Conflict, NotFound) as error:
            # What we decided on has changed meanwhile; the cache will show it.
            _log.info("%s/%s: %s overtaken: %s", *key, type(step).__name__, error)
            self.queue.retry(key)
        except ApiError as error:
            self.queue.blame(key)
            wait = self.queue.retry(key)
            _log.warning(
                "%s/%s: %s failed, trying again in %.2f s: %s",
                *key, type(step).__name__, wait, error,
            )  # fmt: skip

    def _gather(self, key: Key) -> None:
        size = self._world.size(key)
        self.queue.add_after(key, GATHER_SECONDS + size * GATHER_SECONDS_PER_POD)

    def _patient(self, view: PlainView) -> PlainView:
        """Tell the view which slots have waited for their next pod for long enough."""
        now = self._clock.monotonic()
        before = self._vacant_since.pop(view.key, {})
        kept = dict(vacant(view))
        if is_remembered(view):
            kept[_WHOLE] = RETRIED_SECONDS
        if not kept:
            return view
        since = {index: before.get(index, now) for index in kept}
        self._vacant_since[view.key] = since
        left = {index: since[index] + seconds - now for index, seconds in kept.items()}
        tired = frozenset(index for index, seconds in left.items() if seconds <= 0)
        if len(tired) < len(left):
            self.queue.add_after(view.key, min(s for s in left.values() if s > 0))
        return replace(view, tired=tired - {_WHOLE}, forsaken=_WHOLE in tired)

    async def _take(self, key: Key, step: PlainStep) -> None:
        match step:
            case Rest():
                pass
            case Make(wanted):
                self._amended[key] = self._clock.monotonic()
                answer = await self._client.create(PODGANGS, wanted.body(), key[0])
                self._gangs.observe(answer)
            case Amend():
                await self._amend(key, step)
            case Confirm():
                await self._confirm(key, step)
            case Unmake(gang):
                how = Deletion(uid=gang.uid, resource_version=gang.resource_version)
                await self._client.delete(PODGANGS, gang.name, gang.namespace, how)
            case Taken():
                await self._tell(key, step)

    async def _amend(self, key: Key, step: Amend) -> None:
        now = self._clock.monotonic()
        left = self._amended.get(key, -AMEND_SECONDS) + AMEND_SECONDS - now
        if left > 0 and not step.at_once:
            self.queue.add_after(key, left)
            return
        self._amended[key] = now
        body = step.wanted.patch(step.gang)
        self._gangs.observe(await self._client.merge_patch(PODGANGS, key[1], body, key[0]))

    async def _confirm(self, key: Key, step: Confirm) -> None:
        now = self._clock.now()
        meta, whole, message = step.gang.metadata, step.whole, step.message
        if self._mode.companion:
            said = plain_bodies.told(step.gang, whole=whole, message=message, now=now)
            wanted = step.gang.status.model_copy(update={"conditions": [said]})
            patch = companion.status_patch(step.gang, wanted)
            answer = await self._client.merge_patch(
                PODGANGS, key[1], patch, key[0], subresource="status"
            )
            self._gangs.observe(answer)
            return
        status = plain_bodies.status(step.gang, whole=whole, message=message, now=now)
        body: JsonObject = {
            "apiVersion": PODGANGS.api_version,
            "kind": PODGANGS.kind,
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "status": status,
        }
        answer = await self._client.apply(
            PODGANGS, key[1], body, key[0], subresource="status",
            manager=names.PLAIN_GANGS_MANAGER,
        )  # fmt: skip
        self._gangs.observe(answer)

    async def _tell(self, key: Key, step: Taken) -> None:
        told = (step.holder.uid, step.pod.metadata.uid)
        if told in self._told:
            return
        _log.warning("%s/%s: its name is taken by a PodGang of somebody else", *key)
        body = plain_bodies.taken(step.holder, step.pod, self._clock.now())
        with suppress(AlreadyExists):  # the Event has one name for this pod and this holder
            await self._client.create(EVENTS, body, key[0])
        # Not sooner: what failed is tried again.
        self._told[told] = None
        if len(self._told) > MOST_TOLD:
            del self._told[next(iter(self._told))]

"""Takes each keep through its steps: looks, decides purely, acts thinly.

Room is found in turn with gangs, by the placer: the next snapshot is taken only when it is known
of all that was planned before whether it was stored.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from api.keep import KeepStatus
from api.streams import Custom, Pod
from controller.gangs.caches import Caches
from controller.gangs.keeps import asking, deciding, owners
from controller.gangs.keeps.deciding import Rest, Seek, Tell
from controller.gangs.keeps.views import Keep, KeepView, age
from controller.gangs.placing import ASK_AGAIN_SECONDS, Placer
from controller.gangs.world import World
from kube import logs
from kube.client import Client
from kube.clock import Clock
from kube.errors import ApiError, Conflict, Invalid, NotFound, ServerFault, Unreachable
from kube.objects import Key
from kube.resources import PODGANGS, PODS, RESERVATIONS, Resource
from kube.workqueue import Workqueue
from scheduler import cycle, explain

_log = logging.getLogger(__name__)


class _Followed(Protocol):
    """A cache, as far as it is needed here."""

    def get(self, namespace: str | None, name: str) -> Pod | Custom | None:
        """Give an object."""
        ...


class Keeper:
    """Does for one keep the one thing it needs next, each time its key comes up in the queue."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        caches: Caches,
        world: World,
        placer: Placer,
        fenced: Callable[[], int | None],
    ) -> None:
        self.queue: Workqueue[Key] = Workqueue(clock)
        self._client = client
        self._clock = clock
        self._world = world
        self._reservations = caches.reservations
        self._followed: dict[str, tuple[Resource, _Followed]] = {
            "PodGang": (PODGANGS, caches.gangs),
            "Pod": (PODS, caches.pods),
        }
        self._placer = placer
        self._fenced = fenced
        self._seeking: set[Key] = set()
        self._refused: dict[Key, tuple[int, str]] = {}  # at which count of room, and what was said
        placer.beside.append(self.place)
        world.keeps.watch(self.queue.add, self._try_again)

    async def run(self) -> None:
        """Work until cancelled."""
        await self.queue.run(logs.of("Reservation", self.reconcile), 1)

    async def reconcile(self, key: Key) -> None:
        """Take one step for the keep; what changes by it brings the key up again."""
        if self._fenced() is None:
            return
        view = self._view(key)
        if view is None:
            self._refused.pop(key, None)
            self._seeking.discard(key)
            return
        try:
            await self._take(view)
        except (Conflict, Invalid, NotFound) as error:
            _log.info("%s/%s: overtaken: %s", *key, error)
            self.queue.retry(key)
        except ApiError as error:
            self.queue.blame(key)
            wait = self.queue.retry(key)
            _log.warning("%s/%s: failed, trying again in %.2f s: %s", *key, wait, error)

    async def place(self) -> None:
        """Find room for the keeps that seek some, the oldest first; nothing else is planned."""
        seeking, self._seeking = self._seeking, set()
        views = [view for key in seeking if (view := self._view(key)) is not None]
        for view in sorted(views, key=lambda each: age(each.keep)):
            try:
                await self._place(view)
            except Exception:  # noqa: BLE001 - a bad one must not end the process, or stop others
                _log.exception("keeping room for %s/%s failed", *view.keep.key)
                self.queue.retry(view.keep.key)

    async def _place(self, view: KeepView) -> None:
        keep, missing, world = view.keep, view.missing(), self._world
        if keep.ended or not missing:
            return
        room, networks = world.room, world.topologies.networks
        try:
            request = asking.request(view, missing, networks, world.supplies.claims)
        except asking.UnreadableError as error:
            await self._book(keep, deciding.failed(view, str(error), self._clock.now()))
            return
        snapshot = world.stockroom.snapshot([network.levels for network in networks])
        # Off the event loop, since leases must be renewed meanwhile.
        async with self._placer.engine:
            plan = await asyncio.to_thread(cycle.plan, snapshot, [request])
        for refusal in plan.refusals:
            self._refused[keep.key] = room, explain.sentence(refusal)
            self.queue.add(keep.key)
        for placement in plan.placements:
            await self._book(keep, deciding.placed(view, placement, self._clock.now()))

    def _view(self, key: Key) -> KeepView | None:
        there = self._world.nodes
        view = self._world.keeps.view(key, lambda node: there.get("", node) is not None)
        refused = self._refused.get(key)
        return replace(view, refusal=refused[1]) if view is not None and refused else view

    def _try_again(self) -> None:
        for key in self._refused:
            self.queue.add(key)

    async def _take(self, view: KeepView) -> None:
        key, now = view.keep.key, self._clock.now()
        view = replace(view, orphaned=await self._orphaned(view.keep))
        match deciding.next_step(view, now):
            case Tell(status):
                await self._write(view.keep, status)
            case Seek():
                refused = self._refused.get(key)
                if refused is None or refused[0] != self._world.room:
                    self._seeking.add(key)
                    self._placer.wake()
            case Rest():
                self._refused.pop(key, None)
        if not view.keep.ended and view.keep.expires is not None:
            left = (view.keep.expires - now).total_seconds()
            if left > 0:
                self.queue.add_after(key, left + 0.1)

    async def _orphaned(self, keep: Keep) -> bool:
        """Whether all is gone that rules mean by its UID. What is followed may be behind."""
        named = owners.named(keep) if not keep.ended else []
        for reference in named:
            kind, cache = self._followed[reference.kind]
            where = reference.name, keep.metadata.namespace
            there = cache.get(where[1], where[0])
            if there is None or there.metadata.uid != reference.uid:
                try:
                    there = await self._client.get(kind, Custom, *where)
                except NotFound:
                    continue
            if there.metadata.uid == reference.uid:
                return False
        return bool(named)

    async def _book(self, keep: Keep, status: KeepStatus) -> None:
        """Write what was planned, and know before anything else is planned whether it is stored."""
        try:
            await self._write(keep, status)
        except (Unreachable, ServerFault) as error:
            _log.warning("%s/%s: no answer about its room: %s", *keep.key, error)
            await self._find_out(keep.key)
        except ApiError as error:
            _log.info("%s/%s: its room was not stored: %s", *keep.key, error)
        else:
            self._refused.pop(keep.key, None)
            return
        self.queue.retry(keep.key)

    async def _write(self, keep: Keep, status: KeepStatus) -> None:
        if self._fenced() is None:
            return
        meta = keep.metadata
        if status.state is not keep.status.state:
            _log.info("%s/%s: %s %s", *keep.key, status.state.value, status.message)
        body = deciding.patch(keep, status)
        answer = await self._client.merge_patch(
            RESERVATIONS, meta.name, body, meta.namespace, subresource="status"
        )
        self._reservations.observe(answer)

    async def _find_out(self, key: Key) -> None:
        while self._fenced() is not None:
            try:
                answer = await self._client.raw_get(RESERVATIONS.path(*key))
            except NotFound:
                return
            except ApiError:
                await self._clock.sleep(ASK_AGAIN_SECONDS)
            else:
                self._reservations.observe(answer)
                return

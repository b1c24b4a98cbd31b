"""Tells gangs that there will be no room for them before their pods are made.

In a burst it takes a while until all pods are there, and whoever asked should not have to wait for
them to be told that there is no room. Nothing is reserved by a forecast, and it says nothing where
there is room: the engine answers when the pods are there.
"""

import asyncio
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeAlias

from api import names
from api.streams import Pod
from controller.gangs import requesting
from controller.gangs.deciding import Step, Wait
from controller.gangs.placing import Answers
from controller.gangs.views import GangView
from controller.gangs.world import World
from kube.cache import Added, Change
from kube.clock import Clock
from kube.objects import Key
from scheduler.answers import NoFit
from scheduler.foretelling import Forecast
from scheduler.requests import GangRequest

_log = logging.getLogger(__name__)

# Seconds: most gangs have their pods sooner, and need no forecast.
PATIENCE: Final = 0.1
GATHER: Final = 0.05
# So many gangs are judged at a time, since placing waits meanwhile.
AT_ONCE: Final = 64
# After each judgement it rests so many times as long as that took, for the same reason.
REST: Final = 2.0
# Seconds after which others have taken room that a forecast does not know of; if making one takes
# long, so many times as long.
FRESH: Final = 1.0
_WORTH: Final = 10.0
# And for so long after somebody was told of no room, whoever comes next is likely to need to know.
SHORT: Final = 1.0

_Version: TypeAlias = tuple[tuple[str, int], ...]  # UID and generation of a gang and its cliques


@dataclass(frozen=True)
class _Question:
    asked: GangRequest
    version: _Version
    learnt: int  # how often a class had become known when it was asked

    def is_of(self, version: _Version, learnt: int) -> bool:
        """Whether it would be asked like this now."""
        return self.version == version and (
            self.learnt == learnt or self.asked.priority != requesting.UNKNOWN
        )


@dataclass(frozen=True)
class Foretold:
    """What a gang was told, in answer to which question, and at which count of room."""

    question: _Question
    room: int
    refusal: NoFit | None

    @property
    def asked(self) -> GangRequest:
        """Give what it would have."""
        return self.question.asked


class Forecaster:
    """Judges gangs whose pods are still to come, many at a time.

    `engine` is held while the engine works: what it remembers of a snapshot is for one at a time.
    """

    def __init__(self, clock: Clock, world: World, engine: asyncio.Lock, answers: Answers) -> None:
        self._clock = clock
        self._world = world
        self._engine = engine
        self._answers = answers
        self._since: dict[Key, float] = {}
        self._told: dict[Key, Foretold] = {}
        self._waiting: dict[Key, _Question] = {}
        self._asked: set[Key] = set()  # of these, and those that are judged just now
        self._woken = asyncio.Event()
        self._forecast: Forecast | None = None
        self._stale_at = 0.0
        self._seen = 0
        self._short_until = -math.inf  # nobody who comes sooner has to be patient
        self._priorities: dict[str, int] = {}  # of classes, as pods that have them tell
        self._learnt = 0  # how often one became known, or another than it was
        world.pods.subscribe(self._on_pod)

    def ask(self, view: GangView, step: Step) -> NoFit | None:
        """Ask whether there will be room; returns what is known, or None while nothing is.

        The answer comes later, and concerns only those who wait for their pods.
        """
        key = view.gang.key
        if not isinstance(step, Wait) or step.reason != names.REASON_WAITING_FOR_PODS:
            self.forget(key)
            return None
        now = self._clock.monotonic()
        left = self._since.setdefault(key, now) + PATIENCE - now
        if left > 0 and now >= self._short_until and key not in self._told:
            self._answers.later(key, left)
            return None
        version, told = _version(view), self._told.get(key)
        if told and told.room == self._world.room and told.question.is_of(version, self._learnt):
            return told.refusal
        asked = requesting.foreseen(self._world, view, self._priorities.get)
        if asked is None:
            self._told.pop(key, None)
            return None
        self._waiting[key] = _Question(asked, version, self._learnt)
        self._asked.add(key)
        self._woken.set()
        return told.refusal if told is not None else None

    def is_asked(self, key: Key) -> bool:
        """Whether a gang is still to be told for the first time, which takes moments."""
        return key in self._asked and key not in self._told

    def forget(self, key: Key) -> None:
        """Drop what was said to a gang that is gone, or has its pods."""
        self._since.pop(key, None)
        self._told.pop(key, None)
        self._waiting.pop(key, None)
        self._asked.discard(key)

    def refused(self) -> list[Key]:
        """List the gangs that were told of no room and may find some now."""
        return [key for key, told in self._told.items() if told.refusal is not None]

    async def run(self) -> None:
        """Judge until cancelled."""
        while True:
            await self._woken.wait()
            await self._clock.sleep(GATHER)
            begun = self._clock.monotonic()
            waiting = dict(islice(self._waiting.items(), AT_ONCE))
            for key in waiting:
                del self._waiting[key]
            if not self._waiting:
                self._woken.clear()
            if not waiting:
                continue  # they have their pods by now
            try:
                await self._judge(waiting)
            except Exception:  # noqa: BLE001 - the edge of a worker: a bad gang must not end it
                _log.exception("no forecast for %s", ", ".join("/".join(k) for k in waiting))
                self._forecast = None
                self._note(waiting, self._world.room, {})  # not asked again before things change
            for key in waiting:
                self._asked.discard(key)
                self._answers.decided(key)
            await self._clock.sleep(REST * (self._clock.monotonic() - begun))

    async def _judge(self, waiting: Mapping[Key, _Question]) -> None:
        async with self._engine:
            room, begun = self._world.room, self._clock.monotonic()
            promised = {key: told for key, told in self._told.items() if told.refusal is None}
            asked = {key: question.asked for key, question in waiting.items()}
            forecast = self._forecast
            if forecast is None or self._is_old(waiting, promised):
                # Who was told of room has none in any snapshot until it is reserved.
                asked = {key: told.asked for key, told in promised.items()} | asked
                levels = [network.levels for network in self._world.topologies.networks]
                stockroom = self._world.stockroom
                forecast = Forecast(stockroom.snapshot(levels), stockroom.emptied())
            found = await asyncio.to_thread(forecast.refusals, list(asked.values()))
            if forecast is not self._forecast:
                took = self._clock.monotonic() - begun
                self._forecast, self._seen = forecast, room
                self._stale_at = begun + max(FRESH, _WORTH * took)
        self._note(waiting, room, {(r.gang.namespace, r.gang.name): r for r in found})

    def _note(
        self, waiting: Mapping[Key, _Question], room: int, refusals: Mapping[Key, NoFit]
    ) -> None:
        if any(key in refusals for key in waiting):
            self._short_until = self._clock.monotonic() + SHORT
        for key, question in waiting.items():
            if key in self._asked:  # else it has its pods by now, or is gone
                refusal = refusals.get(key)
                self._told[key] = Foretold(question, room, refusal)

    def _is_old(self, waiting: Mapping[Key, _Question], promised: Mapping[Key, Foretold]) -> bool:
        """Whether who asks now cannot be judged behind those who were judged before."""
        if self._clock.monotonic() >= self._stale_at or self._world.room != self._seen:
            return True
        first = max((each.asked.priority for each in waiting.values()), default=0)
        later = any(told.asked.priority < first for told in promised.values())
        return later or not waiting.keys().isdisjoint(promised)

    def _on_pod(self, change: Change[Pod]) -> None:
        if isinstance(change, Added) and change.new.spec.priority_class_name:
            self._learn(change.new.spec.priority_class_name, change.new.spec.priority)

    def _learn(self, called: str, priority: int) -> None:
        """Take a class's priority from its pods, and judge anew whoever was judged without one."""
        if self._priorities.get(called) == priority:
            return
        self._priorities[called] = priority
        self._learnt += 1
        for key, told in self._told.items():
            if told.asked.priority == requesting.UNKNOWN:
                self._answers.decided(key)


def _version(view: GangView) -> _Version:
    metas = [view.gang.metadata, *(clique.metadata for clique in view.cliques.values())]
    return tuple((meta.uid, meta.generation) for meta in metas)

"""Writes Events beside all other work, so many at a time as whoever speaks is given."""

import asyncio
import hashlib
import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from api import names
from api.jsons import JsonObject
from kube.clock import Clock
from kube.errors import AlreadyExists, ApiError
from kube.resources import EVENTS, Resource

_log = logging.getLogger(__name__)

Write: TypeAlias = Callable[[JsonObject, str], Awaitable[object]]  # an Event, in a namespace

_LONGEST_PAUSE: Final = 2.0  # seconds
_WAITING: Final = 1000
_REMEMBERED: Final = 16384


@dataclass(frozen=True)
class Tell:
    """Write an Event about an object, for people. What was told already is not told again.

    That it is the same is told by the note, or by a `topic` where the note has counts and names
    that change from one time to the next.
    """

    resource: Resource
    name: str
    uid: str
    reason: str
    note: str
    warning: bool = False
    topic: str = ""


@dataclass(frozen=True)
class Speaker:
    """Who speaks: a controller, by which of its processes, and how slowly.

    After each Event it rests so many times as long as that took, since what takes long is in the
    way of others, and so many seconds at the least. It does so with `at_once` of them side by side.
    """

    name: str
    instance: str
    rest: float = 8.0
    pause: float = 0.05
    at_once: int = 1


class Voice:
    """Events that wait to be written, and what was told already.

    When too many wait, the oldest are let go: an Event is of no use when it comes late.
    """

    def __init__(self, write: Write, clock: Clock, speaker: Speaker) -> None:
        self._write = write
        self._clock = clock
        self._speaker = speaker
        self._waiting: deque[tuple[str, Tell, str]] = deque(maxlen=_WAITING)
        self._told: OrderedDict[str, None] = OrderedDict()
        self._news = asyncio.Event()

    def has_told(self, tell: Tell) -> bool:
        """Whether the same was told of the same object in the same words before."""
        return _name(tell) in self._told

    def tell(self, tell: Tell, namespace: str, *, news: bool = False) -> None:
        """Have an Event written soon. What is news is told again when it happens again later."""
        when = self._clock.now().strftime("%H:%M") if news else ""
        name = _name(tell, when)
        if name in self._told:
            return
        self._told[name] = None
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
        self._waiting.append((name, tell, namespace))
        self._news.set()

    async def run(self) -> None:
        """Write what waits, for ever."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._speaker.at_once):
                group.create_task(self._speak())

    async def _speak(self) -> None:
        while True:
            await self._news.wait()
            while self._waiting:
                name, tell, namespace = self._waiting.popleft()
                body = event(tell, name, namespace, self._speaker, self._clock.now())
                begun = self._clock.monotonic()
                try:
                    await self._write(body, namespace)
                except AlreadyExists:
                    pass  # a predecessor told it
                except ApiError as error:
                    # Somebody else may not have it told either; the log has it.
                    _log.info("%s/%s: no Event %s: %s", namespace, tell.name, tell.reason, error)
                took = self._clock.monotonic() - begun
                rest = max(self._speaker.pause, self._speaker.rest * took)
                await self._clock.sleep(min(rest, _LONGEST_PAUSE))
            self._news.clear()


def event(tell: Tell, name: str, namespace: str, speaker: Speaker, now: datetime) -> JsonObject:
    """Write an Event."""
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": f"{names.GROUP}/{speaker.name}",
        "reportingInstance": speaker.instance,
        "action": tell.reason,
        "reason": tell.reason,
        "regarding": {
            "apiVersion": tell.resource.api_version,
            "kind": tell.resource.kind,
            "name": tell.name,
            "namespace": namespace,
            "uid": tell.uid,
        },
        "note": tell.note[:1024],
        "type": "Warning" if tell.warning else "Normal",
    }


def _name(tell: Tell, when: str = "") -> str:
    told = f"{tell.uid}/{tell.reason}/{tell.topic or tell.note}/{when}"
    return f"{tell.name[:200]}.{hashlib.sha256(told.encode()).hexdigest()[:16]}"

"""Says how a gang stands: in its status, as far as that is news and lasts, and in Events."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final

from api import names
from api.jsons import JsonObject
from api.podgang import Phase, PodGangStatus
from api.reservation import State
from api.streams import Custom
from controller.gangs import companion as beside
from controller.gangs import patience, reporting
from controller.gangs.deciding import Place, Wait, settled
from controller.gangs.telling import Storyteller
from controller.gangs.views import GangView
from controller.gangs.world import World
from controller.podgang import Gang
from controller.voicing import Speaker, Voice
from kube.cache import Cache
from kube.client import Client
from kube.clock import Clock
from kube.objects import Key
from kube.resources import EVENTS, PODGANGS
from scheduler.answers import NoFit

# What passes by within moments or goes on pod by pod is not worth a write; what lasts is.
PASSING: Final = frozenset(
    {names.REASON_WAITING_FOR_PODS, names.REASON_LIFTING, names.REASON_WAITING_FOR_PARENTS}
)
LASTS_SECONDS: Final = 3.0
STARTING_SECONDS: Final = 1.0  # pods that were bound run in a moment, mostly
EACH_SECONDS: Final = 0.1  # what passes of many gangs at once may take longer, by so much for each
LONGEST_SECONDS: Final = 15.0
REWORDED_SECONDS: Final = 0.5  # and other words for the same are written together
# How many pods of a gang are still to come, or to be bound, changes with each of them. While many
# gangs start, telling that takes the API server's time from starting them.
RECOUNTED_SECONDS: Final = 5.0
# Whoever waits for room waits for the Event about it too, so it hardly rests, and what many gangs
# lack at once is told of many at a time: as fast as their statuses are.
_REST: Final = 0.25
_PAUSE: Final = 0.005
_EVENTS_AT_ONCE: Final = 16


@dataclass(frozen=True)
class Telling:
    """What is known of gangs, where their statuses are kept, and how to look at one again later."""

    world: World
    gangs: Cache[Custom]
    later: Callable[[Key, float], None]


@dataclass(frozen=True)
class _Heard:
    """What there is to say of a gang, in which words, since when, and when it last moved on."""

    reason: str
    message: str
    first: float
    moved: float


class Announcer:
    """Writes statuses of gangs, and has Events written about those that wait."""

    def __init__(self, client: Client, clock: Clock, told: Telling, instance: str) -> None:
        self.timeout: timedelta | None = None  # of gangs that say nothing of one
        self._client = client
        self._clock = clock
        self._told = told
        speaker = Speaker("gangs", instance, _REST, _PAUSE, _EVENTS_AT_ONCE)
        self.voice = Voice(partial(client.create, EVENTS), clock, speaker)
        self._story = Storyteller(clock, self.voice.tell)
        self._since: dict[Key, _Heard] = {}
        self._reworded: dict[Key, float] = {}
        self._passing: set[Key] = set()

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a gang that is gone."""
        self._since.pop(key, None)
        self._reworded.pop(key, None)
        self._passing.discard(key)
        self._story.forget(key)

    async def report(self, view: GangView, step: Wait | Place, refusal: NoFit | str | None) -> None:
        """Write the gang's status if it says something new that lasts.

        Other steps say nothing: the next look, in a moment, knows better.
        """
        state = view.reservation.state if view.reservation is not None else None
        if isinstance(step, Place) and not step.minimum and state is State.LIFTING:
            step, refusal = settled(view), None  # extras keep nobody from starting
        lacks = isinstance(step, Place) and (step.minimum or state is not State.BOUND)
        if lacks and refusal is None:
            return  # the engine answers in a moment
        unheeded = self._told.world.unheeded(view.gang)
        now, timeout = self._clock.now(), patience.timeout_of(view.gang, self.timeout)
        overdue = patience.overdue(view.gang, now, timeout)
        status = reporting.status(view, step, refusal, now, unheeded, overdue)
        if self._told.world.mode.companion:
            status = beside.ours(view.gang, status)
        key, there = view.gang.key, view.gang.status
        # Also where the status says it already: a predecessor may have died between the two.
        self._story.tell(view, status, refusal)
        if reporting.same(there, status):
            self._reworded.pop(key, None)
            return
        reworded = _reworded(there, status)
        if not self._lasts(key, status, told=reworded) or (
            reworded and not self._retold(key, status)
        ):
            return
        await self._write(view, status)

    def _lasts(self, key: Key, status: PodGangStatus, *, told: bool) -> bool:
        """Whether the reason has stood long enough to be told; looks again later if not."""
        said, now = status.conditions[0], self._clock.monotonic()
        before = self._since.get(key)
        if before is None or before.reason != said.reason:
            before = _Heard(said.reason, said.message, now, now)
        elif before.message != said.message and said.reason in PASSING and not told:
            before = replace(before, message=said.message, moved=now)  # it goes on
        self._since[key] = before
        passes = self._passes_in(key, said.reason, status.phase)
        left = min(before.moved + passes, before.first + LONGEST_SECONDS) - now
        if left <= 0:
            self._passing.discard(key)
            return True
        self._passing.add(key)
        self._told.later(key, left)
        return False

    def _passes_in(self, key: Key, reason: str, phase: Phase) -> float:
        """For how many seconds this may be what passes by."""
        if reason in PASSING:
            return self._slower(key, LASTS_SECONDS)
        starts = reason == names.REASON_BOUND and phase is not Phase.RUNNING
        return self._slower(key, STARTING_SECONDS) if starts else 0.0

    def _slower(self, key: Key, seconds: float) -> float:
        """Give more time to what passes by while it does so of many gangs."""
        others = len(self._passing) - (key in self._passing)
        return min(LONGEST_SECONDS, seconds + EACH_SECONDS * others)

    def _retold(self, key: Key, status: PodGangStatus) -> bool:
        """Whether the same is to be said in other words now: not anew for each pod of many."""
        now = self._clock.monotonic()
        passes = status.conditions[0].reason in PASSING
        wait = self._slower(key, RECOUNTED_SECONDS) if passes else REWORDED_SECONDS
        left = self._reworded.setdefault(key, now) + wait - now
        if left <= 0:
            del self._reworded[key]
            return True
        self._told.later(key, left)
        return False

    async def _write(self, view: GangView, status: PodGangStatus) -> None:
        mode = self._told.world.mode
        answer = await write(self._client, view.gang, status, companion=mode.companion)
        self._told.gangs.observe(answer)


async def write(client: Client, gang: Gang, status: PodGangStatus, *, companion: bool) -> bytes:
    """Write all that we say of a gang, and give the answer."""
    meta = gang.metadata
    if companion:
        patch = beside.status_patch(gang, status)
        return await client.merge_patch(
            PODGANGS, meta.name, patch, meta.namespace, subresource="status"
        )
    body: JsonObject = {
        "apiVersion": PODGANGS.api_version,
        "kind": PODGANGS.kind,
        # With the UID, what is said of a gang that is gone cannot land on its namesake.
        "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
        "status": status.model_dump(mode="json", by_alias=True, exclude_none=True),
    }
    return await client.apply(
        PODGANGS, meta.name, body, meta.namespace, subresource="status",
        manager=names.GANGS_MANAGER,
    )  # fmt: skip


def _reworded(there: PodGangStatus, wanted: PodGangStatus) -> bool:
    """Whether only messages would change."""
    said = {c.type: (c.status, c.reason) for c in there.conditions}
    return all(said.get(c.type) == (c.status, c.reason) for c in wanted.conditions) and (
        (there.phase, there.placement_score) == (wanted.phase, wanted.placement_score)
    )

"""Keeps sets as they should be: looks at one, decides purely, acts thinly, and looks again."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Final, TypeAlias

from api.podcliqueset import MAX_PODS, PodCliqueSetStatus
from api.streams import Meta
from controller import pace
from controller.resting import Rests
from controller.workloads import leaving, planning
from controller.workloads.acting import Actor, Ident, ident, trouble
from controller.workloads.caches import Caches
from controller.workloads.expansion import is_too_large
from controller.workloads.holdings import Holdings
from controller.workloads.lanes import Lane
from controller.workloads.making import services
from controller.workloads.making.judging import GoesBy
from controller.workloads.settling import Settling
from controller.workloads.speaking import CALM, Speaking
from controller.workloads.stepping import Again, Create, Remove, Say, Step
from controller.workloads.story import statuses, telling
from controller.workloads.story import troubles as troubles_of
from controller.workloads.updates import updating
from controller.workloads.views import Choices, SetView, Trouble
from kube import logs
from kube.client import Client
from kube.clock import Clock
from kube.errors import ApiError
from kube.objects import Key
from kube.resources import PODCLIQUES, PODGANGS, PODS, SCALING_GROUPS, SERVICES
from kube.workqueue import Workqueue

_log = logging.getLogger(__name__)

AT_ONCE: Final = 32  # requests under way for one set
# And for all, so that a large one does not keep the others waiting. Without its PodGangs and
# PodCliques nobody can tell a set whether there is room for it, so pods make way for them, and
# so does all that pods need. There are more of them at a time, as people go on making sets.
_TELLING: Final = frozenset({PODGANGS, PODCLIQUES, SCALING_GROUPS})
_TELLING_AT_ONCE: Final = 64
_PODS_AT_ONCE: Final = 32
_OTHERS_AT_ONCE: Final = 32
_CROWD: Final = 16  # sets that start at once
_EACH_OTHER: Final = 0.003  # seconds that a set rests for each other one that is at work

TOO_LARGE: Final = (
    f"as its groups and cliques are scaled, the set asks for more than {MAX_PODS} pods, and is left"
    " alone: lower replicas of the set, of its groups or of its cliques"
)
_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 120.0
# In place of a set: time to see whose words need wait no longer.
_LISTEN: Final[Key] = ("", "")


@dataclass(frozen=True)
class _Refusal:
    """What the API server has refused so often, and until when it is not asked again."""

    trouble: Trouble
    until: float
    times: int

    @classmethod
    def of(cls, trouble: Trouble, now: float, before: "_Refusal | None") -> "_Refusal":
        """Have a step wait, the longer the more often it was refused; others wait for none."""
        times = before.times if before else 0
        wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(times, 16))
        return cls(trouble, now + wait, times + 1)


# By step: one that can never be taken holds up no other.
_Refused: TypeAlias = Mapping[Ident, _Refusal]


class Reconciler:
    """Does for one set what is to be done, each time its key comes up in the queue."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        caches: Caches,
        may_write: Callable[[], bool],
        choices: Choices,
        instance: str,
    ) -> None:
        self.queue: Workqueue[Key] = Workqueue(clock)
        self._clock = clock
        self._may_write = may_write
        self._choices = choices
        self._actor = Actor(client, clock, caches.observe, instance)
        self.voice = self._actor.voice
        self._refused: dict[Key, _Refused] = {}
        self._speaking = Speaking()
        self._settling = Settling()
        self._starting: set[Key] = set()  # those without a service, as far as they were looked at
        self._rests = Rests(self.queue, clock, _EACH_OTHER)
        self._for_telling = asyncio.Semaphore(_TELLING_AT_ONCE)
        self._for_pods = Lane(_PODS_AT_ONCE)
        self._for_things = Lane(_OTHERS_AT_ONCE)
        self._for_others = asyncio.Semaphore(_OTHERS_AT_ONCE)
        self._holdings = Holdings(caches, self._rests.wake)

    async def reconcile(self, key: Key) -> None:
        """Bring one set closer to what it wants; comes back by itself while there is more to do."""
        if key == _LISTEN:
            self._listen()
            return
        if not key[1]:
            await self._clear(key)
            return
        begun = self._clock.monotonic()
        troubles = tuple(each.trouble for each in self._refused.get(key, {}).values())
        view = self._holdings.view(key, self._choices, troubles)
        if view is None and (unread := self._holdings.unread(key)):
            what, status = unread
            await self._leave_alone(key, what.metadata, status, what.trouble)
            return
        if view is None:
            self._refused.pop(key, None)
            self._rests.forget(key)
            self._speaking.forget(key)
            self._settling.forget(key)
            self._starting.discard(key)
            # It may have gone while nobody looked, and have left what cannot go without us.
            self.queue.add((key[0], ""))
            return
        logs.part_of(view.metadata.uid)
        if view.metadata.deletion_timestamp is None and is_too_large(view):
            # The definition refuses it; this one was stored or scaled before that was there.
            trouble = troubles_of.too_large(TOO_LARGE, view.metadata.name)
            await self._leave_alone(key, view.metadata, view.status, trouble)
            return
        # What the API server refuses is told of at once.
        pressing = partial(statuses.is_pressing, view)
        if self._speaking.is_let(key):
            self._settling.stood(key)
        silent = self._speaking.waits(key, begun, pressing) and key not in self._refused
        if self._speaking.holds:
            self.queue.add_after(_LISTEN, CALM)
        # A set that waits to speak is looked at again at calm, so that its services can wait too.
        crowded = self._starts_in_a_crowd(key, view)
        view = replace(view, in_a_crowd=silent and crowded)
        steps = planning.plan(view, self._clock.now(), silent=silent)
        self._rests.looked(key, begun, idle=planning.is_idle(view, steps))
        # What is said while pods move is soon untrue, but of an update nothing else tells.
        moving = statuses.is_moving(view)
        urgent = updating.is_to_be_told(view)
        taken = await self._work(key, steps, silent=silent, moving=moving, urgent=urgent)
        for tell in telling.done(view, taken):
            self.voice.tell(tell, key[0], news=True)

    def _starts_in_a_crowd(self, key: Key, view: SetView) -> bool:
        starts = services.is_starting(view) and key not in self._refused
        (self._starting.add if starts else self._starting.discard)(key)
        return len(self._starting) >= _CROWD

    def go_by(self, policy: GoesBy | None) -> None:
        """Take it from now on that the webhook judges pods by this policy."""
        self._choices = replace(self._choices, goes_by=policy if self._choices.gates else None)

    def look_at_all(self) -> None:
        """Look at every set again, as something that any of them may have is known only now."""
        self._holdings.wake_all()

    async def _leave_alone(
        self, key: Key, meta: Meta, status: PodCliqueSetStatus, trouble: Trouble
    ) -> None:
        """Say of a set why nothing is done for it, and do nothing else."""
        self._speaking.forget(key)
        found = list(statuses.left_alone(meta, status, trouble, self._clock.now()))
        if any(isinstance(step, Say) for step in found):
            _log.error("%s/%s: %s", *key, trouble.description)
        await self._work(key, found, silent=False)

    async def _work(
        self,
        key: Key,
        steps: list[Step],
        *,
        silent: bool,
        moving: bool = False,
        urgent: bool = False,
    ) -> list[Step]:
        """Take the steps that are due, and give those that were taken; `moving` pods are work.

        What is `urgent` is said before the work is done.
        """
        before, now = self._refused.get(key, {}), self._clock.monotonic()
        todo: list[Step] = []
        kept: dict[Ident, _Refusal] = {}
        for step in steps:
            if (found := before.get(ident(step))) and now < found.until:
                kept[ident(step)] = found
            elif isinstance(step, Again):
                self.queue.add_after(key, (step.at - self._clock.now()).total_seconds())
            elif isinstance(step, Say) and (left := self._settling.left(key, step, now)) > 0:
                self.queue.add_after(key, left)
            elif not self._actor.is_done(step):
                todo.append(step)
        if not silent:
            self._settling.keep(key, {ident(step) for step in steps})
        begun = self._clock.monotonic()
        busy = moving or any(_is_work(step) for step in todo)
        if not silent and not self._speaking.may(key, begun, busy=busy and not urgent):
            todo = [step for step in todo if not _is_word(step)]
        with self._speaking.working(key, busy=busy):
            refused = await self._take(key, todo)
        if refused is None:
            return []
        self._speaking.worked(key, begun, self._clock.monotonic(), busy=busy)
        self._remember(key, before, kept, refused)
        return [step for step in todo if ident(step) not in refused]

    async def _take(self, key: Key, todo: Iterable[Step]) -> dict[Ident, Trouble] | None:
        """Take steps, and give what was refused; None if we may not write any more."""
        refused: dict[Ident, Trouble] = {}
        generation = self._holdings.generation(key)

        async def one(step: Step) -> None:
            try:
                async with self._room_for(step):
                    if isinstance(step, Say) and self._holdings.generation(key) != generation:
                        return  # people want something else by now, and come before old news
                    await self._actor.take(step, key[0])
                if isinstance(step, Say):
                    self._settling.said(key, step)
            except ApiError as error:
                refused[ident(step)] = trouble(step, error)

        # Steps of one kind are independent of each other; kinds follow one another.
        for _, batch in groupby(todo, key=type):
            if not self._may_write():
                return None
            await pace.all_of([partial(one, step) for step in batch], AT_ONCE)
        return refused

    @asynccontextmanager
    async def _room_for(self, step: Step) -> AsyncIterator[None]:
        if isinstance(step, Create) and step.resource in _TELLING:
            with self._for_pods.giving_way(), self._for_things.giving_way():
                async with self._for_telling:
                    yield
        elif isinstance(step, Create | Remove) and step.resource is PODS:
            async with self._for_pods.turn():
                yield
        elif isinstance(step, Create):
            async with self._for_things.turn():
                yield
        else:
            async with self._for_others:
                yield

    def _remember(
        self,
        key: Key,
        before: _Refused,
        kept: _Refused,
        refused: Mapping[Ident, Trouble],
    ) -> None:
        if not kept and not refused:
            if self._refused.pop(key, None) is not None:
                self.queue.add(key)  # to say that all is well again
            return
        now = self._clock.monotonic()
        anew = {step: _Refusal.of(refused[step], now, before.get(step)) for step in refused}
        found = {**kept, **anew}
        # What was kept may have waited long enough while the rest was asked for.
        wait = max(0.0, min(each.until for each in found.values()) - now)
        if refused:
            self.queue.blame(key)
            _log.warning(
                "%s/%s: refused %d times, trying again in %.2f s: %s",
                *key, len(refused), wait, next(iter(refused.values())).description,
            )  # fmt: skip
        self._refused[key] = found
        self.queue.add_after(key, wait)
        if found.keys() != before.keys():
            self.queue.add(key)  # to say so

    def _listen(self) -> None:
        """Have sets looked at whose words need wait no longer."""
        for key in self._speaking.let_speak(self._clock.monotonic()):
            self.queue.add(key)
        if self._speaking.holds:
            self.queue.add_after(_LISTEN, CALM)

    async def _clear(self, key: Key) -> None:
        """Delete what owners that are gone have left. Garbage collection would, in its own time."""
        estate = self._holdings.strays(key[0])
        todo = [step for step in leaving.clearing(estate) if not self._actor.is_done(step)]
        refused = await self._take(key, todo)
        for left in (refused or {}).values():
            _log.info(
                "%s/%s is left to garbage collection: %s", key[0], left.name, left.description
            )
        if refused:
            self.queue.retry(key)  # collection takes no finalizer of ours off
        if not todo:
            self._holdings.settled(key[0])


def _is_work(step: Step) -> bool:
    """Tell what others wait for before they speak. They have waited with their services as well."""
    return isinstance(step, Remove) or (isinstance(step, Create) and step.resource is not SERVICES)


def _is_word(step: Step) -> bool:
    """Tell what is for people to read. For what is said of PodGangs, `gangs` waits."""
    return isinstance(step, Say) and step.resource is not PODGANGS

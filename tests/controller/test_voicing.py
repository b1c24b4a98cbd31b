"""Events are written a few at a time, each once, and hold nothing up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from typing_extensions import override

from api.jsons import JsonObject
from controller.voicing import Speaker, Tell, Voice
from kube.errors import ApiError, Forbidden
from kube.resources import PODCLIQUES
from tests.support.manualclock import ManualClock

SPEAKER = Speaker("workloads", "one")


class Events:
    """What was written; `refusal` is raised instead while it is set."""

    def __init__(self) -> None:
        self.bodies: list[JsonObject] = []
        self.refusal: ApiError | None = None

    async def write(self, body: JsonObject, namespace: str) -> None:
        if self.refusal:
            raise self.refusal
        self.bodies.append({**body, "namespace": namespace})

    @property
    def notes(self) -> list[object]:
        return [body["note"] for body in self.bodies]


class Slow(Events):
    """Answers no write until it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.answered = asyncio.Event()
        self.under_way = self.most = 0

    @override
    async def write(self, body: JsonObject, namespace: str) -> None:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await self.answered.wait()
        await super().write(body, namespace)
        self.under_way -= 1


def told(note: str, *, warning: bool = False) -> Tell:
    return Tell(PODCLIQUES, "demo-0-a", "uid", "PodCreateSuccessful", note, warning=warning)


@asynccontextmanager
async def speaking(
    events: Events, clock: ManualClock, speaker: Speaker = SPEAKER
) -> AsyncIterator[Voice]:
    voice = Voice(events.write, clock, speaker)
    task = asyncio.create_task(voice.run())
    try:
        yield voice
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_an_event_says_what_of_whom() -> None:
    events, clock = Events(), ManualClock()
    async with speaking(events, clock) as voice:
        voice.tell(told("made Pod x", warning=True), "space")
        await clock.advance(1)
    (body,) = events.bodies
    assert (body["type"], body["reason"], body["namespace"]) == (
        "Warning", "PodCreateSuccessful", "space",
    )  # fmt: skip
    assert body["regarding"] == {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodClique",
        "name": "demo-0-a",
        "namespace": "space",
        "uid": "uid",
    }


async def test_the_same_words_are_told_once_but_news_again_after_a_minute() -> None:
    events, clock = Events(), ManualClock()
    async with speaking(events, clock) as voice:
        for _ in range(3):
            voice.tell(told("lost"), "space")
            voice.tell(told("made"), "space", news=True)
        assert voice.has_told(told("lost"))
        assert not voice.has_told(told("other"))
        await clock.advance(61)
        voice.tell(told("lost"), "space")
        voice.tell(told("made"), "space", news=True)
        await clock.advance(1)
    assert events.notes == ["lost", "made", "made"]
    assert len({str(body["metadata"]) for body in events.bodies}) == 3


async def test_events_are_few_a_second_and_the_oldest_are_let_go() -> None:
    events, clock = Events(), ManualClock()
    async with speaking(events, clock) as voice:
        for number in range(1500):
            voice.tell(told(str(number)), "space")
        await clock.advance(0.99)
        assert events.notes == [str(number) for number in range(500, 520)]


async def test_a_refused_event_is_forgotten_and_the_next_one_told() -> None:
    events, clock = Events(), ManualClock()
    async with speaking(events, clock) as voice:
        events.refusal = Forbidden(403, "Forbidden", "namespace is going")
        voice.tell(told("first"), "space")
        await clock.advance(1)
        events.refusal = None
        voice.tell(told("second"), "space")
        await clock.advance(1)
    assert events.notes == ["second"]


async def test_so_many_as_the_speaker_may_are_written_side_by_side() -> None:
    events, clock = Slow(), ManualClock()
    async with speaking(events, clock, Speaker("gangs", "one", at_once=3)) as voice:
        for number in range(5):
            voice.tell(told(f"gang {number}"), "space")
        await clock.advance(1)
        assert (events.under_way, events.most) == (3, 3)
        events.answered.set()
        await clock.advance(60)
    assert (sorted(map(str, events.notes)), events.most) == ([f"gang {n}" for n in range(5)], 3)


async def test_who_says_nothing_else_writes_one_after_the_other() -> None:
    events, clock = Slow(), ManualClock()
    async with speaking(events, clock) as voice:
        voice.tell(told("first"), "space")
        voice.tell(told("second"), "space")
        await clock.advance(1)
        assert events.under_way == 1
        events.answered.set()
        await clock.advance(60)
    assert (events.notes, events.most) == (["first", "second"], 1)

"""What is told of gangs that wait, and that it is not told again and again."""

from dataclasses import replace

from api import names
from api.podgang import PodGangStatus
from api.reservation import State
from controller.gangs import reporting
from controller.gangs.deciding import Place, Wait, next_step
from controller.gangs.telling import RETOLD_SECONDS, Storyteller, of
from controller.voicing import Tell
from scheduler.answers import Cause, NoFit
from scheduler.requests import GangRequest
from tests.support.manualclock import LeapingClock
from tests.support.sets import NOW, gang, member, reservation, view

PAIR = view(gang({"a": (2, 2)}), [member("a", 0), member("a", 1)])
SHORT = NoFit(
    GangRequest("default", "demo-0", ()), 0, {"nvidia.com/gpu": 8}, {"nvidia.com/gpu": 2}, 1, 1, {}
)


def said(refusal: NoFit | str | None, step: Wait | None = None) -> PodGangStatus:
    place = next_step(PAIR, NOW)
    assert isinstance(place, Place)
    return reporting.status(PAIR, step or place, refusal, NOW)


def told(refusal: NoFit | str | None, step: Wait | None = None) -> Tell | None:
    return of(PAIR, said(refusal, step), refusal)


def test_a_gang_without_room_is_told_of_in_the_engines_words() -> None:
    tell = told(SHORT)
    assert tell is not None
    assert (tell.resource.kind, tell.name, tell.uid) == ("PodGang", "demo-0", "uid-demo-0")
    assert (tell.reason, tell.warning) == ("InsufficientCapacity", True)
    assert "8 needed, 2 free" in tell.note


def test_one_that_no_free_room_would_help_has_a_reason_of_its_own() -> None:
    tell = told(replace(SHORT, never=True))
    assert tell is not None
    assert tell.reason == "NeverFits"
    assert tell.note.startswith("even with every node empty, ")


def test_what_passes_by_itself_is_no_event() -> None:
    for reason in (
        names.REASON_BOUND,
        names.REASON_LIFTING,
        names.REASON_WAITING_FOR_PODS,
        names.REASON_WAITING_FOR_BASE,
        names.REASON_WAITING_FOR_PARENTS,
    ):
        assert told(None, Wait(reason, "anything")) is None


def test_what_holds_a_gang_up_is() -> None:
    gates = told(None, Wait(names.REASON_FOREIGN_GATES, "other gates are on its pods: x"))
    assert told(None, Wait(names.REASON_REFUSED, "a-1 was not bound: x")) is not None
    refused = told("the API server said no")
    assert gates is not None
    assert refused is not None
    assert (gates.reason, refused.reason) == ("WaitingForOtherGates", "ReservationFailed")


def test_each_try_that_is_rolled_back_is_told_of() -> None:
    step = Wait(names.REASON_ROLLED_BACK, "a pod was not bound")
    topics = set()
    for attempt in (0, 1):
        booked = reservation({}, State.ROLLED_BACK)
        booked = replace(booked, spec=booked.spec.model_copy(update={"attempt": attempt}))
        seen = replace(PAIR, reservation=booked)
        tell = of(seen, reporting.status(seen, step, None, NOW), None)
        assert tell is not None
        topics.add(tell.topic)
    assert len(topics) == 2


class Listener:
    def __init__(self) -> None:
        self.clock = LeapingClock()
        self.heard: list[Tell] = []
        self.story = Storyteller(self.clock, lambda tell, _: self.heard.append(tell))

    def hears(self, refusal: NoFit) -> int:
        before = len(self.heard)
        self.story.tell(PAIR, said(refusal), refusal)
        return len(self.heard) - before


def test_the_same_is_told_once_and_other_words_for_it_only_after_a_while() -> None:
    there = Listener()
    assert there.hears(SHORT) == 1
    assert there.hears(SHORT) == 0
    other = replace(SHORT, free={"nvidia.com/gpu": 3})
    assert there.hears(other) == 0
    there.clock.skip(RETOLD_SECONDS)
    assert there.hears(SHORT) == 0, "these words were told"
    assert there.hears(other) == 1
    assert there.heard[0].topic != there.heard[1].topic, "or it would be dropped as told"


def test_another_cause_is_told_at_once() -> None:
    there = Listener()
    assert there.hears(SHORT) == 1
    assert there.hears(replace(SHORT, cause=Cause.NODES)) == 1
    assert there.hears(replace(SHORT, cause=Cause.NODES, never=True)) == 1


def test_a_gang_that_is_made_anew_under_the_name_is_told_of_again() -> None:
    there = Listener()
    assert there.hears(SHORT) == 1
    there.story.forget(PAIR.gang.key)
    assert there.hears(SHORT) == 1

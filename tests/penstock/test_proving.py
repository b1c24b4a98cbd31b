"""Closing webhooks that are proven to answer: what is closed when, and opened again."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import jsonpatch
import msgspec
import pytest

from api import names
from api.jsons import JsonObject
from kube.errors import Unreachable
from kube.resources import VALIDATING_WEBHOOKS
from penstock import proving
from penstock.proving import CLOSED, OPEN, Configuration, Opening, Prover
from tests.support.manualclock import LeapingClock


def configuration(**policies: str) -> JsonObject:
    return {
        "metadata": {"annotations": {names.CLOSES_ANNOTATION: "sets,managed"}},
        "webhooks": [
            {"name": name, "failurePolicy": policy, "timeoutSeconds": 5}
            for name, policy in policies.items()
        ],
    }


def found_in(raw: JsonObject) -> list[Opening]:
    read = msgspec.convert(raw, Configuration)
    return proving.openings(VALIDATING_WEBHOOKS, read)


def test_only_what_the_chart_names_is_closed() -> None:
    raw = configuration(policy="Ignore", sets="Ignore", managed="Fail")
    (one,) = found_in(raw)
    changed = jsonpatch.apply_patch(raw, one.patch(CLOSED))
    assert changed == configuration(policy="Ignore", sets="Fail", managed="Fail")
    assert found_in(changed) == []
    assert jsonpatch.apply_patch(changed, one.patch(OPEN)) == raw


def test_a_webhook_that_has_moved_meanwhile_is_not_taken_for_another() -> None:
    (one,) = found_in(configuration(policy="Ignore", sets="Ignore"))
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        jsonpatch.apply_patch(configuration(sets="Ignore", policy="Ignore"), one.patch(CLOSED))


def test_without_the_annotation_nothing_is_closed() -> None:
    assert found_in({"webhooks": [{"name": "sets", "failurePolicy": "Ignore"}]}) == []


@dataclass
class Door:
    """One webhook; `answers` says what is missing, by its policy, time after time."""

    answers: dict[str, list[str | Exception]]
    policy: str = OPEN
    turned: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    async def ask(self) -> str:
        left = self.answers[self.policy]
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def opened(self) -> list[Opening]:
        return [Opening(VALIDATING_WEBHOOKS, 0, "sets")] if self.policy == OPEN else []

    async def turn(self, which: Sequence[Opening], policy: str) -> None:
        assert which
        self.turned.append(policy)
        self.policy = policy

    async def proves(self, seconds: float = 60) -> bool:
        return await Prover(self.ask, self, LeapingClock(), self.said.append).close_when_proven(
            seconds
        )


async def test_it_closes_once_nothing_is_missing_and_says_what_was() -> None:
    gone = Unreachable("no answer")
    door = Door({OPEN: ["admitted", "admitted", gone, ""], CLOSED: [""]})
    assert await door.proves()
    assert door.turned == [CLOSED]
    assert door.said[:2] == ["Not yet: admitted", "Not yet: no answer"]
    assert door.said[-1] == "Closed: sets."


async def test_what_is_never_proven_stays_open() -> None:
    door = Door({OPEN: ["admitted"]})
    assert not await door.proves()
    assert door.turned == []


async def test_what_stops_answering_when_closed_is_opened_again() -> None:
    door = Door({OPEN: [""], CLOSED: ["a valid set is not admitted"]})
    assert not await door.proves()
    assert door.turned == [CLOSED, OPEN]


async def test_what_somebody_else_has_closed_is_never_opened() -> None:
    failing = Door({CLOSED: ["a valid set is not admitted"]}, policy=CLOSED)
    assert not await failing.proves()
    fine = Door({CLOSED: [""]}, policy=CLOSED)
    assert await fine.proves()
    assert failing.turned == fine.turned == []

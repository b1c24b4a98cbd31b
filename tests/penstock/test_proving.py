"""Closing webhooks that are proven to answer: what is closed when, and opened again."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import jsonpatch
import msgspec
import pytest

from api import names
from api.exits import MISSING_KIND, OK, UNEXPECTED
from api.jsons import JsonObject
from kube.access import Credentials
from kube.client import Client
from kube.errors import Unreachable
from kube.resources import VALIDATING_WEBHOOKS
from kube.tokens import FixedHeader
from penstock import proving
from penstock.proving import CLOSED, OPEN, Configuration, Opening, Proof, Prover
from tests.support import fakeapi
from tests.support.fakeapi import FakeApi
from tests.support.manualclock import LeapingClock

UNSERVED = "the cluster serves none"


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
    clock: LeapingClock = field(default_factory=LeapingClock)

    async def ask(self) -> Proof:
        left = self.answers[self.policy]
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return Proof(answer, MISSING_KIND if answer == UNSERVED else UNEXPECTED if answer else OK)

    async def opened(self) -> list[Opening]:
        return [Opening(VALIDATING_WEBHOOKS, 0, "sets")] if self.policy == OPEN else []

    async def turn(self, which: Sequence[Opening], policy: str) -> None:
        assert which
        self.turned.append(policy)
        self.policy = policy

    async def proof(self, seconds: float = 60) -> Proof:
        prover = Prover(self.ask, self, self.clock, self.said.append)
        return await prover.close_when_proven(seconds)

    async def proves(self) -> bool:
        return (await self.proof()).holds


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


async def test_a_cluster_without_penstock_is_given_up_soon_and_by_its_own_code() -> None:
    door = Door({OPEN: [UNSERVED]})
    proof = await door.proof(240)
    assert proof.code == MISSING_KIND
    assert sum(door.clock.slept) == proving.SERVING_SECONDS
    assert door.said == [f"Not yet: {UNSERVED}"]
    short = Door({OPEN: [UNSERVED]})
    await short.proof(2)
    assert sum(short.clock.slept) == 2


async def test_definitions_that_were_made_a_moment_ago_are_waited_for() -> None:
    door = Door({OPEN: [UNSERVED, UNSERVED, "admitted", ""], CLOSED: [""]})
    assert await door.proves()
    slow = Door({OPEN: [*[UNSERVED] * 3, *["no webhook was asked"] * 100, ""], CLOSED: [""]})
    assert (await slow.proof(240)).closed == ("sets",), "only what is not served is given up soon"


async def test_a_kind_that_is_not_served_is_told_from_a_namespace_that_is_not_there() -> None:
    none = fakeapi.text(404, "404 page not found\n")
    fine = fakeapi.json({"metadata": {"name": "x"}})
    named: JsonObject = {
        "kind": "Status", "code": 404, "reason": "NotFound", "details": {"name": "nowhere"},
    }  # fmt: skip
    found = []
    for answers in ([none], [fine, none], [fine, fakeapi.json(named, 404)]):
        api = FakeApi()
        api.answers.extend(answers)
        async with fakeapi.serving(api):
            asked_at = Credentials(api.url, None, FixedHeader())
            async with Client(asked_at, "prove", LeapingClock()) as client:
                found.append(await proving.asked(client, "nowhere"))
    assert [each.code for each in found] == [MISSING_KIND, MISSING_KIND, UNEXPECTED]
    assert "serves no clustertopologybindings.grove.io" in found[0].missing
    assert "serves no podcliquesets.grove.io" in found[1].missing

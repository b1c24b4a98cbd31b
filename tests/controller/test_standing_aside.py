"""What `gangs` does while gangs are switched off: in order, and resumed from any prefix."""

from collections.abc import Callable, Iterator

import msgspec
import pytest

from api import names
from api.features import Features
from api.jsons import Json, JsonObject
from api.reservation import State
from api.streams import Pod
from controller.gangs import freeing, readiness
from controller.gangs.standing_aside import Aside, StandingAside
from kube.client import Client
from kube.resources import (
    GUARD_BINDINGS,
    MUTATING_WEBHOOKS,
    PODGANGS,
    PODS,
    RESERVATIONS,
)
from kube.workqueue import Workqueue
from tests.support.clusters import pod
from tests.support.gangscene import Scene, bare
from tests.support.manualclock import LeapingClock
from tests.support.patchapi import PatchApi, patching
from tests.support.sets import reservation

GANGS_OFF = Features(gang_scheduling=False)
SETS_OFF = Features(grove_integration=False)


def a_pod(
    name: str, *, gates: tuple[str, ...] = (names.GATE,), of_a_set: bool = False, asks: bool = False
) -> Pod:
    listed: list[Json] = [{"name": gate} for gate in gates]
    asked: list[Json] = [{"conditionType": names.READINESS_GATE}] if asks else []
    label = names.PODGANG_LABEL if of_a_set else names.GANG_LABEL
    return pod(
        name,
        metadata={"labels": {label: "g"}, "annotations": {"note": "x"}},
        spec={"schedulingGates": listed, "readinessGates": asked},
    )


@pytest.mark.parametrize(
    ("features", "plain", "of_a_set"),
    [(Features(), False, False), (GANGS_OFF, True, True), (SETS_OFF, False, True)],
)
def test_only_what_is_switched_off_is_let_go(
    features: Features, *, plain: bool, of_a_set: bool
) -> None:
    aside = Aside(features)
    assert aside.has_work(a_pod("p")) == plain
    assert aside.has_work(a_pod("p", of_a_set=True)) == of_a_set
    assert not aside.has_work(a_pod("p", gates=())), "it runs or is free to"
    assert aside.has_work(a_pod("p", gates=(), asks=True)) == plain, "it waits to be Ready"


@pytest.mark.parametrize(
    ("told", "said", "allowed"),
    [
        (GANGS_OFF, Features(), False),
        (GANGS_OFF, SETS_OFF, False),
        (GANGS_OFF, GANGS_OFF, True),
        (SETS_OFF, Features(), False),
        (SETS_OFF, SETS_OFF, True),
        (SETS_OFF, GANGS_OFF, True),
    ],
)
def test_the_chart_must_have_switched_off_as_much(
    told: Features, said: Features, *, allowed: bool
) -> None:
    assert Aside(told).allows(said) == allowed


def seen(api: PatchApi, client: Client) -> Scene:
    """What a leader that comes now sees of the API server."""
    found = Scene(client, lambda _: None)
    caches: dict[str, Callable[[bytes], None]] = {
        "pods": found.pods.observe,
        "reservations": found.reservations.observe,
        "podgangs": found.gangs.observe,
    }
    for path, thing in api.objects.items():
        kind = path.rsplit("/", 2)[-2]
        if kind in caches:
            caches[kind](msgspec.json.encode(thing))
    return found


def put(api: PatchApi, path: str, thing: object) -> None:
    raw: JsonObject = msgspec.json.decode(msgspec.json.encode(thing))
    api.put(path, raw)


def furnish(api: PatchApi) -> None:
    """One gang that was rolled back, of two gated pods, and a pod that runs and is not Ready."""
    waits: JsonObject = {
        "type": names.SCHEDULED, "status": "False", "reason": names.REASON_INSUFFICIENT,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    gang = bare("PodGang", "g", 1, spec={"podgroups": []}, status={"conditions": [waits]})
    api.put(PODGANGS.path("default", "g"), gang)
    for name in ("g-0", "g-1"):
        put(api, PODS.path("default", name), a_pod(name, asks=name == "g-1"))
    put(api, PODS.path("default", "runs"), a_pod("runs", gates=(), asks=True))
    booked = reservation({("g", 0): "n1"}, State.ROLLED_BACK, name="g")
    owner: Json = {"kind": "PodGang", "name": "g", "uid": booked.spec.gang.uid, "controller": True}
    body = bare(
        "Reservation", "g", 1,
        spec=booked.spec.model_dump(mode="json", by_alias=True),
        status=booked.status.model_dump(mode="json", by_alias=True),
    )  # fmt: skip
    meta = body["metadata"]
    assert isinstance(meta, dict)
    meta["ownerReferences"] = [owner]
    api.put(RESERVATIONS.path("default", "g"), body)


async def go(api: PatchApi, client: Client, clock: LeapingClock, writes: int) -> None:
    """Lead until so many writes are done, then die."""
    until = len(api.writes) + writes
    there = seen(api, client)
    aside = StandingAside(
        client, clock, there.caches, Aside(GANGS_OFF),
        lambda: 1 if len(api.writes) < until else None,
    )  # fmt: skip
    assert await aside.waits_for() == ""
    await aside.give_back()
    queue: Workqueue[tuple[str, str]] = Workqueue(clock)
    for name in ("g-0", "g-1", "runs"):
        for _ in range(3):
            await aside.let_go(queue, ("default", name))
    for _ in range(2):
        await aside.tell(queue, ("default", "g"))


def settled(api: PatchApi) -> Iterator[str]:
    """Name what is still held."""
    for path, thing in api.objects.items():
        if path.startswith(PODS.path("default", "")):
            read = msgspec.convert(thing, Pod)
            if names.GATE in read.gates or readiness.waits(read):
                yield read.metadata.name
        if path.startswith(RESERVATIONS.path("default", "")):
            yield path


@pytest.mark.parametrize("killed_after", range(8))
async def test_killed_after_any_write_a_successor_lets_the_rest_go(killed_after: int) -> None:
    async with patching() as (api, client, clock):
        furnish(api)

        def no_pod_before_the_reservation_is_gone(write: str) -> None:
            if "/pods/" in write:
                assert RESERVATIONS.path("default", "g") not in api.objects, write

        api.before = no_pod_before_the_reservation_is_gone
        await go(api, client, clock, killed_after)
        assert len(api.writes) == min(killed_after, 6)
        await go(api, client, clock, 100)
        assert list(settled(api)) == []
        assert len(api.writes) == 6, "nothing is written twice"
        free = msgspec.convert(api.objects[PODS.path("default", "g-0")], Pod)
        assert freeing.is_free(free)
        ran = msgspec.convert(api.objects[PODS.path("default", "runs")], Pod)
        assert not freeing.is_free(ran)
        (said,) = ran.status.conditions
        assert (said.type, said.status) == (names.READINESS_GATE, "True")
        assert said.reason == names.REASON_GANGS_OFF
        told = api.objects[PODGANGS.path("default", "g")]["status"]
        assert isinstance(told, dict)
        assert isinstance(told["conditions"], list)
        (scheduled,) = told["conditions"]
        assert isinstance(scheduled, dict)
        assert (scheduled["status"], scheduled["reason"]) == ("Unknown", names.REASON_GANGS_OFF)


async def test_pods_stay_gated_while_the_chart_still_gates_new_ones() -> None:
    async with patching() as (api, client, clock):
        furnish(api)
        there = seen(api, client)
        aside = StandingAside(client, clock, there.caches, Aside(GANGS_OFF), lambda: 1)
        on: JsonObject = {names.FEATURES_ANNOTATION: Features().text}
        off: JsonObject = {names.FEATURES_ANNOTATION: GANGS_OFF.text}
        webhook = MUTATING_WEBHOOKS.path(None, names.WEBHOOK_CONFIGURATION)
        guard = GUARD_BINDINGS.path(None, names.GANG_PODS_GUARD)
        for path in (webhook, guard):
            api.put(path, {"metadata": {"name": "x", "annotations": on}})
        assert "MutatingWebhookConfiguration penstock gates new ones" in await aside.waits_for()
        api.put(webhook, {"metadata": {"name": "x", "annotations": off}})
        assert names.GANG_PODS_GUARD in await aside.waits_for()
        api.put(guard, {"metadata": {"name": "x"}})
        assert names.GANG_PODS_GUARD in await aside.waits_for(), "an older chart says nothing"
        del api.objects[guard]
        assert await aside.waits_for() == ""

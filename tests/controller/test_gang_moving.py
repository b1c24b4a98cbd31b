"""A slot that serves its gated pod no more is given up for another, in one write."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import msgspec
from aiohttp import web

from api import names
from api.jsons import Json, JsonObject
from api.reservation import State
from api.streams import Pod
from controller.gangs.deciding import Lift, Place, next_step
from controller.gangs.placing import Answers, Placer
from kube.client import Client
from kube.objects import Key
from tests.support import fakeapi
from tests.support.clusters import node, pod
from tests.support.fakeapi import FakeApi
from tests.support.gangscene import KEY, Scene, bare, encoded, gang_of, scene
from tests.support.manualclock import LeapingClock
from tests.support.polling import eventually
from tests.support.sets import NOW, gang, member, pod_clique, reservation, slots_of, view


def larger(pod: Pod, gpus: str) -> Pod:
    containers = tuple(
        msgspec.structs.replace(
            container,
            resources=msgspec.structs.replace(
                container.resources, requests={"nvidia.com/gpu": gpus}
            ),
        )
        for container in pod.spec.containers
    )
    return msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, containers=containers)
    )


def booked(node_name: str, gpus: str, state: State, version: int) -> JsonObject:
    group: Json = {
        "name": "a",
        "requests": {"nvidia.com/gpu": gpus, "pods": "1"},
        "slots": [{"index": 0, "node": node_name}],
    }
    spec: JsonObject = {
        "gang": {"name": "demo-0", "uid": "uid-demo-0"},
        "deadline": "2030-01-01T00:00:00Z",
        "groups": [group],
    }
    status: JsonObject = {"state": state.value, "bindBy": "2030-01-01T00:00:00Z"}
    return bare("Reservation", "demo-0", version, spec=spec, status=status)


def see(s: Scene, pod: Pod, reserved: JsonObject) -> None:
    s.gangs.observe(msgspec.json.encode(gang_of("demo-0", ["a-0"], 3)))
    s.reservations.observe(msgspec.json.encode(reserved))
    s.pods.observe(encoded(pod, 5))


@asynccontextmanager
async def placing(
    s: Scene, client: Client, decided: Callable[[Key], None], clock: LeapingClock | None = None
) -> AsyncIterator[Placer]:
    answers = Answers(decided, lambda _, __: None)
    placer = Placer(client, clock or LeapingClock(), s.world, s.reservations, lambda: 1, answers)
    running = asyncio.create_task(placer.run())
    try:
        yield placer
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def written(api: FakeApi) -> list[Json]:
    bodies = [msgspec.json.decode(seen.body) for seen in api.seen if seen.method == "PATCH"]
    return [body["spec"]["groups"] for body in bodies]


def test_a_pod_that_takes_more_than_its_slot_keeps_is_placed_anew() -> None:
    closed = reservation({("a", 0): "n0", ("a", 1): "n1"}, State.BOUND)
    pods = [member("a", 0, gated=False, node="n0"), larger(member("a", 1), "2")]
    step = next_step(view(gang({"a": (2, 2)}), pods, closed), NOW)
    assert isinstance(step, Place)
    assert slots_of(step.minimum) == [("a", 1)]
    smaller = [pods[0], larger(member("a", 1), "1")]
    assert isinstance(next_step(view(gang({"a": (2, 2)}), smaller, closed), NOW), Lift)


async def test_a_pod_that_has_grown_may_use_the_room_of_its_own_slot() -> None:
    """The only node has eight, of which its slot keeps four."""
    decided: list[Key] = []
    async with scene() as (s, api, client), placing(s, client, decided.append) as placer:
        see(s, larger(member("a", 0), "8"), booked("n1", "4", State.BOUND, 4))
        api.answers.append(fakeapi.json(booked("n1", "8", State.BOUND, 9)))
        assert placer.ask(*s.asked()) is None
        await eventually(lambda: bool(decided), "it was decided")
        requests: Json = {"nvidia.com/gpu": "8", "pods": "1"}
        assert written(api) == [
            [{"name": "a", "requests": requests, "slots": [{"index": 0, "node": "n1"}]}]
        ]


async def test_a_slot_stays_in_the_ledger_while_there_is_no_other_room() -> None:
    decided: list[Key] = []
    async with scene() as (s, api, client), placing(s, client, decided.append) as placer:
        see(s, member("a", 0), booked("n-gone", "1", State.BOUND, 4))
        s.nodes.observe(encoded(node("n1", ready=False), 6))
        assert placer.ask(*s.asked()) is None
        await eventually(lambda: bool(decided), "it was decided")
        assert written(api) == []
        assert placer.ask(*s.asked()) is not None
        s.nodes.observe(encoded(node("n-gone"), 7))
        found = s.world.view(KEY)
        assert found is not None
        assert isinstance(next_step(found, NOW), Lift)


async def test_a_reservation_that_changed_while_room_was_sought_is_asked_for_again_at_once() -> (
    None
):
    """Such as when the time that lifted pods have is put off meanwhile."""
    decided: list[Key] = []
    async with scene() as (s, api, client), placing(s, client, decided.append) as placer:
        see(s, member("a", 0), booked("n-gone", "1", State.BOUND, 4))

        async def overtaken(request: web.Request) -> web.StreamResponse:
            s.reservations.observe(msgspec.json.encode(booked("n-gone", "1", State.BOUND, 9)))
            return await fakeapi.status(409, "Conflict", "it has changed")(request)

        api.answers += [overtaken, fakeapi.json(booked("n1", "1", State.BOUND, 10))]
        assert placer.ask(*s.asked()) is None
        await eventually(lambda: bool(decided), "it was decided")
        assert placer.ask(*s.asked()) is None, "nothing has failed"
        await eventually(lambda: len(written(api)) == 2, "the slot is moved")


def keeping_apart(name: str, clique: str, version: int) -> bytes:
    """A gang of one pod that must be on a node without another gang."""
    raw = gang_of(name, [f"{clique}-0"], version)
    everybody: Json = {
        "topologyKey": names.HOSTNAME_KEY,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
    }
    group: Json = {
        "name": clique,
        "minReplicas": 1,
        "podReferences": [{"namespace": "default", "name": f"{clique}-0"}],
    }
    raw["spec"] = {"podgroups": [group], "spreadConstraints": [everybody]}
    return msgspec.json.encode(raw)


async def test_a_slot_that_moves_keeps_apart_from_a_gang_that_was_placed_just_before() -> None:
    decided: list[Key] = []
    async with scene() as (s, api, client), placing(s, client, decided.append) as placer:
        see(s, member("a", 0), booked("n-gone", "1", State.BOUND, 4))
        s.nodes.observe(encoded(node("n2"), 6))
        s.cliques.observe(encoded(pod_clique("b", 1), 7))
        s.pods.observe(encoded(member("b", 0), 8))
        s.gangs.observe(keeping_apart("demo-0", "a", 9))
        s.gangs.observe(keeping_apart("demo-1", "b", 10))
        group: Json = {"name": "b", "slots": [{"index": 0, "node": "n1"}], "requests": {}}
        spec: Json = {
            "gang": {"name": "demo-1", "uid": "uid-demo-1"},
            "deadline": "2030-01-01T00:00:00Z",
            "groups": [group],
        }
        api.answers.append(fakeapi.json(bare("Reservation", "demo-1", 11, spec=spec, status={})))
        api.answers.append(fakeapi.json(booked("n2", "1", State.BOUND, 12)))
        second = s.world.view(("default", "demo-1"))
        assert second is not None
        step = next_step(second, NOW)
        assert isinstance(step, Place)
        placer.ask(*s.asked())
        placer.ask(second, step)
        await eventually(lambda: bool(written(api)), "the slot is moved")
    (made,) = [msgspec.json.decode(seen.body) for seen in api.seen if seen.method == "POST"]
    first = made["spec"]["groups"][0]["slots"][0]["node"]
    requests: Json = {"nvidia.com/gpu": "1", "pods": "1"}
    moved: Json = {"name": "a", "requests": requests, "slots": [{"index": 0, "node": "n2"}]}
    assert (first, written(api)) == ("n1", [[moved]])


async def test_nothing_is_lifted_onto_a_slot_that_is_being_moved() -> None:
    decided: list[Key] = []
    async with scene() as (s, api, client), placing(s, client, decided.append) as placer:
        see(s, member("a", 0), booked("n-gone", "1", State.BOUND, 4))
        api.answers.append(fakeapi.say_nothing)
        placer.ask(*s.asked())
        await eventually(lambda: bool(written(api)), "the write is under way")
        assert placer.moving(KEY) == {("a", 0)}
        assert placer.moving(("default", "other")) == frozenset()


async def test_no_slot_is_moved_while_a_pod_is_lifted_onto_it() -> None:
    async with scene() as (s, api, client), placing(s, client, lambda _: None) as placer:
        see(s, member("a", 0), booked("n-gone", "1", State.BOUND, 4))
        with placer.lifting(KEY):
            placer.ask(*s.asked())
            await asyncio.sleep(0.05)
        assert api.seen == []


async def test_who_waits_for_a_base_gang_is_woken_by_its_pods_until_it_is_bound() -> None:
    touched: list[Key] = []
    async with scene(touched.append) as (s, _, _):
        see(s, member("a", 0), booked("n1", "1", State.LIFTING, 4))
        follower = gang_of("demo-0-g-0", ["b-0"], 6)
        meta = follower["metadata"]
        assert isinstance(meta, dict)
        meta["labels"] = {"grove.io/base-podgang": "demo-0"}
        s.gangs.observe(msgspec.json.encode(follower))
        touched.clear()
        s.pods.observe(encoded(member("a", 0, gated=False, node="n1"), 7))
        assert touched == [KEY, ("default", "demo-0-g-0")]
        waiting = s.world.view(("default", "demo-0-g-0"))
        assert waiting is not None
        assert not waiting.base_started
        s.reservations.observe(msgspec.json.encode(booked("n1", "1", State.BOUND, 8)))
        waiting = s.world.view(("default", "demo-0-g-0"))
        assert waiting is not None
        assert waiting.base_started


async def test_what_was_refused_long_ago_does_not_count_once_the_gang_had_all_it_needs() -> None:
    decided, clock = list[Key](), LeapingClock()
    async with scene() as (s, _, client), placing(s, client, decided.append, clock) as placer:
        see(s, member("a", 0), booked("n-gone", "1", State.LIFTING, 4))
        s.nodes.observe(encoded(node("n1", ready=False), 6))
        placer.ask(*s.asked())
        await eventually(lambda: bool(decided), "it was refused")
        clock.skip(60)
        assert placer.refused_for(KEY) >= 60
        placer.lacks_nothing(KEY)
        assert placer.refused_for(KEY) == 0
        assert placer.ask(*s.asked()) is None, "it is asked again"


async def test_extras_that_were_refused_do_not_count_against_the_minimum() -> None:
    decided, clock = list[Key](), LeapingClock()
    async with scene() as (s, _, client), placing(s, client, decided.append, clock) as placer:
        see(s, member("a", 0, gated=False, node="n1"), booked("n1", "1", State.BOUND, 4))
        s.gangs.observe(msgspec.json.encode(gang_of("demo-0", ["a-0", "a-1"], 6)))
        s.pods.observe(encoded(member("a", 1), 7))
        s.nodes.observe(encoded(node("n1", ready=False), 8))
        seen, place = s.asked()
        assert not place.minimum
        placer.ask(seen, place)
        await eventually(lambda: bool(decided), "it was refused")
        clock.skip(60)
        assert placer.refused_for(KEY) == 0


async def test_room_that_those_who_leave_still_take_counts_as_there() -> None:
    """A successor keeps the slot of a pod that is still on its way out."""
    async with scene() as (s, _, _):
        see(s, member("a", 0), booked("n1", "1", State.LIFTING, 4))
        large = {"nvidia.com/gpu": "8"}
        there = pod("big", large, spec={"nodeName": "n1"})
        s.pods.observe(encoded(there, 6))
        found = s.world.view(KEY)
        assert found is not None
        assert sorted(found.lost) == ["n1"]
        meta = msgspec.structs.replace(there.metadata, deletion_timestamp=NOW)
        s.pods.observe(encoded(msgspec.structs.replace(there, metadata=meta), 7))
        found = s.world.view(KEY)
        assert found is not None
        assert found.lost == frozenset()

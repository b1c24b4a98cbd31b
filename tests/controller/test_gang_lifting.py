"""Lifts that fail or are refused hold up nobody else, and no more go than have their turn."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import msgspec
from aiohttp import web

from api.jsons import Json, JsonObject
from api.reservation import State
from api.streams import Condition, Owner, Pod
from controller.gangs.holding import LASTS_SECONDS
from controller.gangs.reconciling import ALL_LIFTS_AT_ONCE, LIFTS_AT_ONCE, Reconciler
from controller.gangs.releasing import AT_LEAST
from kube.client import Client
from kube.objects import Key
from tests.controller.test_gang_moving import booked, see
from tests.support import fakeapi
from tests.support.clusters import node, pod
from tests.support.fakeapi import FakeApi
from tests.support.gangscene import KEY, Scene, bare, encoded, gang_of, scene
from tests.support.manualclock import LeapingClock
from tests.support.polling import eventually
from tests.support.sets import member, owned_by

OTHER = ("default", "other")


@asynccontextmanager
async def ready_to_lift() -> AsyncIterator[tuple[Scene, FakeApi, Reconciler]]:
    """A gang of one gated pod, with its slot, that has begun."""
    async with scene() as (s, api, client):
        reconciler = made(s, client)
        see(s, member("a", 0), booked("n1", "1", State.LIFTING, 4))
        yield s, api, reconciler


def made(s: Scene, client: Client, clock: LeapingClock | None = None) -> Reconciler:
    return Reconciler(client, clock or LeapingClock(), s.caches, lambda: 1)


def refused(of: Pod) -> Pod:
    said = Condition("PodScheduled", "False", "Unschedulable", "no room")
    return msgspec.structs.replace(
        of, status=msgspec.structs.replace(of.status, conditions=(said,))
    )


def pinned(name: str, owner: Owner) -> Pod:
    terms: Json = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
    required: Json = {"nodeSelectorTerms": terms}
    affinity: Json = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    spec: dict[str, Json] = {"affinity": affinity, "hostname": name}
    return pod(name, spec=spec, metadata={"ownerReferences": [msgspec.to_builtins(owner)]})


def free(reconciler: Reconciler) -> int:
    """How many pods another gang would be let lift now."""
    found = reconciler.window.grant(OTHER, AT_LEAST)
    reconciler.window.leave(OTHER)
    return found


async def test_a_gang_whose_lifts_all_fail_goes_to_the_end_of_the_line() -> None:
    async with ready_to_lift() as (s, api, reconciler):
        s.gangs.observe(msgspec.json.encode(gang_of("demo-0", ["a-0", "a-1"], 21)))
        s.pods.observe(encoded(member("a", 1), 22))
        s.reservations.observe(msgspec.json.encode(wide(2)))
        for number in range(AT_LEAST - 1):
            reconciler.window.lifted(f"pod-{number}")
        api.answers.append(fakeapi.status(500, "InternalError", "a webhook is away"))
        await reconciler.reconcile(KEY)
        assert [seen.method for seen in api.seen] == ["PATCH"]
        assert free(reconciler) == 1, "what was not lifted is not under way, and others may go"


async def test_whatever_goes_wrong_at_the_head_of_the_line_the_next_may_go() -> None:
    """It waits for its next try; the others must not."""
    async with ready_to_lift() as (s, api, reconciler):
        for number in range(AT_LEAST):
            reconciler.window.lifted(f"pod-{number}")
        await reconciler.reconcile(KEY)  # it stands in line now
        body = wide(1) | {"status": {"state": "Lifting", "bindBy": "2020-01-01T00:00:00Z"}}
        s.reservations.observe(msgspec.json.encode(body))
        reconciler.window.settled("pod-0", bound=True)
        assert free(reconciler) == 0, "it is not the others' turn"
        api.answers.append(fakeapi.status(409, "Conflict", "somebody was faster"))
        await reconciler.reconcile(KEY)
        assert free(reconciler) == 1


async def test_a_try_that_is_given_back_is_not_forgotten() -> None:
    async with scene() as (s, api, client):
        body = booked("n1", "1", State.ROLLED_BACK, 4)
        body["spec"] = {**as_object(body["spec"]), "deadline": "2020-01-01T00:00:00Z", "attempt": 3}
        see(s, member("a", 0), body)
        api.answers.append(fakeapi.json(bare("Reservation", "demo-0", 9)))
        await made(s, client).reconcile(KEY)
        (seen,) = api.seen
        assert seen.method == "PATCH"
        assert msgspec.json.decode(seen.body)["spec"]["groups"] == []


async def test_a_gang_that_gets_no_turn_stays_in_line() -> None:
    async with ready_to_lift() as (_, api, reconciler):
        for number in range(AT_LEAST):
            reconciler.window.lifted(f"pod-{number}")
        await reconciler.reconcile(KEY)
        assert api.seen == []
        reconciler.window.settled("pod-0", bound=True)
        assert reconciler.window.grant(OTHER, 1) == 0, "it is not its turn"


def of_so_many(s: Scene, count: int) -> None:
    """Have the gang be of so many pods, with a reservation for all of them."""
    s.nodes.observe(encoded(node("n1", {"nvidia.com/gpu": "99", "pods": "99"}), 20))
    s.gangs.observe(msgspec.json.encode(gang_of("demo-0", [f"a-{i}" for i in range(count)], 21)))
    for i in range(1, count):
        s.pods.observe(encoded(member("a", i), 22))
    s.reservations.observe(msgspec.json.encode(wide(count)))


async def test_what_is_granted_is_under_way_before_anything_is_written() -> None:
    count = LIFTS_AT_ONCE + 4
    async with ready_to_lift() as (s, api, reconciler):
        of_so_many(s, count)
        seen: list[int] = []

        async def answer(request: web.Request) -> web.StreamResponse:
            seen.append(free(reconciler))
            return await fakeapi.json(bare("Pod", request.path.rpartition("/")[2], 30))(request)

        api.answers.extend([answer] * count)
        await reconciler.reconcile(KEY)
        assert set(seen) == {AT_LEAST - count}


async def test_lifts_that_go_on_at_a_time_are_few_however_many_gangs_there_are() -> None:
    count, gangs = LIFTS_AT_ONCE, ALL_LIFTS_AT_ONCE // LIFTS_AT_ONCE + 1
    async with ready_to_lift() as (s, api, reconciler):
        of_so_many(s, count)
        under_way: list[str] = []
        most: list[int] = []
        full = asyncio.Event()

        async def answer(request: web.Request) -> web.StreamResponse:
            under_way.append(request.path)
            most.append(len(under_way))
            if len(under_way) == ALL_LIFTS_AT_ONCE:
                full.set()
            await full.wait()
            await asyncio.sleep(0.02)
            under_way.remove(request.path)
            return await fakeapi.json(bare("Pod", request.path.rpartition("/")[2], 30))(request)

        api.answers.extend([answer] * count * gangs)
        # One gang stands for several: each of these looks lifts all it sees.
        await asyncio.gather(*(reconciler.reconcile(KEY) for _ in range(gangs)))
        assert len(api.seen) == count * gangs
        assert max(most) == ALL_LIFTS_AT_ONCE


async def test_who_comes_while_a_large_gang_is_lifted_does_not_wait_for_all_of_it() -> None:
    """What a gang has in line before another's is no more than it may have under way."""
    count = 3 * LIFTS_AT_ONCE
    async with ready_to_lift() as (s, api, reconciler):
        of_so_many(s, count)
        line: list[str] = []

        async def answer(request: web.Request) -> web.StreamResponse:
            line.append(request.path)
            await asyncio.sleep(0.02)
            return await fakeapi.json(bare("Pod", request.path.rpartition("/")[2], 30))(request)

        async def another() -> None:
            await eventually(lambda: bool(line), "the first lifts")
            async with reconciler._room:
                line.append("another's")

        api.answers.extend([answer] * count)
        await asyncio.gather(reconciler.reconcile(KEY), another())
        assert len(line) == count + 1
        assert line.index("another's") <= ALL_LIFTS_AT_ONCE + LIFTS_AT_ONCE


def as_object(found: Json) -> JsonObject:
    assert isinstance(found, dict)
    return found


def wide(slots: int) -> JsonObject:
    body = booked("n1", "1", State.LIFTING, 23)
    spec = body["spec"]
    assert isinstance(spec, dict)
    group: Json = {
        "name": "a",
        "requests": {"nvidia.com/gpu": "1", "pods": "1"},
        "slots": [{"index": i, "node": "n1"} for i in range(slots)],
    }
    return {**body, "spec": {**spec, "groups": [group]}}


async def test_a_pod_that_kube_scheduler_has_refused_holds_up_no_others() -> None:
    async with ready_to_lift() as (s, _, reconciler):
        lifted = pinned("a-0", owned_by("a"))
        reconciler.window.lifted(lifted.metadata.uid)
        assert free(reconciler) == AT_LEAST - 1
        s.pods.observe(encoded(refused(lifted), 6))
        assert free(reconciler) == AT_LEAST


async def test_a_successor_counts_pods_of_gangs_that_may_be_bound_soon_and_no_daemons() -> None:
    async with scene() as (s, _, client):
        reconciler = made(s, client)
        see(s, pinned("a-0", owned_by("a")), booked("n1", "1", State.LIFTING, 4))
        daemon = Owner(kind="DaemonSet", name="logs", uid="uid-logs", controller=True)
        s.pods.observe(encoded(pinned("logs-x", daemon), 6))
        await reconciler.take_over()
        assert free(reconciler) == AT_LEAST - 1
    async with scene() as (s, _, client):
        reconciler = made(s, client)
        see(s, refused(pinned("a-0", owned_by("a"))), booked("n1", "1", State.LIFTING, 4))
        await reconciler.take_over()
        assert free(reconciler) == AT_LEAST


async def test_pods_of_a_gang_that_is_rolled_back_go_whatever_became_of_them_meanwhile() -> None:
    """Those that are repaired go only as they were last seen: they may be bound by now."""
    async with scene() as (s, api, client):
        see(s, member("a", 0, gated=False), booked("n1", "1", State.ROLLED_BACK, 4))
        api.answers.append(fakeapi.json(bare("Pod", "a-0", 9)))
        await made(s, client).reconcile(KEY)
        (seen,) = api.seen
        assert seen.method == "DELETE"
        assert msgspec.json.decode(seen.body)["preconditions"].keys() == {"uid"}


async def test_gangs_at_rest_are_looked_at_when_they_are_given_another_time_to_wait() -> None:
    async with scene() as (s, _, client):
        reconciler = made(s, client)
        s.gangs.observe(msgspec.json.encode(gang_of("demo-0", ["a-0"], 21)))
        looks: list[Key] = []

        async def look(key: Key) -> None:
            looks.append(key)

        working = asyncio.create_task(reconciler.queue.run(look, 1))
        await asyncio.sleep(0.05)
        looks.clear()
        reconciler.give_time(timedelta(minutes=10))
        await asyncio.sleep(0.05)
        assert (looks, reconciler.announcer.timeout) == ([KEY], timedelta(minutes=10))
        reconciler.give_time(timedelta(minutes=10))
        await asyncio.sleep(0.05)
        assert looks == [KEY], "nothing has changed"
        working.cancel()


async def test_while_others_look_for_room_the_room_of_who_awaits_its_turn_is_kept() -> None:
    clock = LeapingClock()
    async with scene() as (s, api, client):
        reconciler = made(s, client, clock)
        see(s, member("a", 0), booked("n1", "1", State.LIFTING, 4))
        for number in range(AT_LEAST):
            reconciler.window.lifted(f"pod-{number}")
        for _ in range(2):
            await reconciler.reconcile(KEY)
            clock.skip(LASTS_SECONDS)
        assert api.seen == [], "nobody else wants it"
        s.pods.observe(encoded(pod("rival"), 31))
        await reconciler.reconcile(KEY)
        assert api.seen == [], "its turn may come in a moment"
        clock.skip(LASTS_SECONDS)
        api.answers.append(fakeapi.json(bare("Pod", "a-0", 32)))
        await reconciler.reconcile(KEY)
        (write,) = api.seen
        assert write.path.endswith("/pods/a-0/status")
        assert msgspec.json.decode(write.body)["status"] == {"nominatedNodeName": "n1"}

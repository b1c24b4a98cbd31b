"""A reservation that a leader before this one wrote after its time keeps no room."""

from typing import Final

import msgspec
import pytest

from api.jsons import JsonObject
from api.reservation import State
from controller.gangs.reconciling import Reconciler
from tests.controller.test_gang_moving import booked, see
from tests.support import fakeapi
from tests.support.fakeapi import FakeApi, Seen
from tests.support.gangscene import KEY, bare, scene
from tests.support.manualclock import LeapingClock
from tests.support.sets import member

OURS: Final = 5


def written(state: State, generation: int, version: int = 4, spec: int = 1) -> JsonObject:
    """Give the `spec`-th spec of the gang's reservation, from a leader of that generation."""
    body = booked("n1", "1", state, version)
    assert isinstance(body["spec"], dict)
    assert isinstance(body["metadata"], dict)
    metadata = {**body["metadata"], "generation": spec}
    return {**body, "metadata": metadata, "spec": {**body["spec"], "generation": generation}}


async def look(api: FakeApi, reconciler: Reconciler) -> Seen:
    """Take the gang's next step; gives the one request it makes."""
    api.answers.append(fakeapi.json(bare("Reservation", "demo-0", 9)))
    await reconciler.reconcile(KEY)
    (seen,) = api.seen
    return seen


async def test_what_came_after_the_takeover_from_an_earlier_leader_is_given_back() -> None:
    async with scene() as (s, api, client):
        reconciler = Reconciler(client, LeapingClock(), s.caches, lambda: OURS)
        await reconciler.take_over()
        see(s, member("a", 0), written(State.HELD, OURS - 1))
        seen = await look(api, reconciler)
        assert seen.method == "DELETE"
        sure = msgspec.json.decode(seen.body)["preconditions"]
        assert sure == {"uid": "uid-demo-0", "resourceVersion": "4"}


@pytest.mark.parametrize("generation", [OURS, OURS + 1])
async def test_what_is_not_from_an_earlier_leader_goes_on(generation: int) -> None:
    """That of a later one tells us that we lead no more; it is not ours to give back."""
    async with scene() as (s, api, client):
        reconciler = Reconciler(client, LeapingClock(), s.caches, lambda: OURS)
        await reconciler.take_over()
        see(s, member("a", 0), written(State.HELD, generation))
        begun = await look(api, reconciler)
        assert (begun.method, begun.path.endswith("/status")) == ("PATCH", True)


async def test_what_was_there_at_the_takeover_goes_on() -> None:
    async with scene() as (s, api, client):
        reconciler = Reconciler(client, LeapingClock(), s.caches, lambda: OURS)
        see(s, member("a", 0), written(State.HELD, OURS - 1))
        await reconciler.take_over()
        begun = await look(api, reconciler)
        assert (begun.method, begun.path.endswith("/status")) == ("PATCH", True)


async def test_another_try_that_came_after_the_takeover_is_given_back_as_well() -> None:
    """It is the same object, which was there before."""
    async with scene() as (s, api, client):
        reconciler = Reconciler(client, LeapingClock(), s.caches, lambda: OURS)
        see(s, member("a", 0), written(State.ROLLED_BACK, OURS - 1))
        await reconciler.take_over()
        again = written(State.HELD, OURS - 1, version=5, spec=2)
        s.reservations.observe(msgspec.json.encode(again))
        assert (await look(api, reconciler)).method == "DELETE"


async def test_what_an_earlier_leader_has_begun_is_finished() -> None:
    """Pods may have been lifted by it, and whatever has begun is told from others by its state."""
    async with scene() as (s, api, client):
        reconciler = Reconciler(client, LeapingClock(), s.caches, lambda: OURS)
        await reconciler.take_over()
        see(s, member("a", 0), written(State.LIFTING, OURS - 1))
        lifted = await look(api, reconciler)
        assert (lifted.method, lifted.path.rpartition("/")[2]) == ("PATCH", "a-0")

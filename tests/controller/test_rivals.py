"""Whom a set waits for in its namespace follows from the PodGangs there."""

import asyncio
import random

from api.jsons import JsonObject
from api.streams import Custom
from controller.workloads.quota import shortage
from controller.workloads.quota.rivals import Rivals
from controller.workloads.quota.shortage import Refused, Trying
from kube.cache import Cache
from kube.resources import PODGANGS
from tests.model.memory import Memory, MemoryClient, Wire
from tests.model.player import Player
from tests.support.manualclock import START, ManualClock, settle

GANGS = "apis/scheduler.grove.io/v1alpha1/podgangs"


def gang(name: str, owner: str) -> JsonObject:
    reference: JsonObject = {
        "apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": owner, "uid": owner,
        "controller": True,
    }  # fmt: skip
    return {"metadata": {"name": name, "ownerReferences": [reference]}, "spec": {"podgroups": []}}


async def test_a_set_knows_those_of_other_sets_in_its_namespace_that_are_refused_now() -> None:
    clock = ManualClock()
    memory = Memory(clock)
    cache = Cache(MemoryClient(Wire(memory), clock), PODGANGS, Custom, random.Random(0))  # noqa: S311
    rivals = Rivals(cache)
    running = asyncio.create_task(cache.run())
    here, there = Player(memory, "here"), Player(memory, "there")
    for player in (here, there):
        for owner in ("a", "b"):
            player.create(GANGS, gang(f"{owner}-0", owner))
    await settle()
    assert rivals.of("here", "a") == ()
    here.patch(GANGS, "b-0", shortage.remember(Refused(START, "no", 2)))
    await settle()
    (rival,) = rivals.of("here", "a")
    assert rival.rank == (2, START, "b-0")
    assert rival.since == START
    assert rivals.of("here", "b") == (), "nobody is their own rival"
    assert rivals.of("there", "a") == ()
    here.patch(GANGS, "b-0", shortage.remember(Trying(2)))
    await settle()
    assert rivals.of("here", "a") == ()
    there.patch(GANGS, "b-0", shortage.remember(Refused(START, "no")))
    await settle()
    assert rivals.of("there", "a")
    there.delete(GANGS, "b-0")
    await settle()
    assert rivals.of("there", "a") == ()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

"""While sets are switched off, whatever was made for them goes when it is deleted."""

from itertools import count

import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from controller.workloads.caches import Caches, caches
from controller.workloads.letting_go import FINALIZERS, LettingGo
from kube.client import Client
from kube.resources import PODCLIQUES, PODCLIQUESETS, PODS, SCALING_GROUPS, Resource
from tests.support.chance import dice
from tests.support.patchapi import PatchApi, patching

MINE: dict[Resource, str] = {
    kind: finalizer
    for kind, finalizer in FINALIZERS.items()
    if kind in (PODCLIQUESETS, SCALING_GROUPS, PODCLIQUES)
}
OTHERS = "example.com/keeps"


def furnish(api: PatchApi, *, gated: bool) -> None:
    for kind, finalizer in MINE.items():
        meta: JsonObject = {
            "name": "x", "namespace": "default", "uid": f"uid-{kind.plural}",
            "finalizers": [OTHERS, finalizer],
        }  # fmt: skip
        api.put(kind.path("default", "x"), {"kind": kind.kind, "metadata": meta})
    gates: Json = [{"name": names.GATE}] if gated else []
    held: JsonObject = {"name": "p", "namespace": "default", "uid": "uid-p"}
    api.put(PODS.path("default", "p"), {"metadata": held, "spec": {"schedulingGates": gates}})


def seen(api: PatchApi, client: Client) -> Caches:
    found = caches(client, dice())
    for kind in (*MINE, PODS):
        for path, thing in api.objects.items():
            if path.rsplit("/", 2)[-2] == kind.plural:
                found.observe(kind, msgspec.json.encode(thing))
    return found


def finalizers(api: PatchApi) -> list[Json]:
    found: list[Json] = []
    for kind in MINE:
        meta = api.objects[kind.path("default", "x")]["metadata"]
        assert isinstance(meta, dict)
        found.append(meta["finalizers"])
    return found


async def test_nothing_is_let_go_while_a_pod_waits_behind_the_gate() -> None:
    async with patching() as (api, client, clock):
        furnish(api, gated=True)
        await LettingGo(client, clock, seen(api, client), lambda: True).look()
        assert api.writes == []


@pytest.mark.parametrize("killed_after", range(4))
async def test_our_finalizers_come_off_and_no_others_whoever_dies_meanwhile(
    killed_after: int,
) -> None:
    async with patching() as (api, client, clock):
        furnish(api, gated=False)
        asked = count()
        # It asks before each write, and dies between two of them.
        lives = lambda: next(asked) < killed_after  # noqa: E731
        await LettingGo(client, clock, seen(api, client), lives).look()
        assert len(api.writes) == killed_after, "who does not lead writes nothing"
        await LettingGo(client, clock, seen(api, client), lambda: True).look()
        assert finalizers(api) == [[OTHERS]] * len(MINE)
        assert len(api.writes) == len(MINE)


async def test_whoever_adds_a_finalizer_meanwhile_keeps_it() -> None:
    async with patching() as (api, client, clock):
        furnish(api, gated=False)
        known = seen(api, client)
        for kind in MINE:
            api.touch(kind.path("default", "x"))
        await LettingGo(client, clock, known, lambda: True).look()
        assert api.writes == []

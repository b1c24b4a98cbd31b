"""A plain gang that was rolled back is remembered for a while although all its pods are gone."""

import msgspec

from api.jsons import Json, JsonObject
from api.streams import Custom
from controller.gangs.plain_acting import PlainMaker
from controller.gangs.plain_bodies import Wanted
from controller.gangs.plain_deciding import RETRIED_SECONDS
from kube.cache import Cache
from kube.resources import TOPOLOGY_BINDINGS
from tests.support import fakeapi
from tests.support.chance import dice
from tests.support.gangscene import bare, scene
from tests.support.manualclock import ManualClock
from tests.support.plaingangs import KEY
from tests.support.sets import NOW


def podgang() -> bytes:
    body = Wanted(KEY, ((0, "a"),), 1).body()
    meta = body["metadata"]
    assert isinstance(meta, dict)
    whole: JsonObject = {**meta, "uid": "uid-train", "resourceVersion": "3"}
    return msgspec.json.encode({**body, "metadata": whole, "status": {}})


def rolled_back() -> bytes:
    gang: Json = {"name": "train", "uid": "uid-train"}
    spec: JsonObject = {"gang": gang, "deadline": NOW.isoformat(), "attempt": 2, "groups": []}
    status: JsonObject = {"state": "RolledBack", "attempt": 2}
    return msgspec.json.encode(bare("Reservation", "train", 4, spec=spec, status=status))


async def test_its_podgang_goes_when_nobody_has_come_for_a_while() -> None:
    clock = ManualClock()
    async with scene() as (s, api, client):
        bindings = Cache(client, TOPOLOGY_BINDINGS, Custom, dice())
        maker = PlainMaker(client, clock, s.caches, bindings, lambda: 1, ("default-scheduler",))
        s.gangs.observe(podgang())
        s.reservations.observe(rolled_back())
        await maker.reconcile(KEY)
        clock.skip(RETRIED_SECONDS - 1)
        await maker.reconcile(KEY)
        assert api.seen == []
        clock.skip(1)
        api.answers.append(fakeapi.json(bare("PodGang", "train", 9)))
        await maker.reconcile(KEY)
        assert [seen.method for seen in api.seen] == ["DELETE"]

"""What a gang draws of a keep is written with its room, in one and the same write."""

from datetime import timedelta

from api.jsons import Json, JsonObject
from api.reservation import State
from controller.gangs import booking
from controller.gangs.standing import Standing
from scheduler.answers import Placed, Placement
from scheduler.requests import GangRequest, Kept, Share, Want
from tests.support.keeping import GPU, user
from tests.support.sets import NOW, gang, reservation

TERMS = booking.Terms(NOW, timedelta(seconds=60), 3)
NEAR = Standing(1.0, ())
ROOM = Kept("room/uid-room", (Share("n0", {GPU: 1, "pods": 1}),))


def drawing(*shares: Share, slot: int = 0, node: str = "n0") -> Placement:
    want = Want("a", slot, {GPU: 1, "pods": 1})
    asked = GangRequest("default", "demo-0", (want,), kept=ROOM)
    return Placement(asked, (Placed(want, node),), (), 1.0, drawn=shares)


def uses(body: JsonObject) -> Json:
    spec = body["spec"]
    assert isinstance(spec, dict)
    return spec.get("uses", "nothing")


def said(**nodes: int) -> JsonObject:
    shares: list[Json] = [
        {"node": node, "requests": {GPU: str(gpus), "pods": str(gpus)}}
        for node, gpus in nodes.items()
    ]
    return {"name": "room", "uid": "uid-room", "shares": shares}


ONE = Share("n0", {GPU: 1, "pods": 1})


def test_a_new_entry_says_what_it_draws() -> None:
    meta = gang({"a": (1, 1)}).metadata
    assert uses(booking.body(meta, drawing(ONE), NEAR, TERMS)) == said(n0=1)
    assert uses(booking.body(meta, drawing(), NEAR, TERMS)) == "nothing"


def test_growth_adds_to_what_was_drawn() -> None:
    before = user({0: "n0"}, {"n0": 1}, State.BOUND)
    assert uses(booking.grown(before, drawing(ONE, slot=1), NEAR)) == said(n0=2)
    assert uses(booking.grown(before, drawing(slot=1, node="n9"), NEAR)) == "nothing"


def test_growth_forgets_what_its_slots_take_no_more() -> None:
    before = user({0: "n5"}, {"n0": 1}, State.BOUND)
    more = Share("n1", {GPU: 1, "pods": 1})
    assert uses(booking.grown(before, drawing(more, slot=1, node="n1"), NEAR)) == said(n1=1)


def test_another_try_says_anew_what_it_draws() -> None:
    before = user({0: "n0"}, {"n0": 1}, State.ROLLED_BACK)
    assert uses(booking.renewed(before, drawing(ONE), NEAR, TERMS)) == said(n0=1)
    assert uses(booking.renewed(before, drawing(), NEAR, TERMS)) is None
    never = reservation({("a", 0): "n0"}, State.ROLLED_BACK)
    assert uses(booking.renewed(never, drawing(), NEAR, TERMS)) == "nothing"

"""Which gangs hear of which changes, and what is told of all of them."""

from api.jsons import Json, JsonObject
from tests.support.clusters import node
from tests.support.gangscene import KEY, bare, encoded, gang_of, scene

BOUND: JsonObject = {"state": "Bound"}


def booked(*nodes: str, version: int) -> JsonObject:
    """The gang's reservation, with a slot on each of these nodes."""
    slots: list[Json] = [{"index": i, "node": name} for i, name in enumerate(nodes)]
    groups: list[Json] = [{"name": "a", "requests": {"pods": "1"}, "slots": slots}]
    spec: JsonObject = {
        "gang": {"name": KEY[1], "uid": f"uid-{KEY[1]}"},
        "deadline": "2026-01-01T00:00:00Z",
        "groups": groups,
    }
    return bare("Reservation", KEY[1], version, spec=spec, status=BOUND)


async def test_a_gang_hears_of_the_nodes_that_its_slots_are_on_and_of_no_others() -> None:
    touched: list[tuple[str, str]] = []

    def heard(name: str, version: int, *, cordoned: bool) -> bool:
        touched.clear()
        s.nodes.observe(encoded(node(name, spec={"unschedulable": cordoned}), version))
        return KEY in touched

    async with scene(touched.append) as (s, _, _):
        s.gangs.observe(encoded(gang_of(KEY[1], ["a-0", "a-1"], 3), 3))
        s.reservations.observe(encoded(booked("n1", "n2", version=4), 4))
        assert heard("n1", 5, cordoned=True)
        assert heard("n2", 6, cordoned=False)
        assert not heard("n3", 7, cordoned=False)
        s.reservations.observe(encoded(booked("n3", version=8), 8))
        assert not heard("n1", 9, cordoned=False)
        assert not heard("n2", 10, cordoned=True)
        assert heard("n3", 11, cordoned=True)


async def test_of_each_gang_it_is_known_how_far_it_is_and_why_it_waits() -> None:
    async with scene() as (s, _, _):
        waiting = gang_of(KEY[1], ["a-0"], 3)
        condition: JsonObject = {
            "type": "Scheduled", "status": "False", "reason": "InsufficientCapacity",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }  # fmt: skip
        s.gangs.observe(encoded(gang_of("other-0", [], 3), 3))
        s.gangs.observe(encoded(waiting | {"status": {"conditions": [condition]}}, 4))
        assert sorted(s.world.stages()) == [("Pending", ""), ("Pending", "InsufficientCapacity")]
        s.gangs.observe(encoded(waiting | {"status": {"phase": "Running"}}, 5))
        assert sorted(s.world.stages()) == [("Pending", ""), ("Running", "")]

"""Room that is kept for some: whoever may draws on it first, and nobody else gets it."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api import names
from scheduler import cycle, invariants, saving
from scheduler.answers import Placement, Plan
from scheduler.emptied import Emptied
from scheduler.foretelling import Forecast
from scheduler.invariants import BrokenPlanError
from scheduler.requests import Closeness, GangRequest, Kept, Share, Want
from scheduler.snapshot import Hold, Snapshot, build
from scheduler.topology import Levels
from tests.support.clusters import racks

LEVELS = [Levels("", (names.ZONE_KEY, names.BLOCK_KEY, names.RACK_KEY))]
GPU = "nvidia.com/gpu"


def kept(*nodes: str, gpus: int = 8, once: bool = False, name: str = "room") -> Kept:
    return Kept(name, tuple(Share(node, {GPU: gpus, "pods": 1}) for node in nodes), once)


def cluster(*keeps: Kept, rack_count: int = 2, nodes_each: int = 2) -> Snapshot:
    """Racks of nodes with 8 GPUs, on which what is kept counts as taken."""
    holds = [Hold(share.node, share.amounts) for keep in keeps for share in keep.shares]
    return build(racks(1, 1, rack_count, nodes_each), holds, LEVELS)


def gang(
    name: str, pods: int, room: Kept | None = None, *, gpus: int = 8, extras: int = 0
) -> GangRequest:
    wants = [Want("w", i, {GPU: gpus, "pods": 1}) for i in range(pods + extras)]
    minimum, more = tuple(wants[:pods]), tuple(wants[pods:])
    return GangRequest("default", name, minimum, more, born=name, kept=room)


def nodes_of(plan: Plan, name: str) -> list[str]:
    return [p.node for found in plan.placements if found.gang.name == name for p in found.placed]


def test_what_is_kept_is_for_nobody_else() -> None:
    room = kept("n-0-0-0-0", "n-0-0-0-1")
    made = cycle.plan(cluster(room, rack_count=1), [gang("a", 1)])
    assert made.placements == ()


def test_whoever_may_gets_the_room_that_is_kept() -> None:
    room = kept("n-0-0-0-0", "n-0-0-0-1")
    made = cycle.plan(cluster(room, rack_count=1), [gang("a", 2, room)])
    assert sorted(nodes_of(made, "a")) == ["n-0-0-0-0", "n-0-0-0-1"]


def test_kept_room_is_drawn_on_before_free_room() -> None:
    for node in ("n-0-0-0-0", "n-0-0-1-1"):
        room = kept(node)
        made = cycle.plan(cluster(room), [gang("a", 1, room)])
        assert nodes_of(made, "a") == [node]


def test_extras_draw_on_it_too() -> None:
    room = kept("n-0-0-1-0", "n-0-0-1-1")
    made = cycle.plan(cluster(room), [gang("a", 1, room, extras=1)])
    assert sorted(nodes_of(made, "a")) == ["n-0-0-1-0", "n-0-0-1-1"]


def test_a_gang_too_large_for_it_takes_free_room_beside_it() -> None:
    room = kept("n-0-0-1-0")
    made = cycle.plan(cluster(room), [gang("a", 4, room)])
    assert len(set(nodes_of(made, "a"))) == 4


def test_what_is_kept_and_what_is_free_on_a_node_serve_one_pod_together() -> None:
    room = kept("n-0-0-0-0", gpus=6)
    snapshot = cluster(room, rack_count=1, nodes_each=1)
    assert nodes_of(cycle.plan(snapshot, [gang("a", 1, room)]), "a") == ["n-0-0-0-0"]
    assert cycle.plan(snapshot, [gang("b", 1, gpus=4)]).placements == ()


def test_what_one_draws_the_next_no_longer_finds() -> None:
    room = kept("n-0-0-0-0", "n-0-0-0-1")
    asked = [gang("a", 1, room), gang("b", 1, room), gang("c", 1, room), gang("d", 1)]
    made = cycle.plan(cluster(room, rack_count=1), asked)
    assert [p.gang.name for p in made.placements] == ["a", "b"]
    assert [r.gang.name for r in made.refusals] == ["c", "d"]


def test_what_a_gang_does_not_use_is_kept_on() -> None:
    room = kept("n-0-0-0-0")
    asked = [gang("a", 1, room, gpus=2), gang("b", 1, gpus=2), gang("c", 1, room, gpus=6)]
    made = cycle.plan(cluster(room, rack_count=1, nodes_each=1), asked)
    assert [p.gang.name for p in made.placements] == ["a", "c"]


def test_room_for_once_is_drawn_on_by_one_gang_only() -> None:
    room = kept("n-0-0-0-0", "n-0-0-0-1", once=True)
    asked = [gang("a", 1, room, extras=1), gang("b", 1, room)]
    made = cycle.plan(cluster(room, rack_count=1), asked)
    assert [p.gang.name for p in made.placements] == ["a"]
    assert len(nodes_of(made, "a")) == 2


def test_a_refused_gang_leaves_what_is_kept() -> None:
    room = kept("n-0-0-0-0", once=True)
    made = cycle.plan(cluster(room, rack_count=1), [gang("a", 3, room), gang("b", 1, room)])
    assert [p.gang.name for p in made.placements] == ["b"]


def test_equal_gangs_are_told_apart_by_what_is_kept_for_them() -> None:
    room = kept("n-0-0-0-0", "n-0-0-0-1")
    made = cycle.plan(cluster(room, rack_count=1), [gang("a", 1), gang("b", 1, room)])
    assert [p.gang.name for p in made.placements] == ["b"]


def test_closeness_binds_in_kept_room_as_anywhere() -> None:
    room = kept("n-0-0-0-0", "n-0-0-1-0")
    asked = dataclasses.replace(gang("a", 2, room), near=Closeness(required=names.RACK_KEY))
    (found,) = cycle.plan(cluster(room), [asked]).placements
    assert len(found.domain) == 3


def test_room_on_a_node_that_is_gone_serves_nobody() -> None:
    room = kept("gone", "n-0-0-0-0")
    made = cycle.plan(cluster(room, rack_count=1, nodes_each=1), [gang("a", 1, room)])
    assert nodes_of(made, "a") == ["n-0-0-0-0"]


def test_a_saved_question_keeps_what_is_kept() -> None:
    room = kept("n-0-0-0-0")
    nodes = racks(1, 1, 1, 1)
    saved = saving.Saved(tuple(LEVELS), tuple(nodes), requests=(gang("a", 1, room),))
    assert saving.loads(saving.dumps(saved)).requests == saved.requests


def test_a_placement_says_how_much_of_each_node_it_has_drawn() -> None:
    room = kept("n-0-0-0-0", gpus=6)
    (found,) = cycle.plan(cluster(room, rack_count=1), [gang("a", 2, room)]).placements
    assert found.drawn == (Share("n-0-0-0-0", {GPU: 6, "pods": 1}),)
    (other,) = cycle.plan(cluster(room, rack_count=1), [gang("b", 1)]).placements
    assert other.drawn == ()


def changed(made: Placement, room: Kept | None, *drawn: Share) -> Placement:
    return dataclasses.replace(
        made, gang=dataclasses.replace(made.gang, kept=room), drawn=drawn or made.drawn
    )


@pytest.mark.parametrize(
    ("room", "drawn", "fault"),
    [
        (None, (), "draws on what is kept for others"),
        (kept("n-0-0-0-0", gpus=7), (), "draws too much"),
        (kept("n-0-0-0-1"), (), "draws too much"),
        (kept("n-0-0-0-0", gpus=9), (Share("n-0-0-0-0", {GPU: 9}),), "draws too much"),
        (kept("n-0-0-0-0"), (Share("n-0-0-0-0", {GPU: 7}),), "overcommits"),
    ],
)
def test_a_plan_that_draws_more_than_it_may_is_found_out(
    room: Kept | None, drawn: tuple[Share, ...], fault: str
) -> None:
    whole = kept("n-0-0-0-0")
    snapshot = cluster(whole, rack_count=1, nodes_each=1)
    (made,) = cycle.plan(snapshot, [gang("a", 1, whole)]).placements
    with pytest.raises(BrokenPlanError, match=fault):
        invariants.check(snapshot, [changed(made, room, *drawn)])


def test_a_plan_in_which_two_draw_on_room_for_once_is_found_out() -> None:
    room = kept("n-0-0-0-0", "n-0-0-0-1")
    snapshot = cluster(room, rack_count=1)
    made = cycle.plan(snapshot, [gang("a", 1, room), gang("b", 1, room)]).placements
    invariants.check(snapshot, made)
    only = dataclasses.replace(room, once=True)
    with pytest.raises(BrokenPlanError, match="b is the second"):
        invariants.check(snapshot, [changed(each, only) for each in made])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_node_is_promised_beyond_what_it_has_whoever_draws(data: st.DataObject) -> None:
    every = [f"n-0-0-{r}-{n}" for r in range(2) for n in range(2)]
    keeps = [
        kept(*nodes, gpus=data.draw(st.integers(1, 4)), once=data.draw(st.booleans()), name=name)
        for name in ("one", "other")
        if (nodes := data.draw(st.lists(st.sampled_from(every), unique=True, max_size=3)))
    ]
    snapshot = cluster(*keeps)
    asked = [
        gang(
            f"g{i}",
            data.draw(st.integers(1, 4)),
            data.draw(st.sampled_from([None, *keeps])),
            gpus=data.draw(st.sampled_from([1, 3, 8])),
            extras=data.draw(st.integers(0, 2)),
        )
        for i in range(data.draw(st.integers(1, 5)))
    ]
    made = cycle.plan(snapshot, asked)  # which is checked against the invariants
    used: dict[str, int] = {}
    drawn: dict[tuple[str, str], int] = {}
    for placement in made.placements:
        for share in placement.drawn:
            assert placement.gang.kept is not None
            key = placement.gang.kept.name, share.node
            drawn[key] = drawn.get(key, 0) + share.amounts.get(GPU, 0)
        for each in placement.placed:
            gpus = each.want.need[GPU]
            used[each.node] = used.get(each.node, 0) + gpus
    for node in every:
        rest = sum(
            share.amounts[GPU] - drawn.get((keep.name, node), 0)
            for keep in keeps
            for share in keep.shares
            if share.node == node
        )
        assert used.get(node, 0) + rest <= 8


def test_a_forecast_counts_what_is_kept_for_a_gang_and_for_nobody_else() -> None:
    room = kept("n-0-0-0-0", "n-0-0-0-1")
    emptied = Emptied(tuple(racks(1, 1, 1, 2)), tuple(LEVELS))
    forecast = Forecast(cluster(room, rack_count=1), emptied)
    asked = [gang("a", 1, room), gang("b", 1), gang("c", 1, room), gang("d", 1, room)]
    assert [refusal.gang.name for refusal in forecast.refusals(asked)] == ["b", "d"]

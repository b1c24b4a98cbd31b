"""Gangs are placed whole, close together, and never beyond what is free."""

import dataclasses
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api import names, quantities
from api.streams import Node
from scheduler import cycle, explain, invariants
from scheduler.answers import NoFit, Placed, Placement
from scheduler.eligible import Constraints
from scheduler.invariants import BrokenPlanError
from scheduler.requests import Anchor, GangRequest, Want
from scheduler.snapshot import Hold, Snapshot, build
from scheduler.topology import Levels
from tests.support.clusters import node, racks

LEVELS = [Levels("", (names.ZONE_KEY, names.BLOCK_KEY, names.RACK_KEY))]
GPU = "nvidia.com/gpu"


def wants(group: str, count: int, gpus: int = 8, start: int = 0) -> tuple[Want, ...]:
    need = {GPU: gpus, "pods": 1}
    return tuple(Want(group, start + i, need) for i in range(count))


def gang(name: str, minimum: tuple[Want, ...], **more: object) -> GangRequest:
    return dataclasses.replace(GangRequest("default", name, minimum), **more)  # type: ignore[arg-type]


def stock(nodes: list[Node], *holds: Hold) -> Snapshot:
    return build(nodes, holds, LEVELS)


def only(snapshot: Snapshot, request: GangRequest) -> Placement | NoFit:
    made = cycle.plan(snapshot, [request])
    return made.placements[0] if made.placements else made.refusals[0]


def placed(snapshot: Snapshot, request: GangRequest) -> Placement:
    found = only(snapshot, request)
    assert isinstance(found, Placement)
    return found


def refused(snapshot: Snapshot, request: GangRequest) -> NoFit:
    found = only(snapshot, request)
    assert isinstance(found, NoFit)
    return found


def test_nobody_gets_a_plan_that_was_not_checked() -> None:
    snapshot, asked = stock(racks(1, 1, 1, 2)), gang("g", wants("w", 2))

    def check(given: Snapshot, placements: Sequence[Placement]) -> None:
        assert given is snapshot
        raise BrokenPlanError(", ".join(placement.gang.name for placement in placements))

    with pytest.raises(BrokenPlanError, match="g"):
        cycle.plan(snapshot, [asked], check=check)


def test_a_gang_that_fits_one_rack_is_put_into_one() -> None:
    found = placed(stock(racks(2, 2, 5, 2)), gang("g", wants("w", 2)))
    assert len(found.domain) == 3
    assert found.score == 1.0


def test_a_gang_too_large_for_a_rack_stays_in_one_block() -> None:
    found = placed(stock(racks(2, 2, 5, 2)), gang("g", wants("w", 5)))
    assert found.domain == ("z0", "z0-b0")
    assert found.score == pytest.approx((2 + 8 * 2 / 3) / 10)


def test_the_fullest_domain_that_still_has_room_is_chosen() -> None:
    half = Hold("n-0-0-1-0", {GPU: 4})
    found = placed(stock(racks(1, 1, 3, 1), half), gang("g", wants("w", 1, gpus=4)))
    assert [p.node for p in found.placed] == ["n-0-0-1-0"]


def test_what_does_not_fit_whole_takes_nothing_so_that_others_may() -> None:
    made = cycle.plan(
        stock(racks(1, 1, 2, 1)), [gang("big", wants("w", 3)), gang("small", wants("w", 2))]
    )
    assert [p.gang.name for p in made.placements] == ["small"]
    assert [(r.gang.name, r.fitted) for r in made.refusals] == [("big", 2)]


def test_extras_come_after_the_minimum_and_never_stand_in_its_way() -> None:
    request = gang("g", wants("w", 2), extras=wants("w", 3, start=2))
    found = placed(stock(racks(1, 1, 2, 2)), request)
    assert [p.want.index for p in found.placed] == [0, 1, 2, 3]
    assert found.placed[0].node[:-2] == found.placed[1].node[:-2]


def test_growth_stays_where_the_gang_lives() -> None:
    snapshot = stock(racks(1, 2, 2, 2))
    found = placed(snapshot, gang("g", wants("w", 1), anchors=(Anchor("n-0-1-1-0"),)))
    assert found.domain == ("z0", "z0-b1", "z0-b1-r1")


def test_what_is_taken_is_not_given_again() -> None:
    snapshot = stock(racks(1, 1, 1, 2), Hold("n-0-0-0-0", {GPU: 8}))
    found = placed(snapshot, gang("g", wants("w", 1)))
    assert [p.node for p in found.placed] == ["n-0-0-0-1"]
    assert refused(snapshot, gang("g", wants("w", 2))).fitted == 1


def test_extras_without_room_are_refused_and_not_placed_as_nothing() -> None:
    full = stock(racks(1, 1, 1, 1), Hold("n-0-0-0-0", {GPU: 8}))
    found = refused(full, gang("g", (), extras=wants("w", 2, gpus=4)))
    assert (found.fitted, found.needed) == (0, {GPU: 8, "pods": 2})
    half = stock(racks(1, 1, 1, 1), Hold("n-0-0-0-0", {GPU: 4}))
    some = placed(half, gang("g", (), extras=wants("w", 2, gpus=4)))
    assert [p.want.index for p in some.placed] == [0]


def test_no_amount_anybody_writes_can_overflow_the_engine() -> None:
    need = quantities.amounts({"cpu": "1e30", "memory": "99999999Ei"})
    snapshot = stock(racks(1, 1, 1, 1), *[Hold("n-0-0-0-0", need)] * 500)
    assert (snapshot.free < 2**60).all()
    assert (snapshot.free[:, snapshot.resources.index("cpu")] < 0).all()
    assert refused(snapshot, gang("g", (Want("w", 0, need),))).fitted == 0


def test_what_is_held_on_a_node_that_is_gone_is_forgotten() -> None:
    snapshot = stock(racks(1, 1, 1, 1), Hold("gone", {GPU: 8}))
    placed(snapshot, gang("g", wants("w", 1)))


def test_a_shortage_is_named_with_its_size() -> None:
    found = refused(stock(racks(1, 1, 5, 1)), gang("g", wants("w", 6)))
    assert explain.sentence(found).startswith(
        "no room for all 6 pods of the minimum: nvidia.com/gpu: 48 needed, 40 free, 8 short"
    )


def test_fragmentation_is_told_from_shortage() -> None:
    holds = [Hold(f"n-0-0-{r}-0", {GPU: 4}) for r in range(4)]
    found = refused(stock(racks(1, 1, 4, 1), *holds), gang("g", wants("w", 1)))
    assert explain.sentence(found).startswith(
        "no room for all 1 pod of the minimum: 0 would fit; there is enough in total but not on "
        "single nodes, the largest pod needs 8 nvidia.com/gpu on one node"
    )


def test_nodes_that_do_not_count_are_counted_by_reason() -> None:
    nodes = [
        *racks(1, 1, 1, 1),
        node("down", ready=False),
        node("off", spec={"unschedulable": True}),
    ]
    message = explain.sentence(refused(stock(nodes), gang("g", wants("w", 2))))
    assert "16 needed, 8 free, 8 short" in message
    assert message.endswith("(counting 1 of 3 nodes: 1 cordoned, 1 not ready)")


def test_a_resource_no_node_has_is_a_refusal() -> None:
    found = refused(stock(racks(1, 1, 1, 1)), gang("g", (Want("w", 0, {"fpga.io/x": 1}),)))
    assert "fpga.io/x: 1 needed, 0 free, 1 short" in explain.sentence(found)


def test_a_node_overdrawn_in_memory_still_takes_a_pod_that_asks_for_none() -> None:
    snapshot = stock(racks(1, 1, 1, 1), Hold("n-0-0-0-0", {"memory": 2**50}))
    placed(snapshot, gang("g", wants("w", 1)))


def test_without_topology_labels_the_cluster_is_one_domain() -> None:
    found = placed(stock([node("a"), node("b")]), gang("g", wants("w", 2)))
    assert (found.domain, found.score) == ((), 0.0)


def test_a_broken_plan_is_caught() -> None:
    snapshot = stock(racks(1, 1, 1, 1))
    (want,) = wants("w", 1)
    here = Placed(want, "n-0-0-0-0")
    good = Placement(gang("g", (want,)), (here,), (), 1.0)
    invariants.check(snapshot, [good])
    with pytest.raises(BrokenPlanError, match="not whole"):
        invariants.check(snapshot, [dataclasses.replace(good, placed=())])
    with pytest.raises(BrokenPlanError, match="overcommits"):
        invariants.check(snapshot, [good, dataclasses.replace(good, gang=gang("h", (want,)))])
    choosy = dataclasses.replace(want, constraints=Constraints(selector=(("disk", "ssd"),)))
    wrong = Placement(gang("g", (choosy,)), (Placed(choosy, "n-0-0-0-0"),), (), 1.0)
    with pytest.raises(BrokenPlanError, match="not selected"):
        invariants.check(snapshot, [wrong])


requests = st.lists(
    st.tuples(st.integers(1, 6), st.integers(1, 8), st.integers(0, 3)), min_size=1, max_size=8
)


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(*[st.integers(1, 3)] * 4),
    held=st.lists(st.integers(0, 8), max_size=20),
    asked=requests,
)
def test_every_plan_is_whole_within_bounds_and_repeatable(
    shape: tuple[int, int, int, int], held: list[int], asked: list[tuple[int, int, int]]
) -> None:
    nodes = racks(*shape)
    holds = [Hold(n.metadata.name, {GPU: gpus}) for n, gpus in zip(nodes, held, strict=False)]
    gangs = [
        gang(f"g{i}", wants("w", count, gpus), extras=wants("w", extra, gpus, start=count))
        for i, (count, gpus, extra) in enumerate(asked)
    ]
    snapshot = stock(nodes, *holds)
    before = snapshot.free.copy()
    made = cycle.plan(snapshot, gangs)  # checks the invariants itself
    assert (snapshot.free == before).all()
    assert len(made.placements) + len(made.refusals) == len(gangs)
    assert cycle.plan(stock(nodes, *holds), gangs) == made
    # What is refused at the end would not have fitted by itself either, into what was left.
    for refusal in made.refusals[-1:]:
        if refusal.gang is gangs[-1]:
            assert refusal.fitted < len(refusal.gang.minimum)

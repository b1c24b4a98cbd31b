"""A reservation says how good the whole gang's place is, whichever slots came or went last."""

from itertools import combinations

import pytest

from api.jsons import JsonObject
from api.reservation import ReservationSpec, State
from controller.gangs import booking, reporting, standing
from controller.gangs.deciding import Wait
from controller.gangs.standing import Standing
from controller.gangs.topologies import BUILT_IN
from controller.gangs.views import Reservation
from scheduler import cycle
from scheduler.answers import Placed, Placement
from scheduler.requests import GangRequest, Want
from scheduler.snapshot import Hold, build
from scheduler.topology import Levels
from tests.support.chance import dice
from tests.support.clusters import node, racks
from tests.support.sets import NOW, gang, reservation, view

NODES = {each.metadata.name: each for each in racks(2, 2, 2, 2)}
KEYS = BUILT_IN.levels.keys


@pytest.mark.parametrize(
    ("homes", "score", "domain"),
    [
        pytest.param(["n-0-0-0-0"], 1.0, "z0/z0-b0/z0-b0-r0", id="one pod is near itself"),
        pytest.param(["n-0-0-0-0"] * 3, 1.0, "z0/z0-b0/z0-b0-r0", id="one node"),
        pytest.param(["n-0-0-0-0", "n-0-0-0-1"], 1.0, "z0/z0-b0/z0-b0-r0", id="one rack"),
        pytest.param(["n-0-0-0-0", "n-0-0-1-0"], 2 / 3, "z0/z0-b0", id="one block"),
        pytest.param(["n-0-0-0-0", "n-1-0-0-0"], 0.0, "", id="nothing in common"),
        pytest.param(
            ["n-0-0-0-0", "n-0-0-0-1", "n-0-1-0-0"], (1 + 2 / 3) / 3, "z0", id="mean over pairs"
        ),
        pytest.param(["n-0-0-0-0", "gone"], 0.0, "", id="a node that is gone is near nobody"),
    ],
)
def test_the_score_is_the_mean_depth_of_what_pairs_share(
    homes: list[str], score: float, domain: str
) -> None:
    found = standing.of(homes, NODES, KEYS)
    assert found.score == pytest.approx(score)
    assert "/".join(found.domain) == domain


def test_any_places_score_as_counting_pair_by_pair_has_it() -> None:
    odd = [node(f"odd-{i}", labels={KEYS[2]: f"r{i % 2}"}) for i in range(3)]
    nodes = NODES | {each.metadata.name: each for each in odd}

    def shared(one: str, other: str) -> float:
        if one == other:
            return 1.0
        paths = [
            [nodes[home].metadata.labels.get(key, "") for key in KEYS] for home in (one, other)
        ]
        depths = [d for d in (1, 2, 3) if paths[0][:d] == paths[1][:d] and paths[0][d - 1]]
        return max(depths, default=0) / 3

    rng = dice()
    for _ in range(50):
        homes = rng.choices(sorted(nodes), k=rng.randint(2, 9))
        pairs = [shared(*pair) for pair in combinations(homes, 2)]
        assert standing.of(homes, nodes, KEYS).score == pytest.approx(sum(pairs) / len(pairs))


def test_what_the_engine_places_is_judged_as_the_engine_has_it() -> None:
    rng, levels = dice(), BUILT_IN.levels
    for pods in (1, 2, 3, 7, 12):
        taken = [Hold(rng.choice(sorted(NODES)), {"nvidia.com/gpu": 4}) for _ in range(9)]
        wants = tuple(Want("a", i, {"nvidia.com/gpu": 4, "pods": 1}) for i in range(pods))
        asked = GangRequest("default", "demo-0", wants)
        (made,) = cycle.plan(build(NODES.values(), taken, [levels]), [asked]).placements
        found = standing.of([placed.node for placed in made.placed], NODES, KEYS)
        assert found.score == pytest.approx(made.score)
        assert found.domain == made.domain


def test_a_level_that_no_node_has_counts_nowhere() -> None:
    flat = {"a": node("a"), "b": node("b")}
    assert standing.found(BUILT_IN.levels, flat.values()) == ()
    assert standing.of(["a", "b"], flat, ()) == Standing(0.0)
    assert standing.of(["a", "a"], flat, ()) == Standing(1.0)
    assert standing.found(Levels("", ("x", *KEYS)), NODES.values()) == KEYS


def patched(before: Reservation, patch: JsonObject) -> ReservationSpec:
    spec = patch["spec"]
    assert isinstance(spec, dict)
    return ReservationSpec.model_validate({**before.spec.model_dump(), **spec})


def placement(*places: tuple[int, str], fragmentation: float = 0.0) -> Placement:
    wants = [Want("a", index, {"pods": 1}) for index, _ in places]
    asked = GangRequest("default", "demo-0", tuple(wants))
    placed = tuple(Placed(want, at) for want, (_, at) in zip(wants, places, strict=True))
    return Placement(asked, placed, (), 1.0, fragmentation)


def test_growth_and_repair_are_judged_over_all_slots_that_there_will_be() -> None:
    before = reservation({("a", 0): "n0", ("a", 1): "n1"}, State.BOUND)
    more = placement((1, "n7"), (2, "n8"), fragmentation=0.25)
    assert sorted(booking.homes(before, more)) == ["n0", "n7", "n8"]
    found = patched(before, booking.grown(before, more, Standing(0.123456, ("z", "b"))))
    assert (found.score, found.domain, found.fragmentation) == (0.1235, "z/b", 0.25)


def test_what_the_first_placement_broke_stays_said_when_a_later_one_breaks_less() -> None:
    booked = reservation({("a", 0): "n0"}, State.BOUND)
    spec = booked.spec.model_copy(update={"fragmentation": 0.5})
    before = Reservation(booked.metadata, spec, booked.status)
    found = patched(before, booking.grown(before, placement((1, "n1")), Standing(1.0)))
    assert found.fragmentation == 0.5


def test_slots_that_go_are_judged_no_more() -> None:
    before = reservation({("a", 0): "n0", ("a", 1): "n1"}, State.BOUND)
    assert booking.homes(before, without={("a", 1)}) == ["n0"]
    found = patched(before, booking.trimmed(before, {("a", 1)}, Standing(1.0, ("z",))))
    assert (found.score, found.domain) == (1.0, "z")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            {"score": 2 / 3, "fragmentation": 0.1, "domain": "z0/z0-b0"},
            "in z0/z0-b0: score 0.67, fragmentation 0.10",
        ),
        ({"score": 0.0}, "in no one domain: score 0.00"),
    ],
)
def test_the_gang_says_where_it_is_and_how_good_that_is(said: JsonObject, message: str) -> None:
    booked = reservation({("a", 0): "n0"}, State.BOUND)
    spec = booked.spec.model_copy(update=said)
    seen = view(gang({"a": (1, 1)}), [], Reservation(booked.metadata, spec, booked.status))
    status = reporting.status(seen, Wait("AllPodsBound"), None, NOW)
    (placed,) = [each for each in status.conditions if each.type == "Placed"]
    assert (placed.status, placed.reason, placed.message) == ("True", "RoomReserved", message)
    assert status.placement_score == said["score"]
    also = reporting.status(seen, Wait("AllPodsBound"), None, NOW, "it is not heeded")
    said_too = [each.message for each in also.conditions if each.type == "Placed"]
    assert said_too == [f"{message}; it is not heeded"]
    again = view(gang({"a": (1, 1)}), [], booked)
    assert not any(
        c.type == "Placed" for c in reporting.status(again, Wait("x"), None, NOW).conditions
    )

"""A plan that breaks a promise is caught, whoever made it."""

import dataclasses

import pytest

from api import names
from api.streams import Expression
from scheduler import invariants
from scheduler.answers import Placed, Placement
from scheduler.invariants import BrokenPlanError
from scheduler.requests import Anchor, Closeness, GangRequest, Group, Kin, Sibling, Spread, Want
from scheduler.snapshot import build
from scheduler.topology import Levels
from tests.support.clusters import node, racks

SNAPSHOT = build(racks(1, 2, 2, 2), [], [Levels("", (names.BLOCK_KEY, names.RACK_KEY))])
WANTS = tuple(Want("a", i, {"nvidia.com/gpu": 1, "pods": 1}) for i in range(2))
GANG = GangRequest("default", "g", WANTS)
APART = Spread(names.BLOCK_KEY, (Sibling("other", ("n-0-0-1-1",)),), hard=True)


def placement(gang: GangRequest, *nodes: str) -> Placement:
    placed = tuple(Placed(want, name) for want, name in zip(gang.minimum, nodes, strict=True))
    return Placement(gang, placed, (), 1.0)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"near": Closeness(required=names.RACK_KEY)}, "within one domain"),
        ({"near": Closeness(required=names.HOSTNAME_KEY)}, "within one domain"),
        ({"groups": (Group("a", ("a",), Closeness(names.RACK_KEY)),)}, "within one domain"),
        ({"spread": (APART,), "kin": Kin("g", "set")}, "not apart"),
    ],
    ids=["gang", "node", "group", "spread"],
)
def test_what_is_required_at_any_level_is_checked(more: dict[str, object], said: str) -> None:
    gang = dataclasses.replace(GANG, **more)  # type: ignore[arg-type]
    with pytest.raises(BrokenPlanError, match=said):
        invariants.check(SNAPSHOT, [placement(gang, "n-0-0-0-0", "n-0-0-1-0")])
    invariants.check(SNAPSHOT, [placement(gang, "n-0-1-0-0", "n-0-1-0-0")])


def test_pods_that_were_there_count() -> None:
    near = Closeness(required=names.RACK_KEY)
    gang = dataclasses.replace(GANG, near=near, anchors=(Anchor("n-0-1-0-1", "a"),))
    invariants.check(SNAPSHOT, [placement(gang, "n-0-1-0-0", "n-0-1-0-0")])
    with pytest.raises(BrokenPlanError, match="within one domain"):
        invariants.check(SNAPSHOT, [placement(gang, "n-0-0-0-0", "n-0-0-0-0")])
    base = dataclasses.replace(gang, anchors=(Anchor("n-0-1-0-1"),))
    invariants.check(SNAPSHOT, [placement(base, "n-0-0-0-0", "n-0-0-0-0")])


def test_no_label_is_no_domain() -> None:
    snapshot = build([node("a"), node("b", labels={names.RACK_KEY: "r"})], [], [
        Levels("", (names.RACK_KEY,))
    ])  # fmt: skip
    gang = dataclasses.replace(GANG, near=Closeness(required=names.RACK_KEY))
    invariants.check(snapshot, [placement(gang, "b", "b")])
    with pytest.raises(BrokenPlanError, match="within one domain"):
        invariants.check(snapshot, [placement(gang, "a", "a")])


def coming(name: str, *spread: Spread, family: str = "", **labels: str) -> GangRequest:
    kin = Kin(name, family, tuple(sorted(labels.items())))
    return dataclasses.replace(GANG, name=name, spread=spread, kin=kin)


def test_replicas_of_one_plan_must_keep_apart_too() -> None:
    spread = Spread(names.BLOCK_KEY, hard=True)
    one, other = (coming(name, spread, family="f") for name in "xy")
    first = placement(one, "n-0-0-0-0", "n-0-0-0-0")
    invariants.check(SNAPSHOT, [first, placement(other, "n-0-1-0-0", "n-0-1-0-0")])
    with pytest.raises(BrokenPlanError, match="not apart"):
        invariants.check(SNAPSHOT, [first, placement(other, "n-0-0-1-0", "n-0-0-1-0")])


def test_one_that_asks_for_nothing_itself_counts_for_those_that_select_it() -> None:
    chat = (Expression("app", "In", ("chat",)),)
    spread = Spread(names.BLOCK_KEY, hard=True, among=chat)
    silent, stranger = coming("silent", app="chat"), coming("stranger", app="web")
    asking = placement(coming("asking", spread, app="chat"), "n-0-0-0-0", "n-0-0-0-0")
    there = "n-0-0-1-0", "n-0-0-1-0"
    invariants.check(SNAPSHOT, [placement(stranger, *there), asking])
    invariants.check(SNAPSHOT, [asking, placement(silent, *there)])  # whose business it is not
    with pytest.raises(BrokenPlanError, match="asking is not apart"):
        invariants.check(SNAPSHOT, [placement(silent, *there), asking])


def test_a_gang_may_be_where_more_are_up_to_its_skew_and_where_its_replica_is() -> None:
    there = tuple(Sibling(str(i), ("n-0-0-1-1",)) for i in range(2))
    ours = (*there, Sibling("g", ("n-0-0-0-0",)))
    places = "n-0-0-0-0", "n-0-0-0-0"
    for taken, skew, fine in ((there, 3, True), (there, 2, False), (ours, 2, True)):
        spread = Spread(names.BLOCK_KEY, taken, hard=True, skew=skew)
        plan = [placement(coming("g", spread, family="f"), *places)]
        if fine:
            invariants.check(SNAPSHOT, plan)
        else:
            with pytest.raises(BrokenPlanError, match="not apart"):
                invariants.check(SNAPSHOT, plan)


def test_pods_that_nobody_asked_for_are_caught() -> None:
    stray = Placed(dataclasses.replace(WANTS[0], index=2), "n-0-0-0-0")
    made = placement(GANG, "n-0-0-0-0", "n-0-0-0-0")
    made = dataclasses.replace(made, placed=(*made.placed, stray))
    with pytest.raises(BrokenPlanError, match="not whole"):
        invariants.check(SNAPSHOT, [made])
    more = dataclasses.replace(made, gang=dataclasses.replace(GANG, extras=(stray.want,)))
    invariants.check(SNAPSHOT, [more])

"""Whatever comes, changes and goes, a snapshot is what taking stock from scratch gives."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.daemonsets import DaemonSet
from api.jsons import Json
from api.streams import Node, Port
from scheduler.eligible import Constraints
from scheduler.residents import Resident
from scheduler.snapshot import Hold, Snapshot, build
from scheduler.stock import Stock
from scheduler.topology import Levels
from tests.support.clusters import node
from tests.support.daemonsets import daemonset
from tests.support.snapshots import same

LEVELS: Final = (Levels("first", ("zone", "rack")), Levels("second", ("row",)), Levels("none", ()))
GPU: Final = "nvidia.com/gpu"


@dataclass
class World:
    """A Stock, and beside it plainly what should be in it."""

    stock: Stock = field(default_factory=lambda: Stock(LEVELS))
    nodes: dict[str, Node] = field(default_factory=dict)
    holds: dict[str, Hold] = field(default_factory=dict)
    daemonsets: dict[str, DaemonSet] = field(default_factory=dict)

    def put_node(self, made: Node) -> None:
        self.stock.put_node(made)
        self.nodes[made.metadata.name] = made

    def drop_node(self, name: str) -> None:
        self.stock.drop_node(name)
        self.nodes.pop(name, None)

    def put(self, key: str, hold: Hold) -> None:
        self.stock.put(key, hold)
        self.holds[key] = hold

    def drop(self, key: str) -> None:
        self.stock.drop(key)
        self.holds.pop(key, None)

    def put_daemonset(self, made: DaemonSet) -> None:
        self.stock.put_daemonset(made)
        self.daemonsets[made.metadata.name] = made

    def drop_daemonset(self, name: str) -> None:
        self.stock.drop_daemonset(("system", name))
        self.daemonsets.pop(name, None)

    def scratch(self) -> Snapshot:
        return build(self.nodes.values(), self.holds.values(), LEVELS, self.daemonsets.values())


Event = Callable[[World], object]

NAMES: Final = st.sampled_from(["n-1", "n-2", "n-10", "n-01", "m"])
KEYS: Final = st.sampled_from("abcdefgh")
DAEMONS: Final = st.sampled_from(["logs", "disks"])
TAINTS: Final[Json] = [{"key": "k", "effect": "NoSchedule"}]


def made_node(name: str, labels: dict[str, str], room: dict[str, str], tainted: bool) -> Node:  # noqa: FBT001
    return node(name, room, labels=labels, spec={"taints": TAINTS} if tainted else {})


NODES: Final = st.builds(
    made_node,
    NAMES,
    st.fixed_dictionaries(
        {},
        optional={
            "zone": st.sampled_from(["a", "b"]),
            "rack": st.sampled_from(["r-2", "r-10"]),
            "row": st.sampled_from(["1", "2"]),
            "disks": st.just("many"),
            "other": st.sampled_from(["x", "y"]),
        },
    ),
    st.fixed_dictionaries(
        {"pods": st.just("9")},
        optional={
            "cpu": st.sampled_from(["4", "500m"]),
            GPU: st.sampled_from(["0", "8"]),
            "example.com/disk": st.just("3"),
        },
    ),
    st.booleans(),
)
HOLDS: Final = st.builds(
    lambda key, on, need, daemon: (
        key,
        Hold(on, need, Resident("default", key) if key != "h" else None, daemon),
    ),
    KEYS,
    NAMES,
    st.dictionaries(st.sampled_from(["cpu", GPU, "example.com/disk", "odd"]), st.integers(0, 9)),
    st.sampled_from(["", "", "uid-logs", "uid-disks"]),
)


def made_daemonset(name: str, choosy: bool) -> DaemonSet:  # noqa: FBT001
    return daemonset(name, nodeSelector={"disks": "many"} if choosy else {})


EVENTS: Final[st.SearchStrategy[Event]] = st.one_of(
    NODES.map(lambda n: lambda world: world.put_node(n)),
    NAMES.map(lambda n: lambda world: world.drop_node(n)),
    HOLDS.map(lambda pair: lambda world: world.put(*pair)),
    HOLDS.map(lambda pair: lambda world: world.put(*pair)),
    KEYS.map(lambda key: lambda world: world.drop(key)),
    st.builds(made_daemonset, DAEMONS, st.booleans()).map(
        lambda made: lambda world: world.put_daemonset(made)
    ),
    DAEMONS.map(lambda name: lambda world: world.drop_daemonset(name)),
    st.just(lambda world: world.stock.snapshot()),
)


@given(st.lists(EVENTS, max_size=40))
@settings(deadline=None)
def test_any_events_end_in_the_snapshot_taken_from_scratch(events: list[Event]) -> None:
    world = World()
    for event in events:
        event(world)
    same(world.stock.snapshot(), world.scratch())


WEB: Final = (Port(host_port=80),)
WEB_HOLDS: Final = st.builds(
    lambda key, on, web: (key, Hold(on, {}, Resident("default", key, ports=WEB if web else ()))),
    KEYS,
    NAMES,
    st.booleans(),
)
ASKED: Final = Constraints(ports=WEB)


@given(st.lists(st.one_of(WEB_HOLDS, WEB_HOLDS, st.just("masks"), EVENTS), max_size=40))
@settings(deadline=None)
def test_who_is_there_is_known_whichever_snapshots_were_asked(
    events: list[Event | tuple[str, Hold] | str],
) -> None:
    world = World()
    for name in ("n-1", "n-2", "m"):
        world.put_node(node(name))
    for event in events:
        if isinstance(event, tuple):
            world.put(*event)
        elif isinstance(event, str):
            world.stock.snapshot().masks.mask(ASKED)
        else:
            event(world)
    found, scratch = world.stock.snapshot(), world.scratch()
    assert found.masks.mask(ASKED).tolist() == scratch.masks.mask(ASKED).tolist()


@pytest.mark.long
@given(st.lists(EVENTS, max_size=80))
@settings(deadline=None, max_examples=1_000)
def test_many_events_end_in_the_snapshot_taken_from_scratch(events: list[Event]) -> None:
    world = World()
    for event in events:
        event(world)
        same(world.stock.snapshot(), world.scratch())


@given(st.lists(EVENTS, max_size=30), st.lists(HOLDS, max_size=6), NODES)
@settings(deadline=None)
def test_what_comes_and_goes_again_leaves_no_trace(
    events: list[Event], holds: list[tuple[str, Hold]], passing: Node
) -> None:
    world = World()
    for event in events:
        event(world)
    before = world.stock.snapshot()
    there = world.nodes.get(passing.metadata.name)
    world.stock.put_node(passing)
    for key, hold in holds:
        world.stock.put(("passing", key), hold)
    world.stock.snapshot()
    for key, _ in holds:
        world.stock.drop(("passing", key))
    if there is None:
        world.stock.drop_node(passing.metadata.name)
    else:
        world.stock.put_node(there)
    same(world.stock.snapshot(), before)


def test_an_earlier_snapshot_stays_as_it_was() -> None:
    world = World()
    world.put_node(node("a"))
    before = world.stock.snapshot()
    kept = before.free.copy()
    world.put("p", Hold("a", {GPU: 3}, Resident("default", "p")))
    after = world.stock.snapshot()
    assert (before.free == kept).all()
    assert before.residents == ((),)
    assert after.free[0, after.resources.index(GPU)] == 5
    assert not after.free.flags.writeable
    assert (after.capacity == kept).all()


def test_nothing_new_is_the_same_snapshot_and_domains_outlive_pods() -> None:
    world = World()
    world.put_node(node("a", labels={"zone": "z"}))
    first = world.stock.snapshot()
    assert world.stock.snapshot() is first
    world.put("p", Hold("a", {GPU: 3}))
    second = world.stock.snapshot()
    assert second.topologies is first.topologies
    assert second.capacity is first.capacity
    assert second.nodes is first.nodes
    world.put_node(node("a", labels={"zone": "z"}, ready=False))
    assert world.stock.snapshot().topologies is first.topologies
    world.put_node(node("a", labels={"zone": "y"}))
    assert world.stock.snapshot().topologies is not first.topologies


def test_a_resource_is_a_column_as_long_as_a_node_names_it() -> None:
    world = World()
    world.put_node(node("a", {"cpu": "4"}))
    world.put("p", Hold("a", {"example.com/nic": 2, "cpu": 1000}))
    assert world.stock.snapshot().resources == ("cpu",)
    world.put_node(node("b", {"example.com/nic": "1"}))
    found = world.stock.snapshot()
    assert found.resources == ("cpu", "example.com/nic")
    assert found.free.tolist() == [[3000, -2], [0, 1]]
    world.drop_node("b")
    assert world.stock.snapshot().resources == ("cpu",)


def test_room_is_spoken_for_before_its_node_is_there_and_after_it_has_gone() -> None:
    world = World()
    world.put("p", Hold("a", {"cpu": 1000}))
    world.put_node(node("a", {"cpu": "4"}))
    assert world.stock.snapshot().free.tolist() == [[3000]]
    world.drop_node("a")
    assert world.stock.snapshot().free.shape == (0, 0)
    world.put_node(node("a", {"cpu": "4"}))
    assert world.stock.snapshot().free.tolist() == [[3000]]


def test_a_hold_moves_with_its_key() -> None:
    world = World()
    world.put_node(node("a", {"cpu": "4"}))
    world.put_node(node("b", {"cpu": "4"}))
    world.put("p", Hold("a", {"cpu": 1000}))
    world.put("p", Hold("b", {"cpu": 2000}))
    assert world.stock.snapshot().free.tolist() == [[4000], [2000]]


def test_amounts_beyond_any_machine_do_not_overflow() -> None:
    world = World()
    world.put_node(node("a", {"cpu": "4"}))
    for index in range(5):
        world.put(f"p{index}", Hold("a", {"cpu": 2**61}))
    assert world.stock.snapshot().free[0, 0] < 0
    same(world.stock.snapshot(), world.scratch())


def test_other_topologies_can_be_told_at_any_time() -> None:
    world = World()
    world.put_node(node("a", labels={"row": "2"}))
    world.put_node(node("b", labels={"row": "1"}))
    assert [n.metadata.name for n in world.stock.snapshot().nodes] == ["a", "b"]
    world.stock.arrange([Levels("rows", ("row",))])
    found = world.stock.snapshot()
    assert [n.metadata.name for n in found.nodes] == ["b", "a"]
    assert [t.name for t in found.topologies] == ["rows"]

"""Edits make another snapshot, and two plans are compared gang by gang."""

import dataclasses
from random import Random

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api import names
from scheduler import cycle, whatif
from scheduler.answers import MoreNodes, NoFit, Plan
from scheduler.requests import Closeness, GangRequest
from scheduler.residents import Resident
from scheduler.saving import Saved, dumps, loads
from scheduler.snapshot import Hold
from scheduler.whatif import (
    AddNodes,
    Difference,
    Drain,
    Edit,
    Move,
    RemoveGang,
    Reprioritise,
    UnknownNameError,
)
from tests.scheduler.test_refusing_remedies import case_of
from tests.support.clusters import racks
from tests.support.refusals import GPU, KEYS, LEVELS, wants

RACK = Closeness(names.RACK_KEY)


def asking(name: str, pods: int, priority: int = 0) -> GangRequest:
    return GangRequest("team", name, wants("w", pods), near=RACK, priority=priority)


def running(gang: str, node: str, label: str = names.PODGANG_LABEL) -> Hold:
    return Hold(node, {GPU: 8, "pods": 1}, Resident("team", f"{gang}-0", {label: gang}))


def saved(*requests: GangRequest, holds: tuple[Hold, ...] = ()) -> Saved:
    """Two racks of two nodes."""
    return Saved(tuple(LEVELS), tuple(racks(1, 1, 2, 2)), holds, (), requests)


def planned(given: Saved) -> Plan:
    return cycle.plan(given.snapshot(), given.requests, given.settings)


def difference(given: Saved, *edits: Edit) -> Difference:
    return whatif.compare(planned(given), planned(whatif.apply(given, edits)))


def test_nothing_changes_without_edits() -> None:
    given = saved(asking("a", 2), asking("b", 3))
    assert whatif.apply(given, []) == given
    assert difference(given) == Difference((), (), (), (("team", "a"),), (("team", "b"),), ())


def test_nodes_that_are_added_let_a_gang_in() -> None:
    given = saved(asking("a", 3))
    made = whatif.apply(given, [AddNodes("n-0-0-0-0", 1)])
    assert [node.metadata.name for node in made.nodes[4:]] == ["n-0-0-0-0-new-0"]
    assert difference(given, AddNodes("n-0-0-0-0", 1)).placed == (("team", "a"),)


def test_nodes_are_added_where_their_labels_say_empty_and_open() -> None:
    given = saved(asking("a", 3), holds=(running("old", "n-0-0-0-0"),))
    drained = whatif.apply(given, [Drain(("n-0-0-0-0",))])
    edit = AddNodes("n-0-0-0-0", 1, {names.RACK_KEY: "z0-b0-r1"})
    fresh = whatif.apply(drained, [edit]).nodes[-1]
    assert fresh.metadata.labels[names.RACK_KEY] == "z0-b0-r1"
    assert not fresh.spec.unschedulable
    found = planned(whatif.apply(drained, [edit])).placements
    assert [placement.domain for placement in found] == [("z0", "z0-b0", "z0-b0-r1")]


def test_nodes_that_are_added_have_names_and_hostnames_of_their_own() -> None:
    nodes = racks(1, 1, 1, 1)
    labels = {**nodes[0].metadata.labels, names.HOSTNAME_KEY: "n-0-0-0-0"}
    meta = msgspec.structs.replace(nodes[0].metadata, labels=labels)
    given = Saved(tuple(LEVELS), (msgspec.structs.replace(nodes[0], metadata=meta),))
    twice = whatif.apply(given, [AddNodes("n-0-0-0-0", 2), AddNodes("n-0-0-0-0", 1)])
    told = [(n.metadata.name, n.metadata.labels[names.HOSTNAME_KEY]) for n in twice.nodes]
    assert told == [
        (name, name) for name in ("n-0-0-0-0", *(f"n-0-0-0-0-new-{i}" for i in range(3)))
    ]


def test_drained_nodes_take_nobody_and_lose_all_but_daemons() -> None:
    daemon = Hold("n-0-0-0-0", {"cpu": 100}, daemon="uid")
    given = saved(asking("a", 2), holds=(running("old", "n-0-0-0-0"), daemon))
    edit = Drain(("n-0-0-0-0", "n-0-0-1-0"))
    made = whatif.apply(given, [edit])
    assert made.holds == (daemon,)
    assert difference(given, edit).starved == (("team", "a"),)
    assert whatif.displaced(given, [edit]) == {("team", "old"): 1}


def test_devices_that_were_given_away_on_a_drained_node_are_nobodys_pods() -> None:
    given = Hold("n-0-0-0-0", {"devices.penstock.dev/gpu.example.com": 3})
    there = saved(asking("a", 1), holds=(running("old", "n-0-0-0-0"), given))
    assert whatif.displaced(there, [Drain(("n-0-0-0-0",))]) == {("team", "old"): 1}


@pytest.mark.parametrize("label", [names.PODGANG_LABEL, names.GANG_LABEL])
def test_a_gang_that_is_removed_gives_its_room_back(label: str) -> None:
    given = saved(asking("a", 2), holds=(running("old", "n-0-0-0-0", label), *taken_racks()))
    found = difference(given, RemoveGang("team", "old"))
    assert found.placed == (("team", "a"),)


def taken_racks() -> tuple[Hold, ...]:
    return (Hold("n-0-0-1-0", {GPU: 8}),)


def test_a_gang_that_is_removed_asks_for_nothing_any_more() -> None:
    found = difference(
        saved(asking("a", 2), asking("b", 2), asking("c", 2)), RemoveGang("team", "a")
    )
    assert found.gone == (("team", "a"),)
    assert found.placed == (("team", "c"),)


def test_another_priority_turns_the_order() -> None:
    given = saved(asking("a", 2, 3), asking("b", 2, 2), asking("c", 2, 1))
    found = difference(given, Reprioritise("team", "c", 9))
    assert (found.placed, found.starved) == ((("team", "c"),), (("team", "b"),))
    domains = [("z0", "z0-b0", f"z0-b0-r{rack}") for rack in (0, 1)]
    assert found.moved == (Move(("team", "a"), domains[0], domains[1], 2),)


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (AddNodes("x", 1), "no node x to add nodes like"),
        (Drain(("n-0-0-0-0", "x")), "no node x to drain"),
        (RemoveGang("team", "x"), "no gang team/x"),
        (RemoveGang("other", "a"), "no gang other/a"),
        (Reprioritise("team", "x", 1), "no gang team/x asks for room"),
    ],
)
def test_what_is_not_there_cannot_be_edited(edit: Edit, says: str) -> None:
    with pytest.raises(UnknownNameError, match=says):
        whatif.apply(saved(asking("a", 1)), [edit])


def test_an_edited_snapshot_can_be_saved() -> None:
    edits: list[Edit] = [
        AddNodes("n-0-0-0-0", 2),
        Drain(("n-0-0-0-1",)),
        Reprioritise("team", "a", 5),
    ]
    made = whatif.apply(saved(asking("a", 2)), edits)
    assert loads(dumps(made)) == made


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_nodes_that_a_refusal_asks_for_let_the_gang_in_as_an_edit(dice: Random) -> None:
    case = case_of(dice)
    answer = case.answer()
    given = Saved(tuple(LEVELS), tuple(case.nodes), tuple(case.holds), (), (case.gang,))
    for remedy in answer.remedies if isinstance(answer, NoFit) else ():
        if isinstance(remedy, MoreNodes):
            labels = dict(zip(KEYS, remedy.domain, strict=False))
            found = difference(given, AddNodes(remedy.like, remedy.count, labels))
            assert found.placed == (("team", "g"),)


def test_a_plan_compared_with_itself_moves_nobody() -> None:
    plan = planned(saved(asking("a", 2), asking("b", 2), asking("c", 1)))
    found = whatif.compare(plan, plan)
    assert dataclasses.replace(found, same=(), waiting=()) == Difference((), (), (), (), (), ())

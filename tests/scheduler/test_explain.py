"""A refusal in one sentence for people, and whole for tools."""

import dataclasses
import json
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api import names
from api.jsons import JsonObject
from api.streams import Node, Port
from scheduler import explain
from scheduler.answers import Cause, NoFit
from scheduler.eligible import Constraints
from scheduler.refusing import refuse
from scheduler.requests import Anchor, Closeness, GangRequest, Group, Kin, Sibling, Spread, Want
from scheduler.room import Room
from scheduler.snapshot import Hold
from tests.scheduler.test_refusing import beside_each_other
from tests.scheduler.test_refusing_remedies import case_of
from tests.support.clusters import node, racks
from tests.support.refusals import GPU, Case, taken, wants

RACK = Closeness(names.RACK_KEY)


def gang(*minimum: Want, **more: object) -> GangRequest:
    return dataclasses.replace(GangRequest("team", "g", minimum), **more)  # type: ignore[arg-type]


def told(request: GangRequest, nodes: Sequence[Node], gpus: dict[str, int] | None = None) -> str:
    return explain.sentence(Case(request, nodes, taken(gpus or {})).refused())


def test_a_shortage_is_named_with_its_size_and_what_would_mend_it() -> None:
    assert told(gang(*wants("w", 6)), racks(1, 1, 5, 1)) == (
        "no room for all 6 pods of the minimum: nvidia.com/gpu: 48 needed, 40 free, 8 short; "
        "1 more node like n-0-0-0-0 would do (counting all 5 nodes)"
    )


def test_fragmentation_is_told_from_shortage() -> None:
    gpus = {f"n-0-0-{r}-0": 4 for r in range(4)}
    assert told(gang(*wants("w", 1)), racks(1, 1, 4, 1), gpus) == (
        "no room for all 1 pod of the minimum: 0 would fit; there is enough in total but not on "
        "single nodes, the largest pod needs 8 nvidia.com/gpu on one node; freeing 4 "
        "nvidia.com/gpu on 1 node would do (counting all 4 nodes)"
    )


def test_a_required_level_is_named_with_the_nearest_miss() -> None:
    assert told(gang(*wants("w", 5), near=RACK), racks(1, 2, 2, 3)) == (
        "no rack has room for all 5 pods of the minimum: nearest is z0/z0-b0/z0-b0-r0, which takes "
        "3 of 5 and lacks 16 nvidia.com/gpu; one block would take it (counting all 12 nodes)"
    )


def test_a_group_is_named() -> None:
    groups = (Group("x", ("a",), RACK),)
    assert told(gang(*wants("a", 4), *wants("b", 1), groups=groups), racks(1, 1, 2, 3)) == (
        "no rack has room for the 4 pods of x: nearest is z0/z0-b0/z0-b0-r0, which takes 3 of 4 "
        "and lacks 8 nvidia.com/gpu; one block would take it (counting all 6 nodes)"
    )


def test_filters_are_named_by_clique_where_cliques_differ() -> None:
    nodes = [*racks(1, 1, 1, 2), node("big", labels={"disk": "ssd"})]
    choosy = Constraints(selector=(("disk", "ssd"),))
    assert told(gang(*wants("a", 1), *wants("b", 2, constraints=choosy)), nodes) == (
        "no room for all 3 pods of the minimum: b pods may use 1 of 3 nodes (2 not selected by the "
        "pods), which take 1 of 2; 1 more node like big would do (counting all 3 nodes)"
    )


def test_nodes_that_do_not_count_are_counted_by_reason() -> None:
    nodes = [
        *racks(1, 1, 1, 1),
        node("down", ready=False),
        node("off", spec={"unschedulable": True}),
    ]
    assert told(gang(*wants("w", 2)), nodes) == (
        "no room for all 2 pods of the minimum: nvidia.com/gpu: 16 needed, 8 free, 8 short; "
        "it would fit with off uncordoned (counting 1 of 3 nodes: 1 cordoned, 1 not ready)"
    )


def test_a_gang_that_must_stay_where_it_is() -> None:
    anchored = gang(*wants("w", 2, 4), near=RACK, anchors=(Anchor("n-0-0-0-0", "w"),))
    said = told(anchored, racks(1, 1, 2, 2), {"n-0-0-0-0": 8, "n-0-0-0-1": 4})
    assert said.startswith(
        "the gang has pods already and must stay in one rack with them: nearest is "
        "z0/z0-b0/z0-b0-r0, which takes 1 of 2 and lacks 4 nvidia.com/gpu; one block would take it"
    )


def test_replicas_that_keep_apart() -> None:
    spread = (Spread(names.RACK_KEY, (Sibling("other", ("n-0-0-1-0",)),), hard=True),)
    kin = Kin("g", "set")
    said = told(gang(*wants("w", 2), spread=spread, kin=kin), racks(1, 1, 2, 2), {"n-0-0-0-0": 8})
    assert said.startswith(
        "every rack with room for all 2 pods of the minimum has as many replicas already as may be"
    )
    assert "it would fit if a rack could have more replicas than it may" in said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"topology": "mesh"}, "there is no topology mesh"),
        (
            {"near": Closeness("example.com/row")},
            "the gang must be in one domain of example.com/row, a level that its topology does not "
            "have",
        ),
        (
            {"groups": (Group("x", ("a", "b")), Group("y", ("b", "c")))},
            "group y shares cliques with another group and does not lie within it",
        ),
    ],
)
def test_what_is_wrong_with_the_question_itself(more: dict[str, object], said: str) -> None:
    asked = (*wants("a", 1), *wants("b", 1), *wants("c", 1))
    assert told(gang(*asked, **more), racks(1, 1, 1, 4)).startswith(said)


def test_a_resource_that_no_node_has() -> None:
    said = told(gang(Want("w", 0, {"fpga.io/x": 1})), racks(1, 1, 1, 1))
    assert "fpga.io/x: 1 needed, 0 free, 1 short; no node has any fpga.io/x" in said


def test_of_what_else_a_pod_needs_the_truth_is_told_where_no_node_has_a_resource() -> None:
    need = {"devices.penstock.dev/gpu.example.com": 2, GPU: 1}
    said = told(gang(Want("w", 0, need)), racks(1, 1, 1, 1))
    assert said.startswith(
        "no room for all 1 pod of the minimum: devices of class gpu.example.com: 2 needed, 0 free, "
        "2 short; no node has any devices of class gpu.example.com"
    )


def test_a_pod_larger_than_any_node() -> None:
    said = told(gang(*wants("w", 1, 16)), racks(1, 1, 1, 1))
    assert "the largest pod needs 16 nvidia.com/gpu, more than any node has" in said


def test_of_extras_one_is_asked_for() -> None:
    said = told(gang(extras=wants("w", 2, 4)), racks(1, 1, 1, 1), {"n-0-0-0-0": 8})
    assert said.startswith(
        "no room for any of 2 further pods: nvidia.com/gpu: 4 needed, 0 free, 4 short"
    )


def test_amounts_are_written_as_people_write_them() -> None:
    need = {"cpu": 500, "memory": 500 << 30, "pods": 1}
    said = told(gang(*(Want("w", i, need) for i in range(2))), racks(1, 1, 1, 1))
    assert "memory: 1000Gi needed, 768Gi free, 232Gi short" in said
    assert "cpu" not in said


def test_a_budget_that_ran_out_is_no_proof() -> None:
    case = beside_each_other()
    refusal = refuse(Room(case.snapshot()), case.gang, exhausted=True)
    assert explain.sentence(refusal).startswith(
        "no room found for all 4 pods of the minimum before the search ended with its budget; "
        "there may be some"
    )


def test_what_a_node_has_once_is_short_like_a_resource() -> None:
    ports = Constraints(ports=(Port(host_port=80),))
    assert told(gang(*wants("w", 3, 1, ports)), racks(1, 1, 1, 2)) == (
        "no room for all 3 pods of the minimum: host port 80 (TCP): 3 needed, 2 free, 1 short; "
        "1 more node like n-0-0-0-0 would do (counting all 2 nodes)"
    )


def test_pods_that_must_keep_farther_apart_are_told_of_that() -> None:
    case = Case(gang(*wants("w", 2), near=RACK), racks(1, 1, 2, 2))
    said = explain.sentence(refuse(Room(case.snapshot()), case.gang))
    assert said.startswith("there is room for all 2 pods of the minimum, but none was found with")


def test_of_groups_that_do_not_fit_beside_each_other_the_nearest_miss_is_told() -> None:
    said = explain.sentence(beside_each_other().refused())
    assert said.startswith(
        "no room for all 4 pods of the minimum with each group in a domain as it must be: nearest "
        "is z0/z0-b0, which takes 3 of 4"
    )


def test_pods_that_are_apart_already_cannot_be_joined() -> None:
    anchors = (Anchor("n-0-0-0-0", "w"), Anchor("n-0-0-1-0", "w"))
    said = told(gang(*wants("w", 1), near=RACK, anchors=anchors), racks(1, 1, 2, 2))
    assert said.startswith(
        "the gang must be in one rack, and its pods are in several already, or in none"
    )


def test_what_does_not_matter_does_not_change_the_sentence() -> None:
    request = gang(*wants("w", 5), near=RACK)
    nodes = racks(1, 2, 2, 3)
    here = {"n-0-0-0-0": 0}
    before = told(request, nodes, here)
    assert told(request, nodes, here | {"n-0-1-1-0": 4}) == before  # a rack that is farther away
    busy = [*taken(here), *(Hold(n.metadata.name, {"cpu": 1_000, "pods": 1}) for n in nodes)]
    assert explain.sentence(Case(request, nodes, busy).refused()) == before  # nothing that is short
    assert told(dataclasses.replace(request, priority=7), nodes, here) == before


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_sentences_are_short_say_nothing_twice_and_do_not_contradict_themselves(
    dice: Random,
) -> None:
    case = case_of(dice)
    answer = case.answer()
    if not isinstance(answer, NoFit):
        return
    said = explain.sentence(answer)
    assert len(said) <= explain.LONGEST
    head, *parts = said.rpartition(" (counting ")[0].split("; ")
    assert len({head, *parts}) == 1 + len(parts)
    assert "  " not in said
    assert " 1 nodes" not in said
    assert " -" not in said
    nearest = answer.nearest
    if nearest is not None and f"which takes {nearest.fits} of {nearest.asked}" in said:
        assert nearest.fits < nearest.asked or answer.cause in (Cause.COMBINATION, Cause.BUDGET)


def test_a_sentence_that_would_be_too_long_loses_what_helps_first_and_then_the_nodes() -> None:
    long = "x" * 320
    nodes = [node(f"{long}-{i}", spec={"unschedulable": True}) for i in range(2)]
    said = told(gang(*wants("w", 2)), [*nodes, node("n")])
    assert "uncordoned" not in said
    assert said.endswith("(counting 1 of 3 nodes: 2 cordoned)")
    said = told(gang(*wants("w", 1), topology=f"{long}{long}"), [node("n")])
    assert len(said) == explain.LONGEST
    assert said.endswith("…")


def test_details_tell_tools_everything() -> None:
    groups = (Group("x", ("a",), RACK),)
    case = Case(gang(*wants("a", 4), *wants("b", 1), groups=groups), racks(1, 1, 2, 3))
    refusal = case.refused()
    found = explain.details(refusal)
    assert json.loads(json.dumps(found)) == found
    assert found["message"] == explain.sentence(refusal)
    assert (found["cause"], found["part"], found["level"]) == (
        "GroupFitsNoDomain",
        "x",
        names.RACK_KEY,
    )
    assert found["pods"] == {"minimum": 5, "extras": 0, "fitted": 3}
    assert found["nearest"] == {
        "part": "x",
        "level": names.RACK_KEY,
        "domain": ["z0", "z0-b0", "z0-b0-r0"],
        "fits": 3,
        "asked": 4,
        "lacks": {GPU: 8},
        "left_out": {"a": 1},
    }
    levels = [(each["part"], each["level"], each["enough"]) for each in listed(found, "levels")]
    assert levels == [("", "", 1), ("x", names.RACK_KEY, 0)]
    cliques = [(each["clique"], each["asked"], each["fits"]) for each in listed(found, "cliques")]
    assert cliques == [("a", 4, 3), ("b", 1, 1)]
    kinds = [each["kind"] for each in listed(found, "remedies")]
    assert kinds == ["Widen", "MoreNodes", "AskFewer"]


def listed(found: JsonObject, key: str) -> list[JsonObject]:
    value = found[key]
    assert isinstance(value, list)
    return [each for each in value if isinstance(each, dict)]

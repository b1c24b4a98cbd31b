import pytest

from api import names
from api.jsons import Json, JsonObject
from policies.known import NOTHING
from policies.policy import MnnvlPolicy, Policy, TopologyPolicy
from policies.problems import Problem
from tests.policies import drafts
from tests.policies.drafts import (
    CLIQUES,
    GROUPS,
    clique,
    cluster,
    constraint,
    draft,
    edited,
    group,
    only,
)

AT: dict[str, str] = {
    "set": "spec.template.topologyConstraint",
    "group": f"{GROUPS}[0].topologyConstraint",
    "member": f"{CLIQUES}[0].topologyConstraint",
    "alone": f"{CLIQUES}[1].topologyConstraint",
}
TOGETHER = cluster("net")


def constrained(**at: Json) -> JsonObject:
    """A set with a member of a group and a clique that stands alone, constrained where asked."""
    raw = draft(clique("m"), clique("a"), groups=(group("g", "m"),))
    for where, what in at.items():
        path = AT[where].replace("[", "/").replace("]", "").replace(".", "/")
        raw = edited(raw, path, what)
    return raw


def problems(**at: Json) -> list[Problem]:
    return drafts.problems(constrained(**at), known=TOGETHER)


@pytest.mark.parametrize("where", AT)
def test_a_constraint_may_stand_anywhere(where: str) -> None:
    assert not problems(**{where: constraint("rack", "host", "net")})


@pytest.mark.parametrize("where", AT)
def test_a_constraint_without_a_binding_is_told_where_to_name_it(where: str) -> None:
    message = only(problems(**{where: constraint("rack")}), f"{AT[where]}.topologyName")
    assert message.startswith("is required: ")
    assert message.endswith("there are net")


def test_a_binding_is_inherited_from_group_and_set() -> None:
    near = constraint("rack")
    assert not problems(set=constraint("block", name="net"), group=near, member=near, alone=near)
    assert not problems(group=constraint("rack", name="net"), member=constraint("host"))
    # A clique that stands alone inherits nothing from a group.
    found = problems(group=constraint("rack", name="net"), alone=constraint("host"))
    assert only(found, f"{AT['alone']}.topologyName")


@pytest.mark.parametrize("where", ["group", "member", "alone"])
def test_all_constraints_of_a_set_mean_one_binding(where: str) -> None:
    raw = constrained(set=constraint("zone", name="net"), **{where: constraint("rack", name="x")})
    found = drafts.problems(raw, known=cluster("net", "x"))
    message = only(found, f"{AT[where]}.topologyName")
    assert message.startswith("means 'x', but spec.template.topologyConstraint means 'net'")


def test_a_binding_that_does_not_exist_is_told_once_with_those_that_do() -> None:
    top = constraint("zone", name="gone")
    raw = constrained(set=top, member=constraint("no-such-level"))
    message = only(drafts.problems(raw, known=cluster("x", "y")), f"{AT['set']}.topologyName")
    assert message == "there is no ClusterTopologyBinding 'gone'; there are x, y"
    message = only(drafts.problems(raw, known=NOTHING), f"{AT['set']}.topologyName")
    assert message == "there is no ClusterTopologyBinding 'gone'"


@pytest.mark.parametrize("where", AT)
@pytest.mark.parametrize("which", ["required", "preferred"])
def test_domains_are_levels_of_the_binding(where: str, which: str) -> None:
    wrong: Json = {"topologyName": "net", "pack": {which: "rakc"}}
    message = only(problems(**{where: wrong}), f"{AT[where]}.pack.{which}")
    assert message.endswith("its levels are zone, block, rack, host, widest first")


@pytest.mark.parametrize(
    ("parent", "child"),
    [("set", "group"), ("set", "member"), ("set", "alone"), ("group", "member")],
)
@pytest.mark.parametrize("which", ["required", "preferred"])
def test_a_part_does_not_reach_beyond_its_whole(parent: str, child: str, which: str) -> None:
    def found(outer: str, inner: str) -> list[Problem]:
        above: Json = {"topologyName": "net", "pack": {which: outer}}
        below: Json = {"topologyName": "net", "pack": {which: inner}}
        return problems(**{parent: above, child: below})

    assert not found("rack", "rack")
    assert not found("block", "host")
    message = only(found("rack", "block"), f"{AT[child]}.pack.{which}")
    assert message.startswith(f"'block' is wider than 'rack', which {AT[parent]} has as {which}")


def test_required_and_preferred_levels_are_held_against_their_own_kind() -> None:
    assert not problems(set=constraint(None, "host", "net"), alone=constraint("zone"))
    assert not problems(set=constraint("rack", None, "net"), alone=constraint(None, "zone"))


def test_siblings_are_not_held_against_each_other() -> None:
    assert not problems(group=constraint("host", name="net"), alone=constraint("zone", name="net"))


def test_a_preference_that_adds_nothing_earns_a_warning() -> None:
    raw = constrained(alone=constraint("rack", "zone", "net"))
    assert drafts.warnings(raw, known=TOGETHER) == [
        f"{AT['alone']}.pack.preferred: 'zone' adds nothing: 'rack' is narrower"
    ]
    for preferred in ("rack", "host"):
        raw = constrained(alone=constraint("rack", preferred, "net"))
        assert drafts.warnings(raw, known=TOGETHER) == []


@pytest.mark.parametrize("where", AT)
@pytest.mark.parametrize(
    ("written", "field", "words"),
    [
        ({}, "", "topologyConstraint must specify pack or deprecated packDomain"),
        ({"pack": {}}, ".pack", "pack must specify at least one of required or preferred"),
        (
            {"pack": {"preferred": "rack"}, "packDomain": "rack"},
            ".packDomain",
            "packDomain is deprecated and cannot be used on new workloads; use pack.required",
        ),
    ],
)
def test_the_shape_of_a_constraint_is_told_in_upstreams_words(
    where: str, written: JsonObject, field: str, words: str
) -> None:
    message = only(problems(**{where: {"topologyName": "net", **written}}), f"{AT[where]}{field}")
    assert message == words


def test_two_spellings_of_one_level_are_refused_on_old_sets_too() -> None:
    good = constrained(alone=constraint("rack", name="net"))
    both = edited(good, "spec/template/cliques/1/topologyConstraint/packDomain", "rack")
    words = "must not set both pack.required and deprecated packDomain"
    for before in (None, good):
        found = drafts.problems(both, before, known=TOGETHER)
        assert Problem(AT["alone"], words) in found


@pytest.mark.parametrize("where", AT)
def test_where_topology_is_switched_off_that_is_all_that_is_said(where: str) -> None:
    off = Policy(topology=TopologyPolicy(enabled=False))
    raw = constrained(**{where: constraint("no-such-level")})
    message = only(drafts.problems(raw, policy=off), AT[where])
    assert "topology.enabled" in message
    assert not drafts.problems(constrained(), policy=off)


def annotated(where: str, value: str) -> JsonObject:
    annotations: JsonObject = {names.MNNVL_ANNOTATION: value}
    if where == "metadata":
        return draft(clique("a"), groups=(group("g", "a"),), annotations=annotations)
    inside = "cliques/0" if where == f"{CLIQUES}[0]" else "podCliqueScalingGroups/0"
    raw = draft(clique("a"), groups=(group("g", "a"),))
    return edited(raw, f"spec/template/{inside}/annotations", annotations)


NVLINK = Policy(mnnvl=MnnvlPolicy(enabled=True))
PLACES = ["metadata", f"{CLIQUES}[0]", f"{GROUPS}[0]"]


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("value", ["none", "a", "group-1"])
def test_nvlink_groups_are_labels_or_none(where: str, value: str) -> None:
    assert not drafts.problems(annotated(where, value), policy=NVLINK)


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("value", ["", "None", "a.b", "-a", "a" * 64])
def test_nvlink_groups_of_other_names_are_refused(where: str, value: str) -> None:
    found = drafts.problems(annotated(where, value), policy=NVLINK)
    message = only(found, f"{where}.annotations[{names.MNNVL_ANNOTATION}]")
    assert "neither 'none' nor a DNS label" in message


@pytest.mark.parametrize("where", PLACES)
def test_where_nvlink_is_switched_off_only_none_is_taken(where: str) -> None:
    assert not drafts.problems(annotated(where, "none"))
    path = f"{where}.annotations[{names.MNNVL_ANNOTATION}]"
    assert "mnnvl.enabled" in only(drafts.problems(annotated(where, "a")), path)

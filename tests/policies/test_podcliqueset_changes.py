import copy

import pytest

from api import names
from api.jsons import Json, JsonObject
from policies.podcliqueset_defaults import defaulted
from policies.problems import Problem
from tests.policies import drafts
from tests.policies.drafts import CLIQUES, GROUPS, POD, clique, cluster, draft, edited, group, only

CLUSTER = cluster("net", "other")
DEVICES: JsonObject = {"spec": {"devices": {"requests": [{"name": "gpu"}]}}}
FULL: JsonObject = draft(
    clique(
        "a",
        counts={"roleName": "ra", "replicas": 4, "minAvailable": 2},
        labels={"l": "1"},
        annotations={"n": "1", names.MNNVL_ANNOTATION: "none"},
        resourceSharing=[{"name": "gpus", "scope": "AllReplicas"}],
        topologyConstraint={"pack": {"required": "rack"}},
    ),
    clique("b", "a", counts={"autoScalingConfig": {"maxReplicas": 4}}),
    clique("c"),
    groups=(
        group(
            "g",
            "a",
            "c",
            counts={"replicas": 3, "scaleConfig": {"maxReplicas": 4}},
            annotations={names.MNNVL_ANNOTATION: "none"},
            resourceSharing=[{"name": "gpus", "scope": "AllReplicas"}],
            topologyConstraint={"pack": {"required": "rack"}},
        ),
    ),
    annotations={"n": "1", names.MNNVL_ANNOTATION: "none"},
    topologyConstraint={"topologyName": "net", "pack": {"required": "rack", "preferred": "host"}},
    resourceClaimTemplates=[{"name": "gpus", "templateSpec": DEVICES}],
    resourceSharing=[{"name": "gpus", "scope": "AllReplicas"}],
    terminationDelay="4h",
    priorityClassName="low",
)
AT = "spec/template/"
A = "spec/template/cliques/0/"
G = "spec/template/podCliqueScalingGroups/0/"


def problems(new: JsonObject, old: JsonObject = FULL) -> list[Problem]:
    return drafts.problems(new, old, known=CLUSTER)


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        (f"{A}spec/roleName", "other", f"{CLIQUES}[0].spec.roleName"),
        (f"{A}spec/minAvailable", 3, f"{CLIQUES}[0].spec.minAvailable"),
        (f"{A}spec/startsAfter", ["c"], f"{CLIQUES}[0].spec.startsAfter"),
        (
            f"{A}spec/podSpec/schedulerName",
            "kai-scheduler",
            f"{CLIQUES}[0].spec.podSpec.schedulerName",
        ),
        (f"{A}resourceSharing/0/scope", "PerReplica", f"{CLIQUES}[0].resourceSharing"),
        (f"{A}topologyConstraint/pack/required", "host", f"{CLIQUES}[0].topologyConstraint"),
        (f"{A}topologyConstraint", None, f"{CLIQUES}[0].topologyConstraint"),
        (f"{AT}cliqueStartupType", "CliqueStartupTypeInOrder", "spec.template.cliqueStartupType"),
        (f"{G}cliqueNames", ["c", "a"], f"{GROUPS}[0].cliqueNames"),
        (f"{G}minAvailable", 2, f"{GROUPS}[0].minAvailable"),
        (f"{G}resourceSharing", [], f"{GROUPS}[0].resourceSharing"),
        (f"{G}topologyConstraint/topologyName", "net", f"{GROUPS}[0].topologyConstraint"),
        (
            f"{AT}resourceClaimTemplates/0/templateSpec/metadata",
            {"labels": {"x": "y"}},
            "spec.template.resourceClaimTemplates",
        ),
        (f"{AT}resourceSharing/0/scope", "PerReplica", "spec.template.resourceSharing"),
        (f"{AT}topologyConstraint/pack/preferred", "rack", "spec.template.topologyConstraint"),
    ],
)
def test_what_running_pods_could_not_follow_may_not_change(
    path: str, value: Json, where: str
) -> None:
    assert "field is immutable" in only(problems(edited(FULL, path, value)), where)


def with_group(raw: JsonObject, holder: str, value: str | None) -> JsonObject:
    """Set the NVLink group, whose key has a slash, or take it out."""
    made = copy.deepcopy(raw)
    at: Json = made
    for step in holder.split("/"):
        at = at[int(step)] if isinstance(at, list) else at[step]  # type: ignore[index]
    assert isinstance(at, dict)
    annotations = at.setdefault("annotations", {})
    assert isinstance(annotations, dict)
    if value is None:
        annotations.pop(names.MNNVL_ANNOTATION, None)
    else:
        annotations[names.MNNVL_ANNOTATION] = value
    return made


@pytest.mark.parametrize(
    ("holder", "where"),
    [
        ("metadata", "metadata"),
        ("spec/template/cliques/0", f"{CLIQUES}[0]"),
        ("spec/template/podCliqueScalingGroups/0", f"{GROUPS}[0]"),
    ],
)
def test_an_nvlink_group_may_neither_come_nor_go(holder: str, where: str) -> None:
    without = with_group(FULL, holder, None)
    path = f"{where}.annotations[{names.MNNVL_ANNOTATION}]"
    assert "field is immutable; it was 'none'" in only(problems(without), path)
    assert "field is immutable; it was left out" in only(problems(FULL, without), path)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec/replicas", 3),
        ("spec/updateStrategy", {"type": "OnDelete"}),
        (f"{A}spec/replicas", 3),
        (f"{A}spec/podSpec/containers/0/image", "y"),
        (f"{A}spec/podSpec/nodeSelector", {"a": "b"}),
        (f"{A}spec/podSpec/schedulerName", ""),
        (f"{A}labels", {"m": "2"}),
        (f"{A}annotations/n", "2"),
        (f"{AT}cliques/1/spec/autoScalingConfig", {"maxReplicas": 9}),
        (f"{AT}cliques/1/resourceSharing", []),
        (f"{G}replicas", 2),
        (f"{G}scaleConfig", None),
        (f"{AT}terminationDelay", "1h"),
        (f"{AT}priorityClassName", "high"),
        (f"{AT}headlessServiceConfig", {"publishNotReadyAddresses": False}),
        ("metadata/annotations/n", "2"),
        ("metadata/labels", {"n": "2"}),
    ],
)
def test_what_they_can_follow_may(path: str, value: Json) -> None:
    assert not problems(edited(FULL, path, value))


def test_cliques_neither_come_nor_go_nor_change_their_names() -> None:
    old = draft(clique("a"), clique("b"))
    message = only(problems(draft(clique("a"), clique("c")), old), CLIQUES)
    assert message.startswith("field is immutable: ")
    assert "'c' is new, 'b' is missing" in message
    assert "'b' is missing" in only(problems(draft(clique("a")), old), CLIQUES)
    twice = draft(clique("a"), clique("b"), clique("b"))
    assert "there were 2, and now 3" in str(problems(twice, old)[0])
    more = draft(clique("a"), clique("b"), clique("c"))
    assert "'c' is new" in only(problems(more, old), CLIQUES)


def test_groups_neither_come_nor_go_but_may_change_places() -> None:
    two = (group("g", "a"), group("h", "b"))
    old = draft(clique("a"), clique("b"), groups=two)
    assert not problems(draft(clique("a"), clique("b"), groups=two[::-1]), old)
    fewer = draft(clique("a"), clique("b"), groups=two[:1])
    assert "'h' is missing" in only(problems(fewer, old), GROUPS)
    assert "'h' is new" in only(problems(old, fewer), GROUPS)


@pytest.mark.parametrize(
    ("startup", "counts"), [("AnyOrder", False), ("InOrder", True), ("Explicit", True)]
)
def test_the_order_of_cliques_stays_where_it_counts(
    startup: str,
    counts: bool,  # noqa: FBT001
) -> None:
    old = draft(clique("a"), clique("b"), startup=startup)
    found = problems(draft(clique("b"), clique("a"), startup=startup), old)
    if counts:
        assert "field is immutable: with this startup type" in only(found, CLIQUES)
    else:
        assert not found


@pytest.mark.parametrize("place", [AT, A, G])
def test_an_old_spelling_may_be_mended_and_given_its_binding(place: str) -> None:
    old = edited(FULL, f"{place}topologyConstraint", {"packDomain": "rack"})
    if place == AT:
        # Nobody names a binding: stored before there had to be one.
        assert drafts.warnings(old, old, known=CLUSTER)
    mended: JsonObject = {"topologyName": "net", "pack": {"required": "rack"}}
    assert not problems(edited(FULL, f"{place}topologyConstraint", mended), old)
    named: JsonObject = {"topologyName": "net", "packDomain": "rack"}
    assert not problems(edited(FULL, f"{place}topologyConstraint", named), old)


@pytest.mark.parametrize(
    "new",
    [
        {"topologyName": "net", "pack": {"required": "host"}},
        {"topologyName": "other", "pack": {"required": "rack"}},
        {"topologyName": "net", "pack": {"required": "rack", "preferred": "host"}},
        {"topologyName": "net", "packDomain": "host"},
        {"topologyName": "net", "packDomain": "rack", "pack": {"preferred": "host"}},
        {"packDomain": "rack"},
        None,
    ],
)
def test_mending_a_spelling_changes_nothing_else(new: Json) -> None:
    old = draft(topologyConstraint={"topologyName": "net", "packDomain": "rack"})
    found = problems(draft(topologyConstraint=new), old)
    assert "field is immutable" in str(found[0])


def test_a_new_spelling_is_not_made_an_old_one() -> None:
    old = draft(topologyConstraint={"topologyName": "net", "pack": {"required": "rack"}})
    new = draft(topologyConstraint={"topologyName": "net", "packDomain": "rack"})
    assert "field is immutable" in only(problems(new, old), "spec.template.topologyConstraint")


def test_an_added_binding_must_do() -> None:
    old = draft(topologyConstraint={"packDomain": "rack"})
    new = draft(topologyConstraint={"packDomain": "rack", "topologyName": "gone"})
    assert "there is no" in only(
        problems(new, old), "spec.template.topologyConstraint.topologyName"
    )


def test_an_old_spelling_earns_a_warning_when_the_set_changes() -> None:
    old = draft(topologyConstraint={"topologyName": "net", "packDomain": "rack"})
    (warning,) = drafts.warnings(edited(old, "spec/replicas", 2), old, known=CLUSTER)
    assert "spec.template.topologyConstraint.packDomain is deprecated" in warning
    assert "spec.template.topologyConstraint.pack.required" in warning


def test_left_out_empty_and_default_mean_the_same() -> None:
    written = defaulted(FULL).object
    assert not problems(FULL, written)
    assert not problems(written, FULL)
    assert not problems(edited(FULL, f"{AT}cliques/2/resourceSharing", []), FULL)
    assert not problems(edited(FULL, f"{AT}cliques/1/spec/podSpec", {**POD, "schedulerName": ""}))


def test_every_change_is_told_at_once_with_what_else_is_wrong() -> None:
    new = edited(FULL, f"{A}spec/roleName", "other")
    new = edited(new, f"{A}spec/minAvailable", 5)
    assert [problem.path for problem in problems(new)] == [
        f"{CLIQUES}[0].spec.roleName",
        f"{CLIQUES}[0].spec.minAvailable",
        f"{CLIQUES}[0].spec.minAvailable",
    ]

"""Filters decide as kube-scheduler does."""

import pytest

from api.jsons import Json, JsonObject
from api.streams import Expression, NodeSelector, Term, Toleration
from scheduler.eligible import Constraints, obstacle
from scheduler.filters.masks import Masks
from tests.support.clusters import node, pod

GPU_TAINT: JsonObject = {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}


def required(*terms: Term) -> Constraints:
    return Constraints(required=NodeSelector(terms))


def test_an_unready_or_cordoned_node_is_no_place() -> None:
    assert obstacle(node("a", ready=False), Constraints()) == "not ready"
    assert obstacle(node("a", spec={"unschedulable": True}), Constraints()) == "cordoned"


def test_a_pod_that_tolerates_the_cordon_may_use_the_node() -> None:
    every = Constraints(tolerations=(Toleration(operator="Exists"),))
    assert obstacle(node("a", spec={"unschedulable": True}), every) == ""


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (None, "tainted"),
        (Toleration(key="gpu", value="yes"), ""),
        (Toleration(key="gpu", operator="Equal", value="yes", effect="NoSchedule"), ""),
        (Toleration(key="gpu", value="no"), "tainted"),
        (Toleration(key="gpu", operator="Exists"), ""),
        (Toleration(key="gpu", operator="Exists", effect="NoExecute"), "tainted"),
        (Toleration(operator="Exists"), ""),
        (Toleration(value="yes"), "tainted"),
        (Toleration(key="other", operator="Exists"), "tainted"),
    ],
)
def test_a_taint_bars_whom_it_is_not_tolerated_by(
    toleration: Toleration | None, expected: str
) -> None:
    tolerations = (toleration,) if toleration else ()
    assert obstacle(node("a", spec=GPU_TAINT), Constraints(tolerations=tolerations)) == expected


def test_a_taint_that_only_prefers_bars_nobody() -> None:
    soft: Json = [{"key": "busy", "effect": "PreferNoSchedule"}]
    assert obstacle(node("a", spec={"taints": soft}), Constraints()) == ""


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        (Expression("disk", "In", ("ssd", "nvme")), True),
        (Expression("disk", "In", ("hdd",)), False),
        (Expression("disk", "NotIn", ("hdd",)), True),
        (Expression("absent", "NotIn", ("x",)), True),
        (Expression("absent", "In", ("x",)), False),
        (Expression("disk", "Exists"), True),
        (Expression("disk", "DoesNotExist"), False),
        (Expression("slots", "Gt", ("3",)), True),
        (Expression("slots", "Gt", ("4",)), False),
        (Expression("slots", "Lt", ("5",)), True),
        (Expression("disk", "Lt", ("5",)), False),
        (Expression("absent", "Gt", ("5",)), False),
        (Expression("disk", "Near", ("ssd",)), False),
    ],
)
def test_every_selector_operator(expression: Expression, fits: bool) -> None:  # noqa: FBT001
    here = node("a", labels={"disk": "ssd", "slots": "4"})
    found = obstacle(here, required(Term(match_expressions=(expression,))))
    assert found == ("" if fits else "not selected by the pods")


def test_terms_are_alternatives_and_an_empty_one_matches_nothing() -> None:
    here = node("a", labels={"disk": "ssd"})
    hdd = Term(match_expressions=(Expression("disk", "In", ("hdd",)),))
    named = Term(match_fields=(Expression("metadata.name", "In", ("a",)),))
    assert obstacle(here, required(hdd, named)) == ""
    assert obstacle(here, required(Term())) != ""
    assert obstacle(here, required()) != ""


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        ([("In", "a")], ["a"]),
        ([("NotIn", "a")], ["b", "c"]),
        ([("NotIn", "a"), ("NotIn", "c")], ["b"]),
        ([("NotIn", "nobody")], ["a", "b", "c"]),
        ([("In", "a"), ("NotIn", "b")], ["a"]),
        ([("In", "a"), ("NotIn", "a")], []),
        ([("Exists", "a")], []),
    ],
)
def test_nodes_are_chosen_and_barred_by_name(
    fields: list[tuple[str, str]], left: list[str]
) -> None:
    nodes = [node(name) for name in "abc"]
    asked = required(
        Term(match_fields=tuple(Expression("metadata.name", how, (name,)) for how, name in fields))
    )
    assert [n.metadata.name for n in nodes if obstacle(n, asked) == ""] == left
    rows = Masks(nodes).mask(asked).tolist()
    assert [n.metadata.name for n, ok in zip(nodes, rows, strict=True) if ok] == left


def test_constraints_are_read_from_the_pod() -> None:
    selector: Json = {"disk": "ssd"}
    terms: Json = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]
    affinity: Json = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }
    }
    read = Constraints.of(pod("p", spec={"nodeSelector": selector, "affinity": affinity}))
    assert obstacle(node("a", labels={"disk": "ssd"}), read) == ""
    assert obstacle(node("b", labels={"disk": "ssd"}), read) != ""
    assert obstacle(node("a"), read) != ""

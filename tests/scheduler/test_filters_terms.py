"""Single fields of terms and spread constraints, each with what it changes."""

import pytest

from api import names
from api.jsons import Json, JsonObject
from api.streams import Pod
from scheduler.filters.classes import SPREAD
from scheduler.filters.constraints import Constraints
from scheduler.filters.masks import Masks
from scheduler.filters.together import conflict
from scheduler.residents import of_pod
from tests.support.clusters import node, pod

LEAVING: JsonObject = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def of_app(app: str, namespace: str = "here", more: JsonObject | None = None) -> Pod:
    metadata: JsonObject = {"labels": {"app": app}, **(more or {})}
    return pod(f"p-{app}", namespace=namespace, metadata=metadata)


def masks(*there: list[Pod], **labels: str) -> Masks:
    """Nodes in zones a, b, a, b and so on, with these pods on them."""
    nodes = [
        node(f"n{i}", labels={"zone": "ab"[i % 2], names.HOSTNAME_KEY: f"n{i}", **labels})
        for i in range(len(there))
    ]
    return Masks(nodes, tuple(tuple(map(of_pod, pods)) for pods in there))


def coming(spec: JsonObject | None = None, namespace: str = "here") -> Constraints:
    labels: JsonObject = {"app": "a", "version": "2"}
    return Constraints.of(
        pod("new", namespace=namespace, metadata={"labels": labels}, spec=spec or {})
    )


def spread(**fields: Json) -> JsonObject:
    constraint: JsonObject = {
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
        **fields,
    }
    return {"topologySpreadConstraints": [constraint]}


def apart(**fields: Json) -> JsonObject:
    term: JsonObject = {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": "a"}},
        **fields,
    }
    required: Json = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"podAntiAffinity": required}}


def near(**fields: Json) -> JsonObject:
    affinity = apart(**fields)["affinity"]
    assert isinstance(affinity, dict)
    return {"affinity": {"podAffinity": affinity["podAntiAffinity"]}}


def usable(there: Masks, constraints: Constraints) -> str:
    return "".join("ny"[int(each)] for each in there.mask(constraints))


def test_who_is_leaving_does_not_count_for_spread_but_for_affinity() -> None:
    there = masks([of_app("a", more=LEAVING)], [])
    assert usable(there, coming(spread())) == "yy"
    assert usable(there, coming(apart())) == "ny"
    assert usable(masks([of_app("a")], []), coming(spread())) == "ny"


def test_a_tainted_node_counts_for_spread_unless_taints_are_honoured() -> None:
    shut = node("n1", labels={"zone": "b"}, spec={"taints": [{"key": "x", "effect": "NoSchedule"}]})
    there = Masks([node("n0", labels={"zone": "a"}), shut], ((of_pod(of_app("a")),), ()))
    assert usable(there, coming(spread())) == "nn"
    assert usable(there, coming(spread(nodeTaintsPolicy="Honor"))) == "yn"


def test_a_node_counts_only_with_the_labels_of_all_hard_constraints() -> None:
    bare = node("n1", labels={"zone": "b"})
    there = Masks(
        [node("n0", labels={"zone": "a", "rack": "1"}), bare], ((of_pod(of_app("a")),), ())
    )
    both = spread()["topologySpreadConstraints"]
    also = spread(topologyKey="rack", labelSelector={"matchLabels": {"app": "z"}})
    assert isinstance(both, list)
    assert isinstance(also["topologySpreadConstraints"], list)
    asked: Json = [*both, *also["topologySpreadConstraints"]]
    assert usable(there, coming({"topologySpreadConstraints": asked})) == "yn"
    assert usable(there, coming(spread())) == "ny"


def test_whoever_is_meant_everybody_is_counted_nowhere_but_the_pod_itself() -> None:
    there = masks([of_app("a")], [])
    assert usable(there, coming(spread(labelSelector={}))) == "yy"
    two = coming(spread(labelSelector={}))
    assert conflict(there, [(0, two), (1, two), (1, two)]) == ""


def test_labels_of_the_pod_narrow_whom_it_is_spread_among() -> None:
    old = pod("old", namespace="here", metadata={"labels": {"app": "a", "version": "1"}})
    there = masks([old], [])
    assert usable(there, coming(spread())) == "ny"
    assert usable(there, coming(spread(matchLabelKeys=["version"]))) == "yy"


def test_a_soft_spread_bars_nobody() -> None:
    soft = spread(whenUnsatisfiable="ScheduleAnyway")
    assert usable(masks([of_app("a")], []), coming(soft)) == "yy"


def test_a_plan_must_meet_least_domains_on_each_node_by_itself() -> None:
    least = coming(spread(topologyKey=names.HOSTNAME_KEY, minDomains=2, maxSkew=1))
    there = masks([], [])
    assert conflict(there, [(0, least), (1, least)]) == ""
    assert conflict(there, [(0, least), (0, least), (1, least), (1, least)]) == SPREAD


@pytest.mark.parametrize(
    ("fields", "shunned"),
    [
        pytest.param({}, "here", id="the pod's own namespace"),
        pytest.param({"namespaces": ["there"]}, "there", id="one by name"),
        pytest.param({"namespaceSelector": {}}, "here there", id="all"),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "there"}}},
            "there",
            id="one by the label of its name",
        ),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"team": "x"}}}, "here there", id="unknown labels"
        ),
        pytest.param({"labelSelector": None}, "", id="nobody"),
        pytest.param({"labelSelector": {}}, "here there"[:4], id="everybody in its namespace"),
    ],
)
def test_whom_a_pod_shuns_by_namespace(fields: JsonObject, shunned: str) -> None:
    found = [
        place
        for place in ("here", "there")
        if usable(masks([of_app("a", place)], []), coming(apart(**fields))) == "ny"
    ]
    assert " ".join(found) == shunned


def test_a_namespace_chosen_by_unknown_labels_is_not_counted_on() -> None:
    unknown: JsonObject = {
        "namespaceSelector": {"matchLabels": {"team": "x"}},
        "labelSelector": {"matchLabels": {"app": "b"}},
    }
    assert usable(masks([of_app("b", "there")], []), coming(near(**unknown))) == "nn"
    named: JsonObject = {**unknown, "namespaces": ["there"]}
    assert usable(masks([of_app("b", "there")], []), coming(near(**named))) == "yn"


def test_nobody_is_the_first_of_its_kind_while_unknown_namespaces_may_hold_some() -> None:
    unknown: JsonObject = {"namespaceSelector": {"matchLabels": {"team": "x"}}}
    own: JsonObject = {**unknown, "namespaces": ["here"]}
    assert usable(masks([], []), coming(near(**own))) == "yy"
    assert usable(masks([of_app("a", "there")], []), coming(near(**own))) == "nn"


def test_a_resident_shuns_by_any_of_several_values() -> None:
    among: Json = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["z", "a"]}]}
    shy = pod("shy", namespace="here", spec=apart(labelSelector=among))
    assert usable(masks([shy], []), coming()) == "ny"
    assert usable(masks([shy], []), coming(None, "there")) == "yy"


def test_residents_stay_with_their_nodes_when_rows_change() -> None:
    there = masks([of_app("a")], [])
    pods = coming(apart())
    assert usable(there, pods) == "ny"
    one, two = there.nodes.nodes
    swapped = there.after((two, one), tuple(reversed(there.company.rows)))
    assert usable(swapped, pods) == "yn"
    moved = there.after((two, one), there.company.rows)
    assert usable(moved, pods) == "ny"

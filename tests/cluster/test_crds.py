"""The definitions as the API server alone enforces them: no webhook is there to help."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest
import yaml

from api import crds, openapi
from api.__main__ import TYPES
from api.jsons import Json, JsonObject
from api.kinds import KINDS, Kind
from penstock.lab.state import Lab
from tests.support.definitions import DEFINITIONS, read, refusal, served
from tests.support.living import Kubectl
from tests.support.polling import eventually

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def kubectl(other_lab: Lab) -> Iterator[Kubectl]:
    """A person where the definitions were applied, and nothing else of Penstock."""
    person = Kubectl(other_lab.binaries["kubectl"], other_lab.kubeconfig, "default")
    with served(person):
        yield person


def pod_spec(**more: Json) -> JsonObject:
    return {"containers": [{"name": "main", "image": "model"}], **more}


def clique(name: str = "worker", **more: Json) -> JsonObject:
    return {"name": name, "spec": {"roleName": name, "podSpec": pod_spec()}, **more}


def a_set(name: str, *cliques: JsonObject, **template: Json) -> JsonObject:
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name},
        "spec": {"template": {"cliques": list(cliques or [clique()]), **template}},
    }


def grove(kind: str, name: str, **spec: Json) -> JsonObject:
    return {
        "apiVersion": "grove.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec,
    }  # fmt: skip


def gang(name: str, **spec: Json) -> JsonObject:
    return grove("PodGang", name, **spec) | {"apiVersion": "scheduler.grove.io/v1alpha1"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_a_definition_is_established_and_structural(kind: Kind, kubectl: Kubectl) -> None:
    found = read(kubectl, "crd", kind.crd_name)
    status = cast("Mapping[str, list[Mapping[str, str]]]", found["status"])
    conditions = {condition["type"]: condition["status"] for condition in status["conditions"]}
    assert conditions["Established"] == "True"
    assert "NonStructural" not in conditions


def test_schemas_of_kubernetes_own_types_are_what_the_api_server_says(kubectl: Kubectl) -> None:
    answers = [kubectl.run("get", "--raw", path, check=True) for path in openapi.DOCUMENTS]
    types = openapi.extract([json.loads(answer.stdout) for answer in answers])
    assert json.loads(TYPES.read_text()) == types, "see `python -m api schemas --help`"


EVERYTHING = yaml.safe_load((Path(__file__).parent / "everything.yaml").read_text())


def missing(sent: Json, stored: Json, path: str = "") -> list[str]:
    """Name what was sent and is not stored, or not as it was sent."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        return [
            lost
            for key, value in sent.items()
            for lost in missing(value, stored.get(key), f"{path}.{key}")
        ]
    if isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        pairs = enumerate(zip(sent, stored, strict=True))
        return [lost for i, (a, b) in pairs for lost in missing(a, b, f"{path}[{i}]")]
    return [] if sent == stored else [f"{path}: {stored!r} is not {sent!r}"]


def test_a_set_with_every_field_is_stored_whole(kubectl: Kubectl) -> None:
    kubectl.apply(EVERYTHING)
    stored = read(kubectl, "pcs", "everything")
    assert missing(EVERYTHING, stored) == []


def test_what_is_left_out_gets_groves_defaults(kubectl: Kubectl) -> None:
    kubectl.apply(
        a_set("bare", podCliqueScalingGroups=[{"name": "group", "cliqueNames": ["worker"]}])
    )
    spec = cast("JsonObject", read(kubectl, "pcs", "bare")["spec"])
    assert spec["replicas"] == 0
    template = cast("JsonObject", spec["template"])
    assert template["cliqueStartupType"] == "CliqueStartupTypeAnyOrder"
    assert template["podCliqueScalingGroups"] == [
        {"name": "group", "cliqueNames": ["worker"], "replicas": 1, "minAvailable": 1}
    ]
    assert "updateStrategy" not in spec


@pytest.mark.parametrize(
    ("kind", "part", "misspelt"),
    [
        ("PodCliqueSet", "podSpec", "spec.template.cliques[0].spec.podSpec.containers[0].imagee"),
        ("PodCliqueSet", "metric", "spec.template.cliques[0].spec.autoScalingConfig.metrics[0].x"),
        ("PodCliqueSet", "claim", "spec.template.resourceClaimTemplates[0].templateSpec.spek"),
        ("PodClique", "podSpec", "spec.podSpec.containers[0].imagee"),
    ],
)
def test_a_misspelt_field_is_refused_by_kubectl_and_told_to_others(
    kind: str, part: str, misspelt: str, kubectl: Kubectl
) -> None:
    body = WRONG[kind, part]
    assert f'unknown field "{misspelt}"' in refusal(kubectl, body)
    text = yaml.safe_dump(body)
    lenient = ("create", "--dry-run=server", "--validate=warn", "-f", "-")
    told = kubectl.run(*lenient, text=text, check=True).stderr
    assert f'Warning: unknown field "{misspelt}"' in told


MISSPELT: Json = {"containers": [{"name": "main", "image": "a", "imagee": "b"}]}
METRIC: Json = {
    "type": "Resource",
    "x": 1,
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
WRONG: Mapping[tuple[str, str], JsonObject] = {
    ("PodCliqueSet", "podSpec"): a_set("wrong", {"name": "a", "spec": {"podSpec": MISSPELT}}),
    ("PodCliqueSet", "metric"): a_set(
        "wrong",
        {
            "name": "a",
            "spec": {
                "podSpec": pod_spec(),
                "autoScalingConfig": {"maxReplicas": 2, "metrics": [METRIC]},
            },
        },
    ),
    ("PodCliqueSet", "claim"): a_set(
        "wrong", resourceClaimTemplates=[{"name": "a", "templateSpec": {"spec": {}, "spek": {}}}]
    ),
    ("PodClique", "podSpec"): grove("PodClique", "wrong", podSpec=MISSPELT),
}


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"replicas": 1.5}, "must be of type integer"),
        ({"podSpec": {"containers": [{"image": "a"}]}}, "containers[0].name: Required value"),
        ({"podSpec": {}}, "podSpec.containers: Required value"),
        ({"podSpec": pod_spec(restartPolicy="Sometimes")}, 'Unsupported value: "Sometimes"'),
        ({"podSpec": pod_spec(overhead={"cpu": "1 core"})}, "should match"),
        ({"podSpec": pod_spec(priority="high")}, "must be of type integer"),
        ({"replicas": 10_001}, "should be less than or equal to 10000"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(
    part: JsonObject, said: str, kubectl: Kubectl
) -> None:
    spec: JsonObject = {"podSpec": pod_spec(), **part}
    told = refusal(kubectl, a_set("wrong", {"name": "a", "spec": spec}))
    assert "spec.template.cliques[0].spec" in told
    assert said in told


BOTH = "must not set both pack.required and deprecated packDomain"
NEITHER = "topologyConstraint must specify pack or deprecated packDomain"
EMPTY = "pack must specify at least one of required or preferred"
DEPRECATED = "packDomain is deprecated and cannot be used on new workloads; use pack.required"

CONSTRAINTS: Mapping[str, tuple[JsonObject, str]] = {
    "neither": ({"topologyName": "net"}, f".pack: Required value: {NEITHER}"),
    "empty": ({"pack": {}}, f".pack: Required value: {EMPTY}"),
    "both": (
        {"packDomain": "rack", "pack": {"required": "rack"}},
        f".pack.required: Invalid value: {BOTH}",
    ),
    "pack": ({"topologyName": "net", "pack": {"required": "rack", "preferred": "host"}}, ""),
}


def constrained(place: str, constraint: JsonObject) -> JsonObject:
    if place == "cliques":
        return a_set("net", clique(topologyConstraint=constraint))
    if place == "podCliqueScalingGroups":
        group: Json = {
            "name": "g", "cliqueNames": ["worker"], "topologyConstraint": constraint,
        }  # fmt: skip
        return a_set("net", podCliqueScalingGroups=[group])
    return a_set("net", topologyConstraint=constraint)


# Where a set says how close pods must be.
PLACES = {
    "template": "spec.template.topologyConstraint",
    "cliques": "spec.template.cliques[0].topologyConstraint",
    "podCliqueScalingGroups": "spec.template.podCliqueScalingGroups[0].topologyConstraint",
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("what", CONSTRAINTS)
def test_a_constraint_says_how_to_pack_once(place: str, what: str, kubectl: Kubectl) -> None:
    constraint, said = CONSTRAINTS[what]
    told = refusal(kubectl, constrained(place, constraint))
    assert bool(told) == bool(said)
    assert not said or f"{PLACES[place]}{said}" in told


@pytest.mark.parametrize("place", PLACES)
def test_new_sets_do_not_take_the_deprecated_domain(place: str, kubectl: Kubectl) -> None:
    told = refusal(kubectl, constrained(place, {"topologyName": "net", "packDomain": "rack"}))
    path = "template.topologyConstraint.packDomain" if place == "template" else f"template.{place}"
    assert f"spec.{path}: Forbidden: {DEPRECATED}" in told


async def test_sets_of_old_keep_the_deprecated_domain(kubectl: Kubectl) -> None:
    (kind,) = [kind for kind in KINDS if kind.kind == "PodCliqueSet"]
    file = DEFINITIONS / crds.file_name(kind)
    older = yaml.load(file.read_text(), yaml.CSafeLoader)
    schema = older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    del schema["x-kubernetes-validations"]
    body = constrained("cliques", {"topologyName": "net", "packDomain": "rack"})
    try:
        kubectl.run("apply", "-f", "-", text=json.dumps(older), check=True)
        await eventually(lambda: not refusal(kubectl, body), "the definition without the rule")
        kubectl.apply(body)
    finally:
        kubectl.apply_file(file)
    fresh = body | {"metadata": {"name": "fresh"}}
    await eventually(lambda: DEPRECATED in refusal(kubectl, fresh), "the definition with the rule")
    changed = {"spec": {"replicas": 1, "template": {"terminationDelay": "1h"}}}
    kubectl.run("patch", "pcs", "net", "--type=merge", "-p", json.dumps(changed), check=True)


GROUP = grove("PodCliqueScalingGroup", "scaled", minAvailable=2, replicas=2, cliqueNames=["a"])
CLIQUE = grove(
    "PodClique", "scaled", minAvailable=2, replicas=2, roleName="a", podSpec=pod_spec()
)  # fmt: skip


@pytest.mark.parametrize(("short", "body"), [("pcsg", GROUP), ("pclq", CLIQUE)])
def test_a_clique_or_group_is_scaled_to_its_minimum_or_more_or_to_nothing(
    short: str, body: JsonObject, kubectl: Kubectl
) -> None:
    kubectl.apply(body)
    refused = kubectl.run("scale", short, "scaled", "--replicas=1")
    assert refused.returncode != 0
    assert "replicas is 1, below minAvailable 2: scale to 0, or" in refused.stderr
    for count in ("5", "0", "2"):
        kubectl.run("scale", short, "scaled", f"--replicas={count}", check=True)
        assert cast("JsonObject", read(kubectl, short, "scaled")["spec"])["replicas"] == int(count)


def test_a_set_is_scaled_to_no_more_pods_than_anybody_means(kubectl: Kubectl) -> None:
    group: Json = {"name": "g", "cliqueNames": ["worker"], "replicas": 10}
    kubectl.apply(a_set("large", clique(), clique("alone"), podCliqueScalingGroups=[group]))
    kubectl.run("scale", "pcs", "large", "--replicas=1818", check=True)
    refused = kubectl.run("scale", "pcs", "large", "--replicas=1819")
    assert refused.returncode != 0
    assert "the set asks for 20009 pods, more than 20000: lower replicas of" in refused.stderr


@pytest.mark.parametrize(
    ("short", "body", "change"),
    [
        ("pclq", CLIQUE, {"minAvailable": 1}),
        ("pclq", CLIQUE, {"startsAfter": ["set-0-b"]}),
        ("pclq", CLIQUE, {"roleName": "b"}),
        ("pcsg", GROUP, {"cliqueNames": ["a", "b"]}),
        ("pcsg", GROUP, {"minAvailable": 1}),
    ],
)
def test_what_makes_a_clique_or_group_what_it_is_cannot_change(
    short: str, body: JsonObject, change: JsonObject, kubectl: Kubectl
) -> None:
    kubectl.apply(body)
    patch = json.dumps({"spec": change})
    refused = kubectl.run("patch", short, "scaled", "--type=merge", "-p", patch)
    assert refused.returncode != 0
    assert f"spec.{next(iter(change))}: Invalid value: field is immutable" in refused.stderr


PODS: Json = [{"name": "a", "minReplicas": 1, "podReferences": [{"namespace": "x", "name": "p"}]}]
SPREAD: Json = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]


def test_a_gang_is_taken_in_the_older_spelling_and_kept_as_it_is(kubectl: Kubectl) -> None:
    body = gang(
        "older",
        podGroups=PODS,
        networkPackGroupConfigs=[{"podGroupNames": ["a"]}],
        spreadConstraints=SPREAD,
    )
    kubectl.apply(body)
    assert missing(body, read(kubectl, "pg", "older")) == []


@pytest.mark.parametrize("spec", [{}, {"podgroups": PODS, "podGroups": PODS}], ids=["none", "both"])
def test_a_gang_names_its_pods_once(spec: JsonObject, kubectl: Kubectl) -> None:
    assert "spec.podgroups: Required value: write the gang's pods once" in refusal(
        kubectl, gang("twice", **spec)
    )


def test_columns_show_what_people_look_for(kubectl: Kubectl) -> None:
    kubectl.apply(grove("PodClique", "shown", minAvailable=1, replicas=3, podSpec=pod_spec()))
    since = "2026-01-02T03:04:05Z"
    breached = {"type": "MinAvailableBreached", "status": "False", "reason": "SufficientReadyPods"}
    status = {
        "replicas": 3, "readyReplicas": 2, "scheduledReplicas": 2, "scheduleGatedReplicas": 1,
        "conditions": [breached | {"message": "", "lastTransitionTime": since}],
        "lastOperation": {
            "type": "Reconcile", "state": "Processing",
            "description": "waits", "lastUpdateTime": since,
        },
    }  # fmt: skip
    patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    kubectl.run("patch", "pclq", "shown", *patch, check=True)
    header, row = kubectl.run("get", "pclq", "shown", "-o", "wide", check=True).stdout.splitlines()
    titles = "NAME MINAVAIL REPLICAS READY SCHEDULED UPDATED STATE AGE GATED MINBREACHED MESSAGE"
    assert set(header.split()) == set(titles.split())
    shown = dict(zip(header.split(), row.split(), strict=True))
    assert (shown["MINAVAIL"], shown["REPLICAS"], shown["READY"]) == ("1", "3", "2")
    assert (shown["UPDATED"], shown["GATED"], shown["MINBREACHED"]) == ("0", "1", "False")
    assert (shown["STATE"], shown["MESSAGE"]) == ("Processing", "waits")


def test_a_binding_has_no_namespace_and_shows_its_widest_level(kubectl: Kubectl) -> None:
    levels: Json = [{"domain": "zone", "key": "example.com/zone"}, {"domain": "rack", "key": "r"}]
    kubectl.apply(grove("ClusterTopologyBinding", "net", levels=levels))
    assert "namespace" not in cast("JsonObject", read(kubectl, "ct", "net")["metadata"])
    # The column asks for all levels, as Grove's does; the API server prints the first it finds.
    header, row = kubectl.run("get", "ct", "net", check=True).stdout.splitlines()
    assert (header.split()[:2], row.split()[:2]) == (["NAME", "DOMAINS"], ["net", "zone"])


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("podcliqueset.spec.template.cliques.spec.podSpec.containers", "image\t<string>"),
        pytest.param(
            "pcs.status.updateProgress",
            "PodCliques outside groups, over all replicas.",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "pclq.spec.startsAfter", "Full names of the PodCliques", marks=pytest.mark.long
        ),
        pytest.param(
            "pcsg.spec",
            "The cliques that belong together, by their names in the set.",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "ct.spec.levels",
            "The node label whose values are the level's domains.",
            marks=pytest.mark.long,
        ),
        ("pg.spec.podGroups", "Older spelling of podgroups, still read."),
        ("rsv.spec", "The room, clique by clique."),
    ],
)
def test_fields_explain_themselves(path: str, told: str, kubectl: Kubectl) -> None:
    assert told in kubectl.run("explain", path, check=True).stdout

"""What becomes of pods at their creation, through the real API server and its webhooks."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Final

import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from api.streams import Pod
from kube.client import Client
from kube.resources import CONFIGMAPS, NODES, PODCLIQUESETS, PODS, TOPOLOGY_BINDINGS
from tests.support import policies
from tests.support.asking import DRY_RUN, Asker, Seen, asking
from tests.support.counting import counted
from tests.support.gangpods import GROVES, MIRROR, PLAIN, part
from tests.support.installed import Installed
from tests.support.living import Cluster, Kubectl, engine_set
from tests.support.tenants import NOWHERE

pytestmark = pytest.mark.cluster

GATE: Final[Json] = {"name": names.GATE}
READY: Final[Json] = {"conditionType": names.READINESS_GATE}
STRAYS: Final = "penstock_webhook_stray_reviews_total"
REVIEWS: Final = "penstock_webhook_requests_total"


@pytest.fixture(scope="module")
def asker(installed: Installed) -> Iterator[Asker]:
    with asking(installed.lab.kubeconfig) as made:
        yield made


def pod(labels: dict[str, str], spec: JsonObject | None = None, **metadata: Json) -> JsonObject:
    restricted: Json = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    containers: Json = [{"name": "main", "image": "none", "securityContext": restricted}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {**labels}, **metadata},
        "spec": {"containers": containers, **(spec or {})},
    }


def tried(asker: Asker, body: JsonObject, space: str = "default") -> Seen:
    """What the API server would make of it; nothing is stored."""
    return asker.ask("POST", PODS.path(space) + DRY_RUN, body)


def made(asker: Asker, body: JsonObject) -> JsonObject:
    seen = tried(asker, body)
    assert seen.done, seen.message
    return seen.object


@pytest.mark.parametrize("labels", [PLAIN, GROVES], ids=["plain", "of a PodGang"])
def test_a_gang_pod_is_gated_after_its_authors_gates(asker: Asker, labels: dict[str, str]) -> None:
    quota: Json = {"name": "example.com/quota"}
    for written, then in (([], [GATE]), ([quota], [quota, GATE]), ([GATE, quota], [GATE, quota])):
        found = made(asker, pod(labels, {"schedulingGates": [*written]}))
        assert part(found, "spec", "schedulingGates") == then
        assert part(found, "metadata", "labels") == labels
        assert part(found, "spec", "readinessGates") is None


@pytest.mark.parametrize("written", ["kai-scheduler", "grove-scheduler", "default-scheduler", ""])
def test_groves_scheduler_names_become_the_default_one(asker: Asker, written: str) -> None:
    found = made(asker, pod(GROVES, {"schedulerName": written}))
    assert part(found, "spec", "schedulerName") == "default-scheduler"
    assert part(found, "spec", "schedulingGates") == [GATE]


def test_another_schedulers_gang_is_left_alone_and_told_so(asker: Asker) -> None:
    quota: Json = {"name": "example.com/quota"}
    spec: JsonObject = {"schedulerName": "volcano", "schedulingGates": [GATE, quota]}
    seen = tried(asker, pod(PLAIN, spec))
    assert seen.done, seen.message
    assert part(seen.object, "spec", "schedulingGates") == [quota]
    assert part(seen.object, "spec", "schedulerName") == "volcano"
    assert any("scheduler volcano" in warning for warning in seen.warnings)


def test_the_readiness_gate_is_given_where_the_pod_asks(asker: Asker) -> None:
    asks: Json = {names.READINESS_GATE_ANNOTATION: "true"}
    found = made(asker, pod(PLAIN, annotations=asks))
    assert part(found, "spec", "readinessGates") == [READY]


EMPTY_TERMS: Final[JsonObject] = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}, {}]}
        }
    }
}


@pytest.mark.parametrize(
    ("body", "hints"),
    [
        pytest.param(
            pod({names.GANG_LABEL: "g"}),
            (names.GANG_SIZE_LABEL, names.GANG_MINIMUM_LABEL),
            id="no size",
        ),
        pytest.param(
            pod({**PLAIN, names.GANG_SIZE_LABEL: "0"}), (names.GANG_SIZE_LABEL,), id="size 0"
        ),
        pytest.param(
            pod({**PLAIN, names.GANG_MINIMUM_LABEL: "5"}),
            (names.GANG_MINIMUM_LABEL, "got 5"),
            id="minimum over size",
        ),
        pytest.param(pod(PLAIN, {"nodeName": "n"}), ("spec.nodeName",), id="on a node"),
        pytest.param(pod(PLAIN, EMPTY_TERMS), ("every term is empty",), id="cannot be pinned"),
        pytest.param(
            pod({**PLAIN, names.TOPOLOGY_LABEL: "no-such"}),
            ("no ClusterTopologyBinding 'no-such'",),
            id="unknown topology",
        ),
    ],
)
def test_a_gang_pod_that_could_never_run_is_refused_at_once(
    asker: Asker, body: JsonObject, hints: tuple[str, ...]
) -> None:
    seen = tried(asker, body)
    assert seen.code == 422, seen
    assert 'webhook "pods.penstock.dev" denied the request' in seen.message
    for hint in hints:
        assert hint in seen.message


TEMPLATE: Final[JsonObject] = {
    "metadata": {"labels": {**PLAIN, "app": "x"}},
    # Nowhere is there room for them, so that they stay as they were made.
    "spec": {"containers": [{"name": "main", "image": "none"}], "nodeSelector": {**NOWHERE}},
}
SELECTOR: Final[JsonObject] = {"selector": {"matchLabels": {"app": "x"}}}
OWNERS: Final[list[tuple[str, str, JsonObject]]] = [
    ("apps/v1", "Deployment", {"replicas": 4, **SELECTOR}),
    ("apps/v1", "StatefulSet", {"replicas": 4, "podManagementPolicy": "Parallel", **SELECTOR}),
    ("batch/v1", "Job", {"parallelism": 4, "completions": 4}),
]


@pytest.mark.parametrize("owner", OWNERS, ids=[kind for _, kind, _ in OWNERS])
async def test_pods_of_any_owner_are_a_gang_by_their_labels(
    cluster: Cluster, kubectl: Kubectl, owner: tuple[str, str, JsonObject]
) -> None:
    version, kind, spec = owner
    template: Json = {**TEMPLATE}
    if kind == "Job":
        whole = part(TEMPLATE, "spec")
        assert isinstance(whole, dict)
        template = {**TEMPLATE, "spec": {**whole, "restartPolicy": "Never"}}
    kubectl.apply(
        {
            "apiVersion": version,
            "kind": kind,
            "metadata": {"name": "x"},
            "spec": {**spec, "template": template},
        }
    )
    found = await pods(cluster, "app=x", 4)
    assert all(pod.gates == (names.GATE,) for pod in found)


async def pods(cluster: Cluster, labels: str, count: int) -> list[Pod]:
    async def attempt() -> list[Pod] | None:
        found = await cluster.client.list_pages(PODS, Pod, cluster.namespace, labels=labels)
        return found.items if len(found.items) == count else None

    return await cluster.until(attempt, f"{count} pods with {labels}")


async def test_pods_of_a_rollout_are_let_in_with_the_gate(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    body: JsonObject = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x"},
        "spec": {"replicas": 4, **SELECTOR, "template": TEMPLATE},
    }
    kubectl.apply(body)
    await pods(cluster, "app=x", 4)
    kubectl.run("set", "image", "deployment/x", "main=other", check=True)

    async def surged() -> list[Pod] | None:
        found = await cluster.client.list_pages(PODS, Pod, cluster.namespace, labels="app=x")
        templates = {pod.metadata.labels["pod-template-hash"] for pod in found.items}
        return found.items if len(templates) == 2 else None

    found = await cluster.until(surged, "pods of both templates")
    assert all(pod.gates == (names.GATE,) for pod in found)


def test_a_static_pods_mirror_is_shown_as_it_is(
    installed: Installed, asker: Asker, kubectl: Kubectl
) -> None:
    node = asker.ask("GET", NODES.path()).object["items"]
    assert isinstance(node, list)
    assert isinstance(node[0], dict)
    name, uid = (part(node[0], "metadata", key) for key in ("name", "uid"))
    owner: Json = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid, "controller": True}
    body = pod(PLAIN, {"nodeName": name}, annotations={MIRROR: "x"}, ownerReferences=[owner])
    done = kubectl.run(
        *("create", "--dry-run=server", "-o", "json", "-f", "-", f"--as=system:node:{name}"),
        *("--as-group=system:nodes", "--as-group=system:masters"),
        text=msgspec.json.encode(body).decode(),
        check=True,
    )
    found = msgspec.json.decode(done.stdout, type=dict)
    assert part(found, "spec", "schedulingGates") is None
    assert part(found, "spec", "nodeName") == name
    assert counted(installed.installation, STRAYS) == 0


@pytest.mark.parametrize("space", ["default", "kube-system", names.NAMESPACE])
def test_pods_of_no_gang_never_reach_the_webhook(
    installed: Installed, asker: Asker, space: str
) -> None:
    labels = {"app": "web", names.GANG_SIZE_LABEL: "4"}
    many = 60
    before = counted(installed.installation, REVIEWS, path="/mutate/pods")
    for _ in range(many):
        seen = tried(asker, pod(labels), space)
        assert seen.done, seen.message
        assert part(seen.object, "spec", "schedulingGates") is None
    # Controllers may make pods of gangs meanwhile, but never so many.
    assert counted(installed.installation, REVIEWS, path="/mutate/pods") - before < many
    assert counted(installed.installation, STRAYS) == 0


def test_what_it_counts_can_be_seen_to_grow(installed: Installed, asker: Asker) -> None:
    before = counted(installed.installation, REVIEWS, path="/mutate/pods")
    for _ in range(3):
        made(asker, pod(PLAIN))
    assert counted(installed.installation, REVIEWS, path="/mutate/pods") - before >= 3


def named_kai(body: JsonObject) -> JsonObject:
    """The set with the scheduler that manifests for Grove name."""
    cliques = part(body, "spec", "template", "cliques")
    assert isinstance(cliques, list)
    assert isinstance(cliques[0], dict)
    pod_spec = part(cliques[0], "spec", "podSpec")
    assert isinstance(pod_spec, dict)
    pod_spec["schedulerName"] = "kai-scheduler"
    return body


@asynccontextmanager
async def outage(installed: Installed, cluster: Cluster, asker: Asker) -> AsyncIterator[None]:
    """No webhook answers inside, and all do again afterwards."""
    installation = installed.installation
    webhooks = [each for each in installation.settings.components() if each.startswith("webhook")]
    kills = [asyncio.to_thread(installation.kill_component, each) for each in webhooks]
    await asyncio.gather(*kills)
    try:
        yield
    finally:
        starts = [asyncio.to_thread(installation.start_component, each) for each in webhooks]
        await asyncio.gather(*starts)
        await cluster.until(lambda: back(asker, cluster.namespace), "webhooks that answer again")


async def test_while_no_webhook_answers_pods_of_sets_are_made_gated_and_placed(
    installed: Installed, cluster: Cluster, kubectl: Kubectl, asker: Asker
) -> None:
    kubectl.apply(named_kai(engine_set("outage", pods=2, gpus=1)))
    seen = await cluster.running("outage")
    name, lost = min(seen.pods.items())
    async with outage(installed, cluster, asker):
        kubectl.run("delete", "pod", name, check=True)
        await cluster.running("outage", without=lost.metadata.uid)
        kubectl.run("scale", "pcs", "outage", "--replicas=2", check=True)
        after = await cluster.running("outage", gangs=2)
        # A plain gang's pods must then bring their gate, and the name of the scheduler itself.
        ungated = tried(asker, pod(PLAIN))
        assert "penstock-guard-gang-pods" in ungated.message
        assert f"waits behind the scheduling gate {names.GATE}" in ungated.message
        renamed = tried(
            asker, pod(PLAIN, {"schedulingGates": [GATE], "schedulerName": "kai-scheduler"})
        )
        assert "kai-scheduler stands for another name" in renamed.message
        assert part(
            made(asker, pod(PLAIN, {"schedulingGates": [GATE]})), "spec", "schedulingGates"
        ) == [GATE]
    assert len(after.pods) == 4
    for each in after.pods.values():
        # Only a pod that waits behind a gate can be given affinity.
        affinity = each.spec.affinity
        assert affinity is not None
        assert affinity.node_affinity is not None
        assert affinity.node_affinity.required is not None
        (term,) = affinity.node_affinity.required.node_selector_terms
        assert term.match_fields


async def test_pods_of_sets_reach_it_only_where_it_would_change_them(
    installed: Installed, cluster: Cluster, kubectl: Kubectl
) -> None:
    before = counted(installed.installation, REVIEWS, path="/mutate/pods")
    kubectl.apply(engine_set("judged", pods=8, gpus=1))
    seen = await cluster.running("judged")
    assert all(names.JUDGED_ANNOTATION in p.metadata.annotations for p in seen.pods.values())
    # Controllers may make pods of plain gangs meanwhile, but never so many.
    assert counted(installed.installation, REVIEWS, path="/mutate/pods") - before < 8
    kubectl.apply(named_kai(engine_set("kai", pods=8, gpus=1)))
    seen = await cluster.running("kai")
    assert not any(names.JUDGED_ANNOTATION in p.metadata.annotations for p in seen.pods.values())
    assert {p.spec.scheduler_name for p in seen.pods.values()} == {names.DEFAULT_SCHEDULER}


POLICY: Final = "pods: {queue: research, readinessGate: true}"


async def test_the_policys_queue_and_readiness_gate_are_on_every_pod_of_a_gang(
    installed: Installed, cluster: Cluster, asker: Asker, person: Client
) -> None:
    # Those that start go by it from the first.
    body = {"metadata": {"name": names.POLICY_CONFIG}, "data": {names.POLICY_KEY: POLICY}}
    async with outage(installed, cluster, asker):
        seen = asker.ask("POST", CONFIGMAPS.path(names.NAMESPACE), body)
        assert seen.done, seen.message
    try:
        for labels in (PLAIN, GROVES):
            found = made(asker, pod(labels))
            assert part(found, "metadata", "labels") == {**labels, names.QUEUE_LABEL: "research"}
            assert part(found, "spec", "readinessGates") == [READY]
        theirs = {**PLAIN, names.QUEUE_LABEL: "prod"}
        no: Json = {names.READINESS_GATE_ANNOTATION: "false"}
        found = made(asker, pod(theirs, annotations=no))
        assert part(found, "metadata", "labels") == theirs
        assert part(found, "spec", "readinessGates") is None
    finally:
        async with outage(installed, cluster, asker):
            await policies.take_back(person)


async def test_a_plain_gang_that_says_just_a_level_gets_the_only_topology_there_is(
    cluster: Cluster, asker: Asker
) -> None:
    binding: JsonObject = {
        "apiVersion": TOPOLOGY_BINDINGS.api_version,
        "kind": TOPOLOGY_BINDINGS.kind,
        "metadata": {"name": "network"},
        "spec": {"levels": [{"domain": "rack", "key": names.RACK_KEY}]},
    }
    labels = {**PLAIN, names.TOPOLOGY_LEVEL_LABEL: "rack"}
    seen = asker.ask("POST", TOPOLOGY_BINDINGS.path(), binding)
    assert seen.done, seen.message
    try:
        said = [""]

        async def heard() -> Seen | None:
            seen = tried(asker, pod(labels))
            said.append("" if seen.done else seen.message)
            return seen if seen.done else None

        # The webhook hears of it a moment later.
        try:
            seen = await cluster.until(heard, "a plain gang's level taken")
        except AssertionError as error:
            raise AssertionError(f"{error}; the last refusal: {said[-1]}") from None
        marked = {**labels, names.TOPOLOGY_LABEL: "network"}
        assert part(seen.object, "metadata", "labels") == marked
        other = tried(asker, pod({**labels, names.TOPOLOGY_LEVEL_LABEL: "row"}))
        assert "'row' is no level of network; its levels are: rack" in other.message
    finally:
        asker.ask("DELETE", TOPOLOGY_BINDINGS.path(None, "network"))


async def back(asker: Asker, space: str) -> bool | None:
    asked = engine_set("asked", pods=1, gpus=1)
    return asker.ask("POST", PODCLIQUESETS.path(space) + DRY_RUN, asked).done or None

"""A live set of an upstream Grove is taken over without touching its pods, and given back so."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from api.podcliqueset import PodCliqueSetSpec
from api.streams import Custom, Pod
from kube.resources import (
    AUTOSCALERS,
    PODCLIQUES,
    PODCLIQUESETS,
    PODGANGS,
    PODS,
    SCALING_GROUPS,
    SERVICES,
    Resource,
)
from penstock.lab.installation import Installation
from penstock.tree import SetSeen
from tests.support.installed import Installed
from tests.support.living import Cluster, Kubectl
from tests.support.updating import Manifest, Updated, engine, role
from tests.support.upstream import GATE, GENERATION, WAITER, Upstream, hash_of
from tests.support.upstream_beside import OF_WAITERS, beside

pytestmark = pytest.mark.cluster

# Nobody but us may make what belongs to a set, unless it says so.
FREE = {names.UNPROTECTED_ANNOTATION: "true"}
SET = Manifest(
    "chat",
    (role("router", 2), role("leader", 1), role("worker", 1)),
    (engine(2),),
    annotations=FREE,
)
LIMITS: JsonObject = {"minReplicas": 1, "maxReplicas": 4}
# Its leader waits for the router, in an init container, and its worker for the leader.
ORDERED = replace(
    SET,
    roles=(role("router", 2, 1, autoScalingConfig=LIMITS), role("leader", 1), role("worker", 1)),
    groups=(engine(2, scaleConfig=LIMITS),),
    startup="InOrder",
)
ONLY_OURS = (names.SET_REPLICA_LABEL, names.BASE_PODGANG_LABEL)  # of labels on PodGangs
PENDING = "chat-0-engine-0"  # the last copy's gang


@pytest.fixture
def before_us(installed: Installed) -> Iterator[Installation]:
    """Penstock without `workloads`, until a test lets it begin."""
    installation = installed.installation
    installation.stop_component("workloads")
    yield installation
    installation.start_component("workloads")


async def made_by_grove(cluster: Cluster) -> Upstream:
    """All that Grove makes of the stored set. Its pods run but for those of one gang."""
    client, space = cluster.client, cluster.namespace
    found = await client.get(PODCLIQUESETS, Custom, "chat", space)
    spec = PodCliqueSetSpec.model_validate_json(bytes(found.spec))
    grove = Upstream("chat", space, found.metadata.uid, spec)

    async def uids(resource: Resource, bodies: Iterator[JsonObject]) -> dict[str, str]:
        await asyncio.gather(*(client.create(resource, body, space) for body in bodies))
        return uids_of(await there(cluster, resource))

    for resource, body in beside(grove):
        await client.create(resource, body, space)

    cliques = await uids(PODCLIQUES, grove.cliques(await uids(SCALING_GROUPS, grove.groups())))
    await uids(PODGANGS, grove.gangs())
    await uids(PODS, grove.pods(cliques))
    said = [(PODCLIQUESETS, "chat", grove.status_of_set())]
    said += [(PODCLIQUES, name, grove.status_of_clique(p.clique)) for name, p in grove.places()]
    for resource, name, status in said:
        body = {"status": status}
        await client.merge_patch(resource, name, body, space, subresource="status")
    for pod in await cluster.pods("chat", 6):
        if pod.metadata.labels[names.PODGANG_LABEL] != PENDING:
            free: JsonObject = {"spec": {"schedulingGates": None}}
            await client.merge_patch(PODS, pod.metadata.name, free, space)
    await cluster.until(lambda: running(cluster, 4), "Grove's pods running")
    return grove


async def running(cluster: Cluster, count: int) -> dict[str, Pod] | None:
    """Pods that run, by name, once they are so many."""
    found = (await cluster.client.list_pages(PODS, Pod, cluster.namespace)).items
    pods = {pod.metadata.name: pod for pod in found if pod.containers_ready}
    return pods if len(pods) == count else None


async def there(cluster: Cluster, resource: Resource) -> dict[str, JsonObject]:
    """All that there is of a kind and belongs to the set, as it is stored, by name."""
    raw = await cluster.client.raw_get(resource.path(cluster.namespace))
    found: list[JsonObject] = msgspec.json.decode(raw)["items"]
    return {str(metadata(body)["name"]): body for body in found if "chat" in labels(body)}


def labels(body: JsonObject) -> list[Json]:
    """The texts of an object's labels."""
    found = metadata(body).get("labels", {})
    return [*found.values()] if isinstance(found, dict) else []


def metadata(body: JsonObject) -> JsonObject:
    found = body["metadata"]
    assert isinstance(found, dict)
    return found


def uids_of(found: dict[str, JsonObject]) -> dict[str, str]:
    return {name: str(metadata(body)["uid"]) for name, body in found.items()}


def marked(body: JsonObject) -> JsonObject:
    """Whose an object is, by all that Grove goes by."""
    meta = metadata(body)
    labels = meta["labels"]
    assert isinstance(labels, dict)
    # The API server tells pods where their node is. Our PodGangs say more than Grove's, which
    # leaves there what it did not write.
    gang = labels[names.COMPONENT_LABEL] == "podgang"
    labels = {
        key: text
        for key, text in labels.items()
        if not key.startswith("topology.kubernetes.io/") and not (gang and key in ONLY_OURS)
    }
    said = {key: meta.get(key) for key in ("finalizers", "ownerReferences")}
    return {"labels": labels, **said}


def not_restarted(before: dict[str, Pod], after: Mapping[str, Pod]) -> None:
    """The same pods, and in them the same containers."""
    for name, pod in before.items():
        assert after[name].metadata.uid == pod.metadata.uid
        assert not any(c.last_state.terminated for c in after[name].status.container_statuses)


async def test_a_live_set_is_taken_over_with_its_pods_and_hashes(
    cluster: Cluster, kubectl: Kubectl, before_us: Installation
) -> None:
    updated = Updated(cluster, kubectl, "chat")
    updated.apply(SET)
    grove = await made_by_grove(cluster)
    before = await cluster.until(lambda: running(cluster, 4), "four pods")
    pending = {p.metadata.name for p in await cluster.pods("chat", 6)} - before.keys()
    before_us.start_component("workloads")

    async def whole() -> SetSeen | None:
        seen = await updated.seen()
        told = seen.status.available_replicas == 1 and seen.status.observed_generation
        return seen if seen.running and len(seen.pods) == 6 and told else None

    seen = await cluster.until(whole, "all of the set running, and told")
    not_restarted(before, seen.pods)
    # Behind a gate that only Grove would take off, these never ran; they were made anew.
    assert not pending & seen.pods.keys()
    assert all(GATE not in pod.gates for pod in seen.pods.values())
    assert seen.status.current_generation_hash == GENERATION
    assert seen.status.update_progress is None
    for name, place in grove.places():
        there = seen.cliques[name]
        assert there.metadata.labels[names.TEMPLATE_HASH_LABEL] == hash_of(place.clique)
        assert there.status.current_pod_clique_set_generation_hash == GENERATION
    for pod in seen.pods.values():
        clique = pod.metadata.labels[names.PODCLIQUE_LABEL].rsplit("-", 1)[1]
        assert pod.metadata.labels[names.TEMPLATE_HASH_LABEL] == hash_of(clique)

    kubectl.run("scale", "pclq", "chat-0-router", "--replicas=3", check=True)
    after = await cluster.until(lambda: running(cluster, 7), "one pod more")
    assert before.keys() < after.keys()
    updated.apply(replace(SET, image="two"))
    last = await updated.done("two", 7)
    assert not {pod.metadata.uid for pod in last.pods.values()} & {
        pod.metadata.uid for pod in after.values()
    }


async def test_what_stands_beside_pods_is_taken_over_and_all_is_given_back_as_grove_has_it(
    cluster: Cluster, kubectl: Kubectl, before_us: Installation
) -> None:
    """Also what we made in between is what Grove would have made: it finds nothing to do."""
    updated = Updated(cluster, kubectl, "chat")
    updated.apply(ORDERED)
    grove = await made_by_grove(cluster)
    kinds = (SERVICES, AUTOSCALERS, *OF_WAITERS)
    made = {kind: uids_of(await there(cluster, kind)) for kind in kinds}
    assert [len(made[kind]) for kind in kinds] == [1, 2, 1, 1, 1, 1]
    before = await cluster.until(lambda: running(cluster, 4), "four pods")
    waiting = [pod for pod in (await there(cluster, PODS)).values() if WAITER in str(pod["spec"])]
    assert len(waiting) == 3
    before_us.start_component("workloads")
    await cluster.until(lambda: running(cluster, 6), "the last gang made anew")
    kubectl.run("scale", "pclq", "chat-0-router", "--replicas=3", check=True)
    kubectl.run("scale", "pcsg", "chat-0-engine", "--replicas=3", check=True)

    async def told() -> SetSeen | None:
        seen = await updated.seen()
        said = [each.status for each in seen.cliques.values()]
        hashes = [each.current_pod_clique_set_generation_hash for each in said]
        hashes += [
            each.status.current_pod_clique_set_generation_hash for each in seen.groups.values()
        ]
        settled = seen.running and len(seen.pods) == 9 and seen.status.updated_replicas == 1
        return seen if settled and hashes == 8 * [GENERATION] else None

    seen = await cluster.until(told, "all that was scaled is there, and told")
    # Pods made before still wait with their account's token, where they are started again.
    assert {kind: uids_of(await there(cluster, kind)) for kind in kinds} == made

    before_us.stop_component("workloads")
    not_restarted(before, seen.pods)
    assert seen.metadata.finalizers == ("grove.io/podcliqueset.grove.io",)
    assert seen.status.current_generation_hash == GENERATION
    assert seen.status.update_progress is None
    await given_back(cluster, grove, {"router": 3, "engine": 3})


async def given_back(cluster: Cluster, grove: Upstream, scaled: Mapping[str, int]) -> None:
    """All that there is is marked as Grove would have, had the set been written with these counts.

    Pods are compared by their host names, since only Grove draws names.
    """
    template = grove.spec.template
    cliques_now = [
        each.model_copy(update={"spec": each.spec.model_copy(update=counted(scaled, each.name))})
        for each in template.cliques
    ]
    groups_now = [
        each.model_copy(update=counted(scaled, each.name))
        for each in template.pod_clique_scaling_groups
    ]
    parts = {"cliques": cliques_now, "pod_clique_scaling_groups": groups_now}
    spec = grove.spec.model_copy(update={"template": template.model_copy(update=parts)})
    now = replace(grove, spec=spec)

    async def same(resource: Resource, bodies: Iterable[JsonObject]) -> dict[str, JsonObject]:
        found = await there(cluster, resource)
        expected = {str(metadata(body)["name"]): marked(body) for body in bodies}
        assert {name: marked(body) for name, body in found.items()} == expected
        return found

    groups = await same(SCALING_GROUPS, now.groups())
    cliques = await same(PODCLIQUES, now.cliques(uids_of(groups)))
    await same(PODGANGS, now.gangs())
    for resource in (SERVICES, AUTOSCALERS, *OF_WAITERS):
        await same(resource, (body for kind, body in beside(now) if kind is resource))
    for name, place in now.places():
        status, written = cliques[name]["status"], cliques[name]["spec"]
        assert isinstance(status, dict)
        assert isinstance(written, dict)
        said = now.status_of_clique(place.clique)
        assert {key: status[key] for key in said if "Hash" in key} == {
            key: value for key, value in said.items() if "Hash" in key
        }
        assert written.get("startsAfter", []) == [*now.parents(place)]
    pods = (await there(cluster, PODS)).values()
    found = {host(pod): marked(pod) for pod in pods}
    expected = {host(pod): marked(pod) for pod in now.pods(uids_of(cliques))}
    assert found.keys() == expected.keys()
    assert [(n, found[n], expected[n]) for n in found if found[n] != expected[n]] == []


def counted(scaled: Mapping[str, int], name: str) -> dict[str, int]:
    return {"replicas": scaled[name]} if name in scaled else {}


def host(pod: JsonObject) -> str:
    spec = pod["spec"]
    assert isinstance(spec, dict)
    return str(spec["hostname"])

"""A live set of an upstream Grove is taken over without touching its pods, and given back so."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from api import names
from api.jsons import JsonObject
from api.podcliqueset import PodCliqueSetSpec
from api.streams import Custom, Pod
from kube.resources import PODCLIQUES, PODCLIQUESETS, PODGANGS, PODS, SCALING_GROUPS, Resource
from penstock.lab.installation import Installation
from penstock.tree import SetSeen
from tests.support.installed import Installed
from tests.support.living import Cluster, Kubectl
from tests.support.updating import Manifest, Updated, engine, role
from tests.support.upstream import GATE, GENERATION, Upstream, hash_of

pytestmark = pytest.mark.cluster

# Nobody but us may make what belongs to a set, unless it says so.
SET = Manifest(
    "chat",
    (role("router", 2), role("leader", 1), role("worker", 1)),
    (engine(2),),
    annotations={names.UNPROTECTED_ANNOTATION: "true"},
)
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
        there = (await client.list_pages(resource, Custom, space)).items
        return {each.metadata.name: each.metadata.uid for each in there}

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
    for name, pod in before.items():
        assert seen.pods[name].metadata.uid == pod.metadata.uid
        assert not any(
            each.last_state.terminated for each in seen.pods[name].status.container_statuses
        )
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

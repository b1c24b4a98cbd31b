"""A set that is deleted leaves nothing behind, however, whenever and whoever was down meanwhile."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from api.streams import Custom, Pod
from kube.client import Deletion
from kube.errors import AlreadyExists
from kube.resources import NAMESPACES, PODCLIQUES, PODCLIQUESETS, PODS, RESERVATIONS
from penstock.lab.installation import Installation
from tests.support import collecting
from tests.support.everything import nothing_left, objects
from tests.support.installed import Installed
from tests.support.living import Cluster, Kubectl, engine_set
from tests.support.quotas import limit_pods

pytestmark = pytest.mark.cluster

EXAMPLE = Path(__file__).parents[2] / "examples" / "disaggregated.yaml"


@pytest.fixture
def installation(installed: Installed) -> Iterator[Installation]:
    """Penstock, whose processes a test may stop; all run again afterwards."""
    yield installed.installation
    for component in ("workloads", "gangs"):
        if not installed.installation.running(component):
            installed.installation.start_component(component)


async def test_a_set_whose_pods_run_leaves_nothing(cluster: Cluster, kubectl: Kubectl) -> None:
    kubectl.apply_file(EXAMPLE)
    await cluster.running("chat", gangs=2)
    await cluster.service("chat-0")
    kinds = {name.partition("/")[0] for name in await objects(cluster.client, cluster.namespace)}
    assert kinds >= {"podcliques", "podcliquescalinggroups", "podgangs", "pods", "services"}
    kubectl.delete("chat")
    await nothing_left(cluster)


async def test_a_half_made_set_leaves_nothing(cluster: Cluster, kubectl: Kubectl) -> None:
    await limit_pods(cluster, kubectl, 2)
    kubectl.apply(engine_set("half", pods=5, gpus=1, replicas=2))
    await cluster.pods("half", 2)
    kubectl.delete("half")
    await nothing_left(cluster, "resourcequotas/few")


@pytest.mark.long
async def test_a_set_deleted_while_penstock_is_down_leaves_nothing_once_it_is_up(
    cluster: Cluster, kubectl: Kubectl, installation: Installation
) -> None:
    kubectl.apply(engine_set("alone", pods=2, gpus=1))
    await cluster.running("alone")
    for component in ("workloads", "gangs"):
        installation.stop_component(component)
    kubectl.delete("alone")
    for component in ("gangs", "workloads"):
        installation.start_component(component)
    await nothing_left(cluster)


@pytest.mark.long
async def test_foreground_deletion_removes_the_set_last(cluster: Cluster, kubectl: Kubectl) -> None:
    kubectl.apply_file(EXAMPLE)
    await cluster.running("chat", gangs=2)
    how = Deletion(propagation="Foreground")
    await cluster.client.delete(PODCLIQUESETS, "chat", cluster.namespace, how)

    async def gone() -> set[str] | None:
        left = await objects(cluster.client, cluster.namespace)
        return left if "podcliquesets/chat" not in left else None

    left = await cluster.until(gone, "the set gone")
    assert not {name for name in left if name.startswith(("pods/", "podcliques/", "podgangs/"))}
    await nothing_left(cluster)


@pytest.mark.long
async def test_orphaned_pods_go_on_running_and_nobody_takes_them_away(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(engine_set("free", pods=2, gpus=1))
    await cluster.running("free")
    before = await _running(cluster)
    await collecting.knows_our_kinds(cluster)
    how = Deletion(propagation="Orphan")
    await cluster.client.delete(PODCLIQUESETS, "free", cluster.namespace, how)

    async def gone() -> bool | None:
        left = await objects(cluster.client, cluster.namespace)
        return "podcliquesets/free" not in left or None

    await cluster.until(gone, "the set gone")
    await cluster.quiet("pods", "podcliques", "podgangs")
    assert await _running(cluster) == before
    cliques = await cluster.client.list_pages(PODCLIQUES, Custom, cluster.namespace)
    assert [clique.metadata.owner_references for clique in cliques.items] == [()]


async def _running(cluster: Cluster) -> dict[str, str]:
    found = await cluster.client.list_pages(PODS, Pod, cluster.namespace)
    return {p.metadata.uid: p.spec.node_name for p in found.items if p.status.phase == "Running"}


@pytest.mark.long
async def test_a_namespace_with_sets_in_it_can_be_deleted(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    space = f"{cluster.namespace}-b"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}
    await cluster.client.create(NAMESPACES, body)
    inner, hand = Cluster(cluster.client, space), replace(kubectl, namespace=space)
    hand.apply_file(EXAMPLE)
    await inner.running("chat", gangs=2)
    await cluster.client.delete(NAMESPACES, space)

    async def gone() -> bool | None:
        found = await cluster.client.list_pages(NAMESPACES, Custom)
        return space not in {each.metadata.name for each in found.items} or None

    await cluster.until(gone, "the namespace gone")


@pytest.mark.long
@pytest.mark.parametrize("pods", [0, 2])
async def test_a_set_deleted_when_so_many_of_its_pods_were_made_leaves_nothing(
    pods: int, cluster: Cluster, kubectl: Kubectl, installation: Installation
) -> None:
    """Penstock dies half-way, the set is deleted, and a successor finds what there is."""
    if pods:
        await limit_pods(cluster, kubectl, pods)
        kubectl.apply(engine_set("torn", pods=4, gpus=1))
        await cluster.pods("torn", pods)
    else:
        kubectl.apply(engine_set("torn", pods=4, gpus=1))
    installation.kill_component("workloads")
    kubectl.delete("torn")
    installation.start_component("workloads")
    await nothing_left(cluster, *(["resourcequotas/few"] if pods else []))


@pytest.mark.long
async def test_a_set_made_again_under_its_name_is_not_taken_for_the_old_one(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(engine_set("phoenix", pods=2, gpus=1))
    old = await cluster.running("phoenix")
    kubectl.delete("phoenix")

    async def made() -> bytes | None:
        body = engine_set("phoenix", pods=3, gpus=1)
        try:
            return await cluster.client.create(PODCLIQUESETS, body, cluster.namespace)
        except AlreadyExists:
            return None

    await cluster.until(made, "the name free")
    await cluster.pods("phoenix", 3)
    new = await cluster.running("phoenix", gangs=1)
    ours = {pod.metadata.uid for pod in new.pods.values()}
    assert len(ours) == 3
    assert not ours & {pod.metadata.uid for pod in old.pods.values()}
    reservations = await cluster.client.list_pages(RESERVATIONS, Custom, cluster.namespace)
    assert [each.metadata.name for each in reservations.items] == ["phoenix-0"]

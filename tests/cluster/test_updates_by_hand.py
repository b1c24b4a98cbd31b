"""OnDelete: templates change everywhere at once, and pods follow as people delete them."""

from dataclasses import replace

import pytest

from kube.resources import PODS
from tests.support.living import Cluster, Kubectl
from tests.support.updating import Manifest, Updated, engine, role

pytestmark = pytest.mark.cluster

ON_DELETE = Manifest(
    "chat",
    (role("router", 3, 1), role("leader", 1), role("worker", 2, 1)),
    (engine(2),),
    strategy={"type": "OnDelete"},
)


async def changed(updated: Updated) -> None:
    """Apply the set, and a change of it that people are to carry out."""
    updated.apply(ON_DELETE)
    await updated.cluster.running("chat")
    updated.apply(replace(ON_DELETE, image="two"))
    progress = await updated.progress()
    assert progress.update_started_at == progress.update_ended_at is not None


async def test_nothing_is_deleted_and_what_people_delete_comes_back_new(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    updated = Updated(cluster, kubectl, "chat")
    await changed(updated)
    seen = await updated.standing(0, 9)
    for clique in seen.cliques.values():
        containers = clique.spec.pod_spec["containers"]
        assert isinstance(containers, list)
        main = containers[0]
        assert isinstance(main, dict)
        assert main["image"] == "registry.example/two"
    first, *_ = sorted(name for name in seen.pods if "router" in name)
    await cluster.client.delete(PODS, first, cluster.namespace)
    await updated.standing(1, 8)

    async def told() -> bool | None:
        router = (await updated.seen()).cliques["chat-0-router"]
        return router.status.updated_replicas == 1 or None

    await cluster.until(told, "one updated pod in the status")


@pytest.mark.long
async def test_scale_out_is_new_and_scale_in_takes_old_pods_first(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    updated = Updated(cluster, kubectl, "chat")
    await changed(updated)
    kubectl.run("scale", "pclq", "chat-0-router", "--replicas=5", check=True)
    kubectl.run("scale", "pcsg", "chat-0-engine", "--replicas=3", check=True)
    seen = await updated.standing(5, 9)
    running = await cluster.running("chat")
    assert running.pods.keys() == seen.pods.keys()
    kubectl.run("scale", "pclq", "chat-0-router", "--replicas=2", check=True)
    await updated.standing(5, 6)


@pytest.mark.long
async def test_another_strategy_alone_begins_nothing_and_the_next_change_rolls(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    updated = Updated(cluster, kubectl, "chat")
    await changed(updated)
    rolling = {"type": "RollingRecreate"}
    updated.apply(replace(ON_DELETE, image="two", strategy=rolling))
    await cluster.quiet("pods", "podcliques")
    await updated.standing(0, 9)
    updated.apply(replace(ON_DELETE, image="three", strategy=rolling))
    await updated.done("three", 9)

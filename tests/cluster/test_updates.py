"""A change of the templates reaches pods that run: in turn, within a budget, and as told."""

from dataclasses import replace

import pytest

from api import names
from api.jsons import JsonObject
from api.streams import Node
from kube.resources import NODES, PODS
from tests.support.living import Cluster, Kubectl
from tests.support.updating import BEHAVIOUR, Manifest, Updated, engine, role
from tests.support.witnessing import Witness, witness

pytestmark = pytest.mark.cluster

WHOLE = Manifest("chat", (role("router", 2), role("leader", 1), role("worker", 1)), (engine(2),))


def of(cluster: Cluster, kubectl: Kubectl, name: str = "chat") -> Updated:
    return Updated(cluster, kubectl, name)


async def test_one_pod_of_a_clique_and_one_copy_of_a_group_are_replaced_at_a_time(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    updated = of(cluster, kubectl)
    updated.apply(WHOLE)
    before = await cluster.running("chat")
    async with witness(cluster.client, cluster.namespace) as seeing:
        await all_ready(updated, seeing)
        updated.apply(replace(WHOLE, image="two"))
        after = await updated.done("two", 6)
        assert seeing.least_ready["chat-0-router"] == 1
        engines = [
            f"chat-0-engine-{copy}-{part}" for copy in (0, 1) for part in ("leader", "worker")
        ]
        assert all(seeing.most[clique] <= 2 for clique in ("chat-0-router", *engines))
        # The first copy was whole again before the second went.
        assert [name[14] for name in seeing.born if "engine" in name] == ["0", "0", "1", "1"]
    assert before.pods.keys() == after.pods.keys(), "successors take the places"
    kept = {name: clique.metadata.uid for name, clique in before.cliques.items()}
    assert kept == {name: clique.metadata.uid for name, clique in after.cliques.items()}
    progress = after.status.update_progress
    assert progress is not None
    assert (progress.updated_pod_cliques_count, progress.total_pod_cliques_count) == (1, 1)
    assert progress.updated_pod_clique_scaling_groups_count == 1
    assert progress.currently_updating == []


@pytest.mark.long
async def test_a_template_that_does_not_work_stops_at_once_is_told_and_can_be_mended(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    rules: JsonObject = {"rollingUpdate": {"progressDeadlineSeconds": 1}}
    set_of = Manifest("chat", (role("router", 3, 1),), replicas=2, strategy=rules)
    updated = of(cluster, kubectl)
    updated.apply(set_of)
    await cluster.running("chat")
    updated.apply(replace(set_of, image="broken", behaviour="never-ready"))
    late = await updated.progressing("ProgressDeadlineExceeded")
    assert late.status == "False"
    assert "replica 0" in late.message
    seen = await updated.standing(1, 5)
    turns = seen.status.update_progress.currently_updating if seen.status.update_progress else []
    assert [turn.replica_index for turn in turns] == [0]
    updated.apply(replace(set_of, image="two"))
    await updated.done("two", 6)
    assert (await updated.progressing("UpdateComplete")).status == "True"


@pytest.mark.long
async def test_replicas_take_turns_those_without_a_node_first(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    await cluster.label_nodes("turns-test", count=4)
    set_of = Manifest("chat", (role("router", 2),), replicas=3, gpus=8, selector="turns-test")
    updated = of(cluster, kubectl)
    updated.apply(set_of)
    async with witness(cluster.client, cluster.namespace) as seeing:
        await updated.standing(6, 0)

        async def two_run() -> bool | None:
            ready = sum(pod.containers_ready for pod in (await updated.pods()).values())
            return ready == 4 or None

        await cluster.until(two_run, "two of three replicas running")
        waiting = {
            name.split("-")[1] for name, pod in (await updated.pods()).items()
            if not pod.spec.node_name
        }  # fmt: skip
        seeing.forget()
        updated.apply(replace(set_of, image="two"))
        # It never had room, so that nobody waits for it.
        await updated.standing(6, 0)
        await updated.progressing("UpdateComplete")
        turns = [name.split("-")[1] for name in seeing.born]
        assert turns == [*waiting, *waiting, *sorted(2 * [r for r in "012" if r not in waiting])]


@pytest.mark.long
async def test_the_replica_that_lacks_its_minimum_goes_first_and_in_it_the_copy_that_is_not_ready(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    set_of = Manifest(
        "chat", (role("leader", 1), role("worker", 1)), (engine(3, 3),), replicas=2,
        annotations={names.UNPROTECTED_ANNOTATION: "true"},
    )  # fmt: skip
    updated = of(cluster, kubectl)
    updated.apply(set_of)
    seen = await cluster.running("chat")
    (sick,) = (name for name in seen.pods if name.startswith("chat-1-engine-1-worker-"))
    kubectl.run("annotate", "pod", sick, f"{BEHAVIOUR}=never-ready", check=True)

    async def lacking() -> bool | None:
        there = (await updated.seen()).groups["chat-1-engine"]
        return there.status.available_replicas == 2 or None

    await cluster.until(lacking, "a copy is not available")
    async with witness(cluster.client, cluster.namespace) as seeing:
        seeing.forget()
        updated.apply(replace(set_of, image="two"))
        await updated.done("two", 12)
        turns = [(name[5], name[14]) for name in seeing.born]
    order = [("1", copy) for copy in "102"] + [("0", copy) for copy in "012"]
    assert turns == [turn for turn in order for _ in ("leader", "worker")]


@pytest.mark.long
async def test_a_fleet_that_starts_slowly_is_not_deleted(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    slow = Manifest("chat", (role("router", 8, 2),), behaviour="never-ready")
    updated = of(cluster, kubectl)
    updated.apply(slow)
    first = await cluster.running("chat")
    uids = {pod.metadata.uid for pod in first.pods.values()}
    updated.apply(replace(slow, image="two"))
    await updated.standing(1, 7)
    await cluster.quiet("pods")
    pods = (await updated.pods()).values()
    assert len(uids & {pod.metadata.uid for pod in pods}) == 7


@pytest.mark.long
async def test_without_capacity_one_pod_goes_and_the_update_waits_for_its_successor(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    nodes = await cluster.label_nodes("narrow-test", count=3)
    set_of = Manifest("chat", (role("router", 3),), gpus=8, selector="narrow-test")
    updated = of(cluster, kubectl)
    updated.apply(set_of)
    await cluster.running("chat")
    await cordon(cluster, nodes, unschedulable=True)
    try:
        updated.apply(replace(set_of, image="two"))
        await updated.standing(1, 2)
        await cluster.quiet("pods")
        seen = await updated.seen()
        assert sum(pod.containers_ready for pod in seen.pods.values()) == 2
    finally:
        await cordon(cluster, nodes, unschedulable=False)
    await updated.done("two", 3)


@pytest.mark.long
async def test_budgets_let_several_go_and_surplus_lets_none_be_missed(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    updated = of(cluster, kubectl)
    parts = (role("router", 4), role("leader", 1), role("worker", 1))
    wide = Manifest(
        "chat", parts, (engine(3),), strategy={"rollingUpdate": {"maxUnavailable": "67%"}}
    )
    updated.apply(wide)
    await cluster.running("chat")
    async with witness(cluster.client, cluster.namespace) as seeing:
        await all_ready(updated, seeing)
        updated.apply(replace(wide, image="two"))
        await updated.done("two", 10)
        assert seeing.least_ready["chat-0-router"] == 2
        surplus = replace(wide, image="two", strategy={"rollingUpdate": {"maxSurge": "25%"}})
        updated.apply(surplus)
        await all_ready(updated, seeing)
        updated.apply(replace(surplus, image="three"))
        await updated.done("three", 10)
        assert seeing.least_ready["chat-0-router"] == 4
        assert seeing.most["chat-0-router"] == 5


@pytest.mark.long
async def test_a_pause_stops_an_update_where_it_is(cluster: Cluster, kubectl: Kubectl) -> None:
    set_of = Manifest("chat", (role("router", 3, 1),), strategy={"paused": True})
    updated = of(cluster, kubectl)
    updated.apply(set_of)
    await cluster.running("chat")
    two = replace(set_of, image="two")
    updated.apply(two)
    assert (await updated.progressing("UpdatePaused")).status == "Unknown"
    await cluster.quiet("pods", "podcliques")
    await updated.standing(0, 3)
    # A pod that dies while it is paused comes back as it was.
    name = min(await updated.pods())
    await cluster.client.delete(PODS, name, cluster.namespace)
    await updated.standing(0, 3)
    updated.apply(replace(two, strategy={"paused": False}))
    await updated.done("two", 3)


@pytest.mark.long
async def test_a_second_change_in_the_middle_becomes_the_goal(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    updated = of(cluster, kubectl)
    updated.apply(WHOLE)
    await cluster.running("chat")
    updated.apply(replace(WHOLE, image="two"))
    await updated.progress()
    updated.apply(replace(WHOLE, image="three"))
    seen = await updated.done("three", 6)
    assert {pod.spec.containers[0].name for pod in seen.pods.values()} == {"main"}
    for clique in seen.cliques.values():
        main = clique.spec.pod_spec["containers"]
        assert isinstance(main, list)
        assert isinstance(main[0], dict)
        assert main[0]["image"] == "registry.example/three"


@pytest.mark.long
async def test_sets_groups_and_cliques_can_be_scaled_while_they_are_updated(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    updated = of(cluster, kubectl)
    updated.apply(replace(WHOLE, replicas=2))
    await cluster.running("chat")
    updated.apply(replace(WHOLE, image="two", replicas=3))
    kubectl.run("scale", "pcsg", "chat-0-engine", "--replicas=3", check=True)
    kubectl.run("scale", "pclq", "chat-1-router", "--replicas=3", check=True)
    await updated.done("two", 3 * 6 + 2 + 1)
    updated.apply(replace(WHOLE, image="three", replicas=2))
    kubectl.run("scale", "pcsg", "chat-0-engine", "--replicas=1", check=True)
    kubectl.run("scale", "pclq", "chat-1-router", "--replicas=2", check=True)
    await updated.done("three", 2 * 6 - 2)


async def all_ready(updated: Updated, seeing: Witness) -> None:
    """Wait until nothing is amiss, and let the witness begin there."""

    async def attempt() -> bool | None:
        seen = await updated.seen()
        ready = all(pod.containers_ready for pod in seen.pods.values())
        return (seen.running and ready) or None

    await updated.cluster.until(attempt, "all pods ready")
    seeing.forget()


async def cordon(cluster: Cluster, nodes: list[str], *, unschedulable: bool) -> None:
    for name in nodes:
        await cluster.client.merge_patch(NODES, name, {"spec": {"unschedulable": unschedulable}})
    found = await cluster.client.get(NODES, Node, nodes[0])
    assert found.spec.unschedulable is unschedulable

"""The three stories of docs/stories.md, walked as they are told there."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import cast

import pytest
import yaml

from api import names
from api.jsons import JsonObject
from api.streams import Pod
from kube.resources import AUTOSCALERS
from penstock.tree import SetSeen
from tests.support.living import Cluster, Kubectl
from tests.support.ordered import SLOW, check_order, since

pytestmark = [pytest.mark.cluster, pytest.mark.long]

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def network(kubectl: Kubectl) -> Iterator[None]:
    """The words in which stories ask for closeness."""
    kubectl.apply_file(EXAMPLES / "network.yaml")
    yield
    kubectl.run("delete", "-f", str(EXAMPLES / "network.yaml"), "--ignore-not-found")


def story(name: str, *slow: str) -> JsonObject:
    """An example's manifest; these of its cliques take a while to start."""
    text = (EXAMPLES / f"story-{name}.yaml").read_text()
    manifest = cast("dict[str, dict[str, dict[str, list[JsonObject]]]]", yaml.safe_load(text))
    for clique in manifest["spec"]["template"]["cliques"]:
        if clique["name"] in slow:
            clique["annotations"] = SLOW
    return cast("JsonObject", manifest)


def by_role(seen: SetSeen) -> dict[str, int]:
    """How many pods there are of each clique."""
    labels = sorted(pod.metadata.labels[names.PODCLIQUE_LABEL] for pod in seen.pods.values())
    return {name: len(list(pods)) for name, pods in groupby(labels)}


def domains(seen: SetSeen, gang: str, key: str) -> set[str]:
    """In which domains of a level the pods of a gang are."""
    return {
        seen.nodes[pod.spec.node_name].metadata.labels[key]
        for pod in seen.pods.values()
        if pod.metadata.labels[names.PODGANG_LABEL] == gang
    }


def pods_of(seen: SetSeen) -> list[Pod]:
    return list(seen.pods.values())


async def targets(cluster: Cluster, name: str) -> tuple[str, str, int]:
    """What an autoscaler scales, and how far; it must divide by copies, which have several pods."""

    async def attempt() -> tuple[str, str, int] | None:
        raw = await cluster.client.raw_get(AUTOSCALERS.path(cluster.namespace, name))
        spec = yaml.safe_load(raw)["spec"]
        target = spec["scaleTargetRef"]
        assert [m["external"]["target"]["type"] for m in spec["metrics"]] == ["AverageValue"]
        return target["kind"], target["name"], spec["maxReplicas"]

    return await cluster.until(attempt, f"an autoscaler for {name}")


@pytest.mark.usefixtures("network")
async def test_serving_starts_whole_servers_of_prefill_and_decode(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(story("serving"))
    seen = await cluster.running("serving", gangs=1)
    assert by_role(seen) == {"serving-0-server-0-prefill": 4, "serving-0-server-0-decode": 8}
    assert len({pod.spec.node_name for pod in seen.pods.values()}) == 12
    assert len(domains(seen, "serving-0", names.ZONE_KEY)) == 1
    (gang,) = seen.gangs
    assert [(group.min_replicas) for group in gang.spec.pod_groups] == [4, 8]
    (server,) = gang.spec.topology_constraint_group_configs
    assert server.topology_constraint is not None
    pack = server.topology_constraint.pack_constraint
    assert pack is not None
    assert (pack.required, pack.preferred) == (names.ZONE_KEY, names.BLOCK_KEY)
    scaled = await targets(cluster, "serving-0-server")
    assert scaled == ("PodCliqueScalingGroup", "serving-0-server", 4)

    kubectl.run("scale", "pcsg", "serving-0-server", "--replicas=2", check=True)
    seen = await cluster.running("serving", gangs=2)
    assert sum(by_role(seen).values()) == 24
    assert len(domains(seen, "serving-0-server-0", names.ZONE_KEY)) == 1
    assert sorted(gang.metadata.name for gang in seen.gangs) == ["serving-0", "serving-0-server-0"]
    first = [p for p in pods_of(seen) if p.metadata.labels[names.PODGANG_LABEL] == "serving-0"]
    later = [p for p in pods_of(seen) if p not in first]
    assert max(since(p, "PodScheduled") for p in first) <= min(
        since(p, "PodScheduled") for p in later
    )


async def test_agents_start_as_one_with_the_router_last_and_scale_as_one(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(story("agents", "vision", "reasoning"))
    seen = await cluster.running("agents", gangs=1)
    one = "agents-0-pipeline-0"
    roles = ["code", "reasoning", "router", "vision"]
    assert by_role(seen) == {f"{one}-{role}": 1 for role in roles}
    check_order(pods_of(seen), f"{one}-router", f"{one}-vision", f"{one}-reasoning")
    code = next(p for p in pods_of(seen) if p.metadata.labels[names.PODCLIQUE_LABEL][-4:] == "code")
    router = next(p for p in pods_of(seen) if "router" in p.metadata.name)
    assert since(code, "PodScheduled") < since(router, "PodScheduled"), "code waits for nobody"
    scaled = await targets(cluster, "agents-0-pipeline")
    assert scaled == ("PodCliqueScalingGroup", "agents-0-pipeline", 4)

    kubectl.run("scale", "pcsg", "agents-0-pipeline", "--replicas=2", check=True)
    seen = await cluster.running("agents", gangs=2)
    two = "agents-0-pipeline-1"
    assert by_role(seen).keys() == {f"{copy}-{role}" for copy in (one, two) for role in roles}
    check_order(pods_of(seen), f"{two}-router", f"{two}-vision", f"{two}-reasoning")


@pytest.mark.usefixtures("network")
async def test_mpi_workers_are_up_before_their_leader_starts(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(story("mpi", "worker"))
    seen = await cluster.running("mpi", gangs=1)
    assert by_role(seen) == {"mpi-0-leader": 1, "mpi-0-worker": 4}
    check_order(pods_of(seen), "mpi-0-leader", "mpi-0-worker")
    assert len(domains(seen, "mpi-0", names.BLOCK_KEY)) == 1
    # The leader's host file names the workers by these.
    workers = [p for p in pods_of(seen) if "worker" in p.metadata.name]
    assert {pod.spec.hostname for pod in workers} == {f"mpi-0-worker-{i}" for i in range(4)}
    await cluster.service("mpi-0")
    service = kubectl.run("get", "service", "mpi-0", "-o", "jsonpath={.spec.clusterIP}", check=True)
    assert service.stdout == "None"


@pytest.mark.usefixtures("network")
async def test_a_story_without_room_waits_whole(cluster: Cluster, kubectl: Kubectl) -> None:
    manifest = cast("dict[str, dict[str, JsonObject]]", story("mpi"))
    cliques = cast("list[dict[str, dict[str, object]]]", manifest["spec"]["template"]["cliques"])
    cliques[1]["spec"]["replicas"] = 60
    kubectl.apply(cast("JsonObject", manifest))
    await cluster.gang("mpi-0", reason=names.REASON_NEVER_FITS)
    pods = await cluster.pods("mpi", 61)
    assert all(names.GATE in pod.gates for pod in pods)

"""The examples of docs/guide.md, each applied as it is: what it is there for comes about."""

from pathlib import Path

import pytest
import yaml

from api import names
from api.keep import State
from api.streams import Custom
from kube.resources import RESERVATIONS
from tests.cluster.test_shared_devices import links
from tests.support.living import Cluster, Kubectl

pytestmark = pytest.mark.cluster

EXAMPLES = Path(__file__).parents[2] / "examples"
NETWORK = EXAMPLES / "network.yaml"
KEPT = EXAMPLES / "features" / "kept-room.yaml"
NVLINK = EXAMPLES / "features" / "nvlink.yaml"
OTHERS = sorted(set((EXAMPLES / "features").glob("*.yaml")) - {KEPT, NVLINK})


def gangs_of(path: Path) -> list[str]:
    """Which gangs its sets and labelled pods come to."""
    found = []
    for each in yaml.safe_load_all(path.read_text()):
        if each["kind"] == "PodCliqueSet":
            name = each["metadata"]["name"]
            found += [f"{name}-{index}" for index in range(each["spec"]["replicas"])]
        elif each["kind"] in {"Deployment", "StatefulSet"}:
            found.append(each["spec"]["template"]["metadata"]["labels"][names.GANG_LABEL])
    return found


async def racks_of(cluster: Cluster, name: str) -> dict[str, set[str]]:
    """In which racks the pods of each gang of a set are."""
    seen = await cluster.running(name)
    found: dict[str, set[str]] = {}
    for pod in seen.pods.values():
        where = found.setdefault(pod.metadata.labels[names.PODGANG_LABEL], set())
        where.add(seen.nodes[pod.spec.node_name].metadata.labels[names.RACK_KEY])
    return found


async def kept(cluster: Cluster, state: State) -> None:
    async def attempt() -> bool | None:
        found = await cluster.client.get(RESERVATIONS, Custom, "evening", cluster.namespace)
        return b'"state":"%s"' % state.value.encode() in bytes(found.status) or None

    await cluster.until(attempt, f"the kept room is {state}")


async def test_each_example_starts_where_and_as_it_says(cluster: Cluster, kubectl: Kubectl) -> None:
    kubectl.apply_file(NETWORK)
    try:
        kubectl.apply_file(KEPT)
        await kept(cluster, State.AVAILABLE)
        async with links(cluster.client, 1):
            for path in OTHERS:
                kubectl.apply_file(path)
            for name in (name for path in OTHERS for name in gangs_of(path)):
                await cluster.gang(name, reason=names.REASON_BOUND)
        await kept(cluster, State.SUCCEEDED)
        (close,) = (await racks_of(cluster, "close")).values()
        assert len(close) == 1
        one, other = (await racks_of(cluster, "apart")).values()
        assert not one & other
        refused = kubectl.run("apply", "-f", str(NVLINK))
        assert refused.returncode != 0
        assert "mnnvl.enabled" in refused.stderr
    finally:
        kubectl.run("delete", "-f", str(NETWORK), "--ignore-not-found")
        kubectl.run("delete", "priorityclass", "inference", "--ignore-not-found")

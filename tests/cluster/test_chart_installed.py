"""The whole chart on a real API server, by helm as people do it. Its pods pretend to run."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pytest

from api import names
from api.jsons import JsonObject
from api.streams import Pod
from kube.client import Client
from kube.clock import SystemClock
from kube.resources import NAMESPACES, PODS, Resource
from penstock.lab import cluster as labs
from penstock.lab.helm import RELEASE, Helm, chart
from penstock.lab.progress import Screen
from penstock.lab.spec import LabSpec
from penstock.lab.state import Lab
from tests.support.leftovers import fresh_name
from tests.support.living import Cluster, connect

pytestmark = [pytest.mark.cluster, pytest.mark.long]

DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment", namespaced=True)
PROCESSES: Final = ("webhook", "workloads", "gangs")
RESTRICTED: Final = {
    f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")
}
# All that needs no definitions of others.
EVERYTHING: Final = (
    *("audit.serve=true", "audit.stdout=true", "audit.admitted=true", "gangs.recordRefusals=true"),
    *("workloads.startup=init", "workloads.waiterImage=waiter:1", "workloads.mnnvl=true"),
    *("networkPolicy.enabled=true", "networkPolicy.apiServers={10.0.0.0/8,fd00::/8}"),
    *("networkPolicy.metricsFrom={monitoring}", "pods.labels.team=inference"),
    *("reservations.aggregateTo={admin}", "pods.annotations.note=here"),
)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A lab of its own: elsewhere Penstock is installed with its processes outside."""
    screen = Screen(sys.stderr, SystemClock(), live=False)
    spec = LabSpec(fresh_name(), nodes=4, gpus=8, topology="zone=2,rack=2")
    try:
        yield asyncio.run(labs.up(spec, screen))
    finally:
        asyncio.run(labs.down(spec.name, screen))


@pytest.fixture
def helm(lab: Lab, tmp_path: Path) -> Helm:
    return Helm(lab.binaries["helm"], lab.kubeconfig, tmp_path)


async def made(person: Client, kind: Resource, name: str) -> JsonObject:
    path = kind.path(names.NAMESPACE if kind.namespaced else None, name)
    found: JsonObject = msgspec.json.decode(await person.raw_get(path))
    return found


def settings(values: tuple[str, ...]) -> list[str]:
    return [part for each in values for part in ("--set", each)]


@pytest.mark.parametrize("values", [(), EVERYTHING], ids=["default", "everything"])
async def test_all_of_it_is_taken_and_its_pods_run_in_a_restricted_namespace(
    helm: Helm, lab: Lab, values: tuple[str, ...]
) -> None:
    async with connect(lab.kubeconfig) as person:
        await person.apply(
            NAMESPACES, names.NAMESPACE, {"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": names.NAMESPACE, "labels": {**RESTRICTED}}},
        )  # fmt: skip
        said = await helm.run(*("upgrade", RELEASE, str(chart()), "--install"), *settings(values))
        assert "violate" not in said, "Pod Security warns of it"
        cluster = Cluster(person, names.NAMESPACE)

        async def running() -> list[Pod] | None:
            pods = (await person.list_pages(PODS, Pod, names.NAMESPACE)).items
            up = [pod for pod in pods if pod.status.phase == "Running"]
            return up if len(up) == 2 * len(PROCESSES) else None

        pods = await cluster.until(running, "two pods of each process")
        for each in PROCESSES:
            on = {pod.spec.node_name for pod in pods if f"-{each}-" in pod.metadata.name}
            assert len(on) == 2, f"{each} is on one node"

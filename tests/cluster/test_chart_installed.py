"""The whole chart on a real API server, by helm as people do it. Its pods pretend to run."""

import asyncio
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pytest

from api import names
from api.jsons import JsonObject
from api.streams import Custom, Pod
from kube.client import Client
from kube.clock import SystemClock
from kube.resources import NAMESPACES, PODCLIQUESETS, PODS, TOPOLOGY_BINDINGS, Resource
from penstock.lab import cluster as labs
from penstock.lab.errors import LabError
from penstock.lab.helm import RELEASE, Helm, chart
from penstock.lab.progress import Screen
from penstock.lab.spec import LabSpec
from penstock.lab.state import Lab
from penstock.proving import NAME, a_set
from tests.support.charts import items
from tests.support.leftovers import fresh_name
from tests.support.living import Cluster, Kubectl, connect

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
    *("topologyAwareScheduling.enabled=true", "policy.mode=warn"),
    *("webhook.clients.configMap=clients", "webhook.clients.names={kube-apiserver}"),
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


# At the first install the definitions come with it, at the second they are there.
AGAIN: Final = (*EVERYTHING, "labels.again=yes")


@pytest.mark.parametrize("values", [EVERYTHING, AGAIN, ()], ids=["first", "again", "default"])
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
        if values is EVERYTHING:
            assert "ClusterTopologyBinding network is still to be made" in said
        else:
            assert "is still to be made" not in said
            await made(person, TOPOLOGY_BINDINGS, "network")
        cluster = Cluster(person, names.NAMESPACE)

        async def running() -> list[Pod] | None:
            pods = (await person.list_pages(PODS, Pod, names.NAMESPACE)).items
            up = [pod for pod in pods if pod.status.phase == "Running"]
            return up if len(up) == 2 * len(PROCESSES) else None

        pods = await cluster.until(running, "two pods of each process")
        for each in PROCESSES:
            on = {pod.spec.node_name for pod in pods if f"-{each}-" in pod.metadata.name}
            assert len(on) == 2, f"{each} is on one node"


SETS: Final = "podcliquesets.grove.io"
DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition",
    namespaced=False,
)  # fmt: skip


def older(folder: Path) -> Path:
    """The chart with another definition of sets, as a version before may have had."""
    copied = folder / "older"
    shutil.copytree(chart(), copied)
    file = copied / "files" / "crds" / "grove.io_podcliquesets.yaml"
    written = file.read_text()
    assert "additionalPrinterColumns:\n" in written
    column = "{name: Older, type: integer, jsonPath: .spec.replicas}"
    indent = next(x for x in written.splitlines() if "additionalPrinterColumns:" in x)
    spaces = indent[: len(indent) - len(indent.lstrip())]
    written = written.replace(f"{indent}\n", f"{indent}\n{spaces}- {column}\n")
    note = f"{names.DEFINITION}: "
    file.write_text(re.sub(f"{note}.*", f"{note}older", written))
    return copied


async def columns(person: Client) -> set[str]:
    spec = (await made(person, DEFINITIONS, SETS))["spec"]
    assert isinstance(spec, dict)
    (version,) = [each for each in items(spec, "versions") if isinstance(each, dict)]
    found = items(version, "additionalPrinterColumns")
    return {str(each["name"]) for each in found if isinstance(each, dict)}


async def test_definitions_are_upgraded_with_the_chart_and_by_server_side_apply(
    helm: Helm, lab: Lab, tmp_path: Path
) -> None:
    before = older(tmp_path)
    kubectl = Kubectl(lab.binaries["kubectl"], lab.kubeconfig, names.NAMESPACE)

    def apply(folder: Path) -> None:
        files = str(folder / "files" / "crds")
        kubectl.run("apply", "--server-side", "--force-conflicts", "-f", files, check=True)

    async with connect(lab.kubeconfig) as person:
        await person.create(PODCLIQUESETS, a_set({"a": []}), "default")
        uid = (await person.get(PODCLIQUESETS, Custom, NAME, "default")).metadata.uid
        install = ("upgrade", RELEASE, "--install", "--create-namespace")
        for folder in (before, chart()):
            await helm.run(*install, str(folder))
            assert ("Older" in await columns(person)) is (folder == before)
        # From now on somebody else's, and the chart's again: neither takes them away.
        for folder in (before, chart()):
            apply(folder)
            await helm.run(*install, str(folder), "--set", "definitions.enabled=false")
            assert ("Older" in await columns(person)) is (folder == before)
        await helm.run(*install, str(chart()))
        await helm.run("uninstall", RELEASE)
        # What an earlier release has left helm would take over as it is: so it is refused.
        with pytest.raises(LabError, match="left another version of the definition"):
            await helm.run(*install, str(before))
        apply(before)
        await helm.run(*install, str(before))
        assert "Older" in await columns(person)
        await helm.run("uninstall", RELEASE)
        with pytest.raises(LabError, match=r"somebody else .* definitions\.enabled=false"):
            await helm.run("install", "another", str(chart()))
        assert (await person.get(PODCLIQUESETS, Custom, NAME, "default")).metadata.uid == uid

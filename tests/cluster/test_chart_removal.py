"""Penstock taken away without a trace, as the page says, while pods of gangs run on."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from controller.gangs.scan_results import KINDS
from kube.errors import NotFound
from kube.resources import (
    CONFIGMAPS,
    PODCLIQUESETS,
    PODS,
    RESERVATIONS,
    TOPOLOGY_BINDINGS,
    Resource,
)
from penstock.lab import install as installing
from penstock.lab.install import InstallOptions
from penstock.lab.state import Lab
from tests.repo import checkout, prose
from tests.support import collecting, everything
from tests.support.living import Cluster, connect, engine_set, namespace
from tests.support.report_kinds import DEFINITIONS, definition
from tests.support.untouched import untouched

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(600)]

PAGE: Final = checkout.ROOT / "docs" / "install.md"
SPACE: Final = "people"
NOWHERE: Final = "example.com/no-such-node"
OFF: Final = InstallOptions(
    feature_gates="GangScheduling=false,GroveIntegration=false", timeout=150.0
)
FEW: Final = "queues: [{name: q, namespaces: ['*'], default: true, mode: warn, limits: {gangs: 1}}]"
# What running pods use, and what Kubernetes makes of it.
USED: Final = {"pods", "services", "endpoints", "endpointslices", "serviceaccounts", "configmaps"}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A lab of its own, in which nothing of Penstock ever was."""
    with untouched() as lab:
        yield lab


def commands() -> list[str]:
    """What the page has people type, a command each."""
    section = prose.section(prose.read(PAGE), "### Without a trace")
    text = "".join(text for language, text in prose.fences(section) if language == "sh")
    return text.replace("\\\n", " ").splitlines()


async def typed(lab: Lab, home: Path, command: str) -> None:
    """Have a person's shell carry it out."""
    programs = {str(lab.binaries[each].parent) for each in ("helm", "kubectl")}
    environment = {
        "PATH": os.pathsep.join((*programs, "/usr/bin", "/bin")),
        "HOME": str(home),
        "KUBECONFIG": str(lab.kubeconfig),
    }
    done = await asyncio.to_thread(
        subprocess.run, ["bash", "-c", command], capture_output=True, text=True, check=False,
        cwd=checkout.ROOT, env=environment, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


async def install(lab: Lab, options: InstallOptions) -> None:
    helm = lab.binaries["helm"]
    await installing.install(lab.directory, lab.kubeconfig, helm, options, lambda _: None)


def scaled(name: str) -> JsonObject:
    """A set with an autoscaler."""
    body = engine_set(name, pods=2, gpus=1)
    limits: JsonObject = {"minReplicas": 2, "maxReplicas": 4}
    body["spec"]["template"]["cliques"][0]["spec"]["autoScalingConfig"] = limits  # type: ignore[index,call-overload]
    return body


def labelled(name: str) -> JsonObject:
    labels: JsonObject = {names.GANG_LABEL: "train", names.GANG_SIZE_LABEL: "2"}
    container: JsonObject = {"name": "main", "image": "registry.example/train:1"}
    metadata: JsonObject = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
            "spec": {"containers": [container]}}  # fmt: skip


def of_kind(kind: Resource, name: str, **spec: Json) -> JsonObject:
    metadata: JsonObject = {"name": name}
    head: JsonObject = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
    return {**head, "spec": spec}


def kept() -> JsonObject:
    """Room that a person keeps."""
    owners: list[Json] = [{"object": {"kind": "PodGang", "name": "some"}}]
    requests: JsonObject = {"nvidia.com/gpu": "1"}
    return of_kind(RESERVATIONS, "kept", owners=owners, requests=requests, ttl="24h")


async def running(cluster: Cluster) -> dict[str, tuple[str, int]]:
    """Every pod that runs by its uid: its node, and how often it was started again."""
    raw = await cluster.client.raw_get(PODS.path(SPACE))
    return {
        pod["metadata"]["uid"]: (
            pod["spec"]["nodeName"],
            sum(each["restartCount"] for each in pod["status"]["containerStatuses"]),
        )
        for pod in msgspec.json.decode(raw)["items"]
        if pod["status"]["phase"] == "Running"
    }


async def gates(cluster: Cluster) -> set[str]:
    raw = await cluster.client.raw_get(PODS.path(SPACE))
    pods = msgspec.json.decode(raw)["items"]
    return {each["name"] for pod in pods for each in pod["spec"].get("schedulingGates", ())}


async def reported(cluster: Cluster) -> None:
    """Have a policy that one of the sets breaks, and wait until reports say so."""
    body = of_kind(CONFIGMAPS, names.POLICY_CONFIG) | {"data": {names.POLICY_KEY: FEW}}
    del body["spec"]
    await cluster.client.create(CONFIGMAPS, body, names.NAMESPACE)

    async def written() -> bool | None:
        try:
            for kind in KINDS:
                await cluster.client.raw_get(kind.path(SPACE, names.POLICY_REPORT))
        except NotFound:
            return None
        return True

    await cluster.until(written, "reports of both kinds")


def ours(text: str) -> bool:
    return "penstock" in text or "grove.io" in text


async def nothing_left(cluster: Cluster, before: dict[tuple[str, str, str], str]) -> None:
    """Wait until there is no object that was not, but for what people's pods use."""
    left: set[tuple[str, str, str]] = set()

    async def attempt() -> bool | None:
        nonlocal left
        found = await everything.of_the_cluster(cluster.client)
        left = {key for key, text in found.items() if not allowed(key, text)}
        return not left or None

    def allowed(key: tuple[str, str, str], text: str) -> bool:
        kind, space, name = key
        if space == SPACE:
            return kind in USED
        if (kind, name) == ("namespaces", SPACE):
            return True
        if (kind, space) == ("leases", "kube-system"):
            return not ours(text)  # a young control plane still makes its own
        return key in before and ours(text) <= ours(before[key])

    await cluster.until(attempt, "nothing left", instead=lambda: f"there is {sorted(left)}")


async def test_the_page_takes_all_of_it_away_and_pods_run_on(lab: Lab, tmp_path: Path) -> None:
    async with connect(lab.kubeconfig) as person, namespace(person, SPACE):
        cluster = Cluster(person, SPACE)
        for kind in KINDS:
            await person.create(DEFINITIONS, definition(kind))
        before = await everything.of_the_cluster(person)
        await install(lab, InstallOptions())
        levels: list[Json] = [{"domain": "rack", "key": "topology.kubernetes.io/rack"}]
        binding = of_kind(TOPOLOGY_BINDINGS, "ours", levels=levels)
        await person.create(TOPOLOGY_BINDINGS, binding)
        await person.create(RESERVATIONS, kept(), SPACE)
        await person.create(PODCLIQUESETS, scaled("runs"), SPACE)
        for name in ("train-0", "train-1"):
            await person.create(PODS, labelled(name), SPACE)
        await cluster.running("runs")

        async def all_run() -> dict[str, tuple[str, int]] | None:
            pods = await running(cluster)
            return pods if len(pods) == 4 else None

        pods = await cluster.until(all_run, "both gangs run")
        waits = engine_set("waits", pods=1, gpus=1, replicas=2, selector=NOWHERE)
        await person.create(PODCLIQUESETS, waits, SPACE)
        await cluster.pods("waits", 2)
        assert await gates(cluster) == {names.GATE}
        await reported(cluster)
        await collecting.knows_our_kinds(cluster)
        for command in commands():
            if command.startswith("helm uninstall"):
                installing.stop(lab.directory)  # as those in the cluster end with it
            await typed(lab, tmp_path, command)
            if command.startswith("helm upgrade"):
                assert all(each in command for each in OFF.values())
                await install(lab, OFF)
        await nothing_left(cluster, before)
        await collecting.has_caught_up(cluster)
        assert await running(cluster) == pods
        assert await gates(cluster) == set()

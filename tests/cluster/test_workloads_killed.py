"""`kill -9` of `workloads` after any write: a successor finishes the job, or leaves nothing."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from api import names
from api.jsons import JsonObject
from penstock.lab.installation import Installation
from tests.support.controllers import Running, running, without
from tests.support.everything import nothing_left, objects
from tests.support.installed import Installed
from tests.support.killing import KillingProxy, through
from tests.support.living import Cluster, Kubectl, engine_set, tls_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(420)]

MOST_DEATHS = 30
UNHELD = '{"metadata": {"finalizers": null}}'
# By kind, what there is of the set below when all is made; pods are counted, not named.
WHOLE = {
    "podcliques": 5, "podcliquescalinggroups": 1, "podcliquesets": 1, "podgangs": 2, "pods": 6,
    "services": 1, "reservations": 2,
}  # fmt: skip


def a_set(name: str) -> JsonObject:
    """Two pods that stand alone, and a group of two cliques in two copies."""
    body = engine_set(name, pods=2, gpus=1)
    spec = body["spec"]
    assert isinstance(spec, dict)
    template = spec["template"]
    assert isinstance(template, dict)
    cliques = template["cliques"]
    assert isinstance(cliques, list)
    (first,) = cliques
    assert isinstance(first, dict)
    assert isinstance(first["spec"], dict)
    for role in ("leader", "worker"):
        cliques.append({"name": role, "spec": {**first["spec"], "roleName": role, "replicas": 1}})
    template["podCliqueScalingGroups"] = [
        {"name": "g", "cliqueNames": ["leader", "worker"], "replicas": 2, "minAvailable": 1}
    ]
    return body


@pytest.fixture
def without_workloads(installed: Installed) -> Iterator[Installation]:
    """Penstock with `workloads` stopped, so that a test can run its own."""
    with without("workloads", installed.installation) as installation:
        yield installation


def workloads(kubeconfig: Path, log: Path) -> Running:
    return running("workloads", kubeconfig, log)


@dataclass(frozen=True)
class Killing:
    """Runs `workloads` and kills it right after a write that counts."""

    kubeconfig: Path
    folder: Path

    async def after(
        self, counts: Callable[[str], bool], seconds: float, count: int = 1
    ) -> list[str]:
        """Return the writes until it was killed; none if they did not come in so many seconds."""
        server, tls = tls_of(self.kubeconfig)
        log = self.folder / "killed.log"
        async with KillingProxy(server, tls, count, counts) as proxy:
            config = through(proxy, self.kubeconfig, self.folder / "through.yaml")
            async with workloads(config, log) as process:
                proxy.pid = process.pid
                try:
                    await asyncio.wait_for(process.wait(), seconds)
                except TimeoutError:
                    return []
        assert process.returncode == -9, log.read_text()
        return proxy.writes


@pytest.fixture
def killing(without_workloads: Installation, tmp_path: Path) -> Killing:
    return Killing(without_workloads.kubeconfig(names.WORKLOADS_ACCOUNT), tmp_path)


async def is_whole(cluster: Cluster, name: str) -> None:
    """Wait until the set runs; there must be exactly what it calls for."""
    await cluster.running(name, gangs=2)

    async def counted() -> bool | None:
        found = [
            each.partition("/")[0] for each in await objects(cluster.client, cluster.namespace)
        ]
        return {kind: found.count(kind) for kind in WHOLE} == WHOLE or None

    await cluster.until(counted, f"exactly what {name} calls for")


def makes(kind: str) -> Callable[[str], bool]:
    return lambda write: write.startswith("POST") and f"/{kind} " in write


def says(kind: str) -> Callable[[str], bool]:
    return lambda write: write.startswith("PATCH") and f"/{kind}/" in write and "/status" in write


def removes(kind: str) -> Callable[[str], bool]:
    return lambda write: write.startswith("DELETE") and f"/{kind}/" in write


def releases(kind: str) -> Callable[[str], bool]:
    return lambda write: (
        write.startswith("PATCH") and f"/{kind}/" in write and "/status" not in write
    )


MAKING = {
    "a group is made": makes("podcliquescalinggroups"),
    "a clique is made": makes("podcliques"),
    "a gang is made": makes("podgangs"),
    "the service is made": makes("services"),
    "a pod is made": makes("pods"),
    "the finalizer is on the set": releases("podcliquesets"),
    "a gang is said to be whole": says("podgangs"),
    "a clique's status is written": says("podcliques"),
    "the set's status is written": says("podcliquesets"),
}
LEAVING = {
    "a group is deleted": removes("podcliquescalinggroups"),
    "a clique is deleted": removes("podcliques"),
    "a pod is deleted": removes("pods"),
    "a clique is let go": releases("podcliques"),
    "a group is let go": releases("podcliquescalinggroups"),
    "a gang is deleted": removes("podgangs"),
    "the set is let go": releases("podcliquesets"),
}


async def test_killed_half_way_and_deleted_meanwhile_a_set_is_taken_away_by_the_successor(
    killing: Killing, cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(a_set("torn"))
    assert await killing.after(makes("pods"), 20)
    kubectl.delete("torn")
    async with workloads(killing.kubeconfig, killing.folder / "successor.log"):
        await nothing_left(cluster)


@pytest.mark.long
@pytest.mark.parametrize("instant", MAKING)
async def test_killed_while_it_makes_a_set_its_successor_finishes_the_job(
    instant: str, killing: Killing, cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(a_set("torn"))
    # As a set has it that was stored before a webhook was there.
    kubectl.run("patch", "pcs", "torn", "--type=merge", "-p", UNHELD, check=True)
    assert await killing.after(MAKING[instant], 20), instant
    async with workloads(killing.kubeconfig, killing.folder / "successor.log"):
        await is_whole(cluster, "torn")
        kubectl.delete("torn")
        await nothing_left(cluster)


@pytest.mark.long
@pytest.mark.parametrize("instant", LEAVING)
async def test_killed_while_it_takes_a_set_away_its_successor_leaves_nothing(
    instant: str, killing: Killing, cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(a_set("torn"))
    async with workloads(killing.kubeconfig, killing.folder / "successor.log"):
        await is_whole(cluster, "torn")
    kubectl.delete("torn")
    assert await killing.after(LEAVING[instant], 20), instant
    async with workloads(killing.kubeconfig, killing.folder / "successor.log"):
        await nothing_left(cluster)


@pytest.mark.long
async def test_killed_after_every_third_write_a_set_is_made_and_goes_all_the_same(
    killing: Killing, cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(a_set("torn"))
    deaths = 0
    while await killing.after(matters, 15, count=3):
        deaths += 1
        assert deaths < MOST_DEATHS
    await is_whole(cluster, "torn")
    kubectl.delete("torn")
    while await killing.after(matters, 15, count=3):
        deaths += 1
        assert deaths < MOST_DEATHS
    await nothing_left(cluster)


def matters(write: str) -> bool:
    """Events only tell of the rest."""
    return "/events " not in write

"""The chart from version to version and away again, while sets live and people work.

The processes run beside the lab, so what is shown here is what helm does: no call fails and no pod
is touched. How the processes themselves are rolled, only a real node can show.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import psutil
import pytest
import yaml

from api import names
from api.jsons import JsonObject
from api.streams import Pod
from kube.client import Client
from kube.clock import SystemClock
from kube.errors import ApiError, NotFound
from kube.resources import LEASES, NAMESPACES, PODCLIQUESETS, PODS
from penstock import proving
from penstock.lab import install as installing
from penstock.lab.helm import RELEASE, Helm, chart
from penstock.lab.install import InstallOptions
from penstock.lab.installation import Installation
from penstock.lab.layout import Layout
from penstock.lab.state import Lab
from penstock.proving import ServedDoors
from tests.support import previous
from tests.support.living import Cluster, connect, engine_set, namespace
from tests.support.untouched import untouched

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(900)]

SPACE: Final = "people"
KEPT: Final = {"CustomResourceDefinition", "ClusterTopologyBinding"}
ON: Final = ("--set", "topologyAwareScheduling.enabled=true")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A lab of its own, in which nothing of Penstock ever was."""
    with untouched() as lab:
        yield lab


CASES: Final[tuple[tuple[dict[str, list[str]], bool], ...]] = (
    ({"a": []}, False),
    ({"a": ["b"], "b": ["a"]}, True),
)


@dataclass
class Calls:
    """What became of people's calls: each is a dry run of a set, good or bad in turn."""

    right: int = 0
    wrong: list[str] = field(default_factory=list)

    async def make(self, person: Client) -> None:
        while True:
            for starts_after, refused in CASES:
                said = await self._one(person, proving.a_set(starts_after))
                if ("denied the request" in said) is not refused:
                    self.wrong.append(said or "a cycle was let in")
                elif said and not refused:
                    self.wrong.append(said)
                else:
                    self.right += 1
            await asyncio.sleep(0.02)

    async def _one(self, person: Client, body: JsonObject) -> str:
        try:
            await person.create(PODCLIQUESETS, body, SPACE, dry_run=True)
        except ApiError as error:
            return error.message
        return ""


@dataclass(frozen=True)
class Stage:
    """One lab with sets that live, and what is done to the release meanwhile."""

    lab: Lab
    helm: Helm
    cluster: Cluster

    @property
    def person(self) -> Client:
        return self.cluster.client

    async def pods(self) -> dict[str, tuple[str, int]]:
        """Every pod of people's by its uid: its node, and how often it was started again."""
        raw = await self.person.raw_get(PODS.path(SPACE))
        return {
            pod["metadata"]["uid"]: (
                pod["spec"]["nodeName"],
                sum(each["restartCount"] for each in pod["status"]["containerStatuses"]),
            )
            for pod in msgspec.json.decode(raw)["items"]
        }

    @asynccontextmanager
    async def undisturbed(self) -> AsyncIterator[None]:
        """Calls are made all the while; none may fail, and no pod may be touched."""
        before, calls = await self.pods(), Calls()
        working = asyncio.create_task(calls.make(self.person))
        try:
            yield
            seen = calls.right
            while calls.right < seen + 20 and not calls.wrong:
                await asyncio.sleep(0.05)
        finally:
            working.cancel()
        assert calls.wrong == []
        assert calls.right > 40
        assert await self.pods() == before

    async def upgrades(self, *arguments: str) -> None:
        async with self.undisturbed():
            await self.helm.run("upgrade", RELEASE, *arguments)
        assert await ServedDoors(self.person).opened() == [], "an upgrade has opened webhooks"

    async def rolls_back(self, revision: str) -> None:
        """What the first revision made was open, and so it is again, until somebody proves it."""
        async with self.undisturbed():
            await self.helm.run("rollback", RELEASE, revision)
            assert await ServedDoors(self.person).opened() != []
            await proof_by_hand(self.person)
        assert await ServedDoors(self.person).opened() == []

    async def a_set_runs(self, name: str) -> None:
        """A set is made now, and all of it runs."""
        await self.person.create(PODCLIQUESETS, engine_set(name, pods=2, gpus=1), SPACE)
        await self.cluster.running(name)

    async def processes(self) -> None:
        """Bring processes of this version up beside the lab, with the chart as it is to be."""
        await installing.install(
            self.lab.directory, self.lab.kubeconfig, self.lab.binaries["helm"],
            InstallOptions(), lambda _: None,
        )  # fmt: skip

    async def manifest(self) -> list[JsonObject]:
        text = await self.helm.run("get", "manifest", RELEASE)
        return [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]


# The lab itself is this version's: its record says more than that version knows to read.
INSTALL: Final = """
import asyncio, sys
from pathlib import Path
from penstock.lab.install import InstallOptions, install
places = (Path(each) for each in sys.argv[1:])
asyncio.run(install(*places, InstallOptions(), print))
"""


def install_previous(lab: Lab, folder: Path) -> None:
    """That version's own doing: its chart, and its processes."""
    places = (lab.directory, lab.kubeconfig, lab.binaries["helm"])
    done = subprocess.run(
        [sys.executable, "-P", "-c", INSTALL, *map(str, places)],
        capture_output=True, text=True, check=False, timeout=180,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def runs_from(lab: Lab, folder: Path) -> bool:
    """Whether the processes beside the lab are of that version."""
    found = Installation(Layout.of(lab.directory))
    return all(
        psutil.Process(found.pid(each)).environ().get("PYTHONPATH") == str(folder)
        for each in ("webhook-0", "webhook-1", "workloads", "gangs")
    )


async def gone(stage: Stage, each: JsonObject) -> bool:
    meta, version = each["metadata"], str(each["apiVersion"])
    assert isinstance(meta, dict)
    kubectl = stage.lab.binaries["kubectl"]
    group, _, number = version.rpartition("/")
    kind = f"{each['kind']}.{number}.{group}" if group else str(each["kind"])
    access = (kubectl, "--kubeconfig", stage.lab.kubeconfig)
    command: list[str | Path] = [*access, "get", kind, str(meta["name"])]
    where = ("-n", str(meta.get("namespace", "default")), "--ignore-not-found", "-o", "name")
    done = subprocess.run([*command, *where], capture_output=True, text=True, check=True)
    return not done.stdout.strip()


async def test_from_the_version_before_to_this_one_and_back_and_away(
    lab: Lab, tmp_path: Path
) -> None:
    before = previous.unpack(tmp_path / "before")
    install_previous(lab, before)
    assert runs_from(lab, before)
    helm = Helm(lab.binaries["helm"], lab.kubeconfig, tmp_path)
    async with connect(lab.kubeconfig) as person, namespace(person, SPACE):
        stage = Stage(lab, helm, Cluster(person, SPACE))
        await stage.a_set_runs("of-old")
        # This version's objects, and the processes still those of the version before.
        upgrade = (str(chart()), "--reset-then-reuse-values")
        await stage.upgrades(*upgrade, *ON)
        await stage.a_set_runs("between")
        await stage.processes()
        assert not runs_from(lab, before)
        await stage.a_set_runs("of-now")
        # Back, by either way, with the processes of this version; and on again.
        await stage.rolls_back("1")
        await stage.a_set_runs("rolled-back")
        await stage.upgrades(*upgrade, *ON)
        old = str(before / "charts" / "penstock")
        url = ("--reset-values", "--set", f"webhook.url={await url_of(stage)}")
        await stage.upgrades(old, *url)
        await stage.upgrades(*upgrade, *ON)
        await stage.a_set_runs("on-again")
        await taken_away(stage)
        await stage.processes()
        await stage.a_set_runs("anew")


async def proof_by_hand(person: Client) -> None:
    """As `penstock prove` does it, for whoever runs the processes outside the cluster."""
    ask = partial(proving.asked, person, SPACE)
    prover = proving.Prover(ask, ServedDoors(person), SystemClock(), lambda _: None)
    assert (await prover.close_when_proven(30)).holds


async def url_of(stage: Stage) -> str:
    values: JsonObject = yaml.safe_load(
        await stage.helm.run("get", "values", RELEASE, "-o", "json")
    )
    webhook = values["webhook"]
    assert isinstance(webhook, dict)
    return str(webhook["url"])


async def taken_away(stage: Stage) -> None:
    """Nothing of the release is left but what people's sets need, and no pod is touched."""
    objects, pods = await stage.manifest(), await stage.pods()
    sets = (await stage.person.list_pages(PODCLIQUESETS, Pod, SPACE)).items
    installing.stop(stage.lab.directory)
    await stage.helm.run("uninstall", RELEASE, "--wait")
    left = {str(each["kind"]) for each in objects if not await gone(stage, each)}
    assert left == KEPT
    assert await stage.pods() == pods
    there = (await stage.person.list_pages(PODCLIQUESETS, Pod, SPACE)).items
    assert {each.metadata.uid for each in there} == {each.metadata.uid for each in sets}
    # The processes made these, so that they go with the namespace.
    raw = await stage.person.raw_get(LEASES.path(names.NAMESPACE))
    leases = {each["metadata"]["name"] for each in msgspec.json.decode(raw)["items"]}
    assert leases == {names.GANGS_LEASE, names.WORKLOADS_LEASE}
    await stage.person.delete(NAMESPACES, names.NAMESPACE)

    async def no_namespace() -> bool | None:
        try:
            await stage.person.raw_get(NAMESPACES.path(None, names.NAMESPACE))
        except NotFound:
            return True
        return None

    await stage.cluster.until(no_namespace, "the namespace gone")
    assert await stage.pods() == pods

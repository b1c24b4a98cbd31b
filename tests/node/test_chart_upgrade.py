"""The chart from version to version on a real node: images, proof, rolls, and the way back.

Everything is helm's own doing here. Two images are made, of the version before and of this one.
"""

import json
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import pytest

from api import names
from kube.client import Client
from kube.clock import SystemClock
from kube.errors import NotFound
from kube.resources import NAMESPACES, PODS
from penstock.lab import cluster as labs
from penstock.lab.helm import RELEASE, Helm
from penstock.lab.images import layout
from penstock.lab.images import penstock as images
from penstock.lab.images.penstock import Made
from penstock.lab.progress import Screen
from penstock.lab.realnode import installing, node
from penstock.lab.state import Lab
from penstock.proving import ServedDoors
from tests.support import previous
from tests.support.creating import creating
from tests.support.living import Cluster, connect, namespace
from tests.support.ordered import ordered
from tests.support.realpods import kubectl_of, real_clique

pytestmark = [pytest.mark.node, pytest.mark.timeout(1500)]

RATE: Final = 10
WAITING: Final = ("--wait", "--timeout", "6m")


@dataclass(frozen=True)
class Version:
    """A chart, and the image of its processes, which the node has."""

    chart: Path
    made: Made
    values: Path


async def version(lab: Lab, root: Path, folder: Path, pinned_in: str = layout.LOCK) -> Version:
    """Make the image of a checkout, and bring it into the node."""
    host = labs.this_host(Screen(sys.stderr, SystemClock(), live=False))
    made = await images.make(root, host.workshop.cache, host.run, host.reporter, pinned_in)
    await node.load_image(host.labs.folder(lab.name), made.archive, host.run)
    values = folder / f"{made.image.rpartition(':')[2]}.json"
    values.write_text(json.dumps(installing.values(made, 2)))
    return Version(root / "charts" / "penstock", made, values)


@dataclass(frozen=True)
class Stage:
    """A set of real containers that lives, and what is done to the release meanwhile."""

    lab: Lab
    helm: Helm
    cluster: Cluster
    open_space: str

    async def pods(self) -> dict[str, tuple[str, int]]:
        """People's pods by uid: whether they run, and how often a container began anew."""
        raw = await self.cluster.client.raw_get(PODS.path(self.cluster.namespace))
        return {
            pod["metadata"]["uid"]: (
                pod["status"]["phase"],
                sum(each["restartCount"] for each in pod["status"]["containerStatuses"]),
            )
            for pod in msgspec.json.decode(raw)["items"]
        }

    async def image(self) -> set[str]:
        """Of which images the pods are that run our processes."""
        label = f"{names.NAME_LABEL}=penstock"
        raw = await self.cluster.client.raw_get(
            f"{PODS.path(names.NAMESPACE)}?labelSelector={label}"
        )
        return {
            container["image"]
            for pod in msgspec.json.decode(raw)["items"]
            if "deletionTimestamp" not in pod["metadata"]
            for container in pod["spec"]["containers"]
        }

    @contextmanager
    def no_call_fails(self) -> Iterator[None]:
        with creating(self.lab.kubeconfig, self.open_space, RATE) as tally:
            yield
        assert tally.failures == []
        assert tally.asked > RATE

    async def becomes(self, wanted: Version, *command: str) -> None:
        """Carry a command of helm's out; nobody notices, and then the other version runs."""

        async def rolled() -> bool | None:
            return await self.image() == {wanted.made.image} or None

        before = await self.pods()
        with self.no_call_fails():
            await self.helm.run(*command, *WAITING)
            # Helm waits for the new pods only; the last of the old ones may still be there.
            await self.cluster.until(rolled, "no pod of the other version")
        assert await self.pods() == before
        assert await ServedDoors(self.cluster.client).opened() == []

    async def a_set_runs(self, name: str) -> None:
        body = ordered(name, "CliqueStartupTypeInOrder", [real_clique("a"), real_clique("b")])
        kubectl_of(self.lab, self.cluster.namespace).apply(body)
        await self.cluster.running(name)


async def test_from_the_version_before_to_this_one_and_back_and_away(
    another: Lab, tmp_path: Path
) -> None:
    older = previous.unpack(tmp_path / "before")
    before = await version(another, older, tmp_path, previous.LOCK)
    now = await version(another, images.checkout(), tmp_path)
    assert before.made.image != now.made.image
    helm = Helm(another.binaries["helm"], another.kubeconfig, tmp_path)

    def upgrade(to: Version) -> tuple[str, ...]:
        return ("upgrade", RELEASE, str(to.chart), "--values", str(to.values))

    await helm.run(*upgrade(before), "--install", "--create-namespace", *WAITING)
    async with (
        connect(another.kubeconfig) as person,
        namespace(person, f"test-{secrets.token_hex(4)}") as space,
        namespace(person, f"test-{secrets.token_hex(4)}") as open_space,
    ):
        # By the chart's own Job, with its own account.
        assert await ServedDoors(person).opened() == []
        stage = Stage(another, helm, Cluster(person, space), open_space)
        await stage.a_set_runs("of-old")
        await stage.becomes(now, *upgrade(now))
        await stage.a_set_runs("of-now")
        await stage.becomes(before, "rollback", RELEASE, "1")
        await stage.a_set_runs("rolled-back")
        await stage.becomes(now, *upgrade(now))
        await taken_away(stage, person)


async def taken_away(stage: Stage, person: Client) -> None:
    before = await stage.pods()
    await stage.helm.run("uninstall", RELEASE, *WAITING)
    assert await stage.image() == set()
    await person.delete(NAMESPACES, names.NAMESPACE)

    async def no_namespace() -> bool | None:
        try:
            await person.raw_get(NAMESPACES.path(None, names.NAMESPACE))
        except NotFound:
            return True
        return None

    await stage.cluster.until(no_namespace, "the namespace gone")
    assert await stage.pods() == before

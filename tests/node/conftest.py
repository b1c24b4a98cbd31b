"""A lab with a real node for all of these tests; where none can be had, they say why."""

import asyncio
import secrets
import sys
from collections.abc import AsyncIterator, Iterator

import pytest

from api.jsons import JsonObject
from kube.clock import SystemClock
from kube.resources import NAMESPACES
from penstock.lab import cluster as labs
from penstock.lab.images.penstock import Made
from penstock.lab.progress import Screen
from penstock.lab.realnode import wanting
from penstock.lab.realnode.installing import Site, install
from penstock.lab.spec import LabSpec
from penstock.lab.state import Lab
from tests.support.leftovers import fresh_name
from tests.support.living import Cluster, Kubectl, connect, namespace
from tests.support.realpods import kubectl_of


@pytest.fixture(scope="session", autouse=True)
def possible() -> None:
    """Skip everything here, with the reason, where no real node can be had."""
    if (obstacle := wanting.obstacle(wanting.this_machine())) is not None:
        pytest.skip(obstacle)


@pytest.fixture(scope="session")
def lab(possible: None) -> Iterator[Lab]:
    """A lab of one real node and a few pretend ones."""
    spec = LabSpec(fresh_name(), nodes=4, topology="rack=2", real_node=True)
    yield from while_up(spec)


@pytest.fixture
def another(possible: None) -> Iterator[Lab]:
    """A second such lab, for a test that breaks it."""
    yield from while_up(LabSpec(fresh_name(), nodes=1, topology="rack=1", real_node=True))


def while_up(spec: LabSpec) -> Iterator[Lab]:
    screen = Screen(sys.stderr, SystemClock(), live=False)
    try:
        yield asyncio.run(labs.up(spec, screen))
    finally:
        asyncio.run(labs.down(spec.name, screen))


@pytest.fixture(scope="session")
def deployed(lab: Lab) -> Made:
    """Penstock in the lab, run by the chart's own Deployments from an image made of this code."""
    host = labs.this_host(Screen(sys.stderr, SystemClock(), live=False))
    folder = host.labs.folder(lab.name)
    helm = lab.binaries["helm"]
    site = Site(folder, helm, host.workshop.cache, host.run, host.clock, host.reporter)
    return asyncio.run(install(site, 2, [], 180, host.reporter.say))


@pytest.fixture
async def cluster(lab: Lab, deployed: Made) -> AsyncIterator[Cluster]:
    """A namespace in which only the most restricted pods may be, with Penstock at work in it."""
    async with (
        connect(lab.kubeconfig) as client,
        namespace(client, f"test-{secrets.token_hex(4)}") as name,
    ):
        labels: JsonObject = {"pod-security.kubernetes.io/enforce": "restricted"}
        await client.merge_patch(NAMESPACES, name, {"metadata": {"labels": labels}})
        yield Cluster(client, name)


@pytest.fixture
def kubectl(lab: Lab, cluster: Cluster) -> Kubectl:
    """What a person would use in that namespace."""
    return kubectl_of(lab, cluster.namespace)


@pytest.fixture
async def open_space(lab: Lab, deployed: Made) -> AsyncIterator[str]:
    """A namespace in which any pod may be, so that nobody but us refuses one."""
    async with (
        connect(lab.kubeconfig) as client,
        namespace(client, f"test-{secrets.token_hex(4)}") as name,
    ):
        yield name

"""A lab with a real node for all of these tests; where none can be had, they say why.

Its API server shows webhooks a certificate, and Penstock in it answers to no other client.
"""

import asyncio
import json
import secrets
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from api import names
from api.jsons import JsonObject
from certs.issue import issue_authority
from kube.clock import SystemClock
from kube.resources import NAMESPACES
from penstock.lab import cluster as labs
from penstock.lab.images.penstock import Made
from penstock.lab.progress import Screen
from penstock.lab.realnode import wanting
from penstock.lab.realnode.installing import Site
from penstock.lab.spec import LabSpec, Setting
from penstock.lab.state import Lab
from tests.support.clientpair import client_pair, showing
from tests.support.deploying import CLIENT, CLIENTS, Deployer
from tests.support.leftovers import fresh_name
from tests.support.living import Cluster, Kubectl, connect, namespace
from tests.support.realpods import kubectl_of


@pytest.fixture(scope="session", autouse=True)
def possible() -> None:
    """Skip everything here, with the reason, where no real node can be had."""
    if (obstacle := wanting.obstacle(wanting.this_machine())) is not None:
        pytest.skip(obstacle)


@dataclass(frozen=True)
class Clients:
    """Whom the webhook answers: the authority that vouches for them, and the API server's files."""

    authority: str
    admission: Path


@pytest.fixture(scope="session")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Clients:
    """A certificate for the API server, and the files by which it shows it."""
    folder = tmp_path_factory.mktemp("clients")
    authority = issue_authority(SystemClock().now())
    pair = client_pair(authority, CLIENT, folder)
    return Clients(authority.certificate_pem.decode(), showing(pair, folder))


@pytest.fixture(scope="session")
def lab(possible: None, clients: Clients) -> Iterator[Lab]:
    """A lab of one real node and a few pretend ones."""
    shown = Setting("kube-apiserver", "admission-control-config-file", str(clients.admission))
    spec = LabSpec(fresh_name(), nodes=4, topology="rack=2", real_node=True, settings=(shown,))
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
def deployer(lab: Lab) -> Deployer:
    """Penstock's installer, with the values that all of these tests share."""
    host = labs.this_host(Screen(sys.stderr, SystemClock(), live=False))
    folder, helm = host.labs.folder(lab.name), lab.binaries["helm"]
    site = Site(folder, helm, host.workshop.cache, host.run, host.clock, host.reporter)
    return Deployer(site, host.reporter.say)


@pytest.fixture(scope="session")
def deployed(lab: Lab, deployer: Deployer, clients: Clients) -> Made:
    """Penstock in the lab, run by the chart's own Deployments from an image made of this code."""
    kubectl = kubectl_of(lab, names.NAMESPACE)
    kubectl.run("create", "namespace", names.NAMESPACE, check=True)
    config: JsonObject = {"name": CLIENTS}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": config}
    data = {"data": {"ca.crt": clients.authority}}
    kubectl.run("create", "-f", "-", text=json.dumps({**body, **data}), check=True)
    return asyncio.run(deployer.install())


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

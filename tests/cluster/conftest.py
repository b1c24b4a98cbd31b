"""One lab for all cluster tests of a process; the tests of the lab itself make their own."""

import asyncio
import secrets
import sys
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import pytest

from kube.client import Client
from kube.clock import SystemClock
from penstock.lab import cluster as labs
from penstock.lab.progress import Screen
from penstock.lab.spec import LabSpec, Setting
from penstock.lab.state import Lab
from tests.chaos.stage import AUDIT
from tests.support import hallnodes
from tests.support.installed import Installed, installed
from tests.support.leftovers import fresh_name
from tests.support.living import Cluster, Kubectl, connect, namespace
from tests.support.tenants import estate

__all__ = ["estate", "installed"]

# Autoscalers look every 15 s and take five minutes before they scale in, if nobody says otherwise.
EAGER = (
    Setting("kube-controller-manager", "horizontal-pod-autoscaler-sync-period", "1s"),
    Setting("kube-controller-manager", "horizontal-pod-autoscaler-downscale-stabilization", "1s"),
)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """After the last test with the marker, what only computes has the machine to itself.

    A lab costs a tenth of a core while nobody uses it.
    """
    yield
    if nextitem is not None and nextitem.get_closest_marker("cluster") is None:
        for name in ("lab", "other_lab"):
            for fixture in item.session._fixturemanager.getfixturedefs(name, item) or ():
                fixture.finish(item._request)  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """A lab of 40 nodes with 8 GPUs each in 20 racks, for all cluster tests of a process."""
    spec = LabSpec(
        fresh_name(), nodes=40, gpus=8, topology="zone=2,block=2,rack=5",
        audit=True, settings=(*EAGER, AUDIT),
    )  # fmt: skip
    yield from _while_up(spec)


@pytest.fixture(scope="session")
def other_lab() -> Iterator[Lab]:
    """A second lab beside the first, small, with every setting used and without Penstock."""
    spec = LabSpec(
        fresh_name(),
        nodes=3,
        gpus=0,
        topology="row=3",
        scheduler_qps=500,
        feature_gates="OpportunisticBatching=false",
        runtime_config="node.k8s.io/v1=false",
        audit=True,
        settings=(
            Setting("kube-apiserver", "v", "3"),
            Setting("kube-apiserver", "authorization-mode", "RBAC"),
            Setting("kwok-controller", "v", "DEBUG"),
        ),
    )
    yield from _while_up(spec)


@pytest.fixture(scope="module")
def hall(lab: Lab) -> Iterator[None]:
    """Nodes in halls of their own, as `tests.support.hallnodes` has them, for a module's sets."""
    with asyncio.Runner() as runner:
        client = connect(lab.kubeconfig)
        place = hallnodes.halls(client)
        runner.run(client.__aenter__())
        runner.run(place.__aenter__())
        yield
        runner.run(place.__aexit__(None, None, None))
        runner.run(client.__aexit__(None, None, None))


@pytest.fixture
def bare(other_lab: Lab) -> Path:
    """The kubeconfig of a control plane in which Penstock was never installed."""
    return other_lab.kubeconfig


def _while_up(spec: LabSpec) -> Iterator[Lab]:
    screen = Screen(sys.stderr, SystemClock(), live=False)
    try:
        yield asyncio.run(labs.up(spec, screen))
    finally:
        asyncio.run(labs.down(spec.name, screen))


@pytest.fixture
async def person(lab: Lab) -> AsyncIterator[Client]:
    """The API server of the session's lab, spoken to by somebody who may do everything."""
    async with connect(lab.kubeconfig) as client:
        yield client


@pytest.fixture
async def space(person: Client) -> AsyncIterator[str]:
    """A namespace for one test."""
    async with namespace(person, f"test-{secrets.token_hex(4)}") as name:
        yield name


@pytest.fixture
async def cluster(installed: Installed, person: Client, space: str) -> AsyncIterator[Cluster]:
    """One namespace of the session's lab, with Penstock at work in it."""
    cluster = Cluster(person, space)
    yield cluster
    await cluster.unlabel_nodes()


@pytest.fixture
def kubectl(lab: Lab, space: str) -> Kubectl:
    """What a person would use in that namespace."""
    return Kubectl(lab.binaries["kubectl"], lab.kubeconfig, space)

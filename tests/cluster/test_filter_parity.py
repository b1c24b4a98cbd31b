"""Of pods pinned to one node the engine says what kube-scheduler says, filter by filter."""

import asyncio
import secrets
import sys
from collections.abc import AsyncIterator, Iterator
from random import Random

import pytest

from kube.clock import SystemClock
from penstock.lab import cluster as labs
from penstock.lab.progress import Screen
from penstock.lab.spec import LabSpec, Setting
from penstock.lab.state import Lab
from scheduler.filters.classes import CORDONED, NOT_SELECTED, PORTS, TAINTED, VOLUMES
from tests.support.leftovers import fresh_name
from tests.support.living import connect, namespace
from tests.support.parity_drawing import EPHEMERAL, GPU, HUGE, WIDGET
from tests.support.parity_lab import OddCluster, Verdict

pytestmark = pytest.mark.cluster

SEED = 20261118
RESOURCES = ("cpu", "memory", EPHEMERAL, GPU, WIDGET, HUGE)
# Our name of each exact filter, and how cases are marked that were drawn to try it.
EXACT = {
    CORDONED: "NodeUnschedulable",
    TAINTED: "TaintToleration",
    NOT_SELECTED: "NodeAffinity",
    PORTS: "NodePorts",
    VOLUMES: "VolumeBinding",
    **{resource: resource for resource in RESOURCES},
}
FORMS = ("two", "init", "sidecar", "both", "whole", "overhead")
QUICK = (Setting("kube-controller-manager", "kube-api-qps", "500"),
         Setting("kube-controller-manager", "kube-api-burst", "500"))  # fmt: skip


@pytest.fixture
def odd_lab() -> Iterator[Lab]:
    """A control plane without nodes, whose scheduler is held back by nothing."""
    spec = LabSpec(fresh_name(), nodes=0, scheduler_qps=2000, settings=QUICK)
    screen = Screen(sys.stderr, SystemClock(), live=False)
    try:
        yield asyncio.run(labs.up(spec, screen))
    finally:
        asyncio.run(labs.down(spec.name, screen))


@pytest.fixture
async def odd(odd_lab: Lab) -> AsyncIterator[OddCluster]:
    name = f"odd-{secrets.token_hex(3)}"
    async with connect(odd_lab.kubeconfig) as client, namespace(client, name) as space:
        yield OddCluster(client, space, Random(SEED))  # noqa: S311 - to be drawn again


# What is tried often enough in few cases.
COMMON = (CORDONED, TAINTED, NOT_SELECTED, PORTS, VOLUMES, "cpu", "memory")


async def judged(odd: OddCluster, *, nodes: int, batches: int) -> list[Verdict]:
    await odd.build(nodes)
    verdicts = await odd.batches(batches)
    differing = [verdict.told() for verdict in verdicts if not verdict.agrees]
    print(f"{len(verdicts)} cases, {sum(v.theirs for v in verdicts)} bound")  # noqa: T201
    print(f"yes: {odd.yes}; no: {odd.no}; alone: {odd.alone}")  # noqa: T201
    assert not differing, f"{len(differing)} of {len(verdicts)}:\n" + "\n".join(differing)
    return verdicts


async def test_the_engine_and_kube_scheduler_agree_on_some_pods(odd: OddCluster) -> None:
    verdicts = await judged(odd, nodes=50, batches=4)
    assert len(verdicts) == 200
    assert all(odd.yes[EXACT[name]] and odd.no[name] for name in COMMON), (odd.yes, odd.no)


@pytest.mark.long
async def test_the_engine_and_kube_scheduler_agree_on_every_pod(odd: OddCluster) -> None:
    verdicts = await judged(odd, nodes=200, batches=11)
    assert len(verdicts) >= 2_000
    for name, mark in EXACT.items():
        assert odd.yes[mark] >= 10, mark
        assert odd.no[name] >= 10, name
        assert odd.alone[name] >= 3, name
    assert odd.no["pods"] >= 10
    assert all(odd.yes[form] >= 10 for form in FORMS), odd.yes

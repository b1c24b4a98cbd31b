"""The dashboard as the chart runs it: from our image, confined, and shown to few."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from api import names
from penstock.lab.realnode.addresses import NODE_NAME
from penstock.lab.state import Lab
from tests.node.test_deployments import available, name_of, staying
from tests.penstock.test_dashboard_serving import Watcher
from tests.support.deploying import Deployer
from tests.support.living import Kubectl
from tests.support.realpods import kubectl_of

pytestmark = [pytest.mark.node, pytest.mark.usefixtures("deployed")]

REACH = "import socket; socket.create_connection(('{}', 8080), 5)"


@pytest.fixture
async def ours(lab: Lab, deployer: Deployer) -> AsyncIterator[Kubectl]:
    """kubectl where Penstock runs, for now with its dashboard."""
    await deployer.install("dashboard.enabled=true")
    yield kubectl_of(lab, names.NAMESPACE)
    await deployer.install()


@asynccontextmanager
async def forwarded(kubectl: Kubectl, what: str) -> AsyncIterator[str]:
    """Forward a port as people do; gives the address on this machine."""
    process = await asyncio.create_subprocess_exec(
        kubectl.binary, "--kubeconfig", kubectl.kubeconfig, "-n", kubectl.namespace,
        "port-forward", what, ":8080", stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), 30)).decode()
        assert line.startswith("Forwarding from 127.0.0.1:"), line
        yield f"http://localhost:{line.split()[2].rpartition(':')[2]}/"
    finally:
        process.terminate()
        await process.wait()


async def test_it_shows_the_cluster_to_whoever_may_forward_ports_and_to_nobody_else(
    ours: Kubectl,
) -> None:
    available(ours, "dashboard")
    (pod,) = staying(ours, "dashboard")
    async with (
        forwarded(ours, "deployment/penstock-dashboard") as url,
        aiohttp.ClientSession() as session,
        session.get(f"{url}events") as answer,
    ):
        watcher = Watcher(answer.content)
        _, first, _ = [await watcher.next() for _ in range(3)]
    told = first[2]
    assert isinstance(told["nodes"], dict)
    assert NODE_NAME in told["nodes"]
    assert isinstance(told["head"], dict)
    notes = json.dumps(told["head"]["notes"])
    assert "you may not list" not in notes, "its account has all rights that it needs"
    assert "if this cluster serves one" in notes
    status = pod["status"]
    assert isinstance(status, dict)
    reach = REACH.format(status["podIP"])
    refused = ours.run("exec", "deploy/penstock-gangs", "--", "python", "-c", reach)
    assert "Connection refused" in refused.stderr
    assert ours.run("logs", name_of(pod)).stdout.startswith("the dashboard is at http://127.0.0.1")

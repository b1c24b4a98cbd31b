"""`kill -9` of `gangs` after any write: a successor goes on, and the gang ends up whole."""

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from api import names
from penstock.lab.installation import Installation
from tests.support.installed import Installed
from tests.support.killing import KillingProxy
from tests.support.living import Cluster, Kubectl, engine_set, tls_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(420)]

LEASE = "2"  # seconds; a successor waits that long after a kill
MOST_WRITES = 30


@pytest.fixture
def without_gangs(installed: Installed) -> Iterator[Installation]:
    """Penstock with `gangs` stopped, so that a test can run its own."""
    installation = installed.installation
    installation.stop_component("gangs")
    yield installation
    installation.start_component("gangs")


@asynccontextmanager
async def gangs(kubeconfig: Path, log: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    with log.open("ab") as out:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "controller.gangs", "--kubeconfig", str(kubeconfig),
            "--lease", LEASE, "--webhook-host", "127.0.0.1", stderr=out,
        )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), 20)


def through(proxy: KillingProxy, kubeconfig: Path, to: Path) -> Path:
    """Write the component's kubeconfig with the proxy as its server."""
    config = yaml.safe_load(kubeconfig.read_text())
    for cluster in config["clusters"]:
        cluster["cluster"] = {"server": proxy.url}
    to.write_text(yaml.safe_dump(config))
    return to


async def check_invariants(cluster: Cluster, gang: str) -> None:
    """What must hold at every instant: nothing released that is not wholly reserved and begun."""
    pods = await cluster.pods(gang, 3)
    lifted = [pod for pod in pods if names.GATE not in pod.gates]
    booked = {r.metadata.name: r for r in await cluster.reservations()}
    if lifted:
        reservation = booked[f"{gang}-0"]
        assert reservation.state.value in {"Lifting", "Bound"}
        assert len(list(reservation.slots())) == 3
    taken = Counter(slot.node for r in booked.values() for _, slot, _ in r.slots())
    assert max(taken.values(), default=0) <= 1, "a node of 8 GPUs is promised to two pods of 8"


async def test_killed_after_any_write_its_successor_finishes_the_job(
    without_gangs: Installation, cluster: Cluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    """The gang has three pods of a whole node each; the run without a kill ends the loop."""
    kubeconfig = without_gangs.kubeconfig(names.GANGS_ACCOUNT)
    server, tls = tls_of(kubeconfig)
    killed_at: list[str] = []
    for count in range(MOST_WRITES):
        name = f"kill{count}"
        log = tmp_path / f"{name}.log"
        kubectl.apply(engine_set(name, pods=3, gpus=8))
        await cluster.pods(name, 3)
        async with KillingProxy(server, tls, count) as proxy:
            config = through(proxy, kubeconfig, tmp_path / "through.yaml")
            async with gangs(config, log) as process:
                proxy.pid = process.pid
                survived = await _until_killed_or_done(cluster, process, name)
            if survived:
                break
            assert process.returncode == -9, log.read_text()
            killed_at += proxy.writes[-1:]
        await check_invariants(cluster, name)
        async with gangs(kubeconfig, log):
            seen = await cluster.running(name)
        assert len({pod.spec.node_name for pod in seen.pods.values()}) == 3
        await check_invariants(cluster, name)
        (booked,) = [r for r in await cluster.reservations() if r.metadata.name == f"{name}-0"]
        assert booked.state.value == "Bound"
        kubectl.run("delete", "pcs", name, "--wait=false", check=True)
        await cluster.pods(name, 0)
    else:
        raise AssertionError(f"more than {MOST_WRITES} writes for a gang of three: {killed_at}")
    # At least: reservation, begin, three lifts, close. Else the kills hit something else.
    kinds = Counter(write.split("/")[-1].split()[0] if "/status" in write else write.split()[0]
                    for write in killed_at)  # fmt: skip
    assert kinds["PATCH"] >= 3, killed_at
    assert kinds["POST"] == 1, killed_at
    assert kinds["status"] >= 2, killed_at


async def _until_killed_or_done(
    cluster: Cluster, process: asyncio.subprocess.Process, name: str
) -> bool:
    """Return whether the gang was done with the process still alive."""
    done = asyncio.ensure_future(cluster.running(name))
    dead = asyncio.ensure_future(process.wait())
    try:
        finished, _ = await asyncio.wait({done, dead}, return_when=asyncio.FIRST_COMPLETED)
        if dead in finished:
            return False
        await done  # fails with what was waited for
        # Its last report may still be under way, and that write counts too.
        await asyncio.sleep(1.0)
        return process.returncode is None
    finally:
        for task in (done, dead):
            task.cancel()


async def test_two_leaders_never_act_at_once(
    without_gangs: Installation, cluster: Cluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    """Two run, one is killed in the middle of its work, the other was warm and goes on."""
    kubeconfig = without_gangs.kubeconfig(names.GANGS_ACCOUNT)
    server, tls = tls_of(kubeconfig)
    async with KillingProxy(server, tls, 3) as proxy:
        config = through(proxy, kubeconfig, tmp_path / "through.yaml")
        async with gangs(config, tmp_path / "first.log") as first:
            proxy.pid = first.pid
            kubectl.apply(engine_set("pair", pods=3, gpus=8))
            async with gangs(kubeconfig, tmp_path / "second.log"):
                await cluster.running("pair")
    await check_invariants(cluster, "pair")

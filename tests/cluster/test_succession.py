"""`kill -9` of `gangs` after any write: a successor goes on, and the gang ends up whole."""

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import yaml

from api import names
from kube.client import Client
from kube.resources import SECRETS
from penstock.lab.installation import Installation
from tests.support.installed import Installed
from tests.support.killing import KillingProxy
from tests.support.living import Cluster, Kubectl, engine_set, tls_of
from tests.support.polling import eventually

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
        assert reservation.size >= len(lifted)
    taken = Counter(slot.node for r in booked.values() for _, slot, _ in r.slots())
    assert max(taken.values(), default=0) <= 1, "a node of 8 GPUs is promised to two pods of 8"


@dataclass(frozen=True)
class Killing:
    """Runs `gangs` again and again, and kills each after one more write than the one before."""

    kubeconfig: Path
    folder: Path

    async def after(
        self, count: int, act: Callable[[], Awaitable[None]], done: Callable[[], Awaitable[object]]
    ) -> str | None:
        """Return the write it was killed after, or None if it was done without that many."""
        server, tls = tls_of(self.kubeconfig)
        log = self.folder / f"{count}.log"
        async with KillingProxy(server, tls, count) as proxy:
            config = through(proxy, self.kubeconfig, self.folder / "through.yaml")
            async with gangs(config, log) as process:
                proxy.pid = process.pid
                await act()
                survived = await _done_before_death(process, done)
        if survived:
            return None
        assert process.returncode == -9, log.read_text()
        return proxy.writes[-1] if proxy.writes else "nothing"


@pytest.fixture
def killing(without_gangs: Installation, tmp_path: Path) -> Killing:
    return Killing(without_gangs.kubeconfig(names.GANGS_ACCOUNT), tmp_path)


async def done_with(name: str, cluster: Cluster, kubectl: Kubectl) -> None:
    """Delete the set and wait until it has left nothing, so that no later write is for it."""
    kubectl.delete(name)
    await cluster.pods(name, 0)
    await cluster.gone("reservation", f"{name}-0")


async def nothing() -> None:
    """For what is under way already."""


async def test_killed_after_any_write_its_successor_finishes_the_job(
    killing: Killing, cluster: Cluster, kubectl: Kubectl
) -> None:
    """The gang has three pods of a whole node each; the run without a kill ends the loop."""
    killed_after: list[str] = []
    for count in range(MOST_WRITES):
        name = f"kill{count}"
        kubectl.apply(engine_set(name, pods=3, gpus=8))
        await cluster.pods(name, 3)
        killed = await killing.after(count, nothing, partial(cluster.running, name))
        if killed is None:
            break
        killed_after.append(killed)
        await check_invariants(cluster, name)
        async with gangs(killing.kubeconfig, killing.folder / "successor.log"):
            seen = await cluster.running(name)
            assert len({pod.spec.node_name for pod in seen.pods.values()}) == 3
            await check_invariants(cluster, name)
            (booked,) = [r for r in await cluster.reservations() if r.metadata.name == f"{name}-0"]
            assert booked.state.value == "Bound"
            await done_with(name, cluster, kubectl)
    # At least: reservation, begin, three lifts, close. Else the kills hit something else.
    kinds = Counter("status" if "/status" in write else write.split()[0] for write in killed_after)
    assert len(killed_after) < MOST_WRITES, killed_after
    assert kinds["POST"] == 1, killed_after
    assert kinds["PATCH"] >= 3, killed_after
    assert kinds["status"] >= 2, killed_after


async def test_killed_while_a_gang_grows_its_successor_finishes_that_too(
    killing: Killing, cluster: Cluster, kubectl: Kubectl
) -> None:
    """Two pods of three are bound; the room for the third comes once `gangs` may be killed."""
    killed_after: list[str] = []
    for count in range(1, MOST_WRITES):
        name, label = f"grow{count}", f"grow{count}-test"
        await cluster.label_nodes(label, count=2)
        kubectl.apply(engine_set(name, pods=3, minimum=2, gpus=8, selector=label))
        async with gangs(killing.kubeconfig, killing.folder / "first.log"):
            await cluster.gang(f"{name}-0", reason=names.REASON_BOUND)

        async def make_room(label: str = label) -> None:
            await cluster.label_nodes(label, count=3)

        killed = await killing.after(count, make_room, partial(cluster.running, name))
        if killed is None:
            break
        killed_after.append(killed)
        await check_invariants(cluster, name)
        async with gangs(killing.kubeconfig, killing.folder / "successor.log"):
            await cluster.running(name)
            await check_invariants(cluster, name)
            await done_with(name, cluster, kubectl)
    growth = [
        write for write in killed_after if "/reservations/" in write and "/status" not in write
    ]
    assert growth, killed_after
    assert [write for write in killed_after if "/pods/" in write], killed_after


async def test_killed_while_it_issues_certificates_admission_never_stops(
    killing: Killing, installed: Installed, kubectl: Kubectl, person: Client
) -> None:
    """Both Secrets are emptied, so authority, trust and leaf are all made anew."""
    killed_after: list[str] = []
    for count in range(MOST_WRITES):
        for secret in (names.CA_SECRET, names.TLS_SECRET):
            await person.merge_patch(SECRETS, secret, {"data": None}, names.NAMESPACE)

        async def issued() -> None:
            await eventually_issued(person)

        killed = await killing.after(count, nothing, issued)
        if killed is None:
            break
        killed_after.append(killed)
        dry_run = kubectl.run(
            "apply", "--dry-run=server", "-f", "-",
            text=yaml.safe_dump(engine_set("admitted", pods=1, gpus=1)),
        )  # fmt: skip
        assert dry_run.returncode == 0, f"after {killed}: {dry_run.stderr}"
    assert len(killed_after) < MOST_WRITES, killed_after
    assert len([write for write in killed_after if "/secrets/" in write]) == 2, killed_after
    assert len([write for write in killed_after if "webhookconfigurations" in write]) == 2


async def eventually_issued(person: Client) -> None:
    """Wait until there is a leaf."""
    async with asyncio.timeout(30):
        while True:
            found = await person.raw_get(SECRETS.path(names.NAMESPACE, names.TLS_SECRET))
            if b"tls.crt" in found:
                return
            await asyncio.sleep(0.1)


async def _done_before_death(
    process: asyncio.subprocess.Process, done: Callable[[], Awaitable[object]]
) -> bool:
    """Return whether it was done with the process still alive."""
    finished = asyncio.ensure_future(done())
    dead = asyncio.ensure_future(process.wait())
    try:
        first, _ = await asyncio.wait({finished, dead}, return_when=asyncio.FIRST_COMPLETED)
        if dead in first:
            return False
        await finished  # fails with what was waited for
        # Its last report may still be under way, and that write counts too.
        await asyncio.sleep(1.0)
        return process.returncode is None
    finally:
        for task in (finished, dead):
            task.cancel()


async def test_a_standby_takes_over_in_the_middle_of_the_work(
    killing: Killing, cluster: Cluster, kubectl: Kubectl
) -> None:
    """One leads and is killed after its third write; the other was warm and goes on."""
    server, tls = tls_of(killing.kubeconfig)
    logs = killing.folder / "first.log", killing.folder / "second.log"
    async with KillingProxy(server, tls, 3) as proxy:
        config = through(proxy, killing.kubeconfig, killing.folder / "through.yaml")
        async with gangs(config, logs[0]) as first:
            proxy.pid = first.pid
            await eventually(lambda: " leads, " in logs[0].read_text(), "the first leads", 30)
            async with gangs(killing.kubeconfig, logs[1]):
                await eventually(
                    lambda: "standing for the lease" in logs[1].read_text(), "a standby", 30
                )
                kubectl.apply(engine_set("pair", pods=3, gpus=8))
                await cluster.running("pair")
            assert (proxy.fired, await first.wait()) == (True, -9)
    assert " leads, " in logs[1].read_text()
    await check_invariants(cluster, "pair")

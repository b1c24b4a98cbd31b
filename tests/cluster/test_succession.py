"""`kill -9` of `gangs` after any write: a successor goes on, and the gang ends up whole."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

import msgspec
import pytest
import yaml

from api import names
from api.jsons import Json, JsonObject
from api.objects import timestamp
from kube.client import Client
from kube.clock import SystemClock
from kube.objects import BareObject
from kube.resources import LEASES, PODGANGS, RESERVATIONS
from penstock.lab.installation import Installation
from tests.support import rotating
from tests.support.controllers import Running, running, without
from tests.support.installed import Installed
from tests.support.killing import KillingProxy, every_write, through
from tests.support.living import Cluster, Kubectl, engine_set, tls_of
from tests.support.ordered import blocked, check_order, clique, of_clique, ordered, said, when
from tests.support.polling import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(420)]


@pytest.fixture
def without_gangs(installed: Installed) -> Iterator[Installation]:
    """Penstock with `gangs` stopped, so that a test can run its own."""
    with without("gangs", installed.installation) as installation:
        yield installation


def gangs(kubeconfig: Path, log: Path, *flags: str) -> Running:
    return running("gangs", kubeconfig, log, "--webhook-host", "127.0.0.1", *flags)


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
class Instant:
    """The n-th write of a kind; `gangs` dies right after it."""

    what: str
    counts: Callable[[str], bool]
    count: int = 1


def reserves(write: str) -> bool:
    return "/reservations" in write and "/status" not in write


def records(write: str) -> bool:
    return "/reservations/" in write and "/status" in write


def lifts(write: str) -> bool:
    return write.startswith("PATCH") and "/pods/" in write and not tells_pods(write)


def tells_pods(write: str) -> bool:
    return "/pods/" in write and "/status" in write


def reports(write: str) -> bool:
    return "/podgangs/" in write and "/status" in write


def issues(write: str) -> bool:
    return "/secrets/" in write or "webhookconfigurations" in write


def speaks(write: str) -> bool:
    return "/events " in write


def tells(write: str) -> bool:
    ours = (names.CAPACITY_CONFIG, names.SCAN_CONFIG)
    return any(f"/configmaps/{name}" in write for name in ours)


AT_THE_START = Instant("before anything", every_write, 0)
OF_A_GANG = (
    AT_THE_START,
    Instant("room is reserved", reserves),
    Instant("lifting is begun", records),
    *(Instant(f"{n} of three are lifted", lifts, n) for n in (1, 2, 3)),
    Instant("the ledger is closed", records, 2),
    Instant("the gang is told", reports),
)
OF_GROWTH = (
    Instant("more room is reserved", reserves),
    Instant("the third is lifted", lifts),
    Instant("the gang is told", reports),
)
OF_WAVES = (
    Instant("the first wave is lifted", lifts),
    Instant("the first pod is told that it waits", tells_pods),
    Instant("half of the second wave is lifted", lifts, 2),
    Instant("the first pod is told that it waits no more", tells_pods, 3),
)


@dataclass(frozen=True)
class Killing:
    """Runs `gangs` and kills it at an instant."""

    kubeconfig: Path
    folder: Path
    flags: tuple[str, ...]

    async def at(
        self,
        instant: Instant,
        act: Callable[[], Awaitable[None]],
        done: Callable[[], Awaitable[object]],
    ) -> list[str]:
        """Return the writes until it was killed; none killed if the instant never came."""
        server, tls = tls_of(self.kubeconfig)
        log = self.folder / "killed.log"
        async with KillingProxy(server, tls, instant.count, instant.counts) as proxy:
            config = through(proxy, self.kubeconfig, self.folder / "through.yaml")
            async with gangs(config, log, *self.flags) as process:
                proxy.pid = process.pid
                await act()
                survived = await _done_before_death(process, done)
        if survived:
            return []
        assert process.returncode == -9, log.read_text()
        return proxy.writes or ["nothing"]


@pytest.fixture
def killing(without_gangs: Installation, tmp_path: Path) -> Killing:
    addresses = str(without_gangs.layout.addresses)
    waits = ("--trust-wait", "0.3", "--retire-after", "0.3")
    flags = ("--webhook-addresses", addresses, *waits)
    return Killing(without_gangs.kubeconfig(names.GANGS_ACCOUNT), tmp_path, flags)


async def done_with(name: str, cluster: Cluster, kubectl: Kubectl) -> None:
    """Delete the set and wait until it has left nothing, so that no later write is for it."""
    kubectl.delete(name)
    await cluster.pods(name, 0)
    await cluster.gone("reservation", f"{name}-0")


async def nothing() -> None:
    """For what is under way already."""


def named(instant: Instant) -> str:
    return f"after {instant.what}"


def some(instants: Sequence[Instant], *soon: int) -> list[object]:
    """All instants, of which only these few are tried at every change: each takes half a minute."""
    rest = pytest.mark.long
    return [
        pytest.param(instant, marks=() if index in soon else rest)
        for index, instant in enumerate(instants)
    ]


@pytest.mark.parametrize("instant", some(OF_A_GANG, 3), ids=named)
async def test_killed_while_it_starts_a_gang_its_successor_finishes_the_job(
    instant: Instant, killing: Killing, cluster: Cluster, kubectl: Kubectl
) -> None:
    """The gang has three pods of a whole node each."""
    kubectl.apply(engine_set("kill", pods=3, gpus=8))
    await cluster.pods("kill", 3)
    assert await killing.at(instant, nothing, partial(cluster.running, "kill"))
    await check_invariants(cluster, "kill")
    async with gangs(killing.kubeconfig, killing.folder / "successor.log"):
        seen = await cluster.running("kill")
        assert len({pod.spec.node_name for pod in seen.pods.values()}) == 3
        await check_invariants(cluster, "kill")
        await eventually_bound(cluster, "kill-0")
        await done_with("kill", cluster, kubectl)


async def test_there_is_no_write_for_a_gang_but_the_ones_it_is_killed_at(
    killing: Killing, cluster: Cluster, kubectl: Kubectl
) -> None:
    """Else the test above would miss an instant."""
    server, tls = tls_of(killing.kubeconfig)
    async with KillingProxy(server, tls, kill_after=-1) as proxy:
        config = through(proxy, killing.kubeconfig, killing.folder / "through.yaml")
        async with gangs(config, killing.folder / "whole.log"):
            kubectl.apply(engine_set("whole", pods=3, gpus=8))
            await cluster.running("whole")
            await eventually_bound(cluster, "whole-0")
            await cluster.gang("whole-0", reason=names.REASON_BOUND)
    # What is said about gangs of other tests changes nothing of this one.
    kinds = (reserves, records, lifts, reports, issues, tells, speaks)
    missed = [write for write in proxy.writes if not any(kind(write) for kind in kinds)]
    assert not missed
    counted = Counter(kind for write in proxy.writes for kind in kinds if kind(write))
    assert (counted[reserves], counted[records], counted[lifts]) == (1, 2, 3), proxy.writes


@pytest.mark.parametrize("instant", some(OF_GROWTH, 1), ids=named)
async def test_killed_while_a_gang_grows_its_successor_finishes_that_too(
    instant: Instant, killing: Killing, cluster: Cluster, kubectl: Kubectl
) -> None:
    """Two pods of three are bound; the room for the third comes once `gangs` may be killed."""
    label = f"grow-{OF_GROWTH.index(instant)}-test"
    await cluster.label_nodes(label, count=2)
    kubectl.apply(engine_set("grow", pods=3, minimum=2, gpus=8, selector=label))
    async with gangs(killing.kubeconfig, killing.folder / "first.log"):
        await cluster.gang("grow-0", reason=names.REASON_BOUND)

    async def make_room() -> None:
        await cluster.label_nodes(label, count=3)

    assert await killing.at(instant, make_room, partial(cluster.running, "grow"))
    await check_invariants(cluster, "grow")
    async with gangs(killing.kubeconfig, killing.folder / "successor.log"):
        await cluster.running("grow")
        await check_invariants(cluster, "grow")
        await done_with("grow", cluster, kubectl)


@pytest.mark.long
@pytest.mark.parametrize("instant", OF_WAVES, ids=named)
async def test_killed_between_the_waves_of_a_gang_its_successor_goes_on(
    instant: Instant, killing: Killing, cluster: Cluster, kubectl: Kubectl
) -> None:
    """One pod starts at once, and two wait for it, which takes longer than a moment."""
    slow: JsonObject = {"lab.penstock.dev/start-seconds": "3"}
    tip, last = clique("tip", gpus=8, notes=slow), clique("last", "tip", replicas=2, gpus=8)
    kubectl.apply(ordered("wave", "CliqueStartupTypeExplicit", [tip, last]))
    await cluster.pods("wave", 3)

    async def told() -> list[str]:
        await cluster.running("wave")
        pods = of_clique(await cluster.pods("wave", 3), "wave-0-last")
        return [(await blocked(cluster, p.metadata.name, "False")).reason for p in pods]

    assert await killing.at(instant, nothing, told)
    await check_invariants(cluster, "wave")
    (booked,) = await cluster.reservations()
    assert booked.size == 3
    async with gangs(killing.kubeconfig, killing.folder / "successor.log"):
        pods = await when(cluster, "wave", 3, ready=["wave-0-tip", "wave-0-last"])
        check_order(pods, "wave-0-last", "wave-0-tip")
        await eventually_bound(cluster, "wave-0")
        for pod in pods:
            if said(pod, names.STARTUP_BLOCKED):
                await blocked(cluster, pod.metadata.name, "False")
        await done_with("wave", cluster, kubectl)


async def test_what_an_earlier_leader_writes_after_its_time_keeps_no_room(
    killing: Killing, cluster: Cluster, kubectl: Kubectl, person: Client
) -> None:
    """Such a request may have been under way while the lease changed hands."""
    kubectl.apply(engine_set("late", pods=2, gpus=8, gates=["bench.example/hold"]))
    await cluster.pods("late", 2)
    log = killing.folder / "leads.log"
    async with gangs(killing.kubeconfig, log, *killing.flags):
        gang = await cluster.gang("late-0", reason=names.REASON_FOREIGN_GATES)
        assert "bench.example/hold" in gang.message
        leads = await term(person)
        assert leads > 0
        await person.create(RESERVATIONS, await late(cluster, leads), cluster.namespace)
        await cluster.quiet("reservations")
        (kept,) = await cluster.reservations()
        assert kept.spec.generation == leads, "what is of its own term it keeps"
        await person.delete(RESERVATIONS, "late-0", cluster.namespace)
        await person.create(RESERVATIONS, await late(cluster, leads - 1), cluster.namespace)
        await cluster.gone("reservation", "late-0")
        assert f"a leader of generation {leads - 1} wrote it after its time" in log.read_text()
        await done_with("late", cluster, kubectl)


async def term(person: Client) -> int:
    """Tell how often the lease of `gangs` has changed hands."""
    path = LEASES.path(names.NAMESPACE, names.GANGS_LEASE)
    lease = msgspec.json.decode(await person.raw_get(path))
    return int(lease["spec"]["leaseTransitions"])


async def late(cluster: Cluster, generation: int) -> JsonObject:
    """Write a reservation for the waiting gang, as a leader of that generation would."""
    nodes = await cluster.label_nodes("late-test", count=2)
    gang = await cluster.client.get(PODGANGS, BareObject, "late-0", cluster.namespace)
    slots: list[Json] = [{"index": index, "node": node} for index, node in enumerate(nodes)]
    requests: JsonObject = {"nvidia.com/gpu": "8", "pods": "1"}
    return {
        "apiVersion": RESERVATIONS.api_version,
        "kind": RESERVATIONS.kind,
        "metadata": {"name": "late-0"},
        "spec": {
            "gang": {"name": "late-0", "uid": gang.metadata.uid},
            "deadline": timestamp(SystemClock().now() + timedelta(minutes=10)),
            "generation": generation,
            "groups": [{"name": "late-0-engine", "requests": requests, "slots": slots}],
        },
    }


@pytest.mark.long
async def test_killed_after_each_write_of_its_certificates_admission_never_stops(
    killing: Killing, kubectl: Kubectl, person: Client
) -> None:
    """Both Secrets are emptied, so that all is made anew, by a process for each single write."""
    for secret in (names.CA_SECRET, names.TLS_SECRET):
        await rotating.spoil(person, secret, None)
    after_one = Instant("a write", issues)
    done = partial(rotating.until, person, lambda found: found.at_rest and not found.former)
    written: list[str] = []
    while writes := await killing.at(after_one, nothing, done):
        written += [write.split()[1].rsplit("/", 1)[-1] for write in writes if issues(write)]
        assert len(written) < 20, written
        dry_run = kubectl.run(
            "apply", "--dry-run=server", "-f", "-",
            text=yaml.safe_dump(engine_set("admitted", pods=1, gpus=1)),
        )  # fmt: skip
        assert dry_run.returncode == 0, (written, dry_run.stderr)
    ca, tls, configuration = names.CA_SECRET, names.TLS_SECRET, names.WEBHOOK_CONFIGURATION
    # Introduced, trusted twice, marked, promoted; the leaf; served; distrusted twice, forgotten.
    twice = [configuration, configuration]
    assert written == [ca, *twice, ca, ca, tls, ca, *twice, ca]


async def eventually_bound(cluster: Cluster, reservation: str) -> None:
    """Wait until the ledger says that the gang has its room for good."""

    async def attempt() -> bool | None:
        found = {r.metadata.name: r.state.value for r in await cluster.reservations()}
        return found.get(reservation) == "Bound" or None

    await cluster.until(attempt, f"reservation {reservation} Bound")


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

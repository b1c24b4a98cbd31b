"""Penstock into a lab: the chart by helm, the components as processes, then proof that it works."""

import asyncio
import fcntl
import hashlib
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec

import penstock
from api import features, names
from kube import credentials
from kube.client import Client
from kube.clock import SystemClock
from kube.errors import ApiError, NotFound
from kube.resources import NAMESPACES, PODGANGS
from kube.transport import Patience, Transport
from penstock.lab import (
    account,
    defaults,
    fingerprint,
    helm,
    kubeconfigs,
    ports,
    processes,
    projected,
    readiness,
    supervision,
    tokens,
)
from penstock.lab.errors import LabError
from penstock.lab.installation import Installation
from penstock.lab.layout import ACCOUNTS, KUBELET_ACCOUNT, Layout, Settings
from penstock.lab.readiness import Check, Person

POLL_SECONDS = 0.2
KEEPER_GRACE = supervision.STOP_SECONDS + 4.0
KEEPER_START_SECONDS = 20.0

GROVE_ACCOUNT = defaults.GROVE_ACCOUNT

Report = Callable[[str], None]


@dataclass(frozen=True)
class InstallOptions:
    """What the person may choose."""

    webhooks: int = 2
    workloads: bool = True
    timeout: float = 60.0
    restart: bool = False
    verbose: bool = False
    feature_gates: str = ""
    companion: bool = False
    grove_account: str = GROVE_ACCOUNT
    log_format: str = "text"
    traces_endpoint: str = ""

    def values(self) -> list[str]:
        """Give the settings of the chart that follow from these."""
        gates = features.read(self.feature_gates)
        found = [f"featureGates.{each}" for each in gates.text.split(",")]
        if self.companion:
            namespace, _, name = self.grove_account.partition("/")
            found += [
                "companion.enabled=true",
                f"grove.accounts[0].namespace={namespace}",
                f"grove.accounts[0].name={name}",
            ]
        return found


async def install(
    lab_directory: Path,
    kubeconfig: Path,
    helm_binary: Path,
    options: InstallOptions,
    report: Report,
) -> Installation:
    """Install Penstock into a running lab, or bring it up to date, and return when it works.

    `kubeconfig` is the person's, and like the directory an absolute path. `report` is told each
    step as it begins. What runs already and is not out of date goes on running. Raises LabError
    with one line that says what is not up.
    """
    layout = Layout.of(lab_directory)
    layout.create()
    with _only_one(layout):
        try:
            return await _install(layout, kubeconfig, helm_binary, options, report)
        except ApiError as error:
            raise LabError(f"the lab's API server: {error.message}") from error


async def _install(
    layout: Layout,
    kubeconfig: Path,
    helm_binary: Path,
    options: InstallOptions,
    report: Report,
) -> Installation:
    cluster = kubeconfigs.cluster_of(kubeconfig)
    settings = _settings(layout, cluster, options)
    async with _person(kubeconfig) as person:
        report("chart: helm upgrade --install")
        say = report if options.verbose else _silent
        tool = helm.Helm(helm_binary, kubeconfig, layout.root / "helm")
        url = f"https://{ports.LOOPBACK}:{settings.balancer_port}"
        await _see_groves_kinds(person.client, options)
        await helm.apply_chart(tool, url, person.client, say, options.values())
        report("accounts: tokens and kubeconfigs")
        await _label_namespace(person.client)
        await account.grant(person.client)
        await _write_credentials(layout, cluster, person.client)
        await _run_keeper(layout, settings, report, restart=options.restart)
        await _wait(layout, settings, person, options.timeout, report)
    return Installation(layout)


def stop(directory: Path) -> None:
    """End whatever of Penstock runs beside the lab in this directory; nothing there is fine too.

    The keeper ends its components itself. What a killed keeper left is found by its record.
    """
    layout = Layout.of(directory)
    keeper = processes.read_record(layout.record("keeper"))
    if keeper is not None:
        processes.stop([keeper], KEEPER_GRACE)
    left = [processes.read_record(path) for path in layout.records.glob("*.json")]
    processes.stop([record for record in left if record is not None], supervision.STOP_SECONDS)
    for path in layout.records.glob("*.json"):
        path.unlink(missing_ok=True)


def _silent(_: str) -> None:
    return


@contextmanager
def _only_one(layout: Layout) -> Iterator[None]:
    with layout.install_lock.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = "another `penstock lab install` is at work in this lab: wait until it is done"
            raise LabError(message) from error
        yield


@asynccontextmanager
async def _person(kubeconfig: Path) -> AsyncIterator[Person]:
    clock = SystemClock()
    own = credentials.load(kubeconfig, None, clock, {})
    transport = Transport(own, "penstock/lab-install", clock, Patience())
    transport.open()
    try:
        async with Client(own, "lab-install", clock) as client:
            yield Person(client, transport)
    finally:
        await transport.close()


def _settings(layout: Layout, cluster: dict[str, object], options: InstallOptions) -> Settings:
    # The cluster counts too: a lab that was made anew under the same name voids every token.
    seen = f"{fingerprint.of_code(Path(penstock.__file__).parent.parent)} {cluster}"
    return Settings(
        balancer_port=_balancer_port(layout),
        webhooks=options.webhooks,
        workloads=options.workloads and not options.companion,
        code=hashlib.sha256(seen.encode()).hexdigest()[:16],
        feature_gates=options.feature_gates,
        companion=options.companion,
        log_format=options.log_format,
        traces_endpoint=options.traces_endpoint,
    )


def _balancer_port(layout: Layout) -> int:
    """Keep the last port, since the API server knows it, unless a stranger has it now."""
    with suppress(LabError, msgspec.MsgspecError):
        last = Installation(layout).settings.balancer_port
        if Installation(layout).running("keeper") or ports.is_free(last):
            return last
    return ports.choose(1, (), Random(str(layout.root)))[0]  # noqa: S311  (no secret)


async def _see_groves_kinds(person: Client, options: InstallOptions) -> None:
    """As a companion we bring no definition of Grove's, and `gangs` needs one of them."""
    if not options.companion:
        return
    try:
        await person.probe(PODGANGS)
    except NotFound as error:
        message = (
            f"--companion: {PODGANGS.full_name} are not served in this lab; install Grove's "
            "definitions first, then this"
        )
        raise LabError(message) from error


async def _label_namespace(person: Client) -> None:
    labels = {
        f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")
    }
    body = {"metadata": {"labels": labels}}
    await person.merge_patch(NAMESPACES, names.NAMESPACE, body)


async def _write_credentials(layout: Layout, cluster: dict[str, object], person: Client) -> None:
    """Give the keeper a token to start from, and everyone a kubeconfig around their own."""
    text = await account.ApiCluster(person).token(KUBELET_ACCOUNT, tokens.KUBELET_SECONDS)
    projected.project(layout.token_directory(KUBELET_ACCOUNT), {"token": text.encode()})
    if not layout.audit_key.exists():
        # Kept as long as the lab: by another key the same text would have another tag.
        kubeconfigs.write_private(layout.audit_key, secrets.token_hex(32))
    for each in (*ACCOUNTS, KUBELET_ACCOUNT):
        content = kubeconfigs.render(cluster, each, layout.token(each))
        kubeconfigs.write_private(layout.kubeconfig(each), content)


async def _run_keeper(layout: Layout, settings: Settings, report: Report, *, restart: bool) -> None:
    installation = Installation(layout)
    if installation.running("keeper"):
        if not restart and installation.settings == settings:
            report("processes: running and up to date")
            return
        report("processes: starting again, what runs is old")
    else:
        report("processes: starting")
    await asyncio.to_thread(stop, layout.root.parent)
    for hold in layout.holds.iterdir():
        hold.unlink()
    kubeconfigs.write_private(layout.settings, msgspec.json.encode(settings).decode())
    launcher = await asyncio.create_subprocess_exec(
        *supervision.module_command(
            "penstock.lab.keeper", "--directory", str(layout.root.parent), "--detach"
        ),
        cwd=layout.root,
    )
    await launcher.wait()
    try:
        async with asyncio.timeout(KEEPER_START_SECONDS):
            while not installation.running("keeper"):  # noqa: ASYNC110  (another process's file)
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError as error:
        raise LabError(f"the keeper did not start: {_last_words(layout, 'keeper')}") from error


async def _wait(
    layout: Layout, settings: Settings, person: Person, seconds: float, report: Report
) -> None:
    deadline = asyncio.get_running_loop().time() + seconds
    for check in readiness.checks(settings, person):
        report(f"waiting: {check.step}")
        missing = ""
        while asyncio.get_running_loop().time() < deadline:
            try:
                missing = await check.ask()
            except ApiError as error:
                missing = error.message
            if not missing:
                break
            if not Installation(layout).running("keeper"):
                raise LabError(f"the keeper has ended: {_last_words(layout, 'keeper')}")
            await asyncio.sleep(POLL_SECONDS)
        else:
            raise LabError(_not_up(layout, check, missing, seconds))


def _not_up(layout: Layout, check: Check, missing: str, seconds: float) -> str:
    if not check.blame:
        return f"after {seconds:.0f} s: {missing or check.step}"
    silent = [name for name in check.blame if not Installation(layout).running(name)]
    blamed = (silent or check.blame)[0]
    state = "does not run" if silent else "is not up"
    problem = missing or f"{check.step}: no time was left"
    return f"{blamed} {state} after {seconds:.0f} s: {problem}; {_last_words(layout, blamed)}"


def _last_words(layout: Layout, process: str) -> str:
    last = processes.last_line(layout.log(process))
    return f"last line of {layout.log(process)}: {last or '(empty)'}"

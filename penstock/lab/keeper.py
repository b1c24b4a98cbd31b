"""The one background process of an installed lab: `python -m penstock.lab.keeper --directory DIR`.

It plays the kubelet for our components (tokens, TLS files), runs them and starts them again when
they end, and balances webhook calls between those that are ready. Nothing it started outlives it.
"""

import argparse
import asyncio
import fcntl
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import msgspec

from api import exits, features, names
from kube import credentials, logs, tracing
from kube.client import Client
from kube.clock import SystemClock
from kube.errors import ApiError
from kube.exposing import PATH, Address
from penstock.lab import balancer, processes, supervision
from penstock.lab.account import ApiCluster
from penstock.lab.balancer import Balancer
from penstock.lab.kubelet import Kubelet
from penstock.lab.layout import KUBELET_ACCOUNT, Layout, Settings
from penstock.lab.ports import LOOPBACK
from penstock.lab.supervision import Component, Events

LOG = logging.getLogger("keeper")

PROBE_INTERVAL = 0.5
# Enough for the balancer to see that a webhook leaves: it needs no longer than two probes.
DRAIN_SECONDS = "1.5"
DIRECTORY_SECONDS = 1.0
# One API server on this machine learns of a new CA bundle much sooner than several elsewhere.
TRUST_SECONDS = "10"
# Pretend pods pull no image; the name shows in those that wait in an init container.
WAITER_IMAGE = "penstock-waiter:lab"


class KeeperError(Exception):
    """The keeper cannot start; carries the line to show and the exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


CommandLine = Callable[[Layout, Settings, str, int], Sequence[str]]
"""How a component is run: by layout and settings of the lab, its name, and a webhook's port."""


class Keeper:
    """Runs everything of one lab until cancelled."""

    def __init__(
        self, layout: Layout, settings: Settings, kubelet: Kubelet, command_line: CommandLine
    ) -> None:
        self._layout = layout
        self._command_line = command_line
        self._settings = settings
        self._kubelet = kubelet
        self._balancer = Balancer(LOOPBACK)

    async def run(self) -> None:
        """Keep everything up until cancelled or the lab is gone; then all has ended on return."""
        try:
            await self._balancer.start(self._settings.balancer_port)
        except OSError as error:
            message = f"port {self._settings.balancer_port} of the balancer is taken: {error}"
            raise KeeperError(message, exits.PORT_TAKEN) from error
        try:
            await self._kubelet.first_tokens()
            async with asyncio.TaskGroup() as tasks:
                duties = [
                    self._kubelet.keep_tokens(),
                    self._kubelet.keep_certificate(),
                    self._balancer.follow(_ready, PROBE_INTERVAL),
                    self._publish_addresses(),
                    *(self._supervise(name) for name in self._settings.components()),
                ]
                running = [tasks.create_task(duty) for duty in duties]
                await self._until_the_lab_is_gone()
                for task in running:
                    task.cancel()
        finally:
            await self._balancer.close()

    async def _publish_addresses(self) -> None:
        """Write down where ready webhooks answer, as a Service's endpoints say in a cluster."""
        written: list[str] = []
        self._layout.addresses.write_text("")
        while True:
            await asyncio.sleep(PROBE_INTERVAL)
            if (ready := self._balancer.addresses()) != written:
                fresh = self._layout.addresses.with_suffix(".new")
                fresh.write_text("".join(f"{address}\n" for address in ready))
                fresh.replace(self._layout.addresses)
                written = ready

    async def _until_the_lab_is_gone(self) -> None:
        # If somebody removes the lab's directory by hand, nothing can find us any more to stop us.
        while self._layout.settings.exists():  # noqa: ASYNC110  (others remove it)
            await asyncio.sleep(DIRECTORY_SECONDS)
        LOG.warning("%s is gone: ending", self._layout.settings)

    async def _supervise(self, name: str) -> None:
        await supervision.supervise(self._component(name), Events(LOG.info, self._ended))

    def _component(self, name: str) -> Component:
        layout = self._layout
        return Component(
            name=name,
            command=lambda: self._command(name),
            log=layout.log(name),
            record=layout.record(name),
            hold=layout.hold(name),
        )

    def _command(self, name: str) -> Sequence[str]:
        port = 0
        if name.startswith("webhook"):
            port = free_port()
            self._balancer.point(name, port)
        metrics = Address(LOOPBACK, free_port())
        self._layout.metrics(name).write_text(f"http://{metrics}{PATH}\n", encoding="ascii")
        command = self._command_line(self._layout, self._settings, name, port)
        return [*command, "--metrics-address", str(metrics)]

    def _ended(self, name: str, code: int) -> None:
        self._balancer.withdraw(name)
        if code == exits.BAD_CREDENTIALS:
            # Its account may have been made anew, which voids the token long before it expires.
            self._kubelet.suspect(account_of(name))


def account_of(component: str) -> str:
    """Return the account that a component speaks as; all webhooks share one."""
    return f"penstock-{component.partition('-')[0]}"


def command_line(layout: Layout, settings: Settings, name: str, port: int) -> Sequence[str]:
    """Return how one of our components is run."""
    kind = name.partition("-")[0]
    access = ["--kubeconfig", str(layout.kubeconfig(account_of(name)))]
    access += ["--namespace", names.NAMESPACE]
    if settings.feature_gates:
        access += [features.FLAG, settings.feature_gates]
    if settings.log_format != "text":
        access += [logs.FLAG, settings.log_format]
    if settings.traces_endpoint:
        access += [tracing.FLAG, settings.traces_endpoint]
    if settings.companion and kind != "workloads":
        access.append("--companion")
    if kind == "webhook":
        address = ("--host", LOOPBACK, "--port", str(port))
        serving = ("--tls-dir", str(layout.tls), "--drain-seconds", DRAIN_SECONDS)
        audit = ("--audit-dir", str(layout.audit / name), "--audit-replica", name)
        key = ("--audit-key", str(layout.audit_key))
        return supervision.module_command("webhook", *address, *serving, *audit, *key, *access)
    if kind == "gangs":
        access += ["--webhook-host", LOOPBACK, "--webhook-addresses", str(layout.addresses)]
        access += ["--trust-wait", TRUST_SECONDS]
    if kind == "workloads":
        access += ["--waiter-image", WAITER_IMAGE, "--mnnvl"]
    return supervision.module_command(f"controller.{kind}", *access)


def free_port() -> int:
    """Return a loopback port that is free now; who loses the race for it tries another."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


async def _ready(port: int) -> bool:
    return await balancer.https_readyz(LOOPBACK, port)


async def keep(layout: Layout) -> None:
    """Do a keeper's work for one lab until SIGTERM or SIGINT."""
    task = asyncio.current_task()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel if task else sys.exit)
    settings = msgspec.json.decode(layout.settings.read_bytes(), type=Settings)
    clock = SystemClock()
    own = credentials.load(layout.kubeconfig(KUBELET_ACCOUNT), None, clock, {})
    async with Client(own, "lab-kubelet", clock) as client:
        kubelet = Kubelet(layout, ApiCluster(client), lambda: clock.now().timestamp())
        with suppress(asyncio.CancelledError):
            await Keeper(layout, settings, kubelet, command_line).run()


def take_lock(layout: Layout) -> TextIO:
    """Become the lab's only keeper for as long as the returned file stays open."""
    file = layout.keeper_lock.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise KeeperError("this lab has a keeper already", exits.UNEXPECTED) from error
    return file


def record_self(layout: Layout) -> None:
    """End what a keeper that was killed may have left behind, and write down who keeps now."""
    leftovers = [processes.read_record(path) for path in layout.records.glob("*.json")]
    processes.stop([each for each in leftovers if each is not None], supervision.STOP_SECONDS)
    for path in layout.records.glob("*.json"):
        path.unlink(missing_ok=True)
    record = processes.record_of(os.getpid())
    if record is not None:
        processes.write_record(layout.record("keeper"), record)


def detach(layout: Layout) -> None:
    """Start a keeper in a session of its own, with its log as output, and do not wait for it."""
    command = supervision.module_command(
        "penstock.lab.keeper", "--directory", str(layout.root.parent)
    )
    with layout.log("keeper").open("ab") as log:
        subprocess.Popen(  # noqa: S603  (our own module)
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=layout.root,
            start_new_session=True,
        )


def main() -> int:
    """Keep one lab; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m penstock.lab.keeper",
        description="Runs Penstock's components beside a lab. `penstock lab install` starts it.",
        epilog="example: python -m penstock.lab.keeper --directory LABS/demo",
    )
    parser.add_argument("--directory", type=Path, required=True, help="the lab's directory")
    parser.add_argument(
        "--detach", action="store_true", help="start it in the background and return"
    )
    arguments = parser.parse_args()
    layout = Layout.of(arguments.directory.absolute())
    if arguments.detach:
        detach(layout)
        return exits.OK
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO, stream=sys.stderr)
    try:
        with take_lock(layout):
            record_self(layout)
            try:
                asyncio.run(keep(layout))
            finally:
                layout.record("keeper").unlink(missing_ok=True)
    except KeeperError as error:
        LOG.error("%s", error)  # noqa: TRY400  (one line is what is promised)
        return error.code
    except (ApiError, OSError, msgspec.MsgspecError) as error:
        LOG.error("cannot keep %s: %s", layout.root, error)  # noqa: TRY400  (the same)
        return exits.BAD_SETTINGS
    return exits.OK


if __name__ == "__main__":
    sys.exit(main())

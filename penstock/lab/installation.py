"""An installed Penstock as tests and commands see it: its files, its tokens, its processes."""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import sleep

import msgspec

from kube.clock import SystemClock
from penstock.lab import processes
from penstock.lab.errors import LabError
from penstock.lab.layout import Layout, Settings

WAIT_SECONDS = 20.0
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Installation:
    """Penstock in one lab. Components: webhook-0 (and on), workloads, gangs; also `keeper`."""

    layout: Layout

    @property
    def settings(self) -> Settings:
        """Return what the keeper was told to run."""
        try:
            return msgspec.json.decode(self.layout.settings.read_bytes(), type=Settings)
        except FileNotFoundError as error:
            message = "Penstock is not installed in this lab: run `penstock lab install`"
            raise LabError(message) from error

    def token(self, account: str) -> str:
        """Return an account's token as its component has it now."""
        return self.layout.token(account).read_text(encoding="ascii")

    def kubeconfig(self, account: str) -> Path:
        """Return the kubeconfig in which the account speaks by its token."""
        return self.layout.kubeconfig(account)

    def log(self, component: str) -> Path:
        """Return where a component's output goes."""
        return self.layout.log(component)

    def metrics(self, component: str) -> str:
        """Return the URL at which a component serves its metrics; LabError if it does not run."""
        self.pid(component)
        return self.layout.metrics(component).read_text(encoding="ascii").strip()

    def running(self, component: str) -> bool:
        """Tell whether the component's process runs."""
        record = processes.read_record(self.layout.record(component))
        return record is not None and processes.running(record)

    def pid(self, component: str) -> int:
        """Return the pid of the running component; LabError if it does not run."""
        record = processes.read_record(self.layout.record(component))
        if record is None or not processes.running(record):
            last = processes.last_line(self.layout.log(component))
            raise LabError(f"{component} does not run; last line of its log: {last or 'none'}")
        return record.pid

    def stop_component(self, component: str) -> None:
        """End a component in order and keep it stopped until start_component."""
        self.layout.hold(component).touch()
        self._wait(lambda: not self.running(component), f"{component} did not stop")

    def kill_component(self, component: str) -> None:
        """End a component as `kill -9` does and keep it dead until start_component."""
        pid = self.pid(component)
        self.layout.hold(component).touch()
        os.kill(pid, signal.SIGKILL)
        self._wait(lambda: not self.running(component), f"{component} did not die")

    def start_component(self, component: str) -> None:
        """Let a stopped component run again; returns when its process is there."""
        self.layout.hold(component).unlink(missing_ok=True)
        self._wait(lambda: self.running(component), f"{component} did not start")

    def _wait(self, condition: Callable[[], bool], complaint: str) -> None:
        clock = SystemClock()
        deadline = clock.monotonic() + WAIT_SECONDS
        while not condition():
            if clock.monotonic() > deadline:
                last = processes.last_line(self.layout.log("keeper"))
                raise LabError(f"{complaint} in {WAIT_SECONDS:.0f} s; the keeper says: {last}")
            sleep(POLL_SECONDS)

"""The lab's control plane: its daemons killed, and started again as they were."""

import asyncio
import contextlib
import subprocess
from dataclasses import dataclass, field
from typing import Final

import psutil

from penstock.lab import processes
from penstock.lab.folders import Folder
from penstock.lab.processes import Record
from penstock.lab.state import read_state, write_state

LOOK_SECONDS: Final = 0.5


@dataclass(frozen=True)
class _Line:
    """How a daemon was started."""

    command: list[str]
    cwd: str
    environment: dict[str, str]


@dataclass
class Daemons:
    """Kills daemons and starts them anew; what ends by itself is started anew too.

    kube-scheduler and kube-controller-manager end when they lose their lease, which an API server
    that is long in coming back costs them; elsewhere a kubelet would start them again.
    """

    folder: Folder
    starts: int = 0
    _lines: dict[str, _Line] = field(default_factory=dict)
    _records: dict[str, Record] = field(default_factory=dict)
    _children: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _down: set[str] = field(default_factory=set)
    _turns: dict[str, asyncio.Lock] = field(default_factory=dict)

    def learn(self) -> None:
        """Take note of how everything was started."""
        state = read_state(self.folder)
        assert state is not None
        for name, record in state.records.items():
            process = psutil.Process(record.pid)
            self._records[name] = record
            self._lines[name] = _Line(process.cmdline(), process.cwd(), process.environ())

    async def keep(self) -> None:
        """Start again whatever ends, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for name, record in list(self._records.items()):
                if name not in self._down and not processes.running(record):
                    self._start(name)

    async def restart(self, name: str, down_seconds: float) -> None:
        """Kill a daemon as `kill -9` does, and start it after some time.

        One after the other, if several ask for it: two of a kind would fight for a port.
        """
        async with self._turns.setdefault(name, asyncio.Lock()):
            self._down.add(name)
            try:
                with contextlib.suppress(psutil.NoSuchProcess):
                    psutil.Process(self._records[name].pid).kill()
                while processes.running(self._records[name]):
                    await asyncio.sleep(0.02)
                await asyncio.sleep(down_seconds)
            finally:
                self._start(name)
                self._down.discard(name)

    def _start(self, name: str) -> None:
        line = self._lines[name]
        for child in self._children:
            child.poll()
        with (self.folder.cluster / "logs" / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                line.command, cwd=line.cwd, env=line.environment, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._children.append(child)
        self.starts += 1
        record = processes.record_of(child.pid)
        assert record is not None
        self._records[name] = record
        (self.folder.cluster / "pids" / f"{name}.pid").write_text(str(child.pid))
        state = read_state(self.folder)
        assert state is not None
        write_state(self.folder, state.with_daemons(self._records, complete=True))

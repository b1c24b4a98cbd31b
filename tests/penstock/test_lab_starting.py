"""Daemons that end a while after they were seen to run are started again; tried on small ones."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from penstock.lab import processes, starting
from penstock.lab.commands import Command, Finished
from penstock.lab.errors import LabError
from penstock.lab.folders import Folder
from penstock.lab.kwokctl import Plan
from penstock.lab.processes import Record
from penstock.lab.spec import COMPONENTS, LabSpec
from tests.webhook.running import until


@dataclass
class Kwokctl:
    """Starts whatever does not run, as kwokctl does; some of it may refuse."""

    folder: Folder
    refuses: str = ""
    calls: list[Command] = field(default_factory=list)
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)

    async def __call__(self, command: Command) -> Finished:
        self.calls.append(command)
        for component in COMPONENTS:
            if component != self.refuses and not self._pid_file(component).exists():
                self.begin(component)
        return Finished(0, "")

    def begin(self, component: str) -> Record:
        program = "import time; time.sleep(600)"
        child = subprocess.Popen([sys.executable, "-c", program, f"{self.folder.root}/x"])
        self.children.append(child)
        until(lambda: bool(psutil.Process(child.pid).cmdline()), "a command line")
        self._pid_file(component).parent.mkdir(parents=True, exist_ok=True)
        self._pid_file(component).write_text(str(child.pid))
        record = processes.record_of(child.pid)
        assert record is not None
        return record

    def end(self, record: Record) -> None:
        (child,) = (each for each in self.children if each.pid == record.pid)
        child.kill()
        child.wait()

    def _pid_file(self, component: str) -> Path:
        return self.folder.cluster / "pids" / f"{component}.pid"


@pytest.fixture
def kwokctl(tmp_path: Path) -> Iterator[Kwokctl]:
    made = Kwokctl(Folder("try", tmp_path / "try"))
    yield made
    for child in made.children:
        child.kill()
        child.wait()


def plan(kwokctl: Kwokctl) -> Plan:
    binaries = dict.fromkeys(("kwokctl", "kubectl"), Path("/bin/false"))
    return Plan(LabSpec("try"), kwokctl.folder, {}, binaries)


async def test_who_lost_its_lease_while_the_api_server_came_back_is_started_again(
    kwokctl: Kwokctl,
) -> None:
    records = {component: kwokctl.begin(component) for component in COMPONENTS}
    kwokctl.end(records["kube-scheduler"])
    found = await starting.mended(plan(kwokctl), records, kwokctl)
    assert [name for name in COMPONENTS if not processes.running(found[name])] == []
    assert [name for name in COMPONENTS if found[name] != records[name]] == ["kube-scheduler"]


async def test_nothing_is_done_where_nothing_has_ended(kwokctl: Kwokctl) -> None:
    records = {component: kwokctl.begin(component) for component in COMPONENTS}
    assert await starting.mended(plan(kwokctl), records, kwokctl) == records
    assert kwokctl.calls == []


async def test_who_ends_again_and_again_is_named(kwokctl: Kwokctl) -> None:
    records = {component: kwokctl.begin(component) for component in COMPONENTS}
    kwokctl.end(records["kube-scheduler"])
    kwokctl.refuses = "kube-scheduler"
    with pytest.raises(LabError, match="kube-scheduler ended right after its start"):
        await starting.mended(plan(kwokctl), records, kwokctl)

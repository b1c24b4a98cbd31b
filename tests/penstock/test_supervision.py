import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from api import exits
from penstock.lab import processes, supervision
from penstock.lab.supervision import Component, Events

FOREVER = "import time; print('up', flush=True); time.sleep(600)"
REFUSES = f"print('bad: fix it', flush=True); raise SystemExit({exits.BAD_SETTINGS})"


@dataclass
class Rig:
    """One supervised component under test."""

    folder: Path
    code: str
    said: list[str] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    task: "asyncio.Task[None] | None" = None

    @property
    def component(self) -> Component:
        return Component(
            name="gangs",
            command=lambda: [sys.executable, "-S", "-c", self.code],
            log=self.folder / "gangs.log",
            record=self.folder / "gangs.json",
            hold=self.folder / "hold",
        )

    def start(self) -> None:
        events = Events(self.said.append, lambda _, code: self.ends.append(code))
        work: Coroutine[object, object, None] = supervision.supervise(self.component, events)
        self.task = asyncio.create_task(work)

    def pid(self) -> int:
        record = processes.read_record(self.component.record)
        return record.pid if record is not None and processes.running(record) else 0

    async def stop(self) -> None:
        assert self.task is not None
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(15):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_killed_component_runs_again_with_a_new_record(tmp_path: Path) -> None:
    rig = Rig(tmp_path, FOREVER)
    rig.start()
    await until(rig.pid)
    first = rig.pid()
    os.kill(first, signal.SIGKILL)
    await until(lambda: rig.pid() not in {0, first})
    assert rig.ends == [-9]
    assert "gangs was ended by SIGKILL; starting it again in 0.25 s" in rig.said
    await rig.stop()


async def test_when_supervision_ends_the_component_has_ended(tmp_path: Path) -> None:
    rig = Rig(tmp_path, FOREVER)
    rig.start()
    await until(rig.pid)
    pid = rig.pid()
    await rig.stop()
    assert not psutil.pid_exists(pid)
    assert not rig.component.record.exists()


async def test_a_held_component_is_ended_and_stays_so_until_let_go(tmp_path: Path) -> None:
    rig = Rig(tmp_path, FOREVER)
    rig.start()
    await until(rig.pid)
    rig.component.hold.touch()
    await until(lambda: "gangs is held stopped" in rig.said)
    assert rig.pid() == 0
    rig.component.hold.unlink()
    await until(rig.pid)
    await rig.stop()


async def test_one_that_is_held_from_the_start_is_not_run(tmp_path: Path) -> None:
    rig = Rig(tmp_path, FOREVER)
    rig.component.hold.touch()
    rig.start()
    await asyncio.sleep(3 * supervision.POLL_SECONDS)
    assert not rig.component.log.exists()
    rig.component.hold.unlink()
    await until(rig.pid)
    await rig.stop()


async def test_its_end_is_told_in_words_and_its_own_line_is_in_its_log(tmp_path: Path) -> None:
    rig = Rig(tmp_path, REFUSES)
    rig.start()
    await until(lambda: len(rig.ends) >= 2)
    assert rig.ends[:2] == [exits.BAD_SETTINGS] * 2
    assert "gangs ended with code 2 (its settings are wrong); starting" in rig.said[0]
    assert processes.last_line(rig.component.log) == "bad: fix it"
    await rig.stop()


async def test_a_component_knows_nothing_of_the_persons_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/the/persons/own")
    rig = Rig(tmp_path, "import os; print(os.environ.get('KUBECONFIG', 'none'), flush=True)")
    rig.start()
    await until(lambda: rig.ends)
    assert processes.last_line(rig.component.log) == "none"
    await rig.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of a death")
async def test_a_component_dies_with_a_keeper_that_is_killed(tmp_path: Path) -> None:
    component = (
        f"Component('c', lambda: [sys.executable, '-S', '-c', {FOREVER!r}],"
        f" Path({str(tmp_path / 'c.log')!r}), Path({str(tmp_path / 'c.json')!r}), Path('/no'))"
    )
    code = (
        "import asyncio, sys\nfrom pathlib import Path\n"
        "from penstock.lab.supervision import *\n"
        f"asyncio.run(supervise({component}, Events(print, print)))"
    )
    keeper = await asyncio.create_subprocess_exec(sys.executable, "-c", code, cwd=Path.cwd())
    record_file = tmp_path / "c.json"
    await until(record_file.exists)
    record = processes.read_record(record_file)
    assert record is not None
    assert processes.running(record)
    keeper.kill()
    await keeper.wait()
    await until(lambda: not processes.running(record))


@pytest.mark.parametrize(
    ("failures", "pause"), [(1, 0.25), (2, 0.5), (3, 1.0), (6, 8.0), (7, 10.0), (1000, 10.0)]
)
def test_pauses_grow_up_to_ten_seconds(failures: int, pause: float) -> None:
    assert supervision.pause_after(failures) == pause


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-15, "was ended by SIGTERM"),
        (3, "ended with code 3 (no API server answers)"),
        (77, "ended with code 77"),
    ],
)
def test_every_end_has_words(code: int, words: str) -> None:
    assert supervision.describe_end(code) == words

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from penstock.lab import processes
from penstock.lab.processes import Record

SLEEP = "import time; time.sleep(60)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True);"
    "time.sleep(60)"
)
WITH_WORKER = (
    "import subprocess, sys, time;"
    f"p = subprocess.Popen([sys.executable, '-c', {SLEEP!r}]); print(p.pid, flush=True);"
    "time.sleep(60)"
)
Run = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def run() -> Iterator[Run]:
    started: list[subprocess.Popen[str]] = []

    def start(code: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", code],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_record_survives_being_written(tmp_path: Path) -> None:
    record = processes.record_of(os.getpid())
    assert record is not None
    processes.write_record(tmp_path / "it.json", record)
    assert processes.read_record(tmp_path / "it.json") == record
    assert processes.running(record)


@pytest.mark.parametrize("content", ["", "{", '{"pid": "x"}', "[]"])
def test_a_record_that_makes_no_sense_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "it.json").write_text(content)
    assert processes.read_record(tmp_path / "it.json") is None
    assert processes.read_record(tmp_path / "absent.json") is None


def test_a_recycled_pid_is_never_signalled(run: Run) -> None:
    stranger = run(SLEEP)
    now = psutil.Process(stranger.pid).create_time()
    ours = Record(stranger.pid, now - 1000)
    assert not processes.running(ours)
    processes.stop([ours], grace=0.1)
    processes.kill_group(ours)
    assert stranger.poll() is None
    real = Record(stranger.pid, now)
    assert processes.running(real)  # the same pid with the right start is ours
    processes.stop([real], grace=5)
    assert not processes.running(real)


def test_a_process_that_ended_is_not_running_even_before_it_is_reaped(run: Run) -> None:
    process = run("pass")
    record = processes.record_of(process.pid)
    assert record is not None
    until(lambda: not processes.running(record))
    process.wait()
    assert processes.record_of(process.pid) is None
    assert not processes.running(record)


def test_one_that_ignores_the_request_is_killed(run: Run) -> None:
    process = run(STUBBORN)
    assert process.stdout is not None
    process.stdout.readline()
    record = processes.record_of(process.pid)
    assert record is not None
    processes.stop([record], grace=0.2)
    assert not processes.running(record)


def test_workers_of_a_killed_process_do_not_stay(run: Run) -> None:
    leader = run(WITH_WORKER)
    assert leader.stdout is not None
    worker = int(leader.stdout.readline())
    record = processes.record_of(leader.pid)
    assert record is not None
    leader.kill()
    leader.wait()
    assert psutil.pid_exists(worker)
    processes.stop([record], grace=1)
    until(lambda: not psutil.pid_exists(worker) or zombie(worker))


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, ""),
        ("", ""),
        ("one\ntwo\n\n", "two"),
        ("x" * 20000 + "\nlast", "last"),
    ],
)
def test_the_last_line_of_a_log(tmp_path: Path, content: str | None, line: str) -> None:
    path = tmp_path / "a.log"
    if content is not None:
        path.write_text(content)
    assert processes.last_line(path) == line


def zombie(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen in ten seconds")

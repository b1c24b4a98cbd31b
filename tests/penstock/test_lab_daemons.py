"""Which processes belong to a lab; tried on small ones of our own."""

import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from penstock.lab import daemons, ports, processes
from penstock.lab.errors import LabError
from penstock.lab.folders import Folder
from penstock.lab.processes import Record
from penstock.lab.spec import Setting
from tests.webhook.running import until

LAB = Path("/state/labs/try")


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        (["/state/labs/try/kwok/clusters/try/bin/etcd", "--name=node0"], True),
        (["/cache/bin/kube-apiserver", "--cert=/state/labs/try/kwok/pki/ca.crt"], True),
        (["/usr/bin/python3.11", "-m", "controller", "--root", "/state/labs/try"], True),
        (["/state/labs/try-2/kwok/clusters/try-2/bin/etcd"], False),
        (["/cache/bin/etcd", "--data-dir=/state/labs/try-2/etcd"], False),
        (["/usr/bin/less", "/state/labs/try/kwok/logs/etcd.log"], False),
        (["vim", "/state/labs/try/kwok.yaml"], False),
        ([], False),
    ],
)
def test_a_process_belongs_to_a_lab_by_its_command_line(line: list[str], *, ours: bool) -> None:
    assert daemons.is_ours(line, LAB) is ours


@contextmanager
def sleeper(folder: Folder, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has the lab's directory on its command line."""
    program = "import time; time.sleep(600)"
    command = [sys.executable, "-c", program, f"{folder.root}/x", *arguments]
    process = subprocess.Popen(command)
    try:
        # The kernel tells that a program has begun a moment before it shows its command line.
        until(lambda: bool(psutil.Process(process.pid).cmdline()), "a command line")
        yield process
    finally:
        process.kill()
        process.wait()


def write_pid(folder: Folder, component: str, pid: int) -> Path:
    path = folder.cluster / "pids" / f"{component}.pid"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(str(pid))
    return path


def test_daemons_are_found_by_kwokctls_pid_files(tmp_path: Path) -> None:
    folder = Folder("try", tmp_path / "try")
    with sleeper(folder) as process:
        write_pid(folder, "etcd", process.pid)
        (found,) = daemons.started(folder).items()
        assert found == ("etcd", Record(process.pid, psutil.Process(process.pid).create_time()))
        assert daemons.dead({"etcd": found[1]}) == []
    assert daemons.dead({"etcd": found[1]}) == ["etcd"]


def test_a_pid_file_that_names_a_stranger_is_removed(tmp_path: Path) -> None:
    folder = Folder("try", tmp_path / "try")
    with sleeper(Folder("other", tmp_path / "other")) as stranger, sleeper(folder) as own:
        path = write_pid(folder, "etcd", stranger.pid)
        kept = write_pid(folder, "kube-apiserver", own.pid)
        write_pid(folder, "kube-scheduler", 2**22 + 1)
        assert list(daemons.started(folder)) == ["kube-apiserver"]
        assert daemons.ended(folder) == {"etcd", "kube-scheduler"}
        daemons.forget_strangers(folder)
        assert not path.exists()
        assert list(kept.parent.iterdir()) == [kept]


def test_stop_ends_what_is_recorded_and_what_is_not(tmp_path: Path) -> None:
    folder = Folder("try", tmp_path / "try")
    with (
        sleeper(folder) as recorded,
        sleeper(folder) as forgotten,
        sleeper(Folder("other", tmp_path / "other")) as stranger,
    ):
        record = processes.record_of(recorded.pid)
        assert record
        assert daemons.stop(folder, {"etcd": record}) == []
        assert recorded.poll() is not None
        assert forgotten.poll() is not None
        assert stranger.poll() is None


def test_settings_must_be_on_the_command_line_once_and_as_asked(tmp_path: Path) -> None:
    folder = Folder("try", tmp_path / "try")
    with sleeper(folder, "--v=4", "--gates=A", "--gates=B") as process:
        record = processes.record_of(process.pid)
        assert record
        right = Setting("etcd", "v", "4")
        wrong = [
            Setting("etcd", "v", "5"),
            Setting("etcd", "gates", "B"),
            Setting("etcd", "other", "1"),
            Setting("kube-apiserver", "v", "4"),
        ]
        assert daemons.not_applied([right, *wrong], {"etcd": record}) == wrong


def test_chosen_ports_are_different_free_and_not_taken() -> None:
    taken = range(ports.LOWEST, ports.HIGHEST - 100)
    chosen = ports.choose(6, taken, random.Random(1))  # noqa: S311  not for secrets
    assert len(set(chosen)) == 6
    assert not set(chosen) & set(taken)
    assert all(map(ports.is_free, chosen))


def test_when_all_ports_are_taken_it_is_said() -> None:
    with pytest.raises(LabError, match="no 1 free ports"):
        ports.choose(1, range(ports.LOWEST, ports.HIGHEST + 1), random.Random(1))  # noqa: S311


def test_the_owner_of_a_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not ports.is_free(port)
        assert str(psutil.Process().pid) in ports.owner(port)
    assert ports.is_free(port)

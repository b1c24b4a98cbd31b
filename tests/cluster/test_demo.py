"""`penstock demo`, as `make demo` runs it: from nothing to a tree, again in no time, and away."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.cluster

PENSTOCK = Path(sys.executable).with_name("penstock")
NAME = "show"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A place of its own for the demo's lab, which is taken down whatever happens."""
    yield tmp_path
    run(tmp_path, "lab", "down", "--name", NAME)


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PENSTOCK, *arguments],
        env={**os.environ, "XDG_STATE_HOME": str(home), "COLUMNS": "160"},
        capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip


def processes_of(home: Path) -> dict[int, str]:
    """Every process that was started for this lab."""
    found = {}
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or [])
        if str(home) in line:
            found[process.pid] = line
    return found


@pytest.mark.long
def test_the_demo_shows_a_running_set_twice_and_leaves_nothing_when_taken_down(home: Path) -> None:
    first = run(home, "demo", "--name", NAME)
    assert first.returncode == 0, first.stderr
    assert "PodCliqueSet chat  1 of 1 replicas available" in first.stdout
    for part in ("gang chat-0  Running", "group chat-0-decode-0", "clique chat-0-prefill  4 of 4"):
        assert part in first.stdout
    pods = re.findall(r"(chat-0-\S+)  Running  (node-\d+)  (\S+)", first.stdout)
    assert len(pods) == 12
    assert all(re.search("rack|r[0-9]", rack) for _, _, rack in pods)
    said = first.stdout + first.stderr
    assert "all 12 pods are bound and run" in said
    assert "kubectl get podcliquesets" in said
    assert f"lab down --name {NAME}" in said

    servers = {pid for pid, line in processes_of(home).items() if "kube-apiserver" in line}
    second = run(home, "demo", "--name", NAME)
    assert second.returncode == 0, second.stderr
    assert re.findall(r"(chat-0-\S+)  Running  (node-\d+)  (\S+)", second.stdout) == pods
    again = {pid for pid, line in processes_of(home).items() if "kube-apiserver" in line}
    assert again == servers != set()

    assert run(home, "lab", "down", "--name", NAME).returncode == 0
    assert processes_of(home) == {}


@pytest.mark.long
def test_a_demo_that_cannot_fit_fails_and_shows_how_far_it_came(home: Path) -> None:
    small = run(home, "demo", "--name", NAME, "--nodes", "2", "--patience", "3")
    assert small.returncode == 1
    assert "gang chat-0  Pending  NeverFits" in small.stdout
    assert "not all of it runs after 3 s" in small.stdout + small.stderr

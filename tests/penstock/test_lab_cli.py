"""The command line as a person meets it, in processes of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from api import exits
from kube.errors import BadCredentials, Unreachable
from penstock.__main__ import COMMANDS, LAB_COMMANDS
from penstock.ending import exit_code
from penstock.lab.errors import LabError


def penstock(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("XDG_")}
    return subprocess.run(
        [sys.executable, "-P", "-m", "penstock", *arguments],
        capture_output=True, text=True, check=False, timeout=60,
        env={**environ, "HOME": str(home), "COLUMNS": "200"},
    )  # fmt: skip


@pytest.mark.parametrize("command", [entry.name for entry in LAB_COMMANDS])
def test_help_of_every_lab_command_shows_an_example(tmp_path: Path, command: str) -> None:
    done = penstock(tmp_path, "lab", command, "--help")
    assert done.returncode == 0, done.stderr
    assert f"penstock lab {command}" in done.stdout.partition("Examples:")[2]


def test_help_lists_all_commands_with_examples(tmp_path: Path) -> None:
    done = penstock(tmp_path, "lab", "--help")
    for entry in LAB_COMMANDS:
        assert entry.name in done.stdout
    assert "penstock lab up" in done.stdout.partition("Examples:")[2]
    done = penstock(tmp_path, "--help")
    for entry in COMMANDS:
        assert entry.name in done.stdout


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys; from penstock.__main__ import app\n"
        "try: app(['lab', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'aiohttp', 'kubernetes', 'numpy', 'psutil', 'rich', 'yaml', 'asyncio'}\n"
        "print('loaded:', sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "loaded: []"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("up", "--topology", "rack"), "--topology: 'rack' is not LEVEL=COUNT"),
        (("up", "--name", "No"), "--name 'No'"),
        (("up", "--set", "kube-proxy.v=1"), "'kube-proxy' is none of"),
        (("up", "--kubernetes", "1.37"), "--kubernetes 1.37: give a full version"),
        (("kubeconfig", "--name", "none"), "make it with `penstock lab up --name none`"),
        (("logs", "--name", "none"), "`penstock lab list` shows which labs there are"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, arguments: tuple[str, ...], line: str) -> None:
    done = penstock(tmp_path, "lab", *arguments)
    assert done.returncode == exits.UNEXPECTED
    assert done.stdout == ""
    (said,) = done.stderr.splitlines()
    assert said.startswith(f"penstock lab {arguments[0]}: ")
    assert line in said


def test_without_labs_there_is_nothing_to_list_or_to_take_down(tmp_path: Path) -> None:
    assert penstock(tmp_path, "lab", "list").stdout.split()[0] == "NAME"
    assert len(penstock(tmp_path, "lab", "list").stdout.splitlines()) == 1
    done = penstock(tmp_path, "lab", "down")
    assert (done.returncode, done.stdout) == (0, "There is no lab default.\n")


def test_a_lab_that_cannot_be_read_is_listed_and_can_be_removed(tmp_path: Path) -> None:
    directory = tmp_path / ".local/state/penstock/labs/broken"
    directory.mkdir(parents=True)
    (directory / "lab.json").write_text("{")
    assert "broken  unreadable" in penstock(tmp_path, "lab", "list").stdout
    done = penstock(tmp_path, "lab", "down", "--all")
    assert done.stdout == "Lab broken is gone.\n", done.stderr
    assert not directory.exists()


def test_failures_end_with_their_own_codes() -> None:
    assert exit_code(LabError("no")) == exits.UNEXPECTED
    assert exit_code(Unreachable("no")) == exits.NO_API_SERVER
    assert exit_code(BadCredentials("no")) == exits.BAD_CREDENTIALS

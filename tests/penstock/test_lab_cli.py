"""The command line as a person meets it."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from api import exits
from kube.errors import BadCredentials, Unreachable
from penstock.__main__ import COMMANDS, LAB_COMMANDS, app
from penstock.ending import exit_code
from penstock.lab.errors import LabError


@dataclass(frozen=True)
class Said:
    """How a command ended, and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


class Penstock(Protocol):
    def __call__(self, *arguments: str) -> Said: ...


@pytest.fixture
def penstock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Penstock:
    """The command line at a home without labs; here, since to start it anew takes a second."""
    for key in [key for key in os.environ if key.startswith("XDG_")]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> Said:
        with pytest.raises(SystemExit) as ended:
            app(list(arguments), prog_name="penstock")
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Said(ended.value.code, said.out, said.err)

    return run


@pytest.mark.parametrize("command", [entry.name for entry in LAB_COMMANDS])
def test_help_of_every_lab_command_shows_an_example(penstock: Penstock, command: str) -> None:
    done = penstock("lab", command, "--help")
    assert done.returncode == 0, done.stderr
    assert f"penstock lab {command}" in done.stdout.partition("Examples:")[2]


def test_help_lists_all_commands_with_examples(penstock: Penstock) -> None:
    done = penstock("lab", "--help")
    for entry in LAB_COMMANDS:
        assert entry.name in done.stdout
    assert "penstock lab up" in done.stdout.partition("Examples:")[2]
    done = penstock("--help")
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
def test_a_mistake_is_one_line(penstock: Penstock, arguments: tuple[str, ...], line: str) -> None:
    done = penstock("lab", *arguments)
    assert done.returncode == exits.UNEXPECTED
    assert done.stdout == ""
    (said,) = done.stderr.splitlines()
    assert said.startswith(f"penstock lab {arguments[0]}: ")
    assert line in said


def test_without_labs_there_is_nothing_to_list_or_to_take_down(penstock: Penstock) -> None:
    assert penstock("lab", "list").stdout.split()[0] == "NAME"
    assert len(penstock("lab", "list").stdout.splitlines()) == 1
    done = penstock("lab", "down")
    assert (done.returncode, done.stdout) == (0, "There is no lab default.\n")


def test_a_lab_that_cannot_be_read_is_listed_and_can_be_removed(
    penstock: Penstock, tmp_path: Path
) -> None:
    directory = tmp_path / ".local/state/penstock/labs/broken"
    directory.mkdir(parents=True)
    (directory / "lab.json").write_text("{")
    assert "broken  unreadable" in penstock("lab", "list").stdout
    done = penstock("lab", "down", "--all")
    assert done.stdout == "Lab broken is gone.\n", done.stderr
    assert not directory.exists()


def test_as_a_process_it_does_the_same(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "penstock", "lab", "kubeconfig", "--name", "none"],
        capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    )  # fmt: skip
    (said,) = done.stderr.splitlines()
    assert said.startswith("penstock lab kubeconfig: there is no lab 'none'")
    assert (done.returncode, done.stdout) == (exits.UNEXPECTED, "")


def test_failures_end_with_their_own_codes() -> None:
    assert exit_code(LabError("no")) == exits.UNEXPECTED
    assert exit_code(Unreachable("no")) == exits.NO_API_SERVER
    assert exit_code(BadCredentials("no")) == exits.BAD_CREDENTIALS

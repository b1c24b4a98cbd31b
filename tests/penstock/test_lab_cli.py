"""The command line as a person meets it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec
import pytest
import yaml

from api import exits
from kube.errors import BadCredentials, Unreachable
from penstock.__main__ import COMMANDS, LAB_COMMANDS, app
from penstock.ending import exit_code
from penstock.lab.errors import LabError
from penstock.lab.folders import Labs
from penstock.lab.layout import Layout, Settings

WRONG, FAILED = exits.BAD_SETTINGS, exits.UNEXPECTED


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


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (("up", "--topology", "rack"), WRONG, "--topology: 'rack' is not LEVEL=COUNT"),
        (("up", "--name", "A B"), WRONG, "--name 'A B'"),
        (("up", "--nodes", "-1"), WRONG, "--nodes -1: must not be negative"),
        (("up", "--cpu", "many"), WRONG, "--cpu 'many'"),
        (("up", "--set", "kube-proxy.v=1"), WRONG, "'kube-proxy' is none of"),
        (("up", "--kubernetes", "1.37"), WRONG, "--kubernetes 1.37: give a full version"),
        (("install", "--log-format", "xml"), WRONG, "'xml' is neither text nor json"),
        (("kubeconfig", "--name", "none"), FAILED, "make it with `penstock lab up --name none`"),
        (("logs", "--name", "none"), FAILED, "`penstock lab list` shows which labs there are"),
    ],
)
def test_a_mistake_is_one_line(
    penstock: Penstock, arguments: tuple[str, ...], code: int, line: str
) -> None:
    done = penstock("lab", *arguments)
    assert done.returncode == code
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


def test_labs_and_where_their_metrics_are_can_be_read_by_tools(
    penstock: Penstock, tmp_path: Path
) -> None:
    assert json.loads(penstock("lab", "list", "-o", "json").stdout) == {"labs": []}
    folder = Labs.of({"HOME": str(tmp_path)}).folder("mine")
    folder.root.mkdir(parents=True)
    (listed,) = yaml.safe_load(penstock("lab", "list", "-o", "yaml").stdout)["labs"]
    assert (listed["name"], listed["state"], listed["nodes"]) == ("mine", "unreadable", None)
    layout = Layout.of(folder.root)
    layout.settings.parent.mkdir(parents=True, exist_ok=True)
    layout.settings.write_bytes(msgspec.json.encode(Settings(1, 1, workloads=False, code="x")))
    told = penstock("lab", "metrics", "--name", "mine", "-o", "json")
    assert json.loads(told.stdout)["components"] == [
        {"name": name, "url": None} for name in ("webhook-0", "gangs")
    ]
    assert "gangs  does not run" in penstock("lab", "metrics", "--name", "mine").stdout


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

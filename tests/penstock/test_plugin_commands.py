"""The plugin's commands as people type them: quick to help, plain when something is wrong."""

import asyncio
import io
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner

from api import exits
from kube import kubeconfig
from penstock.__main__ import (
    AUDIT_COMMANDS,
    COMMANDS,
    LAB_COMMANDS,
    POLICY_COMMANDS,
    WHAT_IF_COMMANDS,
    app,
)
from penstock.plugin import offering, reports, running
from penstock.plugin.asking import Form, Where
from penstock.plugin.reports import Report
from tests.support import fakeapi
from tests.support.fakeapi import FakeApi
from tests.support.manualclock import LeapingClock
from tests.support.ports import free_port

OURS = [entry for entry in COMMANDS if entry.target.startswith("penstock.plugin.")]
LINES = [(entry.name,) for entry in OURS] + [("what-if", entry.name) for entry in WHAT_IF_COMMANDS]
TABLES = {
    "": COMMANDS, "what-if": WHAT_IF_COMMANDS, "lab": LAB_COMMANDS, "policy": POLICY_COMMANDS,
    "audit": AUDIT_COMMANDS,
}  # fmt: skip
EVERY = [(*group.split(), each.name) for group, table in TABLES.items() for each in table]
# The budget of 200 ms is three and a half times what typer takes where it was set; help of every
# command takes one and a half times as long.
TIMES = 2.5
# What commands share besides the modules with their flags.
LIGHT = {
    "penstock.__main__", "penstock.completing", "penstock.lazy", "penstock.plugin.asking",
    "penstock.lab.defaults", "penstock.dashboard.choices", "penstock.forms", "penstock.piping",
}  # fmt: skip
MOST_LOADED = 16


def config(folder: Path, server: str, namespace: str = "") -> Path:
    """A kubeconfig for this server, whose context is in the namespace."""
    path = folder / "kubeconfig"
    context = {"cluster": "c", "user": "u"} | ({"namespace": namespace} if namespace else {})
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": context}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(document))
    return path


def penstock(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "penstock", *arguments],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_help_of_every_command_shows_an_example(line: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*line, "--help"])
    assert done.exit_code == exits.OK
    assert f"penstock {' '.join(line)}" in done.output.partition("Examples:")[2]


def test_help_of_every_command_loads_its_flags_and_nothing_else() -> None:
    """What is loaded is what help takes; so a module more is seen on a busy machine too."""
    program = (
        "import contextlib, io, json, sys, typer; floor = set(sys.modules)\n"
        "from penstock.__main__ import app\n"
        "loaded = {}\n"
        f"for line in {[*EVERY]!r}:\n"
        "    before = set(sys.modules)\n"
        "    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "        app([*line, '--help'])\n"
        "    loaded[' '.join(line)] = sorted(set(sys.modules) - before)\n"
        "print(json.dumps([sorted(set(sys.modules) - floor), loaded]))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True
    )
    every, loaded = json.loads(done.stdout)
    packages = {name.partition(".")[0] for name in every} - sys.stdlib_module_names
    assert packages == {"penstock", "typer", "typing_extensions"}
    targets = {entry.target.partition(":")[0] for table in TABLES.values() for entry in table}
    ours = {name for name in every if name.startswith("penstock.")}
    own = ours - targets - {name.rpartition(".")[0] for name in targets}
    assert own <= LIGHT, "help of a command has come to load more; does it have to?"
    # Of the standard library a few small modules, beside all those that typer takes.
    most = max(loaded, key=lambda line: len(loaded[line]))
    assert len(loaded[most]) <= MOST_LOADED, f"{most} --help loads {loaded[most]}"


@pytest.mark.parametrize("line", [(), ("explain",), ("lab", "up")], ids=" ".join)
def test_help_takes_little_longer_than_what_reads_its_flags(line: tuple[str, ...]) -> None:
    def took(*command: str) -> float:
        """Seconds of processor time, since others may have the machine too."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], capture_output=True, check=True, timeout=60)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # In turn and the least of each, on whatever machine this is.
    pairs = [
        (took("-c", "import typer"), took("-P", "-m", "penstock", *line, "--help"))
        for _ in range(4)
    ]
    floor, helped = (min(each) for each in zip(*pairs, strict=True))
    assert helped < TIMES * floor, f"{helped:.3f} s, and typer alone {floor:.3f} s"


def test_a_shell_is_offered_commands_and_options() -> None:
    for words, count, offered in (
        ("penstock exp", 1, "explain"),
        ("penstock plan --f", 2, "--file"),
    ):
        environment = {
            "_PENSTOCK_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(count),
        }  # fmt: skip
        done = CliRunner().invoke(app, [], prog_name="penstock", env=environment)
        assert offered in done.output.split()


def test_kubectl_is_offered_the_same_and_no_files() -> None:
    program = [sys.executable, "-P", "-c", "from penstock.completing import main; main()"]
    for words, offered in ((("",), "topology"), (("what-if", "dr"), "drain")):
        done = subprocess.run(
            [*program, *words],
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        *offers, directive = done.stdout.splitlines()
        assert offered in offers
        assert directive == ":4"


async def test_names_that_there_are_are_offered(tmp_path: Path) -> None:
    api = FakeApi()
    for name in ("chat-0", "chat-1", "search-0"):
        api.put("team-a", name, {})
    program = "from penstock.completing import main; main()"
    async with fakeapi.serving(api) as api:
        path = config(tmp_path, api.url, "team-a")
        done = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-P", "-c", program, "explain", "ch"],
            capture_output=True, text=True, check=True, timeout=60,
            env={**os.environ, "KUBECONFIG": str(path)},
        )  # fmt: skip
    assert done.stdout.splitlines() == ["chat-0", "chat-1", ":4"]
    asked = {each.path.partition("/namespaces/team-a/")[2] for each in api.seen}
    assert asked == {"podgangs", "podcliquesets"}


def test_nobody_waits_for_names_of_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    path = config(tmp_path, f"http://127.0.0.1:{free_port()}")
    assert offering.names(["NODES"], Where(str(path))) == []


def test_no_cluster_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    path = config(tmp_path, f"http://127.0.0.1:{free_port()}")
    done = penstock("status", "--kubeconfig", str(path))
    assert done.returncode == exits.NO_API_SERVER
    (line,) = done.stderr.splitlines()
    assert line.startswith("penstock status: ")
    assert "is the cluster up, and is it the one you mean?" in line
    none = penstock("topology", "--kubeconfig", str(tmp_path / "none"))
    assert none.returncode == exits.BAD_CREDENTIALS
    assert "choose a cluster by --kubeconfig or --context" in none.stderr


def test_the_namespace_is_the_contexts_as_for_kubectl(tmp_path: Path) -> None:
    path = config(tmp_path, "http://127.0.0.1:1", "team-a")
    assert kubeconfig.choose([path], None).namespace == "team-a"
    assert running.default_namespace(Where(str(path))) == "team-a"
    assert running.default_namespace(Where(str(config(tmp_path, "http://a")))) == "default"


async def test_what_is_watched_is_written_again_only_when_it_has_changed() -> None:
    answers: Iterator[int] = iter([1, 1, 2, 2, 3])

    async def once() -> Report:
        number = next(answers, None)
        if number is None:
            raise asyncio.CancelledError
        return Report({"number": number}, lambda _: [])

    out, clock = io.StringIO(), LeapingClock()
    form = Form("status", "json", watch=True, interval=0.5)
    with pytest.raises(asyncio.CancelledError):
        await running.answered(once, form, Console(file=out), clock)
    told = out.getvalue().replace("}\n{", "}\n\n{").split("\n\n")
    assert [json.loads(each)["number"] for each in told] == [1, 2, 3]
    assert clock.slept == [0.5] * 5


def test_a_report_is_written_in_the_form_that_is_asked_for() -> None:
    report = Report({"a": ["ä"]}, lambda wide: ["wide" if wide else "short"])
    found = {}
    for output in ("", "wide", "json", "yaml"):
        out = io.StringIO()
        reports.written(report, output, Console(file=out))
        found[output] = out.getvalue()
    assert (found[""], found["wide"], found["yaml"]) == ("short\n", "wide\n", "a:\n- ä\n")
    assert json.loads(found["json"]) == {"a": ["ä"]}

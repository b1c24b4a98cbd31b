import asyncio
import json
import sys
from pathlib import Path

import pytest

from penstock.lab import commands
from penstock.lab.building import Go, build_arguments, kubernetes_module, plain_module
from penstock.lab.commands import Command, Finished
from penstock.lab.errors import LabError
from penstock.lab.tools import toolset

TOOLS = {tool.name: tool for tool in toolset("v1.37.1")}
ETCD, SERVER = TOOLS["etcd"], TOOLS["kube-apiserver"]

GO_MOD = """\
module k8s.io/kubernetes

go 1.26.0

require k8s.io/api v0.0.0

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/client-go => ./staging/src/k8s.io/client-go
\tgithub.com/other/thing => github.com/fork/thing v1.0.0
)
"""


def write_output(arguments: list[str], content: str) -> None:
    Path(arguments[arguments.index("-o") + 1]).write_text(content)


class FakeGo:
    """Answers as go does; writes a program where it is asked to build one."""

    def __init__(self, version: str = "go1.26.8", code: int = 0) -> None:
        self.version = version
        self.code = code
        self.commands: list[Command] = []

    async def __call__(self, command: Command) -> Finished:
        self.commands.append(command)
        arguments = list(command.arguments)
        if arguments[1] == "env":
            return Finished(0, f"{self.version}\n")
        if arguments[1] == "mod":
            path = Path(__file__).with_name("no-such-go.mod")
            return Finished(0, "go: finding\n" + json.dumps({"GoMod": str(path)}))
        write_output(arguments, "half" if self.code else "whole")
        return Finished(self.code, "first\nsecond\nfor want of a nail\n")


async def test_what_is_built_appears_whole(tmp_path: Path) -> None:
    go = FakeGo()
    destination = tmp_path / "bin" / "etcd"
    await Go(go).build(ETCD, tmp_path / "scratch", destination)
    assert destination.read_text() == "whole"
    assert destination.stat().st_mode & 0o111
    assert list(destination.parent.iterdir()) == [destination]
    (command,) = go.commands
    assert command.cwd == tmp_path / "scratch"
    assert command.environ["CGO_ENABLED"] == "0"


async def test_a_failed_build_leaves_nothing_and_says_why(tmp_path: Path) -> None:
    destination = tmp_path / "bin" / "etcd"
    with pytest.raises(LabError, match=r"etcd v3.6.8.*for want of a nail"):
        await Go(FakeGo(code=1)).build(ETCD, tmp_path / "scratch", destination)
    assert list(destination.parent.iterdir()) == []


async def test_an_interrupted_build_leaves_nothing_and_no_process(tmp_path: Path) -> None:
    destination = tmp_path / "bin" / "etcd"
    begun = asyncio.Event()

    async def slow(command: Command) -> Finished:
        write_output(list(command.arguments), "half")
        begun.set()
        return await commands.run(Command([sys.executable, "-c", "import time; time.sleep(600)"]))

    build = asyncio.create_task(Go(slow).build(ETCD, tmp_path / "scratch", destination))
    await asyncio.wait_for(begun.wait(), 10)
    build.cancel()
    with pytest.raises(asyncio.CancelledError):
        await build
    assert list(destination.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("version", "complaint"),
    [
        ("go1.26.0", None),
        ("go1.27.1", None),
        ("go1.25.9", "Go 1.26 or newer is needed, here is go1.25.9"),
        ("devel", "`go env GOVERSION` says devel"),
    ],
)
async def test_an_old_go_is_told_so(version: str, complaint: str | None) -> None:
    assert await Go(FakeGo(version)).check() == complaint


async def test_a_missing_go_is_told_so() -> None:
    async def no_go(command: Command) -> Finished:
        raise FileNotFoundError(command.arguments[0])

    assert await Go(no_go).check() == "Go 1.26 or newer is not installed"


def test_the_command_line_is_the_one_that_is_known_to_work() -> None:
    arguments = build_arguments(SERVER, Path("/somewhere/.kube-apiserver.x"))
    assert arguments[:3] == ["go", "build", "-trimpath"]
    flags = arguments[arguments.index("-ldflags") + 1]
    assert "-X k8s.io/component-base/version.gitVersion=v1.37.1" in flags
    assert arguments[-1] == "k8s.io/kubernetes/cmd/kube-apiserver"


def test_staging_modules_are_required_and_replaced_at_their_published_version() -> None:
    lines = kubernetes_module(SERVER, GO_MOD).splitlines()
    assert "go 1.26.0" in lines
    assert "\tk8s.io/kubernetes v1.37.1" in lines
    for module in ("k8s.io/api", "k8s.io/client-go"):
        assert f"\t{module} v0.37.1" in lines
        assert f"\t{module} => {module} v0.37.1" in lines
    assert not any("thing" in line for line in lines)


def test_an_odd_go_mod_is_refused() -> None:
    with pytest.raises(LabError, match=r"odd go\.mod"):
        kubernetes_module(SERVER, "module k8s.io/kubernetes\n")


def test_other_modules_need_no_replacing() -> None:
    assert "require go.etcd.io/etcd/server/v3 v3.6.8\n" in plain_module(ETCD)

"""Where programs are looked for, in which order, and what two at once do."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from typing_extensions import override

from kube.clock import SystemClock
from penstock.lab.binaries import Workshop
from penstock.lab.commands import Command, Finished
from penstock.lab.errors import LabError
from penstock.lab.folders import Cache, read_durations
from penstock.lab.progress import Silence
from penstock.lab.tools import Tool, toolset

TOOLS = {tool.name: tool for tool in toolset("v1.37.1")}
ETCD, SERVER = TOOLS["etcd"], TOOLS["kube-apiserver"]


class Said(Silence):
    """Keeps what was said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    @override
    def say(self, line: str) -> None:
        self.lines.append(line)


@dataclass
class FakeSource:
    """Sites that do not answer, or that have programs."""

    answers: bool = False
    broken: bool = False
    fetched: list[str] = field(default_factory=list)

    async def possible(self, tool: Tool) -> bool:
        return self.answers and tool.name not in self.fetched

    async def fetch(self, tool: Tool, destination: Path) -> None:
        if self.broken:
            raise LabError(f"the checksum of {tool.name} is wrong")
        self.fetched.append(tool.name)
        make(destination)


@dataclass
class FakeBuilder:
    """A Go that takes a moment; where it cannot build it says why."""

    hindrance: str | None = None
    built: list[str] = field(default_factory=list)
    at_work: int = 0

    async def check(self) -> str | None:
        return self.hindrance

    async def build(self, tool: Tool, scratch: Path, destination: Path) -> None:
        assert scratch.name == tool.release
        self.at_work += 1
        assert self.at_work == 1, "two builds in one cache at once"
        await asyncio.sleep(0.05)
        self.built.append(tool.name)
        make(destination)
        self.at_work -= 1


class FakeRun:
    """Programs that say the version written in them."""

    async def __call__(self, command: Command) -> Finished:
        return Finished(0, written_in(command.arguments[0]))


def written_in(program: str) -> str:
    return Path(program).read_text(encoding="utf-8")


def make(path: Path, says: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(says, encoding="utf-8")
    path.chmod(0o755)
    return path


@dataclass
class Machine:
    """A machine with nothing on it, as far as programs go."""

    root: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    source: FakeSource = field(default_factory=FakeSource)
    builder: FakeBuilder = field(default_factory=FakeBuilder)
    said: Said = field(default_factory=Said)

    @property
    def cache(self) -> Cache:
        return Cache(self.root / "cache")

    def workshop(self) -> Workshop:
        return Workshop(
            self.environ, self.cache, self.source, self.builder, FakeRun(), SystemClock(), self.said
        )

    async def find(self, tool: Tool) -> Path:
        return (await self.workshop().find([tool]))[tool.name]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def in_cache(machine: Machine, tool: Tool) -> Path:
    return machine.cache.binary(tool.release, tool.name)


async def test_the_given_directory_comes_first(machine: Machine) -> None:
    first = make(machine.root / "first" / "etcd", "etcd Version: 3.6.8")
    make(machine.root / "second" / "etcd", "etcd Version: 3.6.8")
    make(in_cache(machine, ETCD))
    machine.environ = {
        "PENSTOCK_BIN_DIR": str(machine.root / "first"),
        "KUBEBUILDER_ASSETS": str(machine.root / "second"),
    }
    assert await machine.find(ETCD) == first


async def test_then_the_directory_of_the_test_environment(machine: Machine) -> None:
    second = make(machine.root / "second" / "etcd", "etcd Version: 3.6.8")
    make(in_cache(machine, ETCD))
    machine.environ = {
        "PENSTOCK_BIN_DIR": str(machine.root / "nothing"),
        "KUBEBUILDER_ASSETS": str(machine.root / "second"),
    }
    assert await machine.find(ETCD) == second


async def test_then_the_cache(machine: Machine) -> None:
    cached = make(in_cache(machine, ETCD))
    machine.source.answers = True
    assert await machine.find(ETCD) == cached
    assert machine.source.fetched == []


async def test_then_the_official_site_where_it_answers(machine: Machine) -> None:
    machine.source.answers = True
    assert await machine.find(ETCD) == in_cache(machine, ETCD)
    assert (machine.source.fetched, machine.builder.built) == (["etcd"], [])


async def test_and_last_it_is_built(machine: Machine) -> None:
    assert await machine.find(ETCD) == in_cache(machine, ETCD)
    assert machine.builder.built == ["etcd"]
    assert read_durations(machine.cache.durations)["etcd"] > 0


async def test_a_download_that_fails_is_said_and_built_instead(machine: Machine) -> None:
    machine.source.answers = machine.source.broken = True
    await machine.find(ETCD)
    assert machine.builder.built == ["etcd"]
    assert any("the checksum of etcd is wrong" in line for line in machine.said.lines)


async def test_a_wrong_version_is_said_and_not_used(machine: Machine) -> None:
    old = make(machine.root / "bin" / "kube-apiserver", "Kubernetes v1.34.1")
    machine.environ = {"PENSTOCK_BIN_DIR": str(old.parent)}
    assert await machine.find(SERVER) == in_cache(machine, SERVER)
    (line,) = machine.said.lines
    assert "PENSTOCK_BIN_DIR" in line
    assert "is v1.34.1, but v1.37.1 is wanted" in line


async def test_a_program_that_says_no_version_is_not_used(machine: Machine) -> None:
    odd = make(machine.root / "bin" / "etcd", "hello")
    machine.environ = {"KUBEBUILDER_ASSETS": str(odd.parent)}
    assert await machine.find(ETCD) == in_cache(machine, ETCD)
    assert "does not say its version" in machine.said.lines[0]


async def test_a_file_that_cannot_be_run_is_no_program(machine: Machine) -> None:
    make(in_cache(machine, ETCD)).chmod(0o644)
    await machine.find(ETCD)
    assert machine.builder.built == ["etcd"]


async def test_without_any_way_the_ways_are_named(machine: Machine) -> None:
    machine.builder.hindrance = "Go 1.26 or newer is not installed"
    with pytest.raises(LabError) as failed:
        await machine.find(SERVER)
    message = str(failed.value)
    assert "kube-apiserver v1.37.1" in message
    assert "dl.k8s.io does not answer" in message
    assert "Go 1.26 or newer is not installed" in message
    assert "PENSTOCK_BIN_DIR" in message


async def test_two_at_once_build_one_after_the_other_and_each_once(machine: Machine) -> None:
    tools = [TOOLS["kubectl"], ETCD]
    both = await asyncio.gather(machine.workshop().find(tools), machine.workshop().find(tools))
    assert both[0] == both[1]
    assert sorted(machine.builder.built) == ["etcd", "kubectl"]
    assert any("Waiting for process" in line for line in machine.said.lines)


async def test_what_a_killed_build_left_is_removed(machine: Machine) -> None:
    leftover = make(in_cache(machine, ETCD).with_name(".etcd.abc123"))
    await machine.find(ETCD)
    assert not leftover.exists()


async def test_the_last_duration_is_the_next_estimate(machine: Machine) -> None:
    machine.cache.root.mkdir()
    machine.cache.durations.write_text('{"etcd": 77.0, "helm": 5}', encoding="utf-8")
    await machine.find(ETCD)
    known = read_durations(machine.cache.durations)
    assert known["helm"] == 5
    assert known["etcd"] != 77.0

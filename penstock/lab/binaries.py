"""Finding every tool of a lab: given, cached, downloaded or built, in this order."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from kube.clock import Clock
from penstock.lab.commands import Command, Run
from penstock.lab.errors import LabError
from penstock.lab.folders import Cache, read_durations, write_whole
from penstock.lab.locking import locked
from penstock.lab.progress import Reporter
from penstock.lab.tools import Tool, Version, parse_version

GIVEN: Final = ("PENSTOCK_BIN_DIR", "KUBEBUILDER_ASSETS")

Binaries = dict[str, Path]
"""The program of each tool, by the tool's name."""


class Source(Protocol):
    """Downloads programs."""

    async def possible(self, tool: Tool) -> bool:
        """Tell whether the tool can be had."""
        ...

    async def fetch(self, tool: Tool, destination: Path) -> None:
        """Put the checked program there, whole; raises LabError."""
        ...


class Builder(Protocol):
    """Builds programs."""

    async def check(self) -> str | None:
        """Return why nothing can be built, or None."""
        ...

    async def build(self, tool: Tool, scratch: Path, destination: Path) -> None:
        """Put the program there, whole; raises LabError."""
        ...


@dataclass(frozen=True)
class Workshop:
    """All it takes to find tools on this machine."""

    environ: Mapping[str, str]
    cache: Cache
    source: Source
    builder: Builder
    run: Run
    clock: Clock
    reporter: Reporter

    async def find(self, tools: Sequence[Tool]) -> Binaries:
        """Return a program for every tool, made now if need be; raises LabError if it cannot be."""
        found: Binaries = {}
        missing: list[Tool] = []
        for tool in tools:
            path = await self._at_hand(tool)
            if path is None:
                missing.append(tool)
            else:
                found[tool.name] = path
        if missing:
            names = ", ".join(tool.name for tool in missing)
            async with locked(self.cache.lock, f"making {names}", self.reporter.say, self.clock):
                _remove_unfinished([self._place(tool) for tool in missing])
                for index, tool in enumerate(missing, 1):
                    found[tool.name] = await self._make(tool, f"[{index}/{len(missing)}]")
        return found

    async def _at_hand(self, tool: Tool) -> Path | None:
        for variable in GIVEN:
            directory = self.environ.get(variable)
            if directory and (path := await self._given(tool, variable, Path(directory))):
                return path
        cached = self._place(tool)
        return cached if _executable(cached) else None

    async def _given(self, tool: Tool, variable: str, directory: Path) -> Path | None:
        path = (directory / tool.name).absolute()
        if not _executable(path):
            return None
        version = await self._version(tool, path)
        if version is not None and tool.accepts(version):
            return path
        says = f"is {version.tag}" if version else "does not say its version"
        self.reporter.say(
            f"Not used: {path} (from {variable}) {says}, but {tool.version} is wanted"
        )
        return None

    async def _version(self, tool: Tool, path: Path) -> Version | None:
        try:
            answer = await self.run(Command([str(path), *tool.ask_version]))
        except OSError:
            return None
        return parse_version(answer.output)

    async def _make(self, tool: Tool, count: str) -> Path:
        path = self._place(tool)
        if _executable(path):  # somebody else made it while we waited for the lock
            return path
        obstacle = await self._download(tool, path, count)
        if obstacle is None:
            return path
        hindrance = await self.builder.check()
        if hindrance is not None:
            raise LabError(
                f"{tool.name} {tool.version} is not here, {obstacle}, and {hindrance}: "
                f"put it into a directory and name that in {GIVEN[0]}, or install what is missing"
            )
        estimate = read_durations(self.cache.durations).get(tool.name, tool.seconds)
        started = self.clock.monotonic()
        async with self.reporter.step(f"{count} Building {tool.name} {tool.version}", estimate):
            await self.builder.build(tool, self.cache.scratch(tool.release), path)
        self._remember(tool, self.clock.monotonic() - started)
        return path

    async def _download(self, tool: Tool, path: Path, count: str) -> str | None:
        """Return None once the program is there, else why it is not."""
        if not await self.source.possible(tool):
            return f"{tool.download.url.split('/')[2]} does not answer"
        try:
            async with self.reporter.step(f"{count} Downloading {tool.name} {tool.version}", None):
                await self.source.fetch(tool, path)
        except LabError as error:
            self.reporter.say(f"{error}; building {tool.name} instead")
            return str(error)
        return None

    def _place(self, tool: Tool) -> Path:
        return self.cache.binary(tool.release, tool.name)

    def _remember(self, tool: Tool, seconds: float) -> None:
        known = {**read_durations(self.cache.durations), tool.name: round(seconds, 1)}
        lines = ",\n".join(f'  "{name}": {known[name]}' for name in sorted(known))
        write_whole(self.cache.durations, f"{{\n{lines}\n}}\n")


def _executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _remove_unfinished(places: Sequence[Path]) -> None:
    # Whoever left these was killed: we hold the lock, so nobody is at work on them.
    for place in places:
        for leftover in place.parent.glob(f".{place.name}.*"):
            leftover.unlink(missing_ok=True)

"""Making a tool from its published Go module, with nothing but Go and a module proxy."""

import json
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.lab.commands import Command, Finished, Run
from penstock.lab.errors import LabError
from penstock.lab.folders import write_whole
from penstock.lab.tools import GO_MINIMUM, Tool, parse_version

GO_ENVIRONMENT: Final = {
    "CGO_ENABLED": "0",
    "GOFLAGS": "-mod=mod -buildvcs=false",
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
}

_STAGING = re.compile(r"^\s*(k8s\.io/[a-z0-9-]+) => \./staging/", re.MULTILINE)
_GO_LINE = re.compile(r"^go (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Go:
    """Builds tools with the Go that is found on the PATH."""

    run: Run

    async def check(self) -> str | None:
        """Return why nothing can be built here, or None if it can."""
        wanted = ".".join(map(str, GO_MINIMUM))
        try:
            answer = await self.run(Command(["go", "env", "GOVERSION"], GO_ENVIRONMENT))
        except FileNotFoundError:
            return f"Go {wanted} or newer is not installed"
        version = parse_version(answer.output.replace("go", "", 1))
        if answer.code != 0 or version is None:
            return f"`go env GOVERSION` says {answer.last_lines(1) or 'nothing'}"
        if (version.major, version.minor) < GO_MINIMUM:
            return f"Go {wanted} or newer is needed, here is {answer.output.strip()}"
        return None

    async def build(self, tool: Tool, scratch: Path, destination: Path) -> None:
        """Build `tool` to `destination`, which appears whole or not at all.

        What Go has compiled stays in its own cache: an interrupted build goes on from there.
        """
        await self._prepare(tool, scratch)
        unfinished = temporary_beside(destination)
        try:
            arguments = build_arguments(tool, unfinished)
            _succeeded(await self.run(Command(arguments, GO_ENVIRONMENT, scratch)), tool)
            publish(unfinished, destination)
        finally:
            unfinished.unlink(missing_ok=True)

    async def _prepare(self, tool: Tool, scratch: Path) -> None:
        if (scratch / "go.mod").exists():
            return
        if not tool.staging:
            write_whole(scratch / "go.mod", plain_module(tool))
            return
        module = f"{tool.module}@{tool.version}"
        command = Command(["go", "mod", "download", "-json", module], GO_ENVIRONMENT)
        answer = _succeeded(await self.run(command), tool)
        text = _go_mod_of(answer.output).read_text(encoding="utf-8")
        write_whole(scratch / "go.mod", kubernetes_module(tool, text))


def build_arguments(tool: Tool, output: Path) -> list[str]:
    """Return the command line that builds a tool."""
    flags = " ".join(tool.ldflags)
    return ["go", "build", "-trimpath", "-ldflags", flags, "-o", str(output), tool.package]


def plain_module(tool: Tool) -> str:
    """Return the go.mod of a scratch module that can build the tool."""
    version = ".".join(map(str, GO_MINIMUM))
    return f"module lab.invalid/scratch\n\ngo {version}\n\nrequire {tool.module} {tool.version}\n"


def kubernetes_module(tool: Tool, go_mod: str) -> str:
    """Return the go.mod of a scratch module that can build Kubernetes, given Kubernetes' own.

    That one takes its staging modules from its source tree; they are published one by one too, as
    v0.MINOR.PATCH. They are required as well as replaced, so that what is compiled carries that
    version.
    """
    staging = sorted(set(_STAGING.findall(go_mod)))
    go_line = _GO_LINE.search(go_mod)
    if not staging or go_line is None:
        raise LabError(f"cannot build {tool.name}: {tool.module} {tool.version} has an odd go.mod")
    published = "v0" + tool.version.removeprefix("v1")
    requires = "".join(f"\t{module} {published}\n" for module in staging)
    replaces = "".join(f"\t{module} => {module} {published}\n" for module in staging)
    return (
        f"module lab.invalid/scratch\n\ngo {go_line.group(1)}\n\n"
        f"require (\n\t{tool.module} {tool.version}\n{requires})\n\nreplace (\n{replaces})\n"
    )


def temporary_beside(destination: Path) -> Path:
    """Return a name for an unfinished file on the same file system; nothing is left there yet."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{destination.name}.", dir=destination.parent)
    os.close(handle)
    return Path(name)


def publish(unfinished: Path, destination: Path) -> None:
    """Put a finished program in its place, on disk before it is seen."""
    unfinished.chmod(0o755)
    with unfinished.open("rb") as file:
        os.fsync(file.fileno())
    unfinished.replace(destination)


def _go_mod_of(output: str) -> Path:
    # Go's own remarks may stand before the JSON.
    answer: object = json.loads(output[output.index("{") :])
    path = answer.get("GoMod") if isinstance(answer, dict) else None
    if not isinstance(path, str):
        raise LabError("`go mod download` did not say where go.mod is")
    return Path(path)


def _succeeded(answer: Finished, tool: Tool) -> Finished:
    if answer.code != 0:
        raise LabError(
            f"building {tool.name} {tool.version} failed (go ended with {answer.code}): "
            f"{answer.last_lines(3)}"
        )
    return answer

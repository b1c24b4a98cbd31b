"""`penstock demo`: a lab, Penstock in it, an example set, and the proof that it runs, as a tree."""

import asyncio
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import yaml
from rich.console import Console

import penstock
from api import exits
from kube import credentials
from kube.client import Client
from kube.clock import Clock, SystemClock
from penstock.ending import run_to_end
from penstock.lab import cluster
from penstock.lab.commands import Command, run
from penstock.lab.errors import LabError
from penstock.lab.install import InstallOptions, install
from penstock.lab.spec import LabSpec
from penstock.lab.state import Lab
from penstock.looking import look
from penstock.tree import SetSeen, draw

EXAMPLE: Final = "disaggregated.yaml"
NAMESPACE: Final = "default"
POLL_SECONDS: Final = 0.2


def demo(
    *,
    name: str,
    nodes: int,
    patience: float,
) -> None:
    """Start a lab with Penstock, run an example set in it, and show the set as a tree."""
    screen = cluster.screen()

    async def work() -> bool:
        lab = await cluster.up(LabSpec(name=name, nodes=nodes), screen)
        await install(
            lab.directory, lab.kubeconfig, lab.binaries["helm"], InstallOptions(), screen.say
        )
        return await _show(lab, patience, screen.say, SystemClock())

    if not run_to_end("demo", work()):
        sys.exit(exits.UNEXPECTED)


async def _show(lab: Lab, patience: float, say: Callable[[str], None], clock: Clock) -> bool:
    """Apply the example, wait until it runs, print it; returns whether it runs."""
    example = examples() / EXAMPLE
    say(f"kubectl apply -f {_short(example)}")
    kubectl = [str(lab.binaries["kubectl"]), "--kubeconfig", str(lab.kubeconfig)]
    done = await run(Command([*kubectl, "apply", "-n", NAMESPACE, "-f", str(example)]))
    if done.code != 0:
        raise LabError(f"kubectl apply failed: {done.last_lines(3)}")
    found = credentials.load(lab.kubeconfig, None, clock, os.environ)
    begun = clock.monotonic()
    async with Client(found, "demo", clock) as client:
        seen = await _await_running(client, _name_in(example), patience, clock)
    Console().print(draw(seen))
    if not seen.running:
        say(f"not all of it runs after {patience:.0f} s: penstock lab logs --name {lab.name}")
        return False
    say(f"all {len(seen.pods)} pods are bound and run ({clock.monotonic() - begun:.1f} s)")
    for line in _hints(lab, seen.metadata.name):
        say(line)
    return True


async def _await_running(client: Client, name: str, patience: float, clock: Clock) -> SetSeen:
    """Look at the set until all of it runs, or time is up."""
    deadline = clock.monotonic() + patience
    while True:
        seen = await look(client, NAMESPACE, name)
        if (seen.running and seen.reported) or clock.monotonic() > deadline:
            return seen
        await asyncio.sleep(POLL_SECONDS)


def _hints(lab: Lab, name: str) -> list[str]:
    kubectl = _command("kubectl", lab.binaries["kubectl"])
    penstock_ = _command("penstock", Path(sys.executable).with_name("penstock"))
    wide, cycle = (_short(examples() / each) for each in ("wide.yaml", "cycle.yaml"))
    return [
        "Look further:",
        f'  export KUBECONFIG="{lab.kubeconfig}"',
        f"  {kubectl} get podcliquesets,podgangs,reservations,pods -o wide",
        f"  {penstock_} tree {name}",
        f"  {kubectl} apply -f {wide}   # more than there is room for: waits as a whole",
        f"  {penstock_} explain wide-0   # says for what, and what would help",
        f"  {kubectl} apply -f {cycle}   # is refused, and says why",
        f"  {penstock_} dashboard --open",
        f"  {penstock_} lab logs --name {lab.name} gangs",
        "Stop it:",
        f"  {penstock_} lab down --name {lab.name}",
    ]


def _command(name: str, path: Path) -> str:
    """Write a command so that it works as typed: by its name only if the shell would find it."""
    return name if shutil.which(name) else str(_short(path))


def examples() -> Path:
    """Find the example sets, in a checkout or in an installed copy."""
    here = Path(penstock.__file__).parent
    inside = here / "_examples"
    return inside if inside.is_dir() else here.parent / "examples"


def _name_in(example: Path) -> str:
    name: str = yaml.safe_load(example.read_text(encoding="utf-8"))["metadata"]["name"]
    return name


def _short(path: Path) -> Path:
    """Write the path as a person standing here would."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path

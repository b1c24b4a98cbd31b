"""`make rolls`: webhooks restarted and certificates rotated while objects are created.

Prints a table and writes build/rolls.json. Ends with 1 if a single creation failed, or if webhooks
that were down and came back took longer than they may until a set was admitted.
"""

import argparse
import asyncio
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from api.jsons import JsonObject
from kube.resources import NAMESPACES
from penstock.lab import cluster
from penstock.lab.install import InstallOptions, install, stop
from penstock.lab.installation import Installation
from penstock.lab.progress import Silence
from penstock.lab.spec import LabSpec
from penstock.lab.state import Lab
from tests.bench.harness import Budget, Row, report
from tests.support.asking import Asker, asking
from tests.support.creating import Tally, calls, creating
from tests.support.living import connect
from tests.support.rolling import ask_for_a_set, hasty_gangs, recovered, roll, stopped, webhooks
from tests.support.rotating import rotate

BUILD: Final = Path("build")
SHOWN: Final = 5
RECOVERY: Final = "all webhooks down and back: until a set is admitted"


@dataclass(frozen=True)
class Course:
    """Something done again and again while objects are created."""

    what: str
    times: int
    act: Callable[[], None]
    requests: int
    """Creations at least; the acts are spread over them."""


@dataclass(frozen=True)
class Ground:
    """Where it happens."""

    lab: Lab
    space: str
    rate: float


def run(course: Course, ground: Ground) -> list[Row]:
    """Go through a course; a failed creation is told at once and counted."""
    before, begun = calls(ground.lab.kubeconfig), time.perf_counter()
    with creating(ground.lab.kubeconfig, ground.space, ground.rate) as tally:
        for number in range(course.times):
            _await_requests(tally, course.requests * number // course.times)
            course.act()
            _say(f"{course.what} {number + 1}/{course.times}: {_told(tally)}")
        _await_requests(tally, course.requests)
    took = time.perf_counter() - begun
    for failure in tally.failures[:SHOWN]:
        _say(f"failed: {failure}")
    what = f"{course.times} × {course.what}"
    return [
        Row(f"{what}, creations", tally.asked, ""),
        Row(f"{what}, failed", len(tally.failures), "", None, Budget(0)),
        Row(f"{what}, calls of our webhooks", calls(ground.lab.kubeconfig) - before, ""),
        Row(f"{what}, p50", tally.quantile(0.5) * 1e3, "ms"),
        Row(f"{what}, p99", tally.quantile(0.99) * 1e3, "ms"),
        Row(f"{what}, longest", tally.quantile(1) * 1e3, "ms"),
        Row(f"{what}, time", took, "s"),
    ]


def _await_requests(tally: Tally, count: int) -> None:
    while tally.asked < count:
        time.sleep(0.2)


def _told(tally: Tally) -> str:
    return f"{tally.asked} created, {len(tally.failures)} failed"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - somebody waits for minutes


@contextmanager
def installed() -> Iterator[tuple[Lab, Installation]]:
    """Run a small lab with Penstock in it."""
    name = f"rolls-{os.getpid()}-{secrets.token_hex(3)}"
    lab = asyncio.run(cluster.up(LabSpec(name, nodes=3), Silence()))
    try:
        helm = lab.binaries["helm"]
        work = install(lab.directory, lab.kubeconfig, helm, InstallOptions(), _say)
        yield lab, asyncio.run(work)
    finally:
        stop(lab.directory)
        asyncio.run(cluster.down(name, Silence()))


def recovery(installation: Installation, asker: Asker, space: str) -> Row:
    with stopped(installation):
        assert not ask_for_a_set(asker, space).done
    took = recovered(asker, space)
    return Row(RECOVERY, took, "s", None, Budget(10))


def pss(master: psutil.Process) -> float:
    """MiB of a process and its children, with what they share counted once."""
    tree = [master, *master.children(recursive=True)]
    return sum(float(each.memory_full_info().pss) for each in tree) / (1 << 20)


async def _rotate(lab: Lab) -> None:
    async with connect(lab.kubeconfig) as person:
        await rotate(person)


def measure(options: argparse.Namespace) -> list[Row]:
    rolls: int = options.rolls
    rotations: int = options.rotations
    requests: int = options.requests
    rows: list[Row] = []
    with installed() as (lab, installation):
        space = f"rolls-{secrets.token_hex(4)}"
        with asking(lab.kubeconfig) as asker:
            assert asker.ask("POST", NAMESPACES.path(), {"metadata": {"name": space}}).done
            rows.append(recovery(installation, asker, space))
        ground = Ground(lab, space, options.rate)
        what = f"rolling restarts of {len(webhooks(installation))} webhooks"
        if rolls:
            rows += run(Course(what, rolls, lambda: roll(installation), requests), ground)
        if rotations:
            wait = ("--trust-wait", f"{options.trust_wait:g}", "--retire-after", "1")
            with hasty_gangs(installation, *wait):
                act = lambda: asyncio.run(_rotate(lab))  # noqa: E731
                rows += run(Course("rotations of authority and leaf", rotations, act, 0), ground)
        for name in webhooks(installation):
            memory = pss(psutil.Process(installation.pid(name)))
            rows.append(Row(f"{name}'s memory, master included", memory, "MiB", None, Budget(90)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="make rolls", description=__doc__)
    parser.add_argument("--rolls", type=int, default=20)
    parser.add_argument("--rotations", type=int, default=50)
    parser.add_argument(
        "--requests", type=int, default=10_000, help="during the restarts, at least"
    )
    parser.add_argument("--rate", type=float, default=20.0, help="creations a second")
    parser.add_argument("--trust-wait", type=float, default=5.0, help="seconds in each rotation")
    options = parser.parse_args()
    settings: JsonObject = {**vars(options)}
    rows = measure(options)
    report("rolls", rows, settings, BUILD)
    judged = [row for row in rows if row.what == RECOVERY or row.what.endswith("failed")]
    sys.exit(any(row.within is False for row in judged))


if __name__ == "__main__":
    main()

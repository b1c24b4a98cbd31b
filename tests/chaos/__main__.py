"""`make chaos`: sets at work on a lab while processes, nodes and the network fail.

Each run makes sets in a namespace of its own, lets one or two faults happen to the cluster, waits
until all is at rest, and has the API server's audit log judged. A run is drawn from its seed. Runs
are added to build/chaos/runs.jsonl; of those with findings log and final state are kept beside it.
Ends with 1 if anything was found.
"""

import argparse
import asyncio
import fcntl
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from rich.console import Console

from penstock.lab import cluster
from penstock.lab.install import InstallOptions, install, stop
from penstock.lab.progress import Silence
from tests.chaos import ledger, results
from tests.chaos.faults import FAULTS
from tests.chaos.mutations import EXPECTED, MUTATIONS
from tests.chaos.results import Result
from tests.chaos.running import MANY, Script, abreast, drawn
from tests.chaos.stage import ROOM, spec, staged

ALL = "all"  # mutations, in turn
EXAMPLES = """examples:
  make chaos RUNS=20 SEED=1                        seeds 1 to 20
  make chaos RUNS=5 SEED=7 ARGS="--keep"           and leave the lab up for the next time
  make chaos RUNS=3 ARGS="--only late-write,lose-node"
  make chaos RUNS=20 ARGS="--abreast 2"            two at a time, which meet each other's faults
  make chaos RUNS=1 ARGS="--many 500"              that many sets scaled at once
  make chaos RUNS=4 ARGS="--mutate all"            do what is forbidden: it must be found
  python -m tests.chaos --summary                  add up the runs there are
  python -m tests.chaos --record                   add them to docs/chaos-runs.md
"""


def options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make chaos", description=__doc__, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="of the first run; then one more each")
    parser.add_argument("--minutes", type=float, default=0.0, help="begin no run after so long")
    parser.add_argument("--abreast", type=int, default=1, help="so many runs at the same time")
    parser.add_argument("--only", default="", help=f"of {', '.join(FAULTS)}")
    parser.add_argument("--many", type=int, default=0, help="scale so many sets at once instead")
    parser.add_argument("--mutate", choices=[*MUTATIONS, ALL], default="")
    parser.add_argument("--lab", default="chaos", help="which lab to make or to take over")
    parser.add_argument("--keep", action="store_true", help="leave the lab up")
    parser.add_argument("--build", type=Path, default=results.BUILD)
    parser.add_argument("--summary", action="store_true", help="only add up the runs there are")
    parser.add_argument(
        "--record", action="store_true", help=f"only add the runs there are to {ledger.FILE}"
    )
    found = parser.parse_args(arguments)
    unknown = set(filter(None, found.only.split(","))) - FAULTS.keys()
    if unknown:
        parser.error(f"--only: {', '.join(sorted(unknown))} is none of {', '.join(FAULTS)}")
    return found


def scripts(told: argparse.Namespace) -> Iterator[Script]:
    """Draw the runs that were asked for."""
    only = tuple(filter(None, told.only.split(",")))
    for seed in range(told.seed, told.seed + told.runs):
        script = replace(drawn(seed, only), folder=told.build)
        if told.many:
            script = replace(script, faults=(MANY,), many=told.many, sets=2, acts=0)
        if told.mutate:
            turn = [*MUTATIONS][(seed - told.seed) % len(MUTATIONS)]
            mutation = turn if told.mutate == ALL else told.mutate
            script = replace(script, faults=(), sets=2, acts=0, mutation=mutation, at_rest=False)
        yield script


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - somebody waits for minutes


async def session(told: argparse.Namespace) -> list[Result]:
    """Make all runs on one lab, until told to stop: nothing that was begun goes on then."""
    begun, task = time.perf_counter(), asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    lab = await cluster.up(spec(told.lab, ROOM * told.abreast), cluster.screen())
    found: list[Result] = []
    try:
        work = install(
            lab.directory, lab.kubeconfig, lab.binaries["helm"], InstallOptions(), lambda _: None
        )
        async with staged(lab, await work, told.build / "logs") as stage:
            drawn_runs = scripts(told)
            while together := list(islice(drawn_runs, told.abreast)):
                if told.minutes and time.perf_counter() - begun > told.minutes * 60:
                    break
                for result in await abreast(stage, together):
                    results.append(result, told.build)
                    found.append(result)
                    _say(_told(result))
    finally:
        if not told.keep:
            stop(lab.directory)
            await cluster.down(told.lab, Silence())
    return found


def _told(result: Result) -> str:
    faults = "+".join(result.faults) or result.mutation
    lines = [f"seed {result.seed}: {faults}: {result.seconds:.0f} s: {_outcome(result)}"]
    lines += [f"  {each.rule}: {each.what}: {each.why}" for each in result.findings[:8]]
    return "\n".join(lines)


def _outcome(result: Result) -> str:
    if result.trouble:
        return f"NOT MADE: {result.trouble}"
    told = f"{result.figures.get('converged', 0):.1f} s to converge"
    return f"{len(result.findings)} FINDINGS, {result.kept}" if result.findings else f"ok, {told}"


def missed(found: list[Result]) -> list[Result]:
    """List runs that were not as they must be: with findings, or without those of a mutation."""
    return [
        each
        for each in found
        if (
            EXPECTED[each.mutation] not in {f.rule for f in each.findings}
            if each.mutation
            else not each.clean
        )
    ]


def main() -> None:
    told = options(sys.argv[1:])
    console = Console(width=140)
    if told.summary:
        console.print(results.table(results.read(told.build), "all runs"))
        return
    if told.record:
        ledger.record(results.read(told.build))
        return
    told.build.mkdir(parents=True, exist_ok=True)
    (told.build / "logs").mkdir(exist_ok=True)
    with (told.build / f"{told.lab}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"another `make chaos` is at work on lab {told.lab}: wait until it is done")
        try:
            found = asyncio.run(session(told))
        except asyncio.CancelledError:
            sys.exit("told to stop")
    console.print(results.table(found, f"{len(found)} runs"))
    sys.exit(bool(missed(found)))


if __name__ == "__main__":
    main()

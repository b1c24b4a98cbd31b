"""Judges a run from the API server's audit log and the final state, and from nothing else.

`python -m tests.chaos.checker LOG STATE` prints what is wrong, and ends with 1 if anything is.
STATE is a JSON object with all objects there are in the end, by the plural of their kind.
"""

import argparse
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests.chaos import audit_final, audit_log
from tests.chaos.audit_final import Pace, State
from tests.chaos.audit_rules import Deletions, Finding, Gates, RoomKept, Rule, Times, Whole
from tests.chaos.audit_things import allocatable
from tests.chaos.audit_world import GANGS, World, with_lost_ends


@dataclass(frozen=True)
class Verdict:
    """What is wrong, and figures about what was seen."""

    findings: tuple[Finding, ...]
    figures: dict[str, float]


def check(
    lines: Iterable[bytes], state: State, spaces: Collection[str] = (), *, at_rest: bool = True
) -> Verdict:
    """Judge every instant, and the end; with `at_rest`, also that all has come about.

    With namespaces, only what is in those counts, and what is in none.
    """
    log = audit_log.read(lines)
    if spaces:
        log, state = audit_log.within(log, spaces), audit_final.within(state, spaces)
    end = max((write.at for write in log.writes), default=0.0)
    times = Times(log.starts, audit_final.faults(log.writes, end))
    room, pace = RoomKept(), Pace(times)
    rules: list[Rule] = [Gates(times), Deletions(times), room, Whole(times), pace]
    world = World()
    for node in state.get("nodes", ()):
        world.nodes[str(audit_log.part(node, "metadata").get("name"))] = allocatable(node)
    findings: list[Finding] = []
    late = lifts = 0
    for write in with_lost_ends(log, audit_final.there(state)):
        change = world.apply(write)
        if change is None:
            continue
        lifts += change.lift is not None
        late += write.user == GANGS and world.holder not in ("", write.instance)
        for rule in rules:
            findings += rule.see(change, world)
    for rule in rules:
        findings += rule.end(world, end)
    findings += audit_final.replayed(state, world, end)
    if at_rest:
        findings += [*audit_final.settled(state, end), *audit_final.complete(state, end)]
        findings += audit_final.packed(state, end)
    figures = {
        "writes": len(log.writes),
        "lifts": lifts,
        "api_starts": len(log.starts),
        "late_writes": late,
        "stolen": room.stolen,
        "converged": round(pace.seconds, 2),
    }
    return Verdict(tuple(findings), figures)


def run(arguments: Sequence[str]) -> None:
    """Check what is in two files, and end the process."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos.checker",
        description=__doc__,
        epilog="example: python -m tests.chaos.checker build/chaos/7/audit.log "
        "build/chaos/7/state.json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("log", type=Path)
    parser.add_argument("state", type=Path)
    parser.add_argument("--namespace", action="append", default=[], help="judge only what is there")
    options = parser.parse_args(arguments)
    log: Path = options.log
    state: Path = options.state
    with log.open("rb") as lines:
        found = msgspec.json.decode(state.read_bytes(), type=dict)
        verdict = check(lines, found, options.namespace)
    for finding in verdict.findings:
        sys.stdout.write(f"{finding.rule}: {finding.what}: {finding.why}\n")
    sys.stdout.write(f"{len(verdict.findings)} findings; {verdict.figures}\n")
    sys.exit(bool(verdict.findings))


if __name__ == "__main__":
    run(sys.argv[1:])

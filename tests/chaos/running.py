"""One run: people at work, faults among it, then quiet, and the verdict on all of it."""

import asyncio
import gzip
import json
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from api.jsons import JsonObject
from kube.errors import ApiError
from tests.chaos import audit_final, results
from tests.chaos.audit_final import MARK_FAULT, MARK_HEALED
from tests.chaos.audit_rules import Finding
from tests.chaos.checker import check
from tests.chaos.faults import FAULTS, Deed, Scene, scale_many
from tests.chaos.load import People
from tests.chaos.mutations import MUTATIONS
from tests.chaos.results import Result
from tests.chaos.stage import PREFIX, Stage
from tests.support.chance import dice

SETTLE_SECONDS: Final = 150.0
LOOK_SECONDS: Final = 0.3
MUTATED_SECONDS: Final = 2.0
LOG_LATE_SECONDS: Final = 0.3
MANY: Final = "many"
TWICE: Final = 0.3  # of all runs have two faults at once


@dataclass(frozen=True)
class Script:
    """What a seed says is to happen; how it falls out is up to the machine."""

    seed: int
    faults: tuple[str, ...]
    sets: int
    acts: int
    many: int = 0
    mutation: str = ""
    folder: Path = results.BUILD
    at_rest: bool = True


def drawn(seed: int, only: tuple[str, ...] = ()) -> Script:
    """Draw a run; the same seed gives the same one."""
    chance = dice(seed)
    known = sorted(only or FAULTS)
    count = 2 if len(known) > 1 and chance.random() < TWICE else 1
    faults = tuple(chance.sample(known, count))
    return Script(seed, faults, chance.randint(2, 5), chance.randint(2, 7))


@dataclass
class _Course:
    """What came of a run so far."""

    findings: list[Finding] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    trouble: str = ""
    kept: str = ""
    acts: list[str] = field(default_factory=list)


async def run(stage: Stage, script: Script) -> Result:
    """Make a run in a namespace of its own, and judge it."""
    begun, at = time.perf_counter(), datetime.now(UTC)  # noqa: TID251 - told to people only
    course = _Course()
    try:
        await _through(stage, script, course)
    except* (ApiError, TimeoutError, OSError) as group:
        course.trouble = "; ".join(f"{type(each).__name__}: {each}" for each in group.exceptions)
    return Result(
        script.seed, results.commit(), at.isoformat(timespec="seconds"),
        round(time.perf_counter() - begun, 1), list(script.faults), course.acts,
        course.findings, course.figures, course.trouble, script.mutation, course.kept,
    )  # fmt: skip


async def _through(stage: Stage, script: Script, course: _Course) -> None:
    chance = dice(script.seed)
    name = f"{PREFIX}{script.seed}-{time.time_ns() // 10**6 % 10**8}"
    log = stage.folder.audit_log
    await stage.ready()
    offset = log.stat().st_size
    async with stage.space(name) as space:
        people = People(stage.client, space, chance)
        course.acts = people.acts
        scene = Scene(stage, space, people, chance)
        begun = time.perf_counter()
        await _happen(scene, script)
        happened = time.perf_counter() - begun
        settled = await _settle(stage, space)
        if script.mutation:
            # It may leave what never comes to rest, so that nobody waits for that.
            await MUTATIONS[script.mutation](scene)
            await asyncio.sleep(MUTATED_SECONDS)
        state = await stage.lists(space)
        await asyncio.sleep(LOG_LATE_SECONDS)
        lines = await asyncio.to_thread(_tail, log, offset)
        verdict = await asyncio.to_thread(check, lines, state, space, at_rest=script.at_rest)
        course.findings += verdict.findings
        course.figures = {**verdict.figures, "settled": round(settled, 1)}
        course.figures["happened"] = round(happened, 1)
        if course.findings:
            course.kept = await asyncio.to_thread(_keep, script, name, lines, state)
        begun = time.perf_counter()
        cleared = await stage.cleared(space)
        course.figures["cleared"] = round(time.perf_counter() - begun, 1)
        if not cleared:
            course.findings.append(Finding("settled", time.time(), space, "cannot be deleted"))  # noqa: TID251


async def _happen(scene: Scene, script: Script) -> None:
    """Let people and faults come about together."""
    async with asyncio.TaskGroup() as group:
        group.create_task(scene.people.act(script.sets, script.acts, seconds=6.0))
        for number, fault in enumerate(script.faults):
            deed = _many(script.many) if fault == MANY else FAULTS[fault]
            own = Scene(scene.stage, scene.space, scene.people, dice(script.seed * 31 + number))
            group.create_task(_inflict(own, number, deed))


def _many(count: int) -> Deed:
    async def many(scene: Scene) -> None:
        await scale_many(scene, count)

    return many


async def _inflict(scene: Scene, number: int, deed: Deed) -> None:
    await scene.pause(0, 2.0)
    await scene.stage.mark(scene.space, f"{MARK_FAULT}-{number}")
    try:
        await deed(scene)
    finally:
        await scene.stage.mark(scene.space, f"{MARK_HEALED}-{number}")


async def _settle(stage: Stage, space: str) -> float:
    """Wait until all is at rest, or no longer; gives the seconds it took."""
    begun = time.perf_counter()
    with suppress(TimeoutError):
        async with asyncio.timeout(SETTLE_SECONDS):
            while not await _at_rest(stage, space):
                await asyncio.sleep(LOOK_SECONDS)
    return time.perf_counter() - begun


async def _at_rest(stage: Stage, space: str) -> bool:
    try:
        state = audit_final.within(await stage.lists(space), space)
    except ApiError:
        return False
    return not [*audit_final.settled(state, 0.0), *audit_final.complete(state, 0.0)]


def _tail(log: Path, offset: int) -> list[bytes]:
    with log.open("rb") as file:
        file.seek(offset)
        return file.read().splitlines(keepends=True)


def _keep(script: Script, name: str, lines: list[bytes], state: dict[str, list[JsonObject]]) -> str:
    """Keep what a finding is to be understood from."""
    folder = script.folder / name
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / "audit.log.gz", "wb", compresslevel=3) as file:
        file.writelines(lines)
    (folder / "state.json").write_text(json.dumps(state))
    return str(folder)

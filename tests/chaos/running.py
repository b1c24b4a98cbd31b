"""A run: people at work, faults among it, then quiet, and the verdict on all of it.

Several may be made abreast on one lab: each has sets, people and faults of its own, and meets the
faults of all.
"""

import asyncio
import gzip
import json
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from api import names
from api.jsons import JsonObject
from kube.errors import ApiError
from tests.chaos import audit_final, audit_log, results
from tests.chaos.audit_final import MARK_FAULT, MARK_HEALED
from tests.chaos.audit_rules import Finding
from tests.chaos.checker import check
from tests.chaos.faults import FAULTS, Deed, Scene, scale_many
from tests.chaos.load import People
from tests.chaos.mutations import MUTATIONS
from tests.chaos.results import Done, Result
from tests.chaos.stage import PREFIX, Stage
from tests.support.chance import dice

SETTLE_SECONDS: Final = 150.0
LOOK_SECONDS: Final = 0.3
MUTATED_SECONDS: Final = 2.0
LOG_LATE_SECONDS: Final = 0.3
MANY: Final = "many"
TWICE: Final = 0.3  # of all runs have two faults at once
LEASE: Final = ("leases", names.NAMESPACE, names.GANGS_LEASE)


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

    script: Script
    space: str
    findings: list[Finding] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    kept: str = ""
    acts: list[str] = field(default_factory=list)
    done: Counter[Done] = field(default_factory=Counter)


async def run(stage: Stage, script: Script) -> Result:
    """Make a run in a namespace of its own, and judge it."""
    (result,) = await abreast(stage, [script])
    return result


async def abreast(stage: Stage, scripts: Sequence[Script]) -> list[Result]:
    """Make runs at the same time, each in a namespace of its own, and judge all they did."""
    begun, at = time.perf_counter(), datetime.now(UTC)  # noqa: TID251 - told to people only
    courses = [_Course(script, f"{PREFIX}{script.seed}-{_stamp()}") for script in scripts]
    trouble = ""
    try:
        await _through(stage, courses)
    except* (ApiError, TimeoutError, OSError) as group:
        trouble = "; ".join(f"{type(each).__name__}: {each}" for each in _leaves(group))
    seconds = round((time.perf_counter() - begun) / len(scripts), 1)
    return [
        Result(
            each.script.seed, results.commit(), at.isoformat(timespec="seconds"), seconds,
            list(each.script.faults), each.acts, each.findings,
            {**each.figures, "abreast": len(scripts)}, trouble, each.script.mutation, each.kept,
            {str(kind): count for kind, count in (+each.done).items()},
        )
        for each in courses
    ]  # fmt: skip


def _stamp() -> int:
    return time.time_ns() // 10**6 % 10**8


def _leaves(group: BaseExceptionGroup) -> Iterator[BaseException]:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _leaves(each)
        else:
            yield each


async def _through(stage: Stage, courses: Sequence[_Course]) -> None:
    log = stage.folder.audit_log
    await stage.ready()
    offset = log.stat().st_size
    spaces = [each.space for each in courses]
    async with AsyncExitStack() as stack:
        for space in spaces:
            await stack.enter_async_context(stage.space(space))
        await _leader_told(log, offset)
        begun = time.perf_counter()
        scenes = [_scene(stage, each) for each in courses]
        async with asyncio.TaskGroup() as group:
            for scene, each in zip(scenes, courses, strict=True):
                group.create_task(_happen(scene, each.script))
        happened = time.perf_counter() - begun
        settled = await _settle(stage, spaces)
        for scene, each in zip(scenes, courses, strict=True):
            if each.script.mutation:
                # It may leave what never comes to rest, so that nobody waits for that.
                await MUTATIONS[each.script.mutation](scene)
                await asyncio.sleep(MUTATED_SECONDS)
        state = await stage.lists(*spaces)
        await asyncio.sleep(LOG_LATE_SECONDS)
        lines = await asyncio.to_thread(_tail, log, offset)
        at_rest = all(each.script.at_rest for each in courses)
        verdict = await asyncio.to_thread(check, lines, state, spaces, at_rest=at_rest)
        kept = ""
        if verdict.findings:
            kept = await asyncio.to_thread(_keep, courses[0], lines, state)
        begun = time.perf_counter()
        cleared = await asyncio.gather(*(stage.cleared(space) for space in spaces))
        told = {"settled": settled, "happened": happened, "cleared": time.perf_counter() - begun}
        for each, clear in zip(courses, cleared, strict=True):
            each.findings += concerning(each.space, verdict.findings, spaces)
            each.kept = kept if each.findings else ""
            each.figures = verdict.figures | {name: round(took, 1) for name, took in told.items()}
            if not clear:
                now = time.time()  # noqa: TID251 - told to people only
                each.findings.append(Finding("settled", now, each.space, "cannot be deleted"))


def _scene(stage: Stage, course: _Course) -> Scene:
    chance = dice(course.script.seed)
    people = People(stage.client, course.space, chance)
    course.acts = people.acts
    return Scene(stage, course.space, people, chance, course.done)


def concerning(
    space: str, findings: Iterable[Finding], spaces: Collection[str]
) -> Iterator[Finding]:
    """Give the findings about what is in a namespace, and those about none of all these."""
    for each in findings:
        named = [other for other in spaces if f" {other}/" in each.what]
        if not named or space in named:
            yield each


async def _happen(scene: Scene, script: Script) -> None:
    """Let people and faults come about together."""
    async with asyncio.TaskGroup() as group:
        group.create_task(scene.people.act(script.sets, script.acts, seconds=6.0))
        for number, fault in enumerate(script.faults):
            deed = _many(script.many) if fault == MANY else FAULTS[fault]
            dealt = dice(script.seed * 31 + number)
            own = replace(scene, chance=dealt)
            group.create_task(_inflict(own, f"{script.seed}x{number}", deed))


def _many(count: int) -> Deed:
    async def many(scene: Scene) -> None:
        await scale_many(scene, count)

    return many


async def _inflict(scene: Scene, number: str, deed: Deed) -> None:
    await scene.pause(0, 2.0)
    await scene.stage.mark(scene.space, f"{MARK_FAULT}-{number}")
    try:
        await deed(scene)
    finally:
        await scene.stage.mark(scene.space, f"{MARK_HEALED}-{number}")


async def _settle(stage: Stage, spaces: Collection[str]) -> float:
    """Wait until all is at rest, or no longer; gives the seconds it took."""
    begun = time.perf_counter()
    with suppress(TimeoutError):
        async with asyncio.timeout(SETTLE_SECONDS):
            while not await _at_rest(stage, spaces):
                await asyncio.sleep(LOOK_SECONDS)
    return time.perf_counter() - begun


async def _at_rest(stage: Stage, spaces: Collection[str]) -> bool:
    try:
        state = await stage.lists(*spaces)
    except ApiError:
        return False
    return not [*audit_final.settled(state, 0.0), *audit_final.complete(state, 0.0)]


async def _leader_told(log: Path, offset: int) -> None:
    """Wait until the log says who leads: whoever does not could not be told from who does."""
    async with asyncio.timeout(SETTLE_SECONDS):
        while True:
            written = audit_log.read(await asyncio.to_thread(_tail, log, offset)).writes
            if any(write.key == LEASE and write.known for write in written):
                return
            await asyncio.sleep(LOOK_SECONDS)


def _tail(log: Path, offset: int) -> list[bytes]:
    with log.open("rb") as file:
        file.seek(offset)
        return file.read().splitlines(keepends=True)


def _keep(course: _Course, lines: list[bytes], state: dict[str, list[JsonObject]]) -> str:
    """Keep what a finding is to be understood from."""
    folder = course.script.folder / course.space
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / "audit.log.gz", "wb", compresslevel=3) as file:
        file.writelines(lines)
    (folder / "state.json").write_text(json.dumps(state))
    return str(folder)

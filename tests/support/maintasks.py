"""How long a page's main thread works at a stretch, by its own clock: to wait is no work.

Chromium's trace has a thread's processor time beside the time on the wall, so what is told here of
a page hardly depends on who else has the machine.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from api.jsons import JsonObject
from tests.support.chromium import PATIENCE, Page

# Tasks of all threads, and what a page marks.
CATEGORIES = ("toplevel", "blink.user_timing")
TASK = "ThreadControllerImpl::RunTask"
MARK = "floor"
# A fixed piece of the kind of work that a page does: much of it is memory.
FLOOR = """(() => {
  performance.mark("floor");
  const row = (_, i) => ({ name: `node-${(i * 7919) % 12007}`, free: i % 9, at: [i, i + 1] });
  const rows = JSON.parse(JSON.stringify(Array.from({ length: 12000 }, row)));
  rows.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.free - b.free));
  return rows.length;
})()"""


@dataclass(frozen=True)
class Task:
    """One task: when it began, and how long it took, in microseconds."""

    begun: int
    took: int
    worked: int

    def has(self, instant: int) -> bool:
        """Whether something was while it ran."""
        return self.begun <= instant <= self.begun + self.took


@dataclass
class Tasks:
    """What was recorded of one main thread; in milliseconds of its own clock."""

    floors: list[float] = field(default_factory=list)
    others: list[float] = field(default_factory=list)

    @property
    def floor(self) -> float:
        """What the fixed piece of work took at the least."""
        return min(self.floors)

    @property
    def longest(self) -> float:
        """What the longest of all other tasks took."""
        return max(self.others)


@asynccontextmanager
async def recorded(page: Page, floors: int = 5) -> AsyncIterator[Tasks]:
    """Record what happens inside, between so many floors before and after."""
    wire, found = page.wire, Tasks()
    config: JsonObject = {"includedCategories": [*CATEGORIES], "excludedCategories": ["*"]}
    await wire.call("Tracing.start", traceConfig=config, transferMode="ReportEvents")
    for _ in range(floors):
        await page.run(FLOOR)
    yield found
    for _ in range(floors):
        await page.run(FLOOR)
    await wire.call("Tracing.end")
    async with asyncio.timeout(PATIENCE):
        while not any(each.get("method") == "Tracing.tracingComplete" for each in wire.heard):
            await asyncio.sleep(0.05)
    events = [*_events(wire.heard)]
    marks = [each for each in events if each.get("name") == MARK]
    threads = {(each["pid"], each["tid"]) for each in marks}
    assert len(threads) == 1, f"{len(marks)} marks by {len(threads)} threads"
    at = sorted({_number(each, "ts") for each in marks})
    for event in events:
        if event.get("name") == TASK and (event["pid"], event["tid"]) in threads:
            task = Task(_number(event, "ts"), _number(event, "dur"), _number(event, "tdur"))
            kind = found.floors if any(map(task.has, at)) else found.others
            kind.append(task.worked / 1000)


def _events(heard: list[JsonObject]) -> Iterator[JsonObject]:
    """Take what was traced out of what was heard, since it is much."""
    kept = []
    for said in heard:
        parameters = said.get("params")
        if said.get("method") != "Tracing.dataCollected" or not isinstance(parameters, dict):
            kept.append(said)
            continue
        value = parameters["value"]
        assert isinstance(value, list)
        yield from (each for each in value if isinstance(each, dict))
    heard[:] = kept


def _number(event: JsonObject, key: str) -> int:
    found = event.get(key, 0)
    assert isinstance(found, int)
    return found

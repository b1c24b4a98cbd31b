"""Ten thousand nodes with live events: for how long the main thread is ever busy at a stretch.

The cluster is in memory, since no machine for tests has one of that size; server and page are real.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest

from kube.clock import SystemClock
from kube.resources import NODES, PODS
from penstock.dashboard.choices import Choices
from penstock.dashboard.running import Sources, served
from tests.browser.conftest import Looking
from tests.support import maintasks, pretendcluster
from tests.support.chromium import Chromium, Page
from tests.support.dashboards import NoLog, built_in
from tests.support.pretendcluster import PretendCluster

pytestmark = pytest.mark.browser

COUNT = 10_000
EACH = 4  # pods of a gang
SECONDS = 15.0
BUDGET = 200.0  # milliseconds
# Milliseconds that the floor takes where the budget was set; a slower machine has more time.
FLOOR = 8.0
OBSERVE = """
window.tasks = [];
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) window.tasks.push(each.duration);
}).observe({ type: "longtask", buffered: true });
window.frames = [];
let last = performance.now();
const frame = (now) => {
  window.frames.push(now - last);
  last = now;
  requestAnimationFrame(frame);
};
requestAnimationFrame(frame);
"""
WORDS = "no block has room for all 12 pods of the minimum: nearest is z0/z0-b0, which takes 4 of 12"


@dataclass
class Life:
    """A large cluster in which gangs come and go, and nodes are cordoned."""

    cluster: PretendCluster
    nodes: Sequence[str]
    running: list[str] = field(default_factory=list)
    free: list[str] = field(default_factory=list)
    turn: int = 0

    @classmethod
    def begin(cls) -> "Life":
        """Most of it is taken, and a hundred gangs wait."""
        cluster = PretendCluster(SystemClock())
        nodes = pretendcluster.hall(cluster, COUNT)
        made = cls(cluster, nodes, free=list(nodes))
        while len(made.free) > COUNT // 10:
            made.come()
        for i in range(100):
            pretendcluster.gang(cluster, f"wide-{i}", [], pods=12, message=WORDS)
        return made

    def come(self) -> None:
        name = f"chat-{self.turn}"
        at, self.free = self.free[:EACH], self.free[EACH:]
        pretendcluster.gang(self.cluster, name, at)
        self.running.append(name)
        self.turn += 1

    def go(self) -> None:
        name = self.running.pop(0)
        pods = self.cluster.objects[PODS]
        for i in range(EACH):
            spec = pods[f"team/{name}-a-{i}"]["spec"]
            assert isinstance(spec, dict)
            self.free.append(str(spec["nodeName"]))
        pretendcluster.drop_gang(self.cluster, name, EACH)

    async def live(self) -> None:
        """Change something all the time: hundreds of objects a second."""
        while True:
            for _ in range(5):
                self.go()
                self.come()
            name = self.nodes[self.turn * 37 % COUNT]
            self.cordon(name, cordoned=self.turn % 2 == 0)
            i = self.turn % 100
            said = f"{WORDS}, {self.turn} times"
            pretendcluster.gang(self.cluster, f"wide-{i}", [], pods=12, message=said)
            await asyncio.sleep(0.1)

    def cordon(self, name: str, *, cordoned: bool) -> None:
        there = self.cluster.objects[NODES][f"/{name}"]
        self.cluster.put(NODES, {**there, "spec": {"unschedulable": cordoned}})


@pytest.fixture
async def large(browser: Chromium) -> AsyncIterator[tuple[Looking, Life]]:
    life = Life.begin()
    sources = Sources(life.cluster, built_in, NoLog())
    async with served(sources, Choices()) as found, browser.page() as page:
        await page.before(OBSERVE)
        yield Looking(page, found.address.url), life
        assert page.complaints() == []


async def use(page: Page) -> None:
    """Do what people do meanwhile: scroll the map, walk in it, choose a gang, search."""
    await page.run("document.getElementById('map').focus()")
    for turn in range(12):
        await page.run(f"document.getElementById('map').scrollTop = {turn * 150}")
        await page.press("ArrowDown", "PageDown", "ArrowRight", "Enter")
        await asyncio.sleep(0.05)
    await page.run("document.getElementById('find').focus()")
    await page.press(*"chat-9")
    await page.run("document.getElementById('domains').open = true")


async def test_ten_thousand_nodes_under_live_events_do_not_stutter(
    large: tuple[Looking, Life],
) -> None:
    looking, life = large
    page = looking.page
    await looking.begin()
    await page.says("#tile-nodes", "10,000")
    loading = await page.run("Math.max(0, ...window.tasks)")
    async with maintasks.recorded(page) as tasks:
        await live(looking, life)
    told = float(str(await page.run("Math.max(0, ...window.tasks)")))
    frame = float(str(await page.run("Math.max(0, ...window.frames)")))
    bound = BUDGET * max(1.0, tasks.floor / FLOOR)
    figures = (
        "10,000 nodes under live events: the longest main-thread task worked"
        f" {tasks.longest:.0f} ms, budget {bound:.0f} ms; a fixed piece of work"
        f" {tasks.floor:.0f} ms; on the wall, with whoever else has the machine: longest task"
        f" {told:.0f} ms (while loading {float(str(loading)):.0f} ms; 0: none over 50 ms),"
        f" longest frame {frame:.0f} ms"
    )
    print(f"\n{figures}")  # noqa: T201 - the figures are what this is for
    await looking.keep("large-light")
    assert tasks.longest <= bound, figures


async def live(looking: Looking, life: Life) -> None:
    """Have the cluster live while the page is used, and see that the page goes along."""
    page = looking.page
    living = asyncio.ensure_future(life.live())
    try:
        changes = "window.frames.length"
        before = await page.run(changes)
        async with asyncio.timeout(SECONDS * 10):
            for _ in range(2):
                await use(page)
                await asyncio.sleep(SECONDS / 2)
        assert isinstance(before, (int, float))
        assert int(str(await page.run(changes))) > before
        await page.says("#gangs-sum", "gang")
        newest = f"team/{life.running[-1]}"
        await page.run(f"document.getElementById('find').value = {newest!r}")
        await page.run("document.getElementById('find').dispatchEvent(new Event('input'))")
        await page.says("#gangs", newest)
    finally:
        living.cancel()

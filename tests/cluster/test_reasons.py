"""Whoever waits is told why, soon after they asked, also when a hundred ask at once."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import pytest

from api import names
from api.jsons import JsonObject
from api.models import Condition
from api.objects import condition_of
from api.streams import Custom
from controller import pace
from controller.podgang import read_gang
from kube.cache import Cache, Change, Deleted
from kube.client import Scope
from kube.clock import SystemClock
from kube.resources import CONFIGMAPS, PODCLIQUESETS, PODGANGS
from tests.support.chance import dice
from tests.support.living import Cluster, Kubectl, engine_set

pytestmark = [pytest.mark.cluster, pytest.mark.long]

SETS = 100
SOON = 5.0  # seconds: five times what a reason may take
# What the machine can do, and who else is at work on it, shows by how long so many bare objects
# take, 0.04 to 0.07 s where it is quiet: as many times longer may a reason take.
QUIET = 0.1
AT_ONCE = 32
ROOM = 4  # nodes, of which the first set takes three


@dataclass
class Diary:
    """When each gang was first said to have no room, as a watch shows it, and in which words."""

    now: Callable[[], float]
    told: dict[str, tuple[float, Condition]] = field(default_factory=dict)

    def note(self, change: Change[Custom]) -> None:
        gang = None if isinstance(change, Deleted) else read_gang(change.new)
        said = condition_of(gang.status.conditions, names.SCHEDULED) if gang else None
        if gang is not None and said is not None and said.reason == names.REASON_INSUFFICIENT:
            self.told.setdefault(gang.metadata.name, (self.now(), said))


async def events(kubectl: Kubectl, reason: str) -> dict[str, list[str]]:
    """Give the notes of all Events with this reason, by the gang that they are about."""
    columns = r"jsonpath={range .items[*]}{.involvedObject.name}{'\t'}{.message}{'\n'}{end}"
    selector = f"--field-selector=reason={reason}"
    ask = partial(kubectl.run, "get", "events", selector, "-o", columns, check=True)
    done = await asyncio.to_thread(ask)
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        name, _, note = line.partition("\t")
        found.setdefault(name, []).append(note)
    return found


async def test_each_of_a_burst_that_finds_no_room_is_told_why_at_once(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    await cluster.label_nodes("why-test", count=ROOM)
    kubectl.apply(engine_set("first", pods=3, gpus=8, selector="why-test"))
    await cluster.running("first")
    clock = SystemClock()
    diary = Diary(clock.monotonic)
    gangs = Cache(cluster.client, PODGANGS, Custom, dice(), Scope(cluster.namespace))
    gangs.subscribe(diary.note)
    watching = asyncio.create_task(gangs.run())
    await gangs.synced()
    asked: dict[str, float] = {}

    async def ask(name: str) -> None:
        body = engine_set(name, pods=2, gpus=8, selector="why-test")
        await cluster.client.create(PODCLIQUESETS, body, cluster.namespace)
        asked[f"{name}-0"] = clock.monotonic()

    async def all_told() -> bool | None:
        return asked.keys() <= diary.told.keys() or None

    slower = max(1.0, await bare_objects(cluster) / QUIET)
    assert await pace.all_of([partial(ask, f"late-{n}") for n in range(SETS)], AT_ONCE) == []
    await cluster.until(all_told, "a reason for each")
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    assert all("16 needed, 8 free, 8 short" in diary.told[name][1].message for name in asked)
    slow = {name: diary.told[name][0] - at for name, at in asked.items()}
    assert max(slow.values()) < SOON * slower, sorted(slow.items(), key=lambda each: -each[1])[:5]

    async def all_have_events() -> dict[str, list[str]] | None:
        found = await events(kubectl, names.REASON_INSUFFICIENT)
        return found if asked.keys() <= found.keys() else None

    told = await cluster.until(all_have_events, "an Event for each")
    assert {len(told[name]) for name in asked} == {1}, "and no more than one"
    assert told["late-0-0"] == [diary.told["late-0-0"][1].message]
    await all_deleted(cluster)


async def bare_objects(cluster: Cluster) -> float:
    """Tell how long it takes to make as many objects that nobody looks at."""

    async def make(number: int) -> None:
        body: JsonObject = {"metadata": {"name": f"bare-{number}"}}
        await cluster.client.create(CONFIGMAPS, body, cluster.namespace)

    begun = SystemClock().monotonic()
    assert await pace.all_of([partial(make, n) for n in range(SETS)], AT_ONCE) == []
    return SystemClock().monotonic() - begun


async def all_deleted(cluster: Cluster) -> None:
    """Leave no gang that is judged beside those of other tests, as only so many are at a time."""
    every = (await cluster.client.list_pages(PODCLIQUESETS, Custom, cluster.namespace)).items

    async def delete(name: str) -> None:
        await cluster.client.delete(PODCLIQUESETS, name, cluster.namespace)

    deletions = [partial(delete, each.metadata.name) for each in every]
    assert await pace.all_of(deletions, AT_ONCE) == []

    async def gone() -> bool | None:
        left = await cluster.client.list_pages(PODGANGS, Custom, cluster.namespace)
        return not left.items or None

    await cluster.until(gone, "all gangs gone")


async def test_what_could_never_fit_is_told_apart_and_told_when_it_has_waited_too_long(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    await cluster.label_nodes("never-test", count=1)
    large = engine_set("large", pods=2, gpus=8, selector="never-test")
    large["metadata"] = {"name": "large", "annotations": {names.GANG_TIMEOUT: "4s"}}
    kubectl.apply(large)
    said = await cluster.gang("large-0", reason=names.REASON_NEVER_FITS)
    assert said.message.startswith("even with every node empty, no room for all 2 pods")

    async def late() -> Condition | None:
        gang = read_gang(await cluster.client.get(PODGANGS, Custom, "large-0", cluster.namespace))
        assert gang is not None
        return condition_of(gang.status.conditions, names.TIMED_OUT)

    timed_out = await cluster.until(late, "the timeout")
    assert (timed_out.status, timed_out.reason) == ("True", names.REASON_TIMED_OUT)

    async def told() -> dict[str, list[str]] | None:
        return await events(kubectl, names.REASON_TIMED_OUT) or None

    notes = await cluster.until(told, "its Event")
    assert notes == {"large-0": [f"{timed_out.message}: {said.message}"]}
    await cluster.label_nodes("never-test", count=2)
    await cluster.running("large")

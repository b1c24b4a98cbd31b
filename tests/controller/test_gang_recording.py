"""What the engine saw when it refused a gang is kept, and gives the same refusal elsewhere."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Iterable, Sequence, Set
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import msgspec
from typing_extensions import override

from controller.gangs.placing import Answers, Placer
from controller.gangs.recording import EVERY, FILE, Recorder
from controller.gangs.stockroom import Stockroom
from controller.gangs.views import SlotKey
from kube.objects import Key
from scheduler import cycle, saving
from scheduler.answers import NoFit
from scheduler.emptied import Emptied
from scheduler.requests import GangRequest
from scheduler.saving import Saved
from scheduler.snapshot import Snapshot
from scheduler.topology import Levels
from tests.support.clusters import node
from tests.support.gangscene import KEY, Scene, encoded, gang_of, scene
from tests.support.manualclock import LeapingClock, ManualClock
from tests.support.polling import eventually

EMPTY = Saved((Levels("", ("zone",)),), ())


def read(folder: Path) -> Saved:
    return saving.loads(gzip.decompress((folder / FILE).read_bytes()))


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


class Copying(Stockroom):
    """A stockroom that counts the copies made of it; the first `moving` looks find it changed."""

    def __init__(self, real: Stockroom, moving: int = 0) -> None:
        vars(self).update(vars(real))
        self._real = real
        self._moving = moving
        self.copies = 0

    @override
    def snapshot(
        self, levels: Sequence[Levels], moving: Set[tuple[Key, SlotKey]] = frozenset()
    ) -> Snapshot:
        found = self._real.snapshot(levels, moving)
        self._moving -= 1
        return replace(found) if self._moving >= 0 else found

    @override
    def saved(
        self, requests: Iterable[GangRequest], moving: Set[tuple[Key, SlotKey]] = frozenset()
    ) -> Saved:
        self.copies += 1
        return self._real.saved(requests, moving)


@asynccontextmanager
async def placing(folder: Path) -> AsyncIterator[tuple[Scene, Placer, list[Key]]]:
    """A placer at work that records, and the gangs it has decided on so far."""
    decided: list[Key] = []
    async with scene() as (made, _, client):
        answers = Answers(decided.append, lambda _, __: None)
        placer = Placer(
            client, LeapingClock(), made.world, made.reservations, lambda: None, answers
        )
        placer.recorder = Recorder(folder, LeapingClock())
        made.gangs.observe(msgspec.json.encode(gang_of("demo-0", ["a-0"], 9)))
        running = asyncio.create_task(placer.run())
        yield made, placer, decided
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def test_a_refusal_can_be_replayed_from_the_file(tmp_path: Path) -> None:
    async with placing(tmp_path / "new") as (made, placer, decided):
        made.nodes.observe(encoded(node("n1", {"cpu": "4", "pods": "110"}), 8))
        placer.ask(*made.asked())
        await eventually(lambda: decided == [KEY], "the answer")
        said = placer.ask(*made.asked())
    assert isinstance(said, NoFit)
    saved = read(tmp_path / "new")
    plan = cycle.plan(saved.snapshot(), saved.requests)
    assert Emptied(saved.nodes, saved.levels).judged(plan).refusals == (said,)


async def test_only_what_is_refused_is_copied(tmp_path: Path) -> None:
    async with placing(tmp_path) as (made, placer, decided):
        stockroom = made.world.stockroom = Copying(made.world.stockroom)
        placer.ask(*made.asked())
        await eventually(lambda: decided == [KEY], "the answer")
    assert stockroom.copies == 0
    assert not tmp_path.joinpath(FILE).exists()


async def test_what_moved_on_while_the_engine_thought_is_copied_at_the_next_try(
    tmp_path: Path,
) -> None:
    async with placing(tmp_path) as (made, placer, decided):
        made.nodes.observe(encoded(node("n1", {"cpu": "4", "pods": "110"}), 8))
        stockroom = made.world.stockroom = Copying(made.world.stockroom, moving=9)
        placer.ask(*made.asked())
        await eventually(lambda: decided == [KEY], "the answer")
        assert stockroom.copies == 0
        made.nodes.observe(encoded(node("n1", {"cpu": "5", "pods": "110"}), 10))
        placer.ask(*made.asked())
        await eventually(lambda: decided == [KEY, KEY], "another answer")
        assert stockroom.copies == 1
        assert read(tmp_path).nodes[0].status.allocatable["cpu"] == "5"


async def test_after_a_refusal_that_was_missed_the_next_is_copied_ahead(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, ManualClock())
    assert not recorder.ahead()
    await recorder.take(None)
    assert (recorder.due(), recorder.ahead(), recorder.ahead()) == (True, True, False)
    await recorder.take(EMPTY)
    assert (recorder.due(), recorder.ahead()) == (False, False)
    assert read(tmp_path) == EMPTY


async def test_it_is_written_once_a_minute_at_most(tmp_path: Path) -> None:
    clock = ManualClock()
    recorder = Recorder(tmp_path, clock)
    assert recorder.due()
    await recorder.write(EMPTY)
    assert not recorder.due()
    await clock.advance(EVERY)
    assert recorder.due()
    assert read(tmp_path) == EMPTY
    assert names_in(tmp_path) == [FILE]


async def test_a_folder_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    await Recorder(taken, ManualClock()).write(EMPTY)
    assert taken.read_text() == ""

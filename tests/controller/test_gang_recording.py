"""What the engine saw when it refused a gang is kept, and gives the same refusal elsewhere."""

import asyncio
import gzip
from contextlib import suppress
from pathlib import Path

import msgspec

from controller.gangs.placing import Answers, Placer
from controller.gangs.recording import EVERY, FILE, Recorder
from kube.objects import Key
from scheduler import cycle, saving
from scheduler.answers import NoFit
from scheduler.saving import Saved
from scheduler.topology import Levels
from tests.support.clusters import node
from tests.support.gangscene import KEY, encoded, gang_of, scene
from tests.support.manualclock import LeapingClock, ManualClock
from tests.support.polling import eventually

EMPTY = Saved((Levels("", ("zone",)),), ())


def read(folder: Path) -> Saved:
    return saving.loads(gzip.decompress((folder / FILE).read_bytes()))


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_a_refusal_can_be_replayed_from_the_file(tmp_path: Path) -> None:
    decided: list[Key] = []
    async with scene() as (made, _, client):
        made.nodes.observe(encoded(node("n1", {"cpu": "4", "pods": "110"}), 8))
        made.gangs.observe(msgspec.json.encode(gang_of("demo-0", ["a-0"], 9)))
        answers = Answers(decided.append, lambda _, __: None)
        placer = Placer(client, LeapingClock(), made.world, made.reservations, lambda: 1, answers)
        placer.recorder = Recorder(tmp_path / "new", LeapingClock())
        running = asyncio.create_task(placer.run())
        placer.ask(*made.asked())
        await eventually(lambda: decided == [KEY], "the answer")
        said = placer.ask(*made.asked())
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    assert isinstance(said, NoFit)
    saved = read(tmp_path / "new")
    assert cycle.plan(saved.snapshot(), saved.requests).refusals == (said,)


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

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest

from penstock.lab import balancer as balancers
from penstock.lab.balancer import Balancer

HOST = "127.0.0.1"


@dataclass
class Echo:
    """Answers each line with its own name before it; ends the connection after `bye`."""

    name: str
    port: int = 0
    ready: bool = True
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    server: asyncio.Server | None = None

    async def start(self) -> None:
        self.server = await asyncio.start_server(self.answer, HOST, 0)
        self.port = self.server.sockets[0].getsockname()[1]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                writer.write(self.name.encode() + b" " + line)
                await writer.drain()
                if line == b"bye\n":
                    break
        writer.close()

    async def stop(self) -> None:
        assert self.server is not None
        self.server.close()
        for writer in self.writers:
            writer.transport.abort()


@dataclass
class Stage:
    balancer: Balancer
    port: int
    echoes: dict[str, Echo]

    async def probe(self, port: int) -> bool:
        return any(echo.port == port and echo.ready for echo in self.echoes.values())

    async def look(self) -> None:
        await self.balancer.probe_once(self.probe)

    async def say(self, line: str) -> str:
        reader, writer = await asyncio.open_connection(HOST, self.port)
        try:
            writer.write(f"{line}\n".encode())
            return (await reader.readline()).decode().strip()
        except ConnectionError:
            return ""
        finally:
            writer.close()


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    echoes = {name: Echo(name) for name in ("one", "two")}
    balancer = Balancer(HOST)
    port = await balancer.start(0)
    for name, echo in echoes.items():
        await echo.start()
        balancer.point(name, echo.port)
    yield Stage(balancer, port, echoes)
    await balancer.close()
    for echo in echoes.values():
        await echo.stop()
    await asyncio.sleep(0)


async def test_an_instance_gets_nothing_before_a_probe_found_it_ready(stage: Stage) -> None:
    assert await stage.say("hi") == ""
    await stage.look()
    assert await stage.say("hi") in {"one hi", "two hi"}


async def test_only_ready_instances_get_connections(stage: Stage) -> None:
    stage.echoes["one"].ready = False
    await stage.look()
    assert {await stage.say("hi") for _ in range(6)} == {"two hi"}
    stage.echoes["one"].ready, stage.echoes["two"].ready = True, False
    await stage.look()
    assert {await stage.say("hi") for _ in range(6)} == {"one hi"}


async def test_open_connections_spread_over_the_ready_ones(stage: Stage) -> None:
    await stage.look()
    pairs = []
    names = []
    for _ in range(4):
        reader, writer = await asyncio.open_connection(HOST, stage.port)
        writer.write(b"hi\n")
        names.append(await reader.readline())
        pairs.append(writer)
    assert sorted(names) == [b"one hi\n", b"one hi\n", b"two hi\n", b"two hi\n"]
    for writer in pairs:
        writer.close()


async def test_a_connection_in_flight_outlives_its_instances_readiness(stage: Stage) -> None:
    stage.echoes["two"].ready = False
    await stage.look()
    reader, writer = await asyncio.open_connection(HOST, stage.port)
    writer.write(b"first\n")
    assert await reader.readline() == b"one first\n"
    stage.echoes["one"].ready, stage.echoes["two"].ready = False, True
    await stage.look()
    writer.write(b"second\n")
    assert await reader.readline() == b"one second\n"
    assert await stage.say("third") == "two third"
    writer.close()


async def test_the_end_of_a_connection_reaches_the_other_side(stage: Stage) -> None:
    await stage.look()
    reader, writer = await asyncio.open_connection(HOST, stage.port)
    writer.write(b"bye\n")
    assert (await reader.read()).endswith(b" bye\n")  # read() returns only at the end
    writer.close()


async def test_a_large_answer_arrives_whole_when_the_instance_closes_after_it(
    stage: Stage,
) -> None:
    await stage.look()
    size = 3_000_000
    reader, writer = await asyncio.open_connection(HOST, stage.port, limit=2 * size)

    async def send() -> None:
        for _ in range(size // 30_000):
            writer.write(b"x" * 29_999 + b"\n")
            await writer.drain()
        writer.write_eof()

    answers, _ = await asyncio.gather(reader.read(), send())
    assert answers.count(b"x") == size - size // 30_000
    writer.close()


async def test_where_none_is_ready_those_that_leave_answer_as_long_as_they_listen(
    stage: Stage,
) -> None:
    stage.echoes["two"].ready = False
    await stage.look()
    stage.echoes["one"].ready = False
    await stage.look()
    await stage.look()
    assert {await stage.say("hi") for _ in range(4)} == {"one hi"}
    stage.balancer.withdraw("one")
    assert await stage.say("hi") == ""


async def test_one_that_came_takes_over_at_the_instant_another_goes(stage: Stage) -> None:
    """However long the first answer of the one takes, there is never nobody."""
    one, two = stage.echoes.values()
    two.ready = False
    await stage.look()
    one.ready, two.ready = False, True
    seen: list[list[str]] = []

    async def probe(port: int) -> bool:
        for _ in range(3):
            seen.append(stage.balancer.ready())
            await asyncio.sleep(0)
        return await stage.probe(port) if port == one.port else await two_at_last()

    async def two_at_last() -> bool:
        await asyncio.sleep(0.01)
        seen.append(stage.balancer.ready())
        return True

    await stage.balancer.probe_once(probe)
    assert {*map(tuple, seen)} == {("one",)}
    assert stage.balancer.ready() == ["two"]


async def test_none_ready_refuses_at_once(stage: Stage) -> None:
    for echo in stage.echoes.values():
        echo.ready = False
    await stage.look()
    async with asyncio.timeout(2):
        assert await stage.say("hi") == ""


async def test_an_instance_that_died_since_the_last_probe_is_passed_over(stage: Stage) -> None:
    await stage.look()
    await stage.echoes["one"].stop()
    assert {await stage.say("hi") for _ in range(4)} == {"two hi"}
    assert stage.balancer.ready() == ["two"]


async def test_a_late_answer_about_an_old_port_says_nothing_of_the_new_one(stage: Stage) -> None:
    async def moves_meanwhile(port: int) -> bool:
        if port == stage.echoes["one"].port:
            stage.balancer.point("one", 1)
        return True

    await stage.balancer.probe_once(moves_meanwhile)
    assert stage.balancer.ready() == ["two"]


async def test_following_switches_by_itself(stage: Stage) -> None:
    following = asyncio.create_task(stage.balancer.follow(stage.probe, 0.01))
    await until(lambda: stage.balancer.ready() == ["one", "two"])
    stage.echoes["one"].ready = False
    await until(lambda: stage.balancer.ready() == ["two"])
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_a_taken_port_is_an_error(stage: Stage) -> None:
    with pytest.raises(OSError, match="address already in use"):
        await Balancer(HOST).start(stage.port)


async def test_what_speaks_no_tls_is_not_ready(stage: Stage) -> None:
    assert not await balancers.https_readyz(HOST, stage.echoes["one"].port)
    assert not await balancers.https_readyz(HOST, 1)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.005)

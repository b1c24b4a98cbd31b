"""The server over real connections: who is answered, what streams, and who is dropped."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aiohttp
import orjson
import pytest

from api import exits
from api.jsons import JsonObject
from kube.clock import SystemClock
from penstock.dashboard import answers, files, hub
from penstock.dashboard.answers import BadRequestError, Names
from penstock.dashboard.hub import Hub, Viewer
from penstock.dashboard.serving import Address, serving
from penstock.dashboard.timeline import Detail
from penstock.dashboard.view import Cell, GangRow, View
from penstock.ending import AskedWronglyError
from tests.support.polling import eventually

ROW = GangRow("Running", scheduled=True)


@dataclass
class Stand:
    """A served view that a test changes."""

    view: View = field(default_factory=View)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    drawn: int = 0
    address: Address = field(default_factory=lambda: Address("127.0.0.1", 0))
    hub: Hub = field(init=False)

    def __post_init__(self) -> None:
        self.hub = Hub(self.draw, self.news, SystemClock())

    def draw(self) -> View:
        self.drawn += 1
        return self.view

    def show(self, view: View) -> None:
        self.view = view
        self.news.set()

    def details(self, namespace: str, name: str) -> Detail | None:
        return Detail(f"{namespace}/{name}", ROW) if name == "chat" else None


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    made = Stand(View(nodes={"n": Cell(("z",), 8, 0)}))
    work = asyncio.ensure_future(made.hub.run())
    async with serving(made.address, files.read(), made.hub, made.details) as address:
        made.address = address
        yield made
    work.cancel()


async def get(stand: Stand, path: str, **headers: str) -> tuple[int, bytes, dict[str, str]]:
    url = f"{stand.address.url}{path}"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        return answer.status, await answer.read(), dict(answer.headers)


async def raw(stand: Stand, text: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", stand.address.port)
    writer.write(text.encode())
    answer = await reader.read()
    writer.close()
    return answer


@dataclass
class Watcher:
    """What a page would be told."""

    lines: aiohttp.StreamReader

    async def next(self) -> tuple[str, str, JsonObject]:
        told: dict[str, str] = {}
        while True:
            line = (await asyncio.wait_for(self.lines.readline(), 20)).decode().rstrip("\n")
            if not line and "event" in told:
                return told["event"], told["id"], orjson.loads(told["data"])
            key, _, value = line.partition(": ")
            told[key] = value


async def test_the_page_and_its_files_are_served_with_a_strict_policy(stand: Stand) -> None:
    for path in files.read():
        status, body, headers = await get(stand, path[1:])
        assert (status, bool(body)) == (200, True)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
    assert (await get(stand, "nothing"))[0] == 404
    assert (await get(stand, "../view.py"))[0] == 404
    assert (await get(stand, "healthz"))[:2] == (200, b"ok\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])
async def test_only_get_is_answered(stand: Stand, method: str) -> None:
    said = await raw(stand, f"{method} / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 405 ")
    assert b"\r\nAllow: GET\r\n" in said


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example"]
)
async def test_a_page_of_others_cannot_ask_by_its_own_name(stand: Stand, host: str) -> None:
    for path in ("", "events", "gang?namespace=a&name=chat"):
        status, body, _ = await get(stand, path, Host=host)
        assert status == 421
        assert b"--host" in body


@pytest.mark.parametrize(
    ("names", "host", "taken"),
    [
        (Names("127.0.0.1"), "127.0.0.1:8080", True),
        (Names("127.0.0.1"), "LOCALHOST:1", True),
        (Names("127.0.0.1"), "[::1]:8080", True),
        (Names("127.0.0.1"), "10.0.0.7:8080", False),
        (Names("10.0.0.7"), "10.0.0.7", True),
        (Names("0.0.0.0"), "10.0.0.7:80", True),  # noqa: S104 - nothing is bound
        (Names("0.0.0.0"), "penstock.example", False),  # noqa: S104
        (Names("::"), "[fd00::7]:80", True),
        (Names("0.0.0.0", frozenset({"penstock.example"})), "Penstock.example:443", True),  # noqa: S104
        (Names("127.0.0.1"), "", False),
    ],
)
def test_the_names_that_are_ours(names: Names, host: str, taken: bool) -> None:  # noqa: FBT001
    assert names.takes(host) is taken


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1", "421"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example", "421"),
        (b"nonsense", "400"),
        (b"GET / FTP/1.1\r\nHost: localhost", "400"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site", "403"),
        (b"GET /gang HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-site", "403"),
    ],
)
def test_what_is_no_request_of_ours_is_refused(head: bytes, status: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        answers.read(head, Names("127.0.0.1"))
    assert refused.value.status.startswith(status)


def test_an_address_is_written_so_that_a_browser_gets_there() -> None:
    assert Address("127.0.0.1", 80).url == "http://127.0.0.1:80/"
    assert Address("::1", 80).url == "http://[::1]:80/"
    assert Address("0.0.0.0", 80).url == "http://localhost:80/"  # noqa: S104 - nothing is bound


def test_a_link_to_it_may_be_followed_from_elsewhere() -> None:
    head = b"GET /?a=b HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n"
    found = answers.read(head + b"Sec-Fetch-Mode: navigate", Names("127.0.0.1"))
    assert (found.path, found.query) == ("/", {"a": "b"})


async def test_a_request_that_is_too_large_is_refused(stand: Stand) -> None:
    said = await raw(stand, f"GET / HTTP/1.1\r\nHost: localhost\r\nX: {'x' * 9000}\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 431 ")


async def test_details_of_a_gang_are_told_and_of_none_that_there_is_not(stand: Stand) -> None:
    status, body, _ = await get(stand, "gang?namespace=team&name=chat")
    assert (status, orjson.loads(body)["gang"]) == (200, "team/chat")
    assert (await get(stand, "gang?namespace=team&name=other"))[0] == 404
    assert (await get(stand, "gang"))[0] == 404


async def test_a_viewer_is_told_all_and_then_what_changes(stand: Stand) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"{stand.address.url}events") as it:
        watcher = Watcher(it.content)
        kinds = [await watcher.next() for _ in range(3)]
        assert [kind for kind, _, _ in kinds] == ["reset", "delta", "whole"]
        assert kinds[1][2]["nodes"] == {"n": [["z"], 8, 0, "", []]}
        stand.show(View(nodes={"n": Cell(("z",), 8, 3)}, gangs={"team/chat": ROW}))
        kind, number, body = await watcher.next()
        assert kind == "delta"
        assert body["nodes"] == {"n": [["z"], 8, 3, "", []]}
        assert list(body["gangs"]) == ["team/chat"]  # type: ignore[arg-type]
        assert number != kinds[0][1]


async def test_who_comes_back_is_told_all_anew_whatever_was_heard_before(stand: Stand) -> None:
    url = f"{stand.address.url}events"
    heard = {"Last-Event-ID": "somewhere-7"}
    async with aiohttp.ClientSession() as session, session.get(url, headers=heard) as it:
        watcher = Watcher(it.content)
        assert [(await watcher.next())[0] for _ in range(3)] == ["reset", "delta", "whole"]


async def test_all_viewers_share_one_drawing_and_without_any_nothing_is_drawn(stand: Stand) -> None:
    stand.show(stand.view)
    await asyncio.sleep(0)
    assert stand.drawn == 0
    url = f"{stand.address.url}events"
    async with (
        aiohttp.ClientSession() as session,
        session.get(url) as one,
        session.get(url) as other,
    ):
        watchers = [Watcher(one.content), Watcher(other.content)]
        for each in watchers:
            assert [(await each.next())[0] for _ in range(3)] == ["reset", "delta", "whole"]
        before = stand.drawn
        stand.show(View(nodes={"n": Cell(("z",), 8, 5)}))
        for each in watchers:
            assert (await each.next())[2]["nodes"] == {"n": [["z"], 8, 5, "", []]}
        assert stand.drawn == before + 1
        assert stand.hub.viewers == 2
    await eventually(lambda: stand.hub.viewers == 0, "both viewers gone")


async def test_who_does_not_keep_up_is_dropped_and_the_others_are_not() -> None:
    slow, quick = Viewer(), Viewer()
    quick.put(b"x" * 60, limit=100)
    assert await quick.next() == b"x" * 60
    quick.put(b"y" * 60, limit=100)
    assert await quick.next() == b"y" * 60
    slow.put(b"x" * 60, limit=100)
    slow.put(b"y" * 60, limit=100)
    assert slow.is_slow
    assert await slow.next() is None


async def test_a_viewer_that_reads_nothing_is_cut_off(stand: Stand) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", stand.address.port)
    writer.write(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await eventually(lambda: stand.hub.viewers == 1, "the viewer has come")
    big = Cell(("z" * 100_000,), 8, 0)
    for number in range(hub.LONGEST_QUEUE // 100_000 * 4):
        stand.view = View(nodes={f"n-{number}": big})
        stand.hub.refresh()
        await asyncio.sleep(0)
        if not stand.hub.viewers:
            break
    await eventually(lambda: stand.hub.viewers == 0, "the viewer is dropped")
    writer.close()


async def test_what_cannot_be_drawn_once_may_be_the_next_time(stand: Stand) -> None:
    good = stand.view
    async with aiohttp.ClientSession() as session, session.get(f"{stand.address.url}events") as it:
        watcher = Watcher(it.content)
        assert [(await watcher.next())[0] for _ in range(3)][-1] == "whole"
        stand.show(None)  # type: ignore[arg-type]
        await eventually(lambda: not stand.news.is_set(), "it was tried")
        stand.show(View(nodes={**good.nodes, "m": Cell(("z",), 8, 0)}))
        assert "m" in (await watcher.next())[2]["nodes"]  # type: ignore[operator]


async def test_a_port_that_is_taken_is_named(stand: Stand) -> None:
    again = Address("127.0.0.1", stand.address.port)
    with pytest.raises(AskedWronglyError, match="--port") as failed:
        async with serving(again, {}, stand.hub, stand.details):
            pass
    assert failed.value.code == exits.PORT_TAKEN
    with pytest.raises(AskedWronglyError, match="--bind") as failed:
        async with serving(Address("203.0.113.7", 0), {}, stand.hub, stand.details):
            pass
    assert failed.value.code == exits.BAD_SETTINGS

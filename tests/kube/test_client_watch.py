import pytest

from kube import errors
from kube.client import EVERYTHING, Client, Scope, WatchStart
from kube.resources import CONFIGMAPS, Resource
from tests.support import fakeapi
from tests.support.talking import talking


async def collect(
    client: Client, idle: float, into: list[bytes], resource: Resource = CONFIGMAPS
) -> None:
    start = WatchStart("7", 300, idle)
    async with client.watch(resource, Scope("a", "l=1"), start) as lines:
        # Not a comprehension: what came before a failure is to be seen too.
        async for line in lines:
            into.append(line)  # noqa: PERF401


async def test_watch_yields_lines_and_ends_when_the_server_ends_it() -> None:
    async with talking() as t:
        t.api.watch_answers.append(fakeapi.stream(b"one\ntw", b"o\n", b"half"))
        lines: list[bytes] = []
        await collect(t.client, 5, lines)
        assert lines == [b"one", b"two"]
        (seen,) = t.api.seen
        assert seen.path == "/api/v1/namespaces/a/configmaps"
        assert seen.query == {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": "7",
            "timeoutSeconds": "300",
            "labelSelector": "l=1",
        }


async def test_a_cut_watch_is_told_from_one_that_ends_in_order() -> None:
    async with talking() as t:
        t.api.watch_answers.append(fakeapi.stream(b"one\ntw", then="cut"))
        lines: list[bytes] = []
        with pytest.raises(errors.Unreachable):
            await collect(t.client, 5, lines)
        assert lines == [b"one"]
        assert len(t.api.seen) == 1


@pytest.mark.parametrize(
    "answer", [fakeapi.stream(b"one\n", then="hang"), fakeapi.say_nothing], ids=["body", "head"]
)
async def test_a_silent_watch_is_called_stalled(answer: fakeapi.Answer) -> None:
    async with talking() as t:
        t.api.watch_answers.append(answer)
        with pytest.raises(errors.Stalled, match="went silent"):
            await collect(t.client, 0.05, [])


async def test_a_refused_watch_raises_before_any_line() -> None:
    async with talking() as t:
        t.api.watch_answers.append(fakeapi.status(410, "Expired", "too old"))
        with pytest.raises(errors.Gone, match="too old"):
            await collect(t.client, 5, [])


async def test_what_the_reader_of_a_watch_raises_is_not_taken_for_a_lost_connection() -> None:
    async with talking() as t:
        t.api.watch_answers.append(fakeapi.stream(b"one\n", then="hang"))

        async def read() -> None:
            async with t.client.watch(CONFIGMAPS, EVERYTHING, WatchStart("1", 300, 5)) as lines:
                async for _ in lines:
                    raise TimeoutError("mine")

        with pytest.raises(TimeoutError, match="mine"):
            await read()

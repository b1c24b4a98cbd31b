import itertools
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.errors import Gone, Unreachable
from kube.stream import Absent, Bookmark, Failed, Present, read_event, split_lines


async def feed(chunks: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


@given(
    lines=st.lists(st.binary(min_size=1, max_size=30).filter(lambda b: b"\n" not in b), max_size=8),
    cuts=st.lists(st.integers(0, 250), max_size=10),
    tail=st.binary(max_size=9).filter(lambda b: b"\n" not in b),
)
async def test_lines_survive_any_cutting_and_the_unfinished_one_is_dropped(
    lines: list[bytes], cuts: list[int], tail: bytes
) -> None:
    whole = b"".join(line + b"\n" for line in lines) + tail
    edges = [0, *sorted(cut for cut in cuts if cut < len(whole)), len(whole)]
    chunks = [whole[a:b] for a, b in itertools.pairwise(edges)]
    assert [line async for line in split_lines(feed(chunks))] == lines


async def test_lines_longer_than_any_buffer_arrive_whole() -> None:
    chunks = [b"x" * 65536] * 40 + [b"\n"]
    (line,) = [line async for line in split_lines(feed(chunks))]
    assert len(line) == 65536 * 40


def test_each_event_type_is_told_apart() -> None:
    added = read_event(b'{"type":"ADDED","object":{"a":1}}')
    modified = read_event(b'{"type":"MODIFIED","object":{"a":2}}')
    deleted = read_event(b'{"type":"DELETED","object":{"a":3}}')
    assert isinstance(added, Present)
    assert isinstance(modified, Present)
    assert isinstance(deleted, Absent)
    assert [bytes(e.body) for e in (added, modified, deleted)] == [
        b'{"a":1}',
        b'{"a":2}',
        b'{"a":3}',
    ]
    marked = read_event(b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}')
    assert marked == Bookmark("7")
    failed = read_event(b'{"type":"ERROR","object":{"code":410,"message":"too old"}}')
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, Gone)


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"ADDED","obj',
        b"<html>",
        b'{"type":"SHRUGGED","object":{}}',
        b'{"type":"BOOKMARK","object":[]}',
        b"[]",
    ],
)
def test_a_line_that_is_no_event_makes_the_stream_suspect(line: bytes) -> None:
    with pytest.raises(Unreachable):
        read_event(line)

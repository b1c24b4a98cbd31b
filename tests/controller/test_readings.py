import msgspec
import pytest

from api.streams import Custom, Meta
from controller.gangs.reading import Readings
from kube.objects import Key


class Shelf:
    """Readings of objects that say a word, and how often each was read again."""

    def __init__(self, most: int | None) -> None:
        self.read: list[str] = []
        self.found: Readings[str] = Readings(self._read, most)

    def _read(self, stored: Custom) -> str:
        self.read.append(stored.metadata.name)
        return bytes(stored.spec).decode()

    def put(self, name: str, word: str) -> None:
        stored = Custom(Meta(name), msgspec.Raw(word.encode()))
        self.found.put(key(name), stored, word)


def key(name: str) -> Key:
    return "default", name


def test_what_was_read_lately_is_not_read_again() -> None:
    shelf = Shelf(2)
    for name in "ab":
        shelf.put(name, f"word of {name}")
    assert shelf.found[key("a")] == "word of a"
    shelf.put("c", "word of c")
    assert [shelf.found.get(key(name)) for name in "ac"] == ["word of a", "word of c"]
    assert shelf.read == []
    assert shelf.found[key("b")] == "word of b"
    assert shelf.read == ["b"]


def test_all_stay_read_where_nobody_asks_for_less() -> None:
    shelf = Shelf(None)
    for number in range(5_000):
        shelf.put(str(number), f"word of {number}")
    assert shelf.found[key("0")] == "word of 0"
    assert shelf.read == []


def test_all_are_there_however_few_stay_read() -> None:
    shelf = Shelf(1)
    for name in "abc":
        shelf.put(name, name * 2)
    assert list(shelf.found) == [key(name) for name in "abc"]
    assert (len(shelf.found), key("a") in shelf.found, key("d") in shelf.found) == (3, True, False)
    assert dict(shelf.found) == {key(name): name * 2 for name in "abc"}


def test_the_newest_state_counts_and_what_is_taken_away_is_gone() -> None:
    shelf = Shelf(1)
    shelf.put("a", "first")
    shelf.put("b", "other")
    shelf.put("a", "second")
    shelf.put("b", "other")
    assert shelf.found[key("a")] == "second"
    assert bytes(shelf.found.stored(key("a")).spec) == b"second"
    assert shelf.found.take(key("a")) == "second"
    assert shelf.found.take(key("a")) is None
    with pytest.raises(KeyError):
        shelf.found[key("a")]

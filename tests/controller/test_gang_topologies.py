"""Which topologies gangs are placed by: those of bindings, as they come, change and go."""

import msgspec
import pytest

from api import names
from api.jsons import Json
from api.streams import Custom, Meta
from controller.gangs.topologies import BUILT_IN, Network, Topologies, meant
from kube.cache import Added, Deleted, Modified

HALL = Network("hall", {"hall": "example.com/hall", "row": "example.com/row"})


def binding(name: str, **levels: str) -> Custom:
    listed: Json = [{"domain": word, "key": key} for word, key in levels.items()]
    return Custom(Meta(name=name), msgspec.Raw(msgspec.json.encode({"levels": listed})))


def test_bindings_follow_the_built_in_topology_by_name_and_each_news_is_told_once() -> None:
    told: list[tuple[str, ...]] = []
    known = Topologies(lambda: told.append(tuple(n.name for n in known.networks)))
    first, other = binding("hall", row="example.com/row"), binding("a", row="example.com/row")
    known._on_binding(Added(first))
    known._on_binding(Added(other))
    known._on_binding(Modified(first, first))
    narrower = binding("hall", row="example.com/row", rack="example.com/rack")
    known._on_binding(Modified(first, narrower))
    assert known.networks[2].levels.keys == ("example.com/row", "example.com/rack")
    known._on_binding(Deleted(other))
    assert told == [("", "hall"), ("", "a", "hall"), ("", "a", "hall"), ("", "hall")]


def test_a_binding_that_cannot_be_read_is_none() -> None:
    known = Topologies(lambda: None)
    known._on_binding(Added(binding("hall", row="example.com/row")))
    odd = Custom(Meta(name="hall"), msgspec.Raw(b'{"levels": 7}'))
    known._on_binding(Modified(odd, odd))
    assert known.networks == (BUILT_IN,)


@pytest.mark.parametrize(
    ("word", "key"),
    [
        ("row", "example.com/row"),
        ("example.com/row", "example.com/row"),
        ("host", names.HOSTNAME_KEY),
        (names.HOSTNAME_KEY, names.HOSTNAME_KEY),
        ("rack", ""),
        (names.RACK_KEY, ""),
    ],
)
def test_a_level_is_found_by_its_word_or_its_label(word: str, key: str) -> None:
    assert HALL.key(word) == key


def test_a_host_is_what_the_topology_calls_so() -> None:
    odd = Network("odd", {"host": "example.com/machine"})
    assert odd.key("host") == "example.com/machine"


@pytest.mark.parametrize(
    ("name", "words", "found"),
    [
        ("hall", ("rack",), "hall"),
        ("", ("row",), "hall"),
        ("", ("rack", "row"), ""),
        ("", (), ""),
        ("gone", ("row", "host"), "hall"),
    ],
)
def test_a_topology_is_meant_by_name_or_by_what_is_asked_of_it(
    name: str, words: tuple[str, ...], found: str
) -> None:
    assert meant((BUILT_IN, HALL), name, (words,)).name == found


def test_a_wish_that_nobody_knows_does_not_lead_away_from_what_is_required() -> None:
    assert meant((BUILT_IN, HALL), "", (("row", "typo"), ("row",))).name == "hall"

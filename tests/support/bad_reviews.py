"""Bad sets as reviews: new ones, changes of a good one, and changes that change nothing.

What is bad for the other routes is in `tests.support.bad_routes`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import orjson

from api.jsons import JsonObject
from tests.cluster.rules.manifests import PLAIN
from tests.cluster.rules.whole import FIELDS, whole
from tests.support import bad_input
from tests.support.bad_input import ARGUMENTS, LARGEST, MIB, Bad

SETS: Final = "/default/podcliquesets"


@dataclass(frozen=True)
class Case:
    """The body of a review, and what is odd about it."""

    what: str
    body: bytes
    path: str = SETS


def review(text: bytes, *, old: bytes = b"null", kind: str = "PodCliqueSet") -> bytes:
    """A review about an object that is any text."""
    operation = "CREATE" if old == b"null" else "UPDATE"
    head: JsonObject = {"uid": "u-1", "operation": operation, "kind": {"kind": kind}}
    opened = orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"})[:-1]
    asking = orjson.dumps(head)[:-1] + b',"object":' + text + b',"oldObject":' + old + b"}"
    return opened + b',"request":' + asking + b"}"


# As much as the API server takes, of what costs most to read or to count.
_FULL: Final = {
    "empty lists": b"[" + b"[]," * MIB + b"1]",
    "lists in lists": b"[" + b"[[[]]]," * (3 * MIB // 7) + b"1]",
    "empty texts": b"[" + b'"",' * MIB + b"1]",
    "empty objects": b"[" + b"{}," * MIB + b"1]",
}
# Less than an object may take, but nothing that a glance would pass.
_CLOSE: Final = {
    "a text of brackets": b'["' + b"[," * (MIB - 2048) + b'"]',
    "a text of quotes": b'["[' + b'\\"' * (MIB - 2048) + b'"]',
    "a text of backslashes": b'["[' + b"\\\\" * (MIB - 2048) + b'"]',
    "texts of commas": b"[" + b'",,,,,,,,,,,,,,,,",' * 90_000 + b'""]',
    "deep and wide": b"[" * 900 + b"7," * 98_000 + b"7" + b"]" * 900,
    "many in 50 lists": b"[" * 50 + b"[]," * 90_000 + b"7" + b"]" * 50,
}


def crowded() -> Iterator[Bad]:
    """Arguments that fill a review with as many values or brackets as there is room for."""
    for what, token in (_FULL | _CLOSE).items():
        yield Bad(what, bad_input.with_token(PLAIN, ARGUMENTS, token))


_SORTS: Final[dict[str, Callable[[], Iterator[Bad]]]] = {
    "hostile names": lambda: bad_input.hostile_names(PLAIN),
    "odd texts": lambda: bad_input.odd_texts(PLAIN),
    "numbers": lambda: bad_input.numbers(whole()),
    "wrong types": lambda: bad_input.wrong_types(whole(), FIELDS),
    "a thousand levels": lambda: bad_input.deep(PLAIN, 1_000),
    "a hundred thousand levels": lambda: bad_input.deep(PLAIN, 100_000),
    "half of Unicode": lambda: bad_input.half_unicode(PLAIN),
    "great sets": lambda: bad_input.big(PLAIN),
    "greedy sets": lambda: bad_input.greedy(PLAIN),
    "crowded sets": crowded,
    "no json": lambda: bad_input.broken_json(PLAIN),
}


def _reviews(every: Iterator[Bad]) -> Iterator[Case]:
    good = orjson.dumps(PLAIN)
    for bad in every:
        for how, old in (("new", b"null"), ("changed", good), ("unchanged", bad.text)):
            body = review(bad.text, old=old)
            if len(body) <= LARGEST:
                yield Case(f"{bad.what}, {how}", body)


def _group(sort: str) -> Callable[[], Iterator[Case]]:
    return lambda: _reviews(_SORTS[sort]())


GROUPS: Final = {sort: _group(sort) for sort in _SORTS}
"""All sorts of bad sets, made anew each time: together they take hundreds of MiB."""

"""Sets nobody should send: too big, too deep, of wrong types and hostile names, or no JSON."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import orjson

from api.jsons import Json, JsonObject
from tests.support.edits import Edits, at, edited

MIB: Final = 1024 * 1024
LARGEST: Final = 7 * MIB

TEMPLATE: Final = "spec.template"
CLIQUE: Final = f"{TEMPLATE}.cliques[0]"
GROUP: Final = f"{TEMPLATE}.podCliqueScalingGroups[0]"
CONTAINER: Final = f"{CLIQUE}.spec.podSpec.containers[0]"
ARGUMENTS: Final = f"{CONTAINER}.args"

_HERE: Final = "@here@"


@dataclass(frozen=True)
class Bad:
    """A set as JSON text, and the path of the field that a refusal must name, if there is one.

    Where `taken` is true nothing is wrong with it, however odd it looks, and nothing may be lost;
    where `readable` is false it is no JSON to begin with.
    """

    what: str
    text: bytes
    path: str = ""
    taken: bool = False
    readable: bool = True


def with_token(base: JsonObject, path: str, token: bytes) -> bytes:
    """The set with this text, JSON or not, in the place of a value."""
    return orjson.dumps(edited(base, {path: _HERE})).replace(orjson.dumps(_HERE), token)


def _with(base: JsonObject, edits: Edits) -> bytes:
    return orjson.dumps(edited(base, edits))


def cycle(count: int) -> Json:
    """As many cliques, each after the next and the last after the first."""
    return [
        {
            "name": f"c{i}",
            "spec": {
                "roleName": f"c{i}",
                "replicas": 1,
                "startsAfter": [f"c{(i + 1) % count}"],
                "podSpec": {"containers": [{"name": "main", "image": "x"}]},
            },
        }
        for i in range(count)
    ]


HOSTILE_NAMES: Final = {
    "empty": "",
    "a blank": " ",
    "a path": "../../etc/passwd",
    "an escaped path": "..%2f..%2fetc",
    "two dots": "..",
    "a colour": "\x1b[31mred\x1b[0m",
    "a title": "\x1b]0;owned\x07",
    "two lines": "two\nlines",
    "a header": "a\r\nX-Injected: 1",
    "a null": "a\x00b",
    "10000 characters": "x" * 10_000,
    "composed": "caf\u00e9",
    "decomposed": "cafe\u0301",
    "right to left": "\u202egnp.exe",
    "an emoji": "\U0001f600",
    "a zero width space": "a\u200bb",
    "full width": "\uff41\uff42",
    "a Turkish letter": "\u0131",
    "a byte order mark": "\ufeffa",
    "formats": "%s%n{0}${x}",
    "markup": "<script>alert(1)</script>",
}
# Where a name is held against rules of ours. A role's name is whatever one likes.
NAME_FIELDS: Final = (
    "metadata.name",
    f"{CLIQUE}.name",
    f"{GROUP}.name",
    f"{GROUP}.cliqueNames[0]",
    f"{CLIQUE}.spec.startsAfter[0]",
    f"{CLIQUE}.labels.role",
    f"{CONTAINER}.env[0].name",
    f"{TEMPLATE}.topologyConstraint.topologyName",
)
# An empty label is one, an empty binding is none, and an object without name gets one or none.
_NOT_BAD: Final = {
    ("empty", f"{CLIQUE}.labels.role"),
    ("empty", "metadata.name"),
    # Variables may be called as lengthily as one likes.
    ("10000 characters", f"{CONTAINER}.env[0].name"),
}


def hostile_names(base: JsonObject) -> Iterator[Bad]:
    """Each hostile name at each place for one."""
    explicit: Edits = {f"{TEMPLATE}.cliqueStartupType": "CliqueStartupTypeExplicit"}
    for called, name in HOSTILE_NAMES.items():
        for path in NAME_FIELDS:
            if (called, path) in _NOT_BAD:
                continue
            edits: Edits = {path: name}
            if "startsAfter" in path:
                edits = {**explicit, **edits}
            elif "topologyName" in path:
                edits = {**edits, f"{TEMPLATE}.topologyConstraint.pack.required": "rack"}
            yield Bad(f"{called} as {path}", _with(base, edits), path.removesuffix(".role"))


def odd_texts(base: JsonObject) -> Iterator[Bad]:
    """The same texts where any text is right: they must come out as they went in."""
    for called, text in HOSTILE_NAMES.items():
        edits: Edits = {
            f"{CLIQUE}.annotations.note": text,
            f"{CONTAINER}.env[0]": {"name": "TEXT", "value": text},
            ARGUMENTS: [text],
        }
        yield Bad(f"{called} as text", _with(base, edits), taken=True)


COUNTS: Final = (
    b"9223372036854775808", b"-9223372036854775809", b"1.5", b"123456789012345678901234567890",
    b"2147483648", b"-1", b'"3"', b"true", b"[]", b"{}",
)  # fmt: skip
# No number that a JSON reader has, so that nobody gets as far as the field.
NO_NUMBERS: Final = (b"1e400", b"-1e400", b"NaN", b"Infinity", b"0x10", b"01", b"+1", b".5")
NUMBER_FIELDS: Final = (
    "spec.replicas",
    f"{CLIQUE}.spec.replicas",
    f"{CLIQUE}.spec.minAvailable",
    f"{CLIQUE}.spec.autoScalingConfig.maxReplicas",
    f"{GROUP}.replicas",
    f"{GROUP}.minAvailable",
    f"{GROUP}.scaleConfig.minReplicas",
)


def numbers(whole: JsonObject) -> Iterator[Bad]:
    """Numbers without end, of no kind, or no numbers, where a count belongs."""
    for path in NUMBER_FIELDS:
        for token in COUNTS:
            yield Bad(f"{token.decode()} as {path}", with_token(whole, path, token), path)
    for token in NO_NUMBERS:
        text = with_token(whole, "spec.replicas", token)
        yield Bad(f"{token.decode()} as replicas", text, readable=False)


def wrong_types(whole: JsonObject, fields: tuple[str, ...]) -> Iterator[Bad]:
    """At each field of a set what is of no type that belongs there."""
    for path in fields:
        found = at(whole, path)
        for token in (b'"text"', b"7", b"true", b"[7]", b'{"a":7}'):
            if not _alike(found, orjson.loads(token)):
                yield Bad(f"{token.decode()} as {path}", with_token(whole, path, token), path)


def _alike(found: object, other: object) -> bool:
    return type(found) is type(other)


def deep(base: JsonObject, levels: int) -> Iterator[Bad]:
    """Lists in lists, and objects in objects, where any value may stand."""
    for what, opening, closing in (("lists", b"[", b"]"), ("objects", b'{"a":', b"}")):
        for path in (ARGUMENTS, f"{CLIQUE}.annotations", "spec.unknown", "metadata.labels"):
            token = opening * levels + b"1" + closing * levels
            yield Bad(f"{levels} {what} as {path}", with_token(base, path, token))


def big(base: JsonObject) -> Iterator[Bad]:
    """Cliques that wait for each other in a great ring, and sets that fill a body."""
    for count in (64, 1_000):
        yield Bad(
            f"a ring of {count} cliques",
            _with(base, {f"{TEMPLATE}.cliques": cycle(count)}),
            f"{TEMPLATE}.cliques",
        )
    everybody: Json = [f"c{i}" for i in range(1_000)]
    each: Json = [
        {"name": f"c{i}", "spec": {"replicas": 1, "startsAfter": everybody, "podSpec": {}}}
        for i in range(90)
    ]
    yield Bad(
        "90 cliques after 1000", _with(base, {f"{TEMPLATE}.cliques": each}), f"{TEMPLATE}.cliques"
    )
    yield Bad("100000 arguments", with_token(base, ARGUMENTS, b"[" + b"7," * 99_999 + b"7]"))
    yield Bad(
        "100000 labels", _with(base, {f"{CLIQUE}.labels": {f"k{i}": "v" for i in range(100_000)}})
    )
    # What etcd would still store.
    most = "x" * (3 * MIB // 2)
    yield Bad("an argument of 1.5 MiB", _with(base, {ARGUMENTS: [most]}), taken=True)
    yield Bad(
        "10000 faults",
        _with(base, {f"{CONTAINER}.env": [{"name": f"={i}"} for i in range(10_000)]}),
        f"{CONTAINER}.env[0].name",
    )


def greedy(base: JsonObject) -> Iterator[Bad]:
    """Sets of as many parts as a review may have, so that each look at one costs."""
    many: dict[str, tuple[str, Json]] = {
        "claim templates": (f"{TEMPLATE}.resourceClaimTemplates",
                            [{"name": f"n{i}", "templateSpec": {}} for i in range(30_000)]),
        "constrained cliques": (f"{TEMPLATE}.cliques", [
            {"name": f"c{i}", "topologyConstraint": {"topologyName": "t", "pack": {}},
             "spec": {"podSpec": {}}} for i in range(10_000)]),
        "cliques in a chain": (f"{TEMPLATE}.cliques", [
            {"name": f"c{i}", "spec": {"startsAfter": [f"c{i + 1}"], "podSpec": {}}}
            for i in range(10_000)]),
        "groups of one": (f"{TEMPLATE}.podCliqueScalingGroups", [
            {"name": f"g{i}", "cliqueNames": [f"c{i}"]} for i in range(20_000)]),
        "unknown cliques before": (f"{CLIQUE}.spec.startsAfter", [f"c{i}" for i in range(90_000)]),
        "filtered cliques": (f"{TEMPLATE}.resourceSharing", [
            {"name": "n", "scope": "PerReplica",
             "filter": {"childCliqueNames": [f"c{i}" for i in range(90_000)]}}]),
        "labels": (f"{CLIQUE}.labels", {f"-{i}": "- -" for i in range(90_000)}),
        "variables": (f"{CONTAINER}.env", [{"name": "="} for _ in range(45_000)]),
    }  # fmt: skip
    for what, (path, value) in many.items():
        yield Bad(f"all of it {what}", _with(base, {path: value}), path)
    endless: dict[str, Json] = {
        "metadata.name": "a-" * (MIB - 1024),
        f"{CLIQUE}.name": "a-" * (MIB - 1024),
        f"{TEMPLATE}.terminationDelay": "1h" * (MIB - 1024),
        f"{CONTAINER}.env[0].name": "a-" * (MIB - 1024) + "=",
        f"{CLIQUE}.labels": {"a-" * (MIB - 1024) + "!": "x"},
    }
    for path, value in endless.items():
        yield Bad(f"an endless {path}", _with(base, {path: value}), path)


def broken_json(base: JsonObject) -> Iterator[Bad]:
    """Texts that are no JSON, or not what JSON is for."""
    good = orjson.dumps(base)
    texts = {
        "nothing": b"",
        "half of it": good[: len(good) // 2],
        "a list": b"[" + good + b"]",
        "a text": b'"set"',
        "a comma too many": with_token(base, ARGUMENTS, b'["a",]'),
        "a comment": good + b"// set",
    }
    for what, text in texts.items():
        yield Bad(what, text, readable=False)


def half_unicode(base: JsonObject) -> Iterator[Bad]:
    """Texts that JSON readers disagree about: the API server mends them before it asks anybody."""
    for what, token in (("bytes", b'["\xff\xfe"]'), ("a lone surrogate", b'["\\ud800"]')):
        text = with_token(base, ARGUMENTS, token)
        yield Bad(f"{what} that are no Unicode", text, readable=False)


def twice(base: JsonObject) -> Iterator[Bad]:
    """One field twice."""
    good = orjson.dumps(base)
    yield Bad("replicas twice", good.replace(b'"replicas":1', b'"replicas":1,"replicas":2', 1))

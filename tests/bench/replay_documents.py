"""What the replayed cluster holds: documents that were recorded of one set, told of many sets.

Of each set everything is another that is another in a real cluster: names, UIDs, versions, nodes,
instants, and the volumes that hold tokens. So nothing can be shared here that could not be there.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Final

import msgspec

from api.streams import Pod

RECORDED: Final = Path("tests/vectors/replay.jsonl")
SPACE: Final = "replayed-space"
SET: Final = "replayed-set"
PODS_ON_A_NODE: Final = 10
SPACES: Final = 200
BASE: Final = datetime(2025, 6, 1, tzinfo=UTC)

_RACK, _BLOCK, _ZONE = 10, 200, 2_000  # nodes in each
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_HOLES: Final = re.compile(
    rf"(?P<set>{SET})|(?P<space>{SPACE})"
    r"|(?P<uid>[0-9a-f]{8})(?=-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-)"
    r"|(?<=kube-api-access-)(?P<access>[a-z0-9]{3})"
    r'|(?<="resourceVersion":")(?P<version>\d+)'
    r"|(?P<time>20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ)"
    r'|(?<=")(?P<node>node-\d+)(?=")'
    r"|(?P<domain>zone-\d+(?:-block-\d+)?(?:-rack-\d+)?)"
)


class Line(msgspec.Struct, frozen=True):
    """One recorded object; `of_set` if it was made for the set, else there is one of it."""

    kind: str
    of_set: bool
    object: msgspec.Raw


def read(path: Path = RECORDED) -> list[Line]:
    """Read what was recorded."""
    decoder = msgspec.json.Decoder(Line)
    return [decoder.decode(line) for line in path.read_bytes().splitlines()]


def written(lines: Sequence[Line]) -> bytes:
    """Write what was recorded, an object a line."""
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


class Template:
    """A document with holes; `node_of` says on which node a set's n-th mention of one is.

    Its instants are up to `spread` seconds apart.
    """

    def __init__(
        self, document: msgspec.Raw, node_of: Callable[[int, int], int], spread: int = 1
    ) -> None:
        self.object = document
        self._spread = spread
        self._node_of = node_of
        self._parts: list[str | Callable[[int], str]] = []
        text, begun, nodes = bytes(document).decode(), 0, 0
        for number, hole in enumerate(_HOLES.finditer(text)):
            self._parts += [text[begun : hole.start()], self._filling(hole, number, nodes)]
            nodes += hole.lastgroup == "node"
            begun = hole.end()
        self._parts.append(text[begun:])

    def fill(self, number: int) -> bytes:
        """Tell the document of one set, or of one node."""
        return "".join([p if isinstance(p, str) else p(number) for p in self._parts]).encode()

    def _filling(self, hole: re.Match[str], number: int, nodes: int) -> Callable[[int], str]:
        """Say what goes into a hole, by what was recorded there."""
        which, recorded = hole.lastgroup or "", hole[0]
        fillings: dict[str, Callable[[int], str]] = {
            "set": set_name,
            "space": space_of,
            "uid": "{:08x}".format,
            "access": _base36,
            "version": lambda one: str(1_000_000 + one * 1_000 + int(recorded) % 1_000),
            "time": lambda one: _instant(one * 3 + number % self._spread),
            "node": lambda one: node_name(self._node_of(one, nodes)),
            "domain": lambda one: _domain(self._node_of(one, 0), recorded.count("-") // 2),
        }
        return fillings[which]


@dataclass(frozen=True)
class Fleet:
    """Nodes and sets; each object of a kind by its number."""

    lines: Sequence[Line]
    nodes: int
    sets: int

    @cached_property
    def templates(self) -> dict[str, list[Template]]:
        """Give what is multiplied, by kind."""
        found: dict[str, list[Template]] = {}
        pods = sorted((line for line in self.lines if line.kind == "pods"), key=_hostname)
        for line in self.lines:
            if line.kind == "nodes":
                found["nodes"] = [Template(line.object, lambda which, _: which)]
            elif line.of_set and line.kind != "pods":
                home = partial(self._home, len(pods))
                found.setdefault(line.kind, []).append(Template(line.object, home))
        for index, line in enumerate(pods):
            # What a pod says of itself comes about bit by bit; others repeat what they were told.
            template = Template(line.object, partial(self._at_home, len(pods), index), spread=8)
            found.setdefault("pods", []).append(template)
        return found

    def count(self, kind: str) -> int:
        """How many of a kind there are."""
        many = self.nodes if kind == "nodes" else self.sets
        return many * len(self.templates.get(kind, ()))

    def documents(self, kind: str, begin: int, end: int) -> Iterator[bytes]:
        """List some of a kind."""
        templates = self.templates.get(kind, [])
        for number in range(begin, min(end, self.count(kind))):
            which, of = divmod(number, len(templates))
            yield templates[of].fill(which)

    def single(self, kind: str) -> list[msgspec.Raw]:
        """List those of a kind that are there once."""
        return [line.object for line in self.lines if line.kind == kind and not line.of_set]

    def _at_home(self, of_set: int, index: int, which: int, _mention: int) -> int:
        return self._home(of_set, which, index)

    def _home(self, of_set: int, which: int, index: int) -> int:
        """Say on which node a set's pod is; so do its reservation's mentions of nodes, in order."""
        return (which * of_set + index) // PODS_ON_A_NODE % self.nodes


def set_name(which: int) -> str:
    return f"serving-{which:05}"


def space_of(which: int) -> str:
    return f"team-{which % SPACES:03}"


def node_name(which: int) -> str:
    return f"node-{which:05}"


def _domain(node: int, depth: int) -> str:
    zone = f"zone-{node // _ZONE}"
    block = f"{zone}-block-{node % _ZONE // _BLOCK}"
    return (zone, block, f"{block}-rack-{node % _BLOCK // _RACK}")[depth]


def _base36(which: int) -> str:
    return "".join([_DIGITS[which // power % 36] for power in (1296, 36, 1)])


@lru_cache(maxsize=1 << 17)
def _instant(seconds: int) -> str:
    return (BASE + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _hostname(line: Line) -> str:
    return msgspec.json.decode(line.object, type=Pod).spec.hostname

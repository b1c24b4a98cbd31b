"""The policy's text to a policy: YAML of a bounded size that can only mean one thing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, cast

import yaml
from typing_extensions import override
from yaml.events import (
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    NodeEvent,
    ScalarEvent,
)
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from api.jsons import Json
from policies import policy_reading
from policies.policy import BUILT_IN, Policy
from policies.policy_reading import Fault
from policies.problems import MOST_SHOWN, Problem

LARGEST: Final = 256 * 1024
# Keys and values; short ones make many of a small file, and each costs when it is read.
MOST_VALUES: Final = 7_500
# The deepest key there is has four levels.
DEEPEST: Final = 16

_LOADER: Final = yaml.CSafeLoader
_TEXT: Final = "tag:yaml.org,2002:str"
_TAGGED: Final = (ScalarEvent, CollectionStartEvent)


@dataclass(frozen=True)
class Source:
    """A policy and where it comes from: a file, a ConfigMap, or the program itself."""

    policy: Policy
    origin: str

    @property
    def revision(self) -> str:
        """What the policy says, in a few characters."""
        return policy_reading.revision(self.policy)


BUILT_IN_SOURCE: Final = Source(BUILT_IN, "built-in")


class _Mark(Protocol):
    @property
    def line(self) -> int: ...


@dataclass(frozen=True)
class Place:
    """One fault of a policy, and the line it is on.

    0 where it is about all of it, or comes after more of them than anybody is told.
    """

    line: int
    problem: Problem

    @override
    def __str__(self) -> str:
        """Give `line N: field: message`."""
        return f"line {self.line}: {self.problem}" if self.line else str(self.problem)


class BadPolicyError(Exception):
    """The policy cannot be gone by; the message is one line that says where and why.

    `places` are all that is wrong, as far as anybody could see.
    """

    def __init__(self, message: str, places: tuple[Place, ...] = ()) -> None:
        super().__init__(message)
        self.places = places


class _OddityError(Exception):
    """YAML that may be right but is not taken."""

    def __init__(self, problem: str, mark: _Mark | None) -> None:
        super().__init__(problem)
        self.line = mark.line if mark else 0


def read(origin: str, text: str) -> Source:
    """Read a policy; raises BadPolicyError with the origin, line and field of the first fault."""
    found = _understood(text)
    if isinstance(found, Policy):
        return Source(found, origin)
    rest = f" (+{len(found) - 1} more)" if len(found) > 1 else ""
    raise BadPolicyError(f"policy {origin}: {found[0]}{rest}", found)


def _understood(text: str) -> Policy | tuple[Place, ...]:
    if len(text.encode(errors="replace")) > LARGEST:
        return _one(f"it is larger than {LARGEST // 1024} KiB")
    try:
        _refuse_tricks(text)
        root = yaml.compose(text, _LOADER)
        _refuse_odd_keys(root)
        document = meant_by(root) if root else None
    except _OddityError as error:
        return _one(str(error), error.line + 1)
    except yaml.MarkedYAMLError as error:
        where = error.problem_mark or error.context_mark
        return _one(error.problem or error.context or "", where.line + 1 if where else 0)
    except (yaml.YAMLError, ValueError) as error:
        return _one(" ".join(str(error).split()))
    found = policy_reading.read(document)
    if isinstance(found, Policy):
        return found
    return _placed(root, found)


def placed(text: str, faults: Sequence[Fault]) -> tuple[Place, ...]:
    """Find the lines of what is said about a text that can be gone by."""
    return _placed(yaml.compose(text, _LOADER), faults) if faults else ()


def _placed(root: Node | None, faults: Sequence[Fault]) -> tuple[Place, ...]:
    """Find the lines of those that are told; the others are counted, and each look costs."""
    return tuple(
        Place(_line(root, fault) if i < MOST_SHOWN else 0, fault.problem)
        for i, fault in enumerate(faults)
    )


def _one(message: str, line: int = 0) -> tuple[Place, ...]:
    return (Place(line, Problem("", message)),)


def _refuse_tricks(text: str) -> None:
    """Refuse what lets a small file mean much, before anything is built of it."""
    depth = documents = values = 0
    for event in yaml.parse(text, _LOADER):
        if isinstance(event, NodeEvent):
            values += 1
            _refuse_trick(event, values)
        if isinstance(event, DocumentStartEvent):
            documents += 1
        if documents > 1:
            raise _OddityError("there is a second document", event.start_mark)
        if isinstance(event, CollectionStartEvent):
            depth += 1
        elif isinstance(event, CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise _OddityError(f"it nests more than {DEEPEST} levels deep", event.start_mark)


def _refuse_trick(event: NodeEvent, values: int) -> None:
    if values > MOST_VALUES:
        raise _OddityError(
            f"it holds more than {MOST_VALUES} keys and values: patterns with * stand for many",
            event.start_mark,
        )
    if event.anchor is not None:
        raise _OddityError("anchors and aliases are not taken: write it out", event.start_mark)
    if isinstance(event, _TAGGED) and event.tag is not None:
        # Besides, PyYAML fails in many ways over values that do not fit their tag.
        raise _OddityError(f"tags such as {event.tag} are not taken", event.start_mark)


def _refuse_odd_keys(root: Node | None) -> None:
    for node in _all(root):
        seen: set[str] = set()
        for key, _ in node.value if isinstance(node, MappingNode) else ():
            if not isinstance(key, ScalarNode) or key.tag != _TEXT:
                raise _OddityError("a key must be text; put it in quotes", key.start_mark)
            if key.value in seen:
                raise _OddityError(f"the key {key.value!r} is there twice", key.start_mark)
            seen.add(key.value)


def meant_by(root: Node) -> Json:
    """Give what a tree of nodes says, which neither odd keys nor tricks are left in."""
    try:
        return _built(_LOADER(""), root)
    except (yaml.YAMLError, ValueError):
        # Of several values that cannot be, it says which it comes to first.
        return cast("Json", _LOADER("").construct_document(root))


def _built(loader: yaml.CSafeLoader, node: Node) -> Json:
    """Do what the loader does in steps of its own for nodes that stand for others."""
    if isinstance(node, MappingNode):
        return {key.value: _built(loader, value) for key, value in node.value}
    if isinstance(node, SequenceNode):
        return [_built(loader, each) for each in node.value]
    if node.tag == _TEXT:
        return cast("str", node.value)
    return cast("Json", loader.construct_object(node))


def _all(node: Node | None) -> Iterator[Node]:
    """Walk a tree of nodes, which `_refuse_tricks` has seen to be shallow."""
    if node is not None:
        yield node
    if isinstance(node, SequenceNode):
        for child in node.value:
            yield from _all(child)
    elif isinstance(node, MappingNode):
        for _, child in node.value:
            yield from _all(child)


def _line(root: Node | None, fault: Fault) -> int:
    """Give the line of the deepest node on the way to a fault."""
    line = 0
    node = root
    for step in fault.steps:
        if isinstance(node, MappingNode):
            found = [(key, value) for key, value in node.value if key.value == step]
            if not found:
                break
            line, node = found[0][0].start_mark.line, found[0][1]
        elif isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line
        else:
            break
    return line + 1

"""Policies and manifests out of files: each may be a policy's text or a ConfigMap's manifest."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import orjson
import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from api import names
from api.jsons import Json, JsonObject
from policies import policy_source, trying

LARGEST: Final = 16 * 1024 * 1024
SUFFIXES: Final = (".yaml", ".yml", ".json")
_TIME: Final = "tag:yaml.org,2002:timestamp"


class BadFileError(Exception):
    """A file cannot be used; the message is one line that names it."""


class _Loader(yaml.CSafeLoader):
    """Reads as the API server does, to which a date is text."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as its base has it
        first: [(tag, pattern) for tag, pattern in found if tag != _TIME]
        for first, found in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


@dataclass(frozen=True)
class PolicyText:
    """One policy as it is written somewhere in a file."""

    path: str
    key: str
    """Which key of a ConfigMap it stands in; empty if it is all of the file."""
    text: str
    above: int = 0
    """How many lines of the file come before it."""
    moves: bool = True
    """Whether its lines are those of the file, further down."""

    @property
    def origin(self) -> str:
        """Say where it is from."""
        return f"{self.path} key {self.key}" if self.key else self.path

    def line(self, line: int) -> int:
        """Give the line of the file for one of the policy's."""
        if not line:
            return self.above if self.key else 0
        return self.above + (line if self.moves else 0)


@dataclass(frozen=True)
class Written:
    """One object as a file has it."""

    path: str
    raw: JsonObject


def read_text(path: Path, most: int = LARGEST) -> str:
    """Read a file; raises BadFileError."""
    try:
        with path.open("rb") as file:
            found = file.read(most + 1)
        if len(found) > most:
            raise BadFileError(f"{path}: it is larger than {most // 1024} KiB")
        return found.decode()
    except OSError as error:
        raise BadFileError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadFileError(f"{path}: it is not text") from error


def policy_texts(path: Path) -> list[PolicyText]:
    """Find the policies in a file; raises BadFileError if a ConfigMap has none."""
    text = read_text(path)
    found: list[PolicyText] = []
    maps = _config_maps(text)
    for node in maps:
        found += _in_config_map(str(path), node)
    if maps and not found:
        keys = " or ".join((names.POLICY_KEY, names.CANDIDATE_KEY))
        raise BadFileError(f"{path}: the ConfigMap has no key {keys}")
    return found or [PolicyText(str(path), "", text)]


def policy(path: Path, *, candidate: bool = False) -> policy_source.Source:
    """Read the one policy in a file that is gone by; raises BadFileError or BadPolicyError."""
    key = names.CANDIDATE_KEY if candidate else names.POLICY_KEY
    found = [each for each in policy_texts(path) if each.key in ("", key)]
    if len(found) != 1:
        raise BadFileError(f"{path}: there are {len(found)} policies under the key {key}, not one")
    return policy_source.read(found[0].origin, found[0].text)


def manifests(paths: list[Path]) -> list[Written]:
    """Read all objects of these files, and of what folders among them hold."""
    found = [each for path in paths for file in _files(path) for each in _objects(file)]
    if not found:
        raise BadFileError("there is no manifest in these files")
    return found


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES and each.is_file())


def _objects(path: Path) -> Iterator[Written]:
    text = read_text(path)
    try:
        documents = list(yaml.load_all(text, _Loader))
        # Through text, as kubectl sends it: keys are text then, whatever they were.
        plain = [
            cast("Json", orjson.loads(orjson.dumps(each, option=orjson.OPT_NON_STR_KEYS)))
            for each in documents
        ]
    except yaml.MarkedYAMLError as error:
        where = error.problem_mark or error.context_mark
        line = f"{where.line + 1}:" if where else ""
        raise BadFileError(f"{path}:{line} {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise BadFileError(f"{path}: {' '.join(str(error).split())}") from error
    for number, document in enumerate(plain, 1):
        if document is None:
            continue
        if not isinstance(document, dict):
            raise BadFileError(f"{path}: document {number} is no object")
        yield from (Written(str(path), each) for each in trying.objects(document))


def _config_maps(text: str) -> list[MappingNode]:
    """Find the ConfigMaps in a text; a policy's own faults are told by who reads it."""
    try:
        nodes = list(yaml.compose_all(text, _Loader))
    except (yaml.YAMLError, ValueError, RecursionError):
        return []
    return [
        node
        for node in nodes
        if isinstance(node, MappingNode) and _scalar(node, "kind") == "ConfigMap"
    ]


def _in_config_map(path: str, node: Node) -> Iterator[PolicyText]:
    data = _child(node, "data")
    for key in (names.POLICY_KEY, names.CANDIDATE_KEY):
        found = _child(data, key)
        if isinstance(found, ScalarNode):
            yield _placed(path, key, found)


def _placed(path: str, key: str, node: ScalarNode) -> PolicyText:
    line: int = node.start_mark.line + 1
    # Of a block each line is one of the file; the first comes after the mark. All else may be
    # folded or escaped: then only where it begins is known.
    return PolicyText(path, key, node.value, line, moves=node.style == "|")


def _scalar(node: Node | None, key: str) -> str:
    found = _child(node, key)
    return found.value if isinstance(found, ScalarNode) else ""


def _child(node: Node | None, key: str) -> Node | None:
    for name, value in node.value if isinstance(node, MappingNode) else ():
        if isinstance(name, ScalarNode) and name.value == key:
            return cast("Node", value)
    return None

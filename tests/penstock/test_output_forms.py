"""What a command answers is there for tools as well: as JSON and as YAML, of every command."""

import typing
from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Final, Literal

import pytest
import typer
import yaml
from typer.core import TyperGroup
from typer.testing import CliRunner

from api import exits
from api.jsons import Json
from penstock.__main__ import app
from penstock.documents import document
from penstock.lazy import Entry, LazyCommand, function

# Those that answer nothing, or no data; each with its reason.
WITHOUT: Final = {
    "demo": "acts, and tells how far it is; `penstock tree -o json` gives what it shows",
    "dashboard": "serves pages until it is interrupted",
    "lab up": "acts; `penstock lab list -o json` tells what there is then",
    "lab down": "acts, and says what is gone",
    "lab kubeconfig": "prints a path or a file for others to read as it is",
    "lab install": "acts, and tells how far it is",
    "lab logs": "prints lines as daemons wrote them",
    "lab image": "acts; what it made is a file",
}


def entries(group: TyperGroup, above: tuple[str, ...] = ()) -> Iterator[tuple[str, Entry]]:
    """Walk all commands there are."""
    for name in group.list_commands(typer.Context(group)):
        command = group.get_command(typer.Context(group), name)
        if isinstance(command, LazyCommand):
            yield " ".join((*above, name)), command.entry
        elif isinstance(command, TyperGroup):
            yield from entries(command, (*above, name))


def whole() -> TyperGroup:
    found = typer.main.get_command(app)
    assert isinstance(found, TyperGroup)
    return found


EVERY: Final = dict(entries(whole()))


def choices(entry: Entry) -> set[str]:
    """Give what may follow -o; nothing if there is no such flag."""
    hints = typing.get_type_hints(function(entry), include_extras=True)
    for hint in hints.values():
        if typing.get_origin(hint) is not Annotated:
            continue
        kind, option = typing.get_args(hint)
        if "-o" in (getattr(option, "param_decls", None) or ()):
            if typing.get_origin(kind) is Literal:
                return set(typing.get_args(kind))
            assert issubclass(kind, Enum)
            return {str(each.value) for each in kind}
    return set()


def test_the_walk_finds_commands_of_all_groups() -> None:
    assert {"status", "what-if drain", "lab list", "policy lint", "audit top"} <= EVERY.keys()
    assert WITHOUT.keys() <= EVERY.keys()


@pytest.mark.parametrize("line", EVERY)
def test_every_command_answers_tools_or_there_is_a_reason(line: str) -> None:
    assert ({"json", "yaml"} <= choices(EVERY[line])) is (line not in WITHOUT)


@pytest.mark.parametrize("line", [line for line in EVERY if choices(EVERY[line])])
def test_another_form_is_refused_in_a_sentence(line: str) -> None:
    done = CliRunner().invoke(app, [*line.split(), "-o", "xml"], env={"COLUMNS": "300"})
    assert done.exit_code == exits.BAD_SETTINGS
    said = done.stderr.splitlines()[-1]
    assert said.startswith("Error: Invalid value for '--output' / '-o': 'xml' is not one of '")
    assert "''" not in said


def test_yaml_is_folded_nowhere_and_has_no_anchors() -> None:
    path: list[Json] = ["a" * 100]
    told = document({"two": path, "same": path, "say": "word " * 60}, "yaml")
    assert "&" not in told
    assert len(told.splitlines()) == 5
    assert yaml.safe_load(told)["same"] == path


def test_documents_that_follow_each_other_are_told_apart() -> None:
    text = document({"a": 1}, "yaml") + document({"a": 2}, "yaml", first=False)
    assert list(yaml.safe_load_all(text)) == [{"a": 1}, {"a": 2}]

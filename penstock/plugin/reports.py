"""An answer to a question about the cluster: as data for tools, and drawn for people."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import yaml
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from api import exits
from api.jsons import JsonObject


@dataclass(frozen=True)
class Report:
    """The data, what draws it (wide or not), and how the command ends."""

    data: JsonObject
    draw: Callable[[bool], Iterable[RenderableType]]
    code: int = exits.OK


def written(report: Report, output: str, console: Console) -> None:
    """Write the report in the form that was asked for."""
    match output:
        case "json":
            console.file.write(f"{json.dumps(report.data, indent=2)}\n")
        case "yaml":
            console.file.write(yaml.safe_dump(report.data, sort_keys=False, allow_unicode=True))
        case _:
            for each in report.draw(output == "wide"):
                console.print(each)


def table(head: Sequence[str], rows: Iterable[Sequence[str | Text]], *, right: str = "") -> Table:
    """Make a table as kubectl writes one; columns named in `right` are of numbers."""
    made = Table(
        box=None,
        pad_edge=False,
        show_edge=False,
        padding=(0, 3, 0, 0),
        header_style="",
        show_header=any(head),
    )
    for name in head:
        is_right = name in right.split(",")
        made.add_column(name, justify="right" if is_right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return made


def count(number: int, what: str) -> str:
    """Write a number of things."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

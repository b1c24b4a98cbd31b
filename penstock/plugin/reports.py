"""An answer to a question about the cluster: as data for tools, and drawn for people."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from api import exits
from api.jsons import JsonObject
from penstock.documents import document

_WHOLE: Final = 40  # characters; a longer name would leave the other columns no room
ENDLESS: Final = 100_000  # columns


@dataclass(frozen=True)
class Report:
    """The data, what draws it (wide or not), and how the command ends."""

    data: JsonObject
    draw: Callable[[bool], Iterable[RenderableType]]
    code: int = exits.OK


def written(report: Report, output: str, console: Console, *, first: bool = True) -> None:
    """Write the report in the form that was asked for; `first` of those that are watched."""
    match output:
        case "json" | "yaml":
            console.file.write(document(report.data, output, first=first))
        case _:
            for each in report.draw(output == "wide"):
                console.print(each)


def width(environment: Mapping[str, str], *, shown: bool) -> int | None:
    """Let lines be as long as they are where no terminal shows them: programs read them whole."""
    return None if shown or "COLUMNS" in environment else ENDLESS


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
    rows = list(rows)
    for at, name in enumerate(head):
        made.add_column(
            name,
            justify="right" if name in right.split(",") else "left",
            overflow="fold",
            # What a row is about is there to be copied and searched for; other columns give way.
            no_wrap=at == 0 and all(len(row[0]) <= _WHOLE for row in rows),
        )
    for row in rows:
        made.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return made


def count(number: int, what: str) -> str:
    """Write a number of things."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

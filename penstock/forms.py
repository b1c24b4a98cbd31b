"""The flag by which commands are asked for data instead of text. Light, for `--help`."""

from typing import Annotated, Literal

import typer

ForTools = Annotated[
    Literal["", "json", "yaml"],
    typer.Option("--output", "-o", metavar="json|yaml", help="For tools."),
]

"""Commands that are imported only when they run, so that `--help` is there at once."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typing_extensions import override


@dataclass(frozen=True)
class Entry:
    """One command: where its function is, and what the list of commands says of it."""

    name: str
    target: str
    """`module:function`, a function made for typer."""
    summary: str
    examples: tuple[str, ...] = ()


def call(target: str, told: Mapping[str, object]) -> None:
    """Import `module:function`, and have it do what was told."""
    module, _, name = target.partition(":")
    getattr(importlib.import_module(module), name)(**told)


class LazyCommand(TyperCommand):
    """Stands in for a command until it is really called."""

    entry: Entry

    @override
    def make_context(
        self, info_name: str | None, args: list[str], parent: object = None, **extra: object
    ) -> typer.Context:
        """Import the command and let it parse its arguments."""
        command = typer.main.get_command(_application(self.entry))
        above = cast("typer.Context | None", parent)
        try:
            return cast("typer.Context", command.make_context(info_name, args, above, **extra))
        except typer.BadParameter as error:
            error.message = _plain(error.message)
            raise


def _plain(complaint: str) -> str:
    """Leave out of typer's words what speaks of Python, and the choice that stands for none."""
    return complaint.removeprefix("Value error, ").replace(" is not one of '', ", " is not one of ")


def function(entry: Entry) -> Callable[[], None]:
    """Import a command's function."""
    module, _, name = entry.target.partition(":")
    return cast("Callable[[], None]", getattr(importlib.import_module(module), name))


def _application(entry: Entry) -> typer.Typer:
    application = typer.Typer(add_completion=False, rich_markup_mode=None)
    application.command(entry.name, epilog=_epilog(entry))(function(entry))
    return application


def _epilog(entry: Entry) -> str | None:
    # The \b keeps the lines as they are.
    lines = "\n".join(f"  {example}" for example in entry.examples)
    return f"\b\nExamples:\n{lines}" if lines else None


class LazyGroup(TyperGroup):
    """A group of commands from a table; see `group`."""

    entries: ClassVar[dict[str, Entry]] = {}

    @override
    def parse_args(self, ctx: object, args: list[str]) -> list[str]:
        """Read the group's own options, if there are any; they stand before the command.

        To look at one that is not there has pydantic loaded, which would cost `--help` of every
        command as much again.
        """
        own = self.params, self.add_help_option
        if args and not args[0].startswith("-"):
            self.params, self.add_help_option = [], False
        try:
            return super().parse_args(cast("typer.Context", ctx), args)
        finally:
            self.params, self.add_help_option = own

    @override
    def list_commands(self, ctx: object) -> list[str]:
        """List the table's commands in its order, then those added in the usual way."""
        return [*self.entries, *self.commands]

    @override
    def get_command(self, ctx: object, cmd_name: str) -> TyperCommand | None:
        """Return a stand-in for a command of the table."""
        entry = self.entries.get(cmd_name)
        if entry is None:
            return cast("TyperCommand | None", self.commands.get(cmd_name))
        command = LazyCommand(entry.name, help=entry.summary, rich_markup_mode=None)
        command.entry = entry
        return command


def group(
    text: str, entries: Sequence[Entry], examples: Sequence[str] = (), *, completion: bool = False
) -> typer.Typer:
    """Return an application whose commands are those of a table."""
    table = {entry.name: entry for entry in entries}
    kind = type("Commands", (LazyGroup,), {"entries": table})
    heading = Entry("", "", "", tuple(examples))
    return typer.Typer(
        cls=kind,
        help=text,
        epilog=_epilog(heading),
        no_args_is_help=True,
        add_completion=completion,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )

"""How commands end: with what was asked for, or with one line that says why not, and a code."""

import asyncio
import signal
import sys
from collections.abc import Coroutine
from typing import Final, TypeVar

import typer

from api import exits
from kube.errors import ApiError, BadCredentials, Forbidden, Unauthorized, Unreachable
from penstock.lab.errors import BadFlagError, LabError

T = TypeVar("T")

INTERRUPTED: Final = 130


class AskedWronglyError(Exception):
    """What was asked cannot be answered; the message says what to ask instead."""

    def __init__(self, message: str, code: int = exits.UNEXPECTED) -> None:
        super().__init__(message)
        self.code = code


def run_to_end(command: str, work: Coroutine[None, None, T]) -> T:
    """Run a command's work and return its result; a failure is one line and an exit code.

    A signal cancels the work, so that it can tidy up behind itself.
    """

    async def cancellable() -> T:
        task = asyncio.ensure_future(work)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        return await task

    try:
        return asyncio.run(cancellable())
    except (LabError, ApiError, AskedWronglyError) as error:
        typer.echo(f"penstock {command}: {error}", err=True)
        sys.exit(exit_code(error))
    except asyncio.CancelledError:
        typer.echo(f"penstock {command}: interrupted", err=True)
        sys.exit(INTERRUPTED)


def exit_code(error: LabError | ApiError | AskedWronglyError) -> int:
    """Return how a command ends that failed so."""
    match error:
        case AskedWronglyError():
            return error.code
        case BadFlagError():
            return exits.BAD_SETTINGS
        case Unreachable():
            return exits.NO_API_SERVER
        case BadCredentials() | Unauthorized() | Forbidden():
            return exits.BAD_CREDENTIALS
        case _:
            return exits.UNEXPECTED

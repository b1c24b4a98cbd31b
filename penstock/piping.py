"""Standard output whose reader may leave, as `head` does once it has what it wants."""

import io
import os
import sys
from typing import Final, NoReturn

from typing_extensions import override

LEFT: Final = 141  # as shells tell of a program that a broken pipe has ended


class Output(io.TextIOWrapper):
    """Ends the program without a word when nobody reads any more, and drops what is left to write.

    Others would do it in the midst of their work, and end with 1 as if that had failed.
    """

    @override
    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except BrokenPipeError:
            self._left()

    @override
    def flush(self) -> None:
        try:
            super().flush()
        except BrokenPipeError:
            self._left()

    def _left(self) -> NoReturn:
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
        sys.exit(LEFT)


def take_over() -> None:
    """Have standard output be such a one, where it is a file of the system's."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        was = sys.stdout
        sys.stdout = Output(
            was.buffer, was.encoding, was.errors,
            line_buffering=was.line_buffering, write_through=was.write_through,
        )  # fmt: skip

"""Flags into one frozen Settings, checked before anything starts."""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from typing_extensions import override

from api import exits

LONGEST: Final = 3600
LEVELS: Final = ("debug", "info", "warning", "error")

EXAMPLES: Final = """\
examples:
  python -m webhook --port 9443 --tls-dir /etc/penstock/tls
  python -m webhook --host 127.0.0.1 --port 0 --tls-dir ./tls --drain-seconds 1 --log-level debug

--tls-dir must hold tls.crt (the certificate, with its chain) and tls.key. They may be replaced at
any time, best all at once by swapping a link as kubelet does; new connections get the new ones.
"""


@dataclass(frozen=True)
class Settings:
    """How to serve. Durations are seconds."""

    host: str
    port: int
    tls_dir: Path
    tls_wait: float
    threads: int
    drain_seconds: float
    log_level: str


class _Parser(argparse.ArgumentParser):
    """A parser that ends with one line instead of the whole usage."""

    @override
    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{self.prog}: {message} (see --help)\n")
        raise SystemExit(exits.BAD_SETTINGS)


def parse(arguments: Sequence[str]) -> Settings:
    """Read the flags; ends the process with one line and BAD_SETTINGS if they make no sense."""
    parser = _Parser(
        prog="python -m webhook",
        description="Answer admission reviews over HTTPS: check PodCliqueSets, gate gangs' pods.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--host", default="0.0.0.0", help="address to serve on (%(default)s)")  # noqa: S104
    parser.add_argument(
        "--port", type=_port, default=9443, help="port; 0 takes a free one (%(default)s)"
    )
    parser.add_argument(
        "--tls-dir", type=Path, required=True, help="directory with tls.crt and tls.key"
    )
    parser.add_argument(
        "--tls-wait",
        type=_seconds,
        default=60.0,
        help="seconds to wait for these files at the start (%(default)g)",
    )
    parser.add_argument(
        "--threads", type=_threads, default=16, help="reviews answered at once (%(default)s)"
    )
    parser.add_argument(
        "--drain-seconds",
        type=_seconds,
        default=5.0,
        help="seconds to go on serving, unready, after SIGTERM (%(default)g)",
    )
    parser.add_argument("--log-level", choices=LEVELS, default="info", help="(%(default)s)")
    return Settings(**vars(parser.parse_args(arguments)))


def _port(text: str) -> int:
    return _whole(text, 0, 65535)


def _threads(text: str) -> int:
    return _whole(text, 1, 256)


def _whole(text: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
        raise argparse.ArgumentTypeError(f"must be a number from {low} to {high}, got {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= LONGEST:
        raise argparse.ArgumentTypeError(f"must be seconds from 0 to {LONGEST}, got {text!r}")
    return seconds

"""The ends of logs, and what is added to them."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from penstock.lab.errors import LabError

POLL_SECONDS: Final = 0.3
_LINE_BYTES: Final = 2048


def choose(lab: str, logs: Mapping[str, Path], component: str | None) -> dict[str, Path]:
    """Return the logs that were asked for; raises LabError that names those there are."""
    if not logs:
        raise LabError(f"lab {lab!r} has no logs; `penstock lab list` shows which labs there are")
    if component is None:
        return dict(logs)
    if component not in logs:
        raise LabError(f"{component!r} has no log in lab {lab!r}; there are: {', '.join(logs)}")
    return {component: logs[component]}


async def tail(
    logs: Mapping[str, Path], lines: int, *, follow: bool, write: Callable[[str], None]
) -> None:
    """Write the last lines of each log and, if asked to follow, what comes until cancelled."""
    offsets: dict[str, int] = {}
    for name, path in logs.items():
        if len(logs) > 1:
            write(f"==> {name} <==")
        text, offsets[name] = last_lines(path, lines)
        for line in text:
            write(line)
    while follow:
        await asyncio.sleep(POLL_SECONDS)
        for name, path in logs.items():
            text, offsets[name] = added(path, offsets[name])
            for line in text:
                write(f"{name}: {line}" if len(logs) > 1 else line)


def last_lines(path: Path, count: int) -> tuple[list[str], int]:
    """Return the last whole lines of a file and the offset behind them."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - count * _LINE_BYTES))
            content = file.read()
    except FileNotFoundError:
        return [], 0
    return content.decode(errors="replace").splitlines()[-count:], size


def added(path: Path, offset: int) -> tuple[list[str], int]:
    """Return the whole lines behind an offset, and the next one; a file that shrank begins anew."""
    try:
        with path.open("rb") as file:
            if file.seek(0, 2) < offset:
                offset = 0
            file.seek(offset)
            content = file.read()
    except FileNotFoundError:
        return [], 0
    whole = content[: content.rfind(b"\n") + 1]
    return whole.decode(errors="replace").splitlines(), offset + len(whole)

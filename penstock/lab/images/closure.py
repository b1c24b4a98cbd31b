"""Which of the system's libraries programs need: all that has to be copied beside them."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from penstock.lab.commands import Command, Run

MAGIC: Final = b"\x7fELF"
BATCH: Final = 100

_NEEDED: Final = re.compile(r"^\t(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)


def needed(output: str) -> set[str]:
    """Return the libraries in what ldd says, the loader included; what is not found is left out."""
    return set(_NEEDED.findall(output))


async def libraries(files: Iterable[Path], run: Run) -> dict[str, Path]:
    """Return every library that programs and libraries among the files need, by its path."""
    programs = [path for path in files if is_program(path)]
    found: set[str] = set()
    for batch in _batches(programs):
        # ldd says 1 if a file needs no library at all, and goes on.
        found |= needed((await run(Command(["ldd", *map(str, batch)]))).output)
    return {path: Path(path) for path in sorted(found)}


def is_program(path: Path) -> bool:
    """Tell whether a file is a program or library for this kind of system."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _batches(paths: Sequence[Path]) -> Iterable[Sequence[Path]]:
    return (paths[start : start + BATCH] for start in range(0, len(paths), BATCH))

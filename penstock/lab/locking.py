"""A lock between processes that vanishes with its holder, and says who that is."""

import contextlib
import fcntl
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final, TextIO

from kube.clock import Clock

RETRY_SECONDS: Final = 0.2


@contextlib.asynccontextmanager
async def locked(
    path: Path, purpose: str, say: Callable[[str], None], clock: Clock
) -> AsyncIterator[None]:
    """Hold the lock file while inside; if somebody else does, say once who and why, and wait.

    The kernel lets go of the lock when its holder dies, however it dies.
    """
    file = _opened(path)
    try:
        told = False
        while not (_taken(file) and _is_at(path, file)):
            if not _is_at(path, file):
                file.close()
                file = _opened(path)
                continue
            if not told:
                say(f"Waiting for {_holder(path)}, which holds {path}")
                told = True
            await clock.sleep(RETRY_SECONDS)
        _sign(file, f"{os.getpid()} {purpose}")
        try:
            yield
        finally:
            _sign(file, "")
    finally:
        file.close()


def _opened(path: Path) -> TextIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("a+", encoding="utf-8")


def _taken(file: TextIO) -> bool:
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(path: Path, file: TextIO) -> bool:
    # The holder may remove the file; then another one counts.
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _sign(file: TextIO, text: str) -> None:
    file.seek(0)
    file.truncate()
    file.write(text)
    file.flush()


def _holder(path: Path) -> str:
    pid, _, purpose = path.read_text(encoding="utf-8").partition(" ")
    return f"process {pid} ({purpose})" if pid else "another process"

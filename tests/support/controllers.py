"""A controller that a test runs by itself, in the place of the lab's own."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from penstock.lab.installation import Installation

LEASE: Final = "6"  # seconds; with less, a busy machine alone deposes leaders
END_SECONDS: Final = 20.0

Running: TypeAlias = AbstractAsyncContextManager[asyncio.subprocess.Process]


@contextmanager
def without(component: str, installation: Installation) -> Iterator[Installation]:
    """Keep the lab's own stopped for as long as the context lasts."""
    installation.stop_component(component)
    yield installation
    installation.start_component(component)


@asynccontextmanager
async def running(
    component: str, kubeconfig: Path, log: Path, *flags: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run one; it is told to end, if it still runs, and waited for."""
    with log.open("ab") as out:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", f"controller.{component}", "--kubeconfig", str(kubeconfig),
            "--lease", LEASE, *flags, stderr=out,
        )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), END_SECONDS)

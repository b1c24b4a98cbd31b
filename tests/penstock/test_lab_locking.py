"""The lock between processes, tried with real ones."""

import asyncio
import os
import sys
from pathlib import Path

from kube.clock import SystemClock
from penstock.lab.locking import locked

HOLD = """
import asyncio, pathlib, sys
from kube.clock import SystemClock
from penstock.lab.locking import locked

async def main():
    async with locked(pathlib.Path(sys.argv[1]), "building etcd", print, SystemClock()):
        print("held", flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main())
"""


async def holder(lock: Path) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLD, str(lock),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout
    assert await process.stdout.readline() == b"held\n"
    return process


async def let_go(process: asyncio.subprocess.Process) -> None:
    await process.communicate(b"\n")


async def test_the_second_waits_and_is_told_for_whom(tmp_path: Path) -> None:
    lock = tmp_path / "cache" / "lock"
    process = await holder(lock)
    said: list[str] = []
    inside = asyncio.Event()

    async def second() -> None:
        async with locked(lock, "testing", said.append, SystemClock()):
            inside.set()

    task = asyncio.create_task(second())
    async with asyncio.timeout(10):
        while not said:
            await asyncio.sleep(0.01)
    assert f"process {process.pid} (building etcd)" in said[0]
    assert not inside.is_set()
    await let_go(process)
    await asyncio.wait_for(task, 10)
    assert inside.is_set()
    assert len(said) == 1


async def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    process = await holder(lock)
    process.kill()
    await process.wait()
    async with asyncio.timeout(5), locked(lock, "testing", _fail, SystemClock()):
        assert lock.read_text() == f"{os.getpid()} testing"
    assert lock.read_text() == ""


async def test_a_removed_lock_file_is_not_waited_for(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    process = await holder(lock)
    said: list[str] = []

    async def second() -> None:
        async with locked(lock, "testing", said.append, SystemClock()):
            assert lock.read_text() == f"{os.getpid()} testing"

    task = asyncio.create_task(second())
    async with asyncio.timeout(10):
        while not said:
            await asyncio.sleep(0.01)
    lock.unlink()
    await asyncio.wait_for(task, 10)
    await let_go(process)


def _fail(line: str) -> None:
    raise AssertionError(line)

import asyncio
import os
import sys
from pathlib import Path

import psutil
import pytest

from penstock.lab.commands import Command, Finished, run

CHILDREN = """
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path(sys.argv[1]).write_text(str(child.pid))
time.sleep(600)
"""


async def test_both_streams_and_the_code_come_back() -> None:
    program = "import sys; print('one', flush=True); print('two', file=sys.stderr); sys.exit(3)"
    finished = await run(Command([sys.executable, "-c", program]))
    assert finished == Finished(3, "one\ntwo\n")
    assert finished.last_lines(1) == "two"


async def test_the_environment_is_added_to(tmp_path: Path) -> None:
    program = "import os; print(os.environ['ADDED'], os.environ['PATH'], os.getcwd())"
    command = Command([sys.executable, "-c", program], {"ADDED": "1"}, tmp_path)
    assert (await run(command)).output == f"1 {os.environ['PATH']} {tmp_path}\n"


async def test_cancellation_ends_the_program_and_its_children(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    task = asyncio.create_task(run(Command([sys.executable, "-c", CHILDREN, str(mark)])))
    async with asyncio.timeout(10):
        while not (mark.exists() and mark.read_text()):
            await asyncio.sleep(0.01)
    child = psutil.Process(int(mark.read_text()))
    parent = psutil.Process(child.ppid())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gone, alive = psutil.wait_procs([child, parent], timeout=5)
    assert alive == []
    assert len(gone) == 2

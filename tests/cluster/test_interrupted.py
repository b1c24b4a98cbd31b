"""A test run that is interrupted leaves no lab and no process."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.leftovers import left_over

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]


def processes_of(home: Path) -> list[str]:
    lines = (" ".join(p.info["cmdline"] or []) for p in psutil.process_iter(["cmdline"]))
    return [line for line in lines if str(home) in line]


@pytest.mark.long
async def test_an_interrupted_run_takes_its_labs_down(tmp_path: Path) -> None:
    run = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--no-cov", "-n", "2",
        "tests/cluster/test_gang_way.py",
        cwd=ROOT, env={**os.environ, "XDG_STATE_HOME": str(tmp_path)}, start_new_session=True,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(90):
            while not any("kube-apiserver" in line for line in processes_of(tmp_path)):
                await asyncio.sleep(0.1)
        os.killpg(run.pid, signal.SIGINT)
        async with asyncio.timeout(120):
            # A worker that the signal ends first is told as a failed test.
            ended = {pytest.ExitCode.INTERRUPTED, pytest.ExitCode.TESTS_FAILED}
            assert await run.wait() in ended
        assert processes_of(tmp_path) == []
    finally:
        if run.returncode is None:
            os.killpg(run.pid, signal.SIGKILL)


def test_only_labs_of_runs_that_are_over_are_left_over() -> None:
    names = ["demo", "pytest", "pytest-x-1", "pytest-5-a", "pytest-6-b", "pytest-7-c"]
    alive = {6, 7}
    assert left_over(names, alive.__contains__, None) == ["pytest-5-a"]
    assert left_over(names, alive.__contains__, 7) == ["pytest-5-a", "pytest-7-c"]

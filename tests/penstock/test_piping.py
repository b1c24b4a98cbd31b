"""Who reads a command's output may leave whenever they like, as `head` does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from api import exits
from penstock.piping import LEFT

WATCHED = """
import asyncio, sys
from penstock import piping
from penstock.ending import run_to_end
from rich.console import Console
async def work():
    while True:
        Console().print("again")
        await asyncio.sleep(0.01)
piping.take_over()
run_to_end("status", work())
"""
LARGE = "import sys; from penstock import piping; piping.take_over(); sys.stdout.write('x' * 10**6)"
LINES = [
    pytest.param(("-m", "penstock", "lab", "list"), id="a list"),
    pytest.param(("-m", "penstock", "--help"), id="help"),
    pytest.param(("-c", WATCHED), id="watched"),
    pytest.param(("-c", LARGE), id="more than a pipe holds"),
]


def ran(command: tuple[str, ...], home: Path, *, stays: bool) -> tuple[int, str]:
    """Run it with a reader that is gone before the first line is written, or stays."""
    reader, writer = os.pipe()
    if not stays:
        os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-P", *command],
            stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
            env={**os.environ, "XDG_STATE_HOME": str(home)},
        )  # fmt: skip
    finally:
        os.close(writer)
        if stays:
            os.close(reader)
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", LINES)
def test_a_reader_that_leaves_ends_it_without_a_word(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    assert ran(command, tmp_path, stays=False) == (LEFT, "")


def test_a_reader_that_stays_gets_it_all_and_the_command_ends_as_ever(tmp_path: Path) -> None:
    command = ("-m", "penstock", "lab", "list")
    assert ran(command, tmp_path, stays=True) == (exits.OK, "")
    wrong = ("-m", "penstock", "lab", "list", "--nope")
    assert ran(wrong, tmp_path, stays=True)[0] == exits.BAD_SETTINGS

"""Processes remembered across commands, so that only ours are ever signalled.

A record carries the pid and when that process was started: a pid alone may by now belong to
somebody else.
"""

import os
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import psutil

# The time of start is counted from boot, and that instant moves a little when the clock is set.
START_TOLERANCE = 2.0


class Record(msgspec.Struct, frozen=True):
    """One process that we started; it leads a process group of its own."""

    pid: int
    created: float


def record_of(pid: int) -> Record | None:
    """Return the record of a process that runs now, or None if it has ended already."""
    try:
        return Record(pid, psutil.Process(pid).create_time())
    except psutil.NoSuchProcess:
        return None


def write_record(path: Path, record: Record) -> None:
    """Write a record in one step: a reader sees the whole of it or the one before."""
    temporary = path.with_suffix(".new")
    temporary.write_bytes(msgspec.json.encode(record))
    temporary.replace(path)


def read_record(path: Path) -> Record | None:
    """Read a record; None if there is none or it makes no sense."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Record)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def running(record: Record) -> bool:
    """Tell whether the recorded process runs still: same pid, same start, and not a zombie."""
    process = _process(record)
    try:
        return process is not None and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def stop(records: Sequence[Record], grace: float) -> None:
    """Ask the recorded processes to end, wait, then kill what is left of them and their groups."""
    processes = [process for record in records if (process := _process(record)) is not None]
    for process in processes:
        _signal(process, signal.SIGTERM)
    _, stubborn = psutil.wait_procs(processes, timeout=grace)
    for process in stubborn:
        _signal(process, signal.SIGKILL)
    for record in records:
        kill_group(record)
    psutil.wait_procs(stubborn, timeout=grace)


def kill_group(record: Record) -> None:
    """Kill what a dead or dying process left behind in its group, for instance its workers."""
    for process in _group(record):
        _signal(process, signal.SIGKILL)


def last_line(path: Path) -> str:
    """Return the last line of a log that says something, or an empty string."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 8192))
            lines = file.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _process(record: Record) -> psutil.Process | None:
    try:
        process = psutil.Process(record.pid)
        same = abs(process.create_time() - record.created) < START_TOLERANCE
    except psutil.NoSuchProcess:
        return None
    return process if same else None


def _group(record: Record) -> Iterable[psutil.Process]:
    # A pid is not given out again while it still names a group, so if it now belongs to a process
    # that was started later than ours, our whole group is gone and this one is a stranger's.
    if psutil.pid_exists(record.pid) and _process(record) is None:
        return
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) == record.pid and _not_older(process, record):
                yield process
        except (ProcessLookupError, PermissionError, psutil.NoSuchProcess):
            continue


def _not_older(process: psutil.Process, record: Record) -> bool:
    return process.create_time() > record.created - START_TOLERANCE


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)  # psutil itself refuses if the pid has changed hands
    except psutil.NoSuchProcess:
        return

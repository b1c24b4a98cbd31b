"""The outer process of a real node: `python -m penstock.lab.realnode.warden --directory LAB`.

It makes the namespaces and their first process, the holder; takes connections to the API server
outside and makes them inside; and clears the control groups away when the holder has ended.
Killing either of the two ends all of the node.
"""

import argparse
import asyncio
import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, Never

import msgspec

from penstock.lab import processes
from penstock.lab.ports import LOOPBACK
from penstock.lab.realnode import cgroups, holder, kernel
from penstock.lab.realnode.places import Places
from penstock.lab.realnode.planning import Plan
from penstock.lab.supervision import module_command

POLL_SECONDS: Final = 0.1
CHUNK: Final = 65_536
EMPTYING_SECONDS: Final = 10.0


def main() -> int:
    """Be the warden of one node until its holder ends; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m penstock.lab.realnode.warden",
        description="Holds the real node of a lab. `penstock lab up --real-node` starts it.",
        epilog="example: python -m penstock.lab.realnode.warden --directory LABS/demo",
    )
    parser.add_argument("--directory", type=Path, required=True, help="the lab's directory")
    parser.add_argument(
        "--detach", action="store_true", help="start it in the background and return"
    )
    arguments = parser.parse_args()
    places = Places.of(arguments.directory.absolute())
    if arguments.detach:
        _detach(places, arguments.directory)
        return 0
    plan = msgspec.json.decode(places.plan.read_bytes(), type=Plan)
    _record(places.warden, os.getpid())
    # Made before we leave the machine's network: a socket stays where it was made.
    listener = socket.create_server((LOOPBACK, plan.api_port), backlog=128)
    cgroups.make(plan.cgroup)
    kernel.unshare(kernel.NEW_NETWORK | kernel.NEW_PROCESSES)
    alive, ours = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        listener.close()
        _hold(plan, alive)
    os.close(alive)
    _record(places.holder, pid)
    asyncio.run(_relay(listener, plan.api_port, pid))
    return 0 if _cleared(plan.cgroup) else 1


def _detach(places: Places, directory: Path) -> None:
    log = places.daemon_log("warden")
    log.parent.mkdir(parents=True, exist_ok=True)
    module = "penstock.lab.realnode.warden"
    with log.open("ab") as output:
        subprocess.Popen(  # noqa: S603  our own module
            module_command(module, "--directory", str(directory)),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def _record(path: Path, pid: int) -> None:
    record = processes.record_of(pid)
    if record is not None:
        processes.write_record(path, record)


def _hold(plan: Plan, warden: int) -> Never:
    """Become the holder; of its warden it is told by a pipe that closes when that ends."""
    try:
        kernel.die_with_parent()
        kernel.unshare(kernel.NEW_MOUNTS)
        if not select.select([warden], [], [], 0)[0]:  # else the warden ended before that line
            holder.hold(plan)
    except Exception as error:  # noqa: BLE001 - whatever it is, the warden's log is to tell
        holder.say(f"the node's first process: {error}")
    os._exit(1)


async def _relay(listener: socket.socket, port: int, holder_pid: int) -> None:
    """Pass connections in until the holder has ended or we are told to end."""
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    passing: set[asyncio.Task[None]] = set()

    def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_pass_on(reader, writer, port))
        passing.add(task)
        task.add_done_callback(passing.discard)

    server = await asyncio.start_server(take, sock=listener)
    while not _ended(holder_pid):
        if told.is_set():
            os.kill(holder_pid, signal.SIGKILL)
        await asyncio.sleep(POLL_SECONDS)
    server.close()
    for task in passing:
        task.cancel()


def _ended(child: int) -> bool:
    return os.waitpid(child, os.WNOHANG)[0] != 0


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    try:
        far_reader, far_writer = await asyncio.open_connection(LOOPBACK, port)
    except OSError:  # nobody listens inside yet
        writer.close()
        return
    try:
        async with asyncio.TaskGroup() as both:
            both.create_task(_pump(reader, far_writer))
            both.create_task(_pump(far_reader, writer))
    finally:
        writer.close()
        far_writer.close()


async def _pump(source: asyncio.StreamReader, drain: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):  # either end may go away at any time
        while data := await source.read(CHUNK):
            drain.write(data)
            await drain.drain()
        drain.write_eof()


def _cleared(cgroup: str) -> bool:
    """Remove the node's control groups once the last of its processes has gone from them."""
    for _ in range(int(EMPTYING_SECONDS / POLL_SECONDS)):
        if not cgroups.remove(cgroup):
            return True
        time.sleep(POLL_SECONDS)
    return False


if __name__ == "__main__":
    sys.exit(main())

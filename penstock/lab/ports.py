"""Ports on the loopback: choosing free ones, and saying who has one that we need."""

import random
import socket
from collections.abc import Collection, Sequence
from typing import Final

import psutil

from penstock.lab.errors import LabError

LOOPBACK: Final = "127.0.0.1"

# Below the range from which the kernel gives ports to outgoing connections, one of which could take
# a port between our look at it and the daemon's start.
LOWEST: Final = 20_000
HIGHEST: Final = 32_000
_ATTEMPTS: Final = 2_000


def choose(count: int, taken: Collection[int], chance: random.Random) -> list[int]:
    """Return different ports that nobody has now and that are not in `taken`."""
    chosen: list[int] = []
    for _ in range(_ATTEMPTS):
        if len(chosen) == count:
            return chosen
        port = chance.randint(LOWEST, HIGHEST)
        if port not in taken and port not in chosen and is_free(port):
            chosen.append(port)
    raise LabError(f"found no {count} free ports between {LOWEST} and {HIGHEST} on {LOOPBACK}")


def is_free(port: int) -> bool:
    """Tell whether a server could listen on a port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def owner(port: int) -> str:
    """Name the process that listens on a port, as well as we may know."""
    for connection in psutil.net_connections("tcp"):
        local: Sequence[object] = connection.laddr
        if connection.status == psutil.CONN_LISTEN and local and local[1] == port:
            return _describe(connection.pid)
    return "another process"


def _describe(pid: int | None) -> str:
    if pid is None:
        return "another user's process"
    try:
        return f"process {pid} ({psutil.Process(pid).name()})"
    except psutil.NoSuchProcess:
        return f"process {pid}"

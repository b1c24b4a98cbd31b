"""Calls as an API server makes them: kept TLS connections, one call at a time on each.

Sockets and `select`, nothing in between: it shares a machine with what it measures.
"""

import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

HOST: Final = "127.0.0.1"
CHUNK: Final = 65536
PATIENCE: Final = 30.0


def request(path: str, body: bytes) -> bytes:
    """A whole call as bytes."""
    head = (
        f"POST {path}?timeout=10s HTTP/1.1\r\nHost: {HOST}\r\nUser-Agent: kube-apiserver\r\n"
        f"Accept: application/json\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@dataclass
class Measured:
    """What came of a run; latencies are seconds, in the order of the answers."""

    seconds: float = 0.0
    cpu: float = 0.0
    latencies: list[float] = field(default_factory=list)
    faults: list[bytes] = field(default_factory=list)

    def and_also(self, other: "Measured") -> "Measured":
        return Measured(
            self.seconds + other.seconds,
            self.cpu + other.cpu,
            self.latencies + other.latencies,
            self.faults + other.faults,
        )

    @property
    def per_second(self) -> float:
        return len(self.latencies) / self.seconds

    @property
    def busy(self) -> float:
        """The share of one core that making the calls took."""
        return self.cpu / self.seconds

    def quantile(self, share: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


class Connection:
    """One kept connection; opened anew when the server closes it."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self._port = port
        self._context = context
        self.socket = self._open()
        self.since = 0.0

    def _open(self) -> ssl.SSLSocket:
        plain = socket.create_connection((HOST, self._port), timeout=PATIENCE)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._context.wrap_socket(plain, server_hostname=HOST)

    def fileno(self) -> int:
        return self.socket.fileno()

    def ask(self, call: bytes, since: float) -> None:
        """Send a call that was due at that time."""
        self.since = since
        self.socket.sendall(call)

    def answer(self) -> bytes:
        """Read the whole reply."""
        reply = self.socket.recv(CHUNK)
        head = reply.find(b"\r\n\r\n") + 4
        length = int(reply[reply.index(b"Content-Length: ") + 16 : head].split(b"\r\n", 1)[0])
        while len(reply) < head + length:
            reply += self.socket.recv(CHUNK)
        if b"Connection: close" in reply[:head]:
            self.socket.close()
            self.socket = self._open()
        return reply

    def close(self) -> None:
        self.socket.close()


@contextmanager
def connections(
    ports: Sequence[int], context: ssl.SSLContext, count: int
) -> Iterator[list[Connection]]:
    """Open so many connections, spread over the ports."""
    with ExitStack() as stack:
        made = [Connection(ports[i % len(ports)], context) for i in range(count)]
        for connection in made:
            stack.callback(connection.close)
        yield made


def saturate(lines: Sequence[Connection], calls: Sequence[bytes], seconds: float) -> Measured:
    """Ask on every connection again as soon as it has answered."""
    run = Measured()
    begun, cpu = time.perf_counter(), time.process_time()
    end = begun + seconds
    waiting = set(lines)
    for number, line in enumerate(lines):
        line.ask(calls[number % len(calls)], time.perf_counter())
    asked = len(lines)
    while waiting:
        for line in select.select(waiting, (), (), PATIENCE)[0]:
            _take(line, run)
            now = time.perf_counter()
            if now < end:
                line.ask(calls[asked % len(calls)], now)
                asked += 1
            else:
                waiting.discard(line)
    run.seconds, run.cpu = time.perf_counter() - begun, time.process_time() - cpu
    return run


def arrive(
    lines: Sequence[Connection], calls: Sequence[bytes], count: int, gap: Callable[[], float]
) -> Measured:
    """Ask with such gaps between calls, whether the ones before are answered or not.

    A latency counts from the instant at which the call was due, so that a server which falls
    behind cannot hide it by taking fewer.
    """
    run = Measured()
    idle, busy = deque(lines), set[Connection]()
    due = begun = time.perf_counter()
    cpu = time.process_time()
    asked = 0
    while asked < count or busy:
        now = time.perf_counter()
        while asked < count and due <= now and idle:
            line = idle.popleft()
            line.ask(calls[asked % len(calls)], due)
            busy.add(line)
            asked += 1
            due += gap()
        soon = max(0.0, due - time.perf_counter()) if asked < count and idle else PATIENCE
        for line in select.select(busy, (), (), soon)[0]:
            _take(line, run)
            busy.discard(line)
            idle.append(line)
    run.seconds, run.cpu = time.perf_counter() - begun, time.process_time() - cpu
    return run


def _take(line: Connection, run: Measured) -> None:
    reply = line.answer()
    run.latencies.append(time.perf_counter() - line.since)
    if not reply.startswith(b"HTTP/1.1 200 ") or b'"allowed":true' not in reply:
        run.faults.append(reply)

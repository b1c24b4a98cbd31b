"""A small TCP balancer: one address in front of several webhooks, of which only ready ones serve.

A webhook URL has one address. Inside a cluster a Service plays this part; in a lab this does. Bytes
are passed on as they are (TLS ends in the webhook), and a connection stays with the instance it was
given to.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

CHUNK = 65536
CONNECT_SECONDS = 1.0
PROBE_SECONDS = 1.0

Probe = Callable[[int], Awaitable[bool]]
"""Tell whether the instance on a loopback port can answer now; never raises."""


@dataclass
class Instance:
    """One webhook: where it listens now, whether it is ready, and how many connections it holds."""

    name: str
    port: int = 0
    ready: bool = False
    leaving: bool = False
    """It was ready and says that it is not any more, as one does that drains: it still answers."""
    connections: int = 0

    def note(self, *, ready: bool) -> None:
        """Take down what a probe found."""
        self.leaving = not ready and (self.ready or self.leaving)
        self.ready = ready

    def lose(self) -> None:
        """Take down that nobody answers there any more."""
        self.ready = self.leaving = False


class Balancer:
    """Listens on the loopback and hands each connection to the ready instance with the fewest."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._instances: dict[str, Instance] = {}
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, port: int) -> int:
        """Listen on this port (0: any that is free) and return it. OSError if it is taken."""
        self._server = await asyncio.start_server(self._accept, self._host, port)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def close(self) -> None:
        """Stop listening and cut the connections that are left."""
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def point(self, name: str, port: int) -> None:
        """Say where an instance listens from now on; it is not ready until a probe says so."""
        instance = self._instances.setdefault(name, Instance(name))
        instance.port = port
        instance.lose()

    def withdraw(self, name: str) -> None:
        """Give an instance no new connections; the ones it has are let finish."""
        if name in self._instances:
            self._instances[name].lose()

    def ready(self) -> list[str]:
        """Name the instances that get connections now."""
        return [instance.name for instance in self._instances.values() if instance.ready]

    def addresses(self) -> list[str]:
        """Give host:port of each instance that gets connections now."""
        ready = (instance for instance in self._instances.values() if instance.ready)
        return [f"{self._host}:{instance.port}" for instance in ready]

    async def probe_once(self, probe: Probe) -> None:
        """Ask every instance whether it is ready and follow the answers."""

        asked = [(each, each.port) for each in self._instances.values() if each.port]
        answers = await asyncio.gather(*(probe(port) for _, port in asked))
        # All at once: when one has come and another goes, there is no instant without either.
        for (instance, port), answer in zip(asked, answers, strict=True):
            if instance.port == port:  # else the answer is about where it was before
                instance.note(ready=answer)

    async def follow(self, probe: Probe, interval: float) -> None:
        """Probe again and again until cancelled."""
        while True:
            await self.probe_once(probe)
            await asyncio.sleep(interval)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:  # pragma: no cover  (a coroutine always runs in a task)
            return
        self._connections.add(task)
        try:
            await self._serve(reader, writer)
        except asyncio.CancelledError:
            # Only close() cancels; swallowing it here keeps asyncio from reporting a lost callback.
            writer.transport.abort()
        finally:
            self._connections.discard(task)
            writer.close()  # not abort: the last bytes may still wait to be sent

    def _in_turn(self) -> list[Instance]:
        """Give who may get a connection, best first.

        Where none is ready, those that leave get it, as a Service does with what terminates: they
        answer as long as they listen.
        """
        known = self._instances.values()
        chosen = [each for each in known if each.ready] or [each for each in known if each.leaving]
        return sorted(chosen, key=lambda each: each.connections)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for instance in self._in_turn():
            instance.connections += 1
            try:
                far_reader, far_writer = await asyncio.wait_for(
                    asyncio.open_connection(self._host, instance.port), CONNECT_SECONDS
                )
            except OSError:  # it died since the last probe; a timeout is an OSError too
                instance.lose()
                instance.connections -= 1
                continue
            try:
                await _join(reader, writer, far_reader, far_writer)
            finally:
                far_writer.close()
                instance.connections -= 1
            return


async def _join(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    far_reader: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
) -> None:
    directions = [
        asyncio.create_task(_pump(reader, far_writer)),
        asyncio.create_task(_pump(far_reader, writer)),
    ]
    try:
        # A reset on either side ends both; a plain end of one direction lets the other finish.
        await asyncio.wait(directions, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for direction in directions:
            direction.cancel()
        await asyncio.gather(*directions, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


async def https_readyz(host: str, port: int) -> bool:
    """Ask GET /readyz over TLS and tell whether the answer is 200."""
    # Any certificate will do: this asks whether the instance answers at all, sends nothing and
    # trusts nothing. The API server, which does trust the answers, checks the certificate itself.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            reader, writer = await asyncio.open_connection(host, port, ssl=context)
            try:
                request = f"GET /readyz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
                writer.write(request.encode())
                status = await reader.readline()
            finally:
                writer.transport.abort()
    except (OSError, asyncio.IncompleteReadError, ValueError):
        return False
    return status.split()[1:2] == [b"200"]

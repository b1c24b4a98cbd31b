"""Which certificate each ready replica of the webhook serves: each is dialled and looked at."""

import asyncio
import logging
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import msgspec

from api import names
from kube.client import Client
from kube.resources import ENDPOINTSLICES

_log = logging.getLogger(__name__)

DIAL_SECONDS: Final = 3.0
AT_ONCE: Final = 16

Address = tuple[str, int]


class Replicas(Protocol):
    """Where the webhook's ready replicas are."""

    async def addresses(self) -> list[Address]:
        """List host and port of each; OSError and ApiError say that nobody knows now."""
        ...


class _Conditions(msgspec.Struct, frozen=True):
    ready: bool | None = None


class _Endpoint(msgspec.Struct, frozen=True):
    addresses: list[str] = []
    conditions: _Conditions = _Conditions()


class _Port(msgspec.Struct, frozen=True):
    port: int | None = None


class _Slice(msgspec.Struct, frozen=True):
    endpoints: list[_Endpoint] | None = None
    ports: list[_Port] | None = None


@dataclass(frozen=True)
class ServiceReplicas:
    """The endpoints of the webhook's Service."""

    client: Client
    namespace: str

    async def addresses(self) -> list[Address]:
        """List the ready endpoints. One that says nothing of itself counts as ready."""
        label = f"kubernetes.io/service-name={names.WEBHOOK_SERVICE}"
        slices = await self.client.list_pages(ENDPOINTSLICES, _Slice, self.namespace, labels=label)
        found = [
            (address, port.port)
            for each in slices.items
            for endpoint in each.endpoints or []
            if endpoint.conditions.ready is not False
            for address in endpoint.addresses
            for port in each.ports or []
            if port.port is not None
        ]
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class ListedReplicas:
    """A file with one `host:port` a line, kept by whoever runs webhooks outside a cluster."""

    path: Path

    async def addresses(self) -> list[Address]:
        """Read the file as it is now; a line that is no address is left out."""
        found: list[Address] = []
        for line in (await asyncio.to_thread(self.path.read_text)).split():
            host, _, port = line.rpartition(":")
            if host and port.isdecimal():
                found.append((host.strip("[]"), int(port)))
            else:
                _log.warning("%s: %r is not host:port", self.path, line)
        return found


async def served(addresses: Sequence[Address]) -> tuple[bytes, ...]:
    """Give the certificate (DER) that each shows; b"" is one that did not answer."""
    room = asyncio.Semaphore(AT_ONCE)

    async def ask(host: str, port: int) -> bytes:
        async with room:
            try:
                return await _dial(host, port)
            except (OSError, asyncio.IncompleteReadError) as error:
                _log.debug("%s:%d shows no certificate: %s", host, port, error)
                return b""

    return tuple(await asyncio.gather(*(ask(*each) for each in addresses)))


async def _dial(host: str, port: int) -> bytes:
    # Whatever it shows is looked at afterwards; nothing is sent, so nothing need be trusted.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    async with asyncio.timeout(DIAL_SECONDS):
        _, writer = await asyncio.open_connection(host, port, ssl=context)
        try:
            tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
            return tls.getpeercert(binary_form=True) or b""
        finally:
            writer.transport.abort()

"""Plain requests to a real API server, and everything that a person would see of its answer."""

import http.client
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from api.jsons import JsonObject
from kube.errors import Status
from tests.support.living import tls_of

DRY_RUN: Final = "?dryRun=All"
JSON: Final = "application/json"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
# The header is a number, an agent, and the text in quotes.
_WARNING: Final = re.compile(r'^299 - "(.*)"$', re.DOTALL)


@dataclass(frozen=True)
class Seen:
    """What came back: the HTTP status, the object or the Status in JSON, and the warnings."""

    code: int
    body: bytes
    warnings: tuple[str, ...]

    @property
    def done(self) -> bool:
        return self.code < 300

    @property
    def object(self) -> JsonObject:
        return msgspec.json.decode(self.body, type=dict)

    @property
    def status(self) -> Status:
        return msgspec.json.decode(self.body, type=Status)

    @property
    def message(self) -> str:
        return self.status.message


@dataclass(frozen=True)
class Asker:
    """The person, who may do everything, over one kept connection."""

    connection: http.client.HTTPSConnection

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        media: str = JSON,
        user: str = "",
        group: str = "",
    ) -> Seen:
        """Ask once, as somebody else if `user` says so, who may be in a group."""
        content = None if body is None else msgspec.json.encode(body)
        somebody = {"Impersonate-User": user, "Impersonate-Group": group}
        head = {"Content-Type": media, **{key: who for key, who in somebody.items() if who}}
        self.connection.request(method, path, content, head)
        reply = self.connection.getresponse()
        told = reply.headers.get_all("Warning") or []
        return Seen(reply.status, reply.read(), tuple(map(_unquoted, told)))


def _unquoted(header: str) -> str:
    # http.client reads headers as Latin-1.
    found = _WARNING.match(header.encode("latin-1").decode())
    assert found, header
    return re.sub(r"\\(.)", r"\1", found[1])


@contextmanager
def asking(kubeconfig: Path) -> Iterator[Asker]:
    server, context = tls_of(kubeconfig)
    with connected(server, context) as connection:
        yield Asker(connection)


@contextmanager
def connected(server: str, context: ssl.SSLContext) -> Iterator[http.client.HTTPSConnection]:
    address = urlsplit(server)
    connection = http.client.HTTPSConnection(
        address.hostname or "", address.port, context=context, timeout=30
    )
    try:
        yield connection
    finally:
        connection.close()

"""The API server, asked in its own words: whole messages, warnings, dry runs, other users."""

import asyncio
import io
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

import aiohttp
import orjson

from api.jsons import Json, JsonObject
from kube.resources import Resource
from tests.support.living import tls_of

# As many as the API server is given at once; it has one webhook to ask for each.
AT_ONCE: Final = 6
PATIENCE: Final = 20  # seconds

_WARNING: Final = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
JSON: Final = "application/json"
JSON_PATCH: Final = "application/json-patch+json"
DRY: Final = {"dryRun": "All"}


@dataclass(frozen=True)
class Answer:
    """What came back: an object or a Status, and the warnings that came with it."""

    status: int
    body: JsonObject
    warnings: tuple[str, ...] = ()

    @property
    def stored(self) -> bool:
        """Whether the API server took it, or would have."""
        return self.status in (200, 201)

    @property
    def message(self) -> str:
        """What a refusal says."""
        return str(self.body.get("message", ""))


@dataclass(frozen=True)
class Ask:
    """One request. Without a content type the body is JSON."""

    method: str
    path: str
    body: Json | bytes = None
    query: Mapping[str, str] = field(default_factory=lambda: DRY)
    content_type: str = JSON
    user: str = ""
    groups: tuple[str, ...] = ("system:masters",)


class Server:
    """An API server with the person's own credentials, who may speak for anybody."""

    def __init__(self, url: str, tls: ssl.SSLContext, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._tls = tls
        self._session = session
        self._room = asyncio.Semaphore(AT_ONCE)

    async def ask(self, ask: Ask) -> Answer:
        """Send the request and read the whole answer, whatever it is."""
        headers = [("Content-Type", ask.content_type)]
        if ask.user:
            headers.append(("Impersonate-User", ask.user))
            headers += [("Impersonate-Group", group) for group in ask.groups]
        data = ask.body if isinstance(ask.body, bytes) else orjson.dumps(ask.body)
        async with (
            self._room,
            self._session.request(
                ask.method,
                self._url + ask.path,
                params=dict(ask.query),
                # As a stream, since a body of megabytes is not to be written in one go.
                data=io.BytesIO(data) if ask.body is not None else None,
                headers=headers,
                ssl=self._tls,
            ) as reply,
        ):
            text = await reply.read()
            written = reply.headers.getall("Warning", [])
        warnings = [
            found[1].replace('\\"', '"') for line in written for found in _WARNING.finditer(line)
        ]
        return Answer(reply.status, _object(text), tuple(warnings))

    async def until(
        self, ask: Ask, what: str, so: Callable[[Answer], bool] = lambda answer: answer.stored
    ) -> Answer:
        """Ask again until the answer is so, as it is once every cache has heard of what it needs.

        Without a condition of its own it is to be taken.
        """
        for _ in range(PATIENCE * 20):
            answer = await self.ask(ask)
            if so(answer):
                return answer
            await asyncio.sleep(0.05)
        raise AssertionError(f"not within {PATIENCE} s: {what}")


@asynccontextmanager
async def speaking(kubeconfig: Path) -> AsyncIterator[Server]:
    """Connections to the API server of a kubeconfig."""
    url, tls = tls_of(kubeconfig)
    limits = aiohttp.ClientTimeout(total=30)
    async with aiohttp.ClientSession(
        timeout=limits, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        yield Server(url, tls, session)


def create(resource: Resource, body: Json | bytes, namespace: str | None = None) -> Ask:
    """Ask what would become of a new object."""
    return Ask("POST", resource.path(namespace), body)


def replace(resource: Resource, name: str, wanted: JsonObject, namespace: str | None = None) -> Ask:
    """Ask what would become of a stored object whose spec, labels and annotations are these."""
    metadata = wanted["metadata"]
    assert isinstance(metadata, dict)
    patch: list[Json] = [{"op": "replace", "path": "/spec", "value": wanted["spec"]}]
    patch += [
        {"op": "add", "path": f"/metadata/{key}", "value": metadata.get(key, {})}
        for key in ("labels", "annotations")
    ]
    return Ask("PATCH", resource.path(namespace, name), patch, content_type=JSON_PATCH)


def _object(text: bytes) -> JsonObject:
    try:
        found = cast("Json", orjson.loads(text))
    except ValueError:
        return {"message": text.decode(errors="replace")}
    return found if isinstance(found, dict) else {"message": str(found)}

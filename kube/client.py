"""The API server's verbs: raw JSON in and out, decoded by msgspec where a type is given.

There is no PUT on purpose: a typed PUT deletes the fields its author did not know. What is repeated
after which failure is said in kube.transport.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Generic, Literal, Self, TypeVar

import msgspec

from api.jsons import Json
from kube.access import Credentials
from kube.clock import Clock
from kube.errors import Gone, Undecodable
from kube.resources import Resource
from kube.tallies import CallTally
from kube.transport import JSON, Call, Patience, Transport

T = TypeVar("T")

PAGE_SIZE: Final = 500

_JSON_PATCH = "application/json-patch+json"
_MERGE_PATCH = "application/merge-patch+json"
_APPLY = "application/apply-patch+yaml"
_METADATA = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@dataclass(frozen=True)
class Scope:
    """Which objects of a kind: one namespace or all, and selectors as the API server reads them.

    With `metadata_only` the server leaves out everything but the metadata.
    """

    namespace: str | None = None
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False

    def query(self) -> dict[str, str]:
        """Return the selectors as query parameters."""
        pairs = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {key: value for key, value in pairs.items() if value}


EVERYTHING: Final = Scope()


@dataclass(frozen=True)
class Listing(Generic[T]):
    """All objects of a scope at one resourceVersion."""

    items: list[T]
    resource_version: str


@dataclass(frozen=True)
class WatchStart:
    """Where a watch begins, how long the server keeps it and how long it may be silent."""

    resource_version: str
    server_seconds: int
    idle_seconds: float


@dataclass(frozen=True)
class Deletion:
    """How an object is to be deleted; what is None is left to the server."""

    uid: str | None = None
    resource_version: str | None = None
    grace_seconds: int | None = None
    propagation: Literal["Background", "Foreground", "Orphan"] | None = None

    def body(self) -> bytes:
        """Return the DeleteOptions object."""
        wanted = {"uid": self.uid, "resourceVersion": self.resource_version}
        preconditions = {key: value for key, value in wanted.items() if value is not None}
        options: dict[str, object] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": preconditions or None,
            "gracePeriodSeconds": self.grace_seconds,
            "propagationPolicy": self.propagation,
        }
        return msgspec.json.encode({k: v for k, v in options.items() if v is not None})


PLAIN_DELETION: Final = Deletion()


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


_page = msgspec.json.Decoder(_Page)


class Client:
    """Talks to one API server; an async context manager around its connections.

    `component` (webhook, workloads, gangs, ...) shows up in the User-Agent and, as
    `penstock-<component>`, in the managed fields of everything written without another manager.
    `instance` stands behind it in the User-Agent, so that an audit log tells two leaders apart.
    Bodies may be bytes, sent as they are, or anything msgspec can encode. Writes return the
    server's answer as raw JSON. Every method raises the types of kube.errors. `tally` counts the
    requests, beside those of other clients that share it.
    """

    def __init__(
        self,
        credentials: Credentials,
        component: str,
        clock: Clock,
        patience: Patience | None = None,
        instance: str = "",
        tally: CallTally | None = None,
    ) -> None:
        self._patience = patience or Patience()
        agent = f"penstock/{component} ({instance})" if instance else f"penstock/{component}"
        self.tally = tally or CallTally()
        self._transport = Transport(credentials, agent, clock, self._patience, self.tally)
        self._manager = f"penstock-{component}"
        self.clock = clock

    @property
    def server(self) -> str:
        """Return the address, for messages."""
        return self._transport.server

    async def __aenter__(self) -> Self:
        """Open the connection pool."""
        self._transport.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close every connection."""
        await self._transport.close()

    async def get(
        self, resource: Resource, kind: type[T], name: str, namespace: str | None = None
    ) -> T:
        """Return one object, decoded into `kind`."""
        path = resource.path(namespace, name)
        body = await self._transport.send(Call("GET", path))
        try:
            return msgspec.json.decode(body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Undecodable(f"GET {path}: {error}") from error

    async def raw_get(self, path: str) -> bytes:
        """Return the body at a path that begins with a slash and is already quoted."""
        return await self._transport.send(Call("GET", path))

    async def probe(self, resource: Resource, namespace: str | None = None) -> None:
        """Return if the kind is served and we may list it; raise what the server says if not."""
        await self._transport.send(Call("GET", resource.path(namespace), {"limit": "1"}))

    async def list_pages(
        self,
        resource: Resource,
        kind: type[T],
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
    ) -> Listing[T]:
        """Return all objects of a scope, decoded into `kind`, read a page at a time."""
        scope = Scope(namespace, labels, fields)
        decoder = msgspec.json.Decoder(kind)
        try:
            return await self.list_with(resource, decoder.decode, scope)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Undecodable(f"{resource.full_name}: {error}") from error

    async def list_with(
        self, resource: Resource, decode: Callable[[msgspec.Raw], T], scope: Scope
    ) -> Listing[T]:
        """Return all objects of a scope, each through `decode` as its page arrives.

        When the continue token gets too old on the way, the list begins anew, a few times.
        """
        for _ in range(self._patience.list_restarts):
            try:
                return await self._list_once(resource, decode, scope)
            except Gone:
                continue
        return await self._list_once(resource, decode, scope)

    async def _list_once(
        self, resource: Resource, decode: Callable[[msgspec.Raw], T], scope: Scope
    ) -> Listing[T]:
        path = resource.path(scope.namespace)
        query = {**scope.query(), "limit": str(PAGE_SIZE)}
        accept = _METADATA_LIST if scope.metadata_only else JSON
        items: list[T] = []
        while True:
            body = await self._transport.send(Call("GET", path, query, accept=accept))
            try:
                page = _page.decode(body)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise Undecodable(f"GET {path}: the answer is no list: {error}") from error
            items += map(decode, page.items or [])
            if not page.metadata.continue_:
                return Listing(items, page.metadata.resource_version)
            query["continue"] = page.metadata.continue_

    def watch(
        self, resource: Resource, scope: Scope, start: WatchStart
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a watch; inside the context the server has agreed and raw lines can be iterated.

        Bookmarks are asked for. Silence beyond the start's limit raises Stalled, a cut connection
        Unreachable; an orderly end just ends the iteration. Nothing is repeated here.
        """
        query = {
            **scope.query(),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": start.resource_version,
            "timeoutSeconds": str(start.server_seconds),
        }
        accept = _METADATA if scope.metadata_only else JSON
        call = Call("GET", resource.path(scope.namespace), query, accept=accept)
        return self._transport.lines(call, start.idle_seconds)

    async def create(
        self,
        resource: Resource,
        body: object,
        namespace: str | None = None,
        *,
        manager: str | None = None,
        strict: bool = False,
        dry_run: bool = False,
    ) -> bytes:
        """Create an object; with `strict`, unknown and repeated fields are refused.

        With `dry_run` it is judged by all, and not stored.
        """
        query = {"fieldManager": manager or self._manager}
        if strict:
            query["fieldValidation"] = "Strict"
        if dry_run:
            query["dryRun"] = "All"
        path = resource.path(namespace)
        return await self._transport.send(Call("POST", path, query, _encode(body)))

    async def create_in(
        self,
        resource: Resource,
        name: str,
        subresource: str,
        body: object,
        namespace: str | None = None,
    ) -> bytes:
        """Create in an object's subresource, as for a ServiceAccount's token."""
        path = resource.path(namespace, name, subresource)
        return await self._transport.send(Call("POST", path, {}, _encode(body)))

    async def json_patch(
        self,
        resource: Resource,
        name: str,
        operations: Sequence[Mapping[str, Json]],
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        manager: str | None = None,
    ) -> bytes:
        """Apply JSON patch operations in one write; a `test` that fails raises Invalid."""
        path = resource.path(namespace, name, subresource)
        return await self._patch(path, _JSON_PATCH, list(operations), manager)

    async def merge_patch(
        self,
        resource: Resource,
        name: str,
        body: object,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        manager: str | None = None,
    ) -> bytes:
        """Merge `body` into the object; a metadata.resourceVersion in it guards the write."""
        path = resource.path(namespace, name, subresource)
        return await self._patch(path, _MERGE_PATCH, body, manager)

    async def apply(
        self,
        resource: Resource,
        name: str,
        body: object,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        manager: str | None = None,
    ) -> bytes:
        """Apply `body` server-side, taking its fields over from whoever had them."""
        path = resource.path(namespace, name, subresource)
        query = {"fieldManager": manager or self._manager, "force": "true"}
        return await self._transport.send(Call("PATCH", path, query, _encode(body), _APPLY))

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        how: Deletion = PLAIN_DELETION,
    ) -> bytes:
        """Delete an object; a precondition that does not hold raises Conflict."""
        path = resource.path(namespace, name)
        return await self._transport.send(Call("DELETE", path, {}, how.body()))

    async def _patch(self, path: str, media: str, body: object, manager: str | None) -> bytes:
        query = {"fieldManager": manager or self._manager}
        return await self._transport.send(Call("PATCH", path, query, _encode(body), media))


def _encode(body: object) -> bytes:
    return body if isinstance(body, bytes) else msgspec.json.encode(body)

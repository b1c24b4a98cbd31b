"""An API server in memory: as much of a real one as makes a difference to who writes through it.

Versions, UIDs, generations, preconditions, finalizers, merge patches, server-side apply of
statuses, selectors by equality, and watches that tell of every change in order. Garbage goes
when the test says so. Nothing is checked against schemas: tests on a real control plane do that.
"""

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar
from urllib.parse import unquote

import jsonpatch
import msgspec
from typing_extensions import override

from api.jsons import Json, JsonObject
from api.objects import timestamp
from kube.access import Credentials
from kube.client import Client
from kube.clock import Clock
from kube.errors import ApiError, Unreachable, from_answer
from kube.transport import Call, Patience, Transport
from tests.support.patchapi import merged_with
from tests.support.talking import NOBODY

T = TypeVar("T")

_MERGE: Final = "application/merge-patch+json"
_APPLY: Final = "application/apply-patch+yaml"
_JSON_PATCH: Final = "application/json-patch+json"


@dataclass(frozen=True)
class Target:
    """What a path names."""

    kind: str  # as apis/grove.io/v1alpha1/podcliques
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @classmethod
    def of(cls, path: str) -> "Target":
        parts = [unquote(part) for part in path.partition("?")[0].strip("/").split("/")]
        start = 2 if parts[0] == "api" else 3
        base, rest, namespace = parts[:start], parts[start:], ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        plural, name, subresource = (*rest, "", "")[:3]
        return cls("/".join((*base, plural)), namespace, name, subresource)


def part(thing: JsonObject, name: str) -> JsonObject:
    """Give a part of an object that is an object, made if it is not there."""
    found = thing.setdefault(name, {})
    assert isinstance(found, dict)
    return found


@dataclass
class Memory:
    """All objects, by kind, namespace and name, and what happened to them."""

    clock: Clock
    objects: dict[tuple[str, str, str], JsonObject] = field(default_factory=dict)
    log: list[tuple[int, str, str, JsonObject]] = field(default_factory=list)
    version: int = 100
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _applied: dict[tuple[str, str], JsonObject] = field(default_factory=dict)

    def of_kind(self, plural: str) -> list[JsonObject]:
        """List the objects of a kind, by name."""
        return [o for key, o in sorted(self.objects.items()) if key[0].endswith(f"/{plural}")]

    def answer(self, call: Call) -> JsonObject:
        """Carry out a request; raises what a real server would refuse."""
        target = Target.of(call.path)
        body: Json = json.loads(call.body) if call.body else {}
        match call.method:
            case "GET":
                return self._get(target) if target.name else self._list(target, call)
            case "POST":
                assert isinstance(body, dict)
                return self._create(target, body)
            case "PATCH":
                return self._patch(target, call, body)
            case "DELETE":
                assert isinstance(body, dict)
                return self._delete(target, body)
        raise AssertionError(call.method)

    def left(self) -> list[str]:
        """Name all that is there, but for Events, which are only said of things."""
        return [f"{kind}/{name}" for kind, _, name in self.objects if not kind.endswith("/events")]

    def collect_garbage(self) -> bool:
        """Delete what has lost all its owners; tell whether there was any."""
        alive = {str(part(thing, "metadata")["uid"]) for thing in self.objects.values()}
        for key, thing in list(self.objects.items()):
            owners = part(thing, "metadata").get("ownerReferences")
            uids = (
                [str(o["uid"]) for o in owners if isinstance(o, dict)]
                if isinstance(owners, list)
                else []
            )
            leaving = "deletionTimestamp" in part(thing, "metadata")
            if uids and not leaving and not any(uid in alive for uid in uids):
                self._delete(Target(*key), {})
                return True
        return False

    def _get(self, target: Target) -> JsonObject:
        found = self.objects.get((target.kind, target.namespace, target.name))
        if found is None:
            raise refusal(404, "NotFound", f'{target.kind} "{target.name}" not found')
        return found

    def _list(self, target: Target, call: Call) -> JsonObject:
        items: list[Json] = [
            thing
            for (kind, namespace, _), thing in sorted(self.objects.items())
            if kind == target.kind
            and target.namespace in {"", namespace}
            and selected(thing, call.query.get("labelSelector", ""))
        ]
        return {"metadata": {"resourceVersion": str(self.version)}, "items": items}

    def _create(self, target: Target, body: JsonObject) -> JsonObject:
        meta = part(body, "metadata")
        if target.subresource:
            raise AssertionError(f"nothing is created in {target.subresource} here")
        key = target.kind, target.namespace, str(meta["name"])
        if key in self.objects:
            raise refusal(409, "AlreadyExists", f'{target.kind} "{key[2]}" already exists')
        meta |= {
            "uid": f"{target.kind.rpartition('/')[2]}-{self.version + 1}",
            "namespace": target.namespace,
            "generation": 1,
            "creationTimestamp": timestamp(self.clock.now()),
        }
        body["status"] = {"phase": "Pending"} if target.kind == "api/v1/pods" else {}
        return self._store(key, body, "ADDED")

    def _patch(self, target: Target, call: Call, body: Json) -> JsonObject:
        found = self._get(target)
        if call.content_type == _JSON_PATCH:
            try:
                fresh: JsonObject = jsonpatch.apply_patch(found, json.dumps(body))
            except jsonpatch.JsonPatchTestFailed as error:
                raise refusal(422, "Invalid", str(error)) from error
            return self._changed(target, found, fresh)
        assert isinstance(body, dict)
        self._guard(found, part(body, "metadata"))
        if call.content_type == _APPLY:
            assert target.subresource == "status", "only statuses are applied here"
            uid, manager = str(part(found, "metadata")["uid"]), call.query["fieldManager"]
            before = self._applied.get((uid, manager), {})
            told = part(body, "status")
            self._applied[uid, manager] = clone(told)
            status = applied(part(clone(found), "status"), before, told)
            return self._changed(target, found, {**found, "status": status})
        assert call.content_type == _MERGE, call.content_type
        if target.subresource == "status":
            body = {"status": part(body, "status")}
        else:
            body = {key: value for key, value in body.items() if key != "status"}
        return self._changed(target, found, merged_with(found, body))

    def _changed(self, target: Target, found: JsonObject, fresh: JsonObject) -> JsonObject:
        key = target.kind, target.namespace, target.name
        meta = {**part(fresh, "metadata")}
        fresh = {**fresh, "metadata": meta}
        if fresh.get("spec") != found.get("spec"):
            meta["generation"] = int(str(meta["generation"])) + 1
        meta["resourceVersion"] = part(found, "metadata")["resourceVersion"]
        if fresh == found:
            return found
        if "deletionTimestamp" in meta and not meta.get("finalizers"):
            self._remove(key, fresh)
            return fresh  # in the version it had, as a real server answers
        return self._store(key, fresh, "MODIFIED")

    def _delete(self, target: Target, options: JsonObject) -> JsonObject:
        found = self._get(target)
        self._guard(found, part(options, "preconditions"))
        key = target.kind, target.namespace, target.name
        meta = part(found, "metadata")
        spec = part(found, "spec")
        lives = target.kind == "api/v1/pods" and bool(spec.get("nodeName"))
        if not meta.get("finalizers") and (not lives or options.get("gracePeriodSeconds") == 0):
            return self._remove(key, found)
        if "deletionTimestamp" in meta:
            return found
        dying = {**meta, "deletionTimestamp": timestamp(self.clock.now())}
        return self._store(key, {**found, "metadata": dying}, "MODIFIED")

    def _guard(self, found: JsonObject, wanted: JsonObject) -> None:
        meta = part(found, "metadata")
        for name in ("uid", "resourceVersion"):
            if wanted.get(name) not in {None, "", meta[name]}:
                raise refusal(409, "Conflict", f"{name} is {meta[name]}, not {wanted[name]}")

    def _store(self, key: tuple[str, str, str], thing: JsonObject, what: str) -> JsonObject:
        self.version += 1
        thing = clone(thing)
        part(thing, "metadata")["resourceVersion"] = str(self.version)
        self.objects[key] = thing
        self._tell(key, what, thing)
        return thing

    def _remove(self, key: tuple[str, str, str], thing: JsonObject) -> JsonObject:
        self.version += 1
        thing = clone(thing)
        part(thing, "metadata")["resourceVersion"] = str(self.version)
        del self.objects[key]
        self._tell(key, "DELETED", thing)
        return thing

    def _tell(self, key: tuple[str, str, str], what: str, thing: JsonObject) -> None:
        self.log.append((self.version, key[0], what, thing))
        self.changed.set()
        self.changed = asyncio.Event()

    async def lines(self, call: Call) -> AsyncIterator[bytes]:
        """Tell of every change of a kind since a version, for ever."""
        target, selector = Target.of(call.path), call.query.get("labelSelector", "")
        since, place = int(call.query["resourceVersion"]), 0
        while True:
            changed = self.changed
            while place < len(self.log):
                version, kind, what, thing = self.log[place]
                place += 1
                if version > since and kind == target.kind and selected(thing, selector):
                    yield msgspec.json.encode({"type": what, "object": thing})
            await changed.wait()


def clone(thing: T) -> T:
    """Copy what is JSON all through; much faster than any copy of objects can be."""
    copied: T = msgspec.json.decode(msgspec.json.encode(thing))
    return copied


def applied(status: JsonObject, before: JsonObject, told: JsonObject) -> JsonObject:
    """Give a status after one manager has applied its part of it anew."""
    kept = {key: value for key, value in status.items() if key not in before or key in told}
    for key, value in told.items():
        if key == "conditions" and isinstance(value, list):
            kept[key] = _conditions(kept.get(key), before.get(key), value)
        else:
            kept[key] = clone(value)
    if "conditions" in before and "conditions" not in told:
        kept["conditions"] = _conditions(status.get("conditions"), before["conditions"], [])
    return kept


def _conditions(there: Json, before: Json, told: list[Json]) -> Json:
    mine = {str(c["type"]) for each in (before, told) if isinstance(each, list)
            for c in each if isinstance(c, dict)}  # fmt: skip
    others = [
        condition
        for condition in (there if isinstance(there, list) else [])
        if isinstance(condition, dict) and condition["type"] not in mine
    ]
    return [*others, *clone(told)]


def selected(thing: JsonObject, selector: str) -> bool:
    """Tell whether an object has all the labels of a selector."""
    labels = part(copy.copy(part(thing, "metadata")), "labels")
    pairs = (pair.partition("=") for pair in selector.split(",") if pair)
    return all(labels.get(key) == value for key, _, value in pairs)


def refusal(code: int, reason: str, message: str) -> ApiError:
    """Build the error as the client would from an answer."""
    body = {"kind": "Status", "reason": reason, "message": message, "code": code}
    return from_answer(code, msgspec.json.encode(body))


@dataclass
class Wire:
    """One client's way to the memory: what it asked, and what befalls it."""

    memory: Memory
    harm: Callable[[Call], ApiError | None] = field(default=lambda _: None)
    lose: Callable[[Call], bool] = field(default=lambda _: False)
    witness: Callable[[Call], None] = field(default=lambda _: None)
    calls: list[Call] = field(default_factory=list)

    def writes(self, method: str, plural: str) -> Iterator[Target]:
        """List what was written of a kind."""
        for call in self.calls:
            target = Target.of(call.path)
            if call.method == method and target.kind.endswith(f"/{plural}"):
                yield target


class MemoryTransport(Transport):
    """Sends calls into the memory instead of over a network."""

    def __init__(self, wire: Wire, clock: Clock) -> None:
        super().__init__(Credentials("memory:", None, NOBODY), "tests", clock, Patience())
        self._wire = wire

    @override
    def open(self) -> None:
        """Need nothing."""

    @override
    async def send(self, call: Call) -> bytes:
        """Carry the call out, unless something befalls it."""
        await asyncio.sleep(0)
        error = self._wire.harm(call)
        if error is not None:
            raise error
        if call.method != "GET":
            self._wire.calls.append(call)
            self._wire.witness(call)
        body = msgspec.json.encode(self._wire.memory.answer(call))
        await asyncio.sleep(0)
        if self._wire.lose(call):
            raise Unreachable("the answer was lost")
        return body

    @override
    @asynccontextmanager
    async def lines(self, call: Call, idle_seconds: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch."""
        error = self._wire.harm(call)
        if error is not None:
            raise error
        yield self._lines(call)

    async def _lines(self, call: Call) -> AsyncIterator[bytes]:
        async for line in self._wire.memory.lines(call):
            if self._wire.lose(call):
                raise Unreachable("the watch was cut")
            yield line


class MemoryClient(Client):
    """The real client, with the memory at its other end."""

    def __init__(self, wire: Wire, clock: Clock) -> None:
        super().__init__(Credentials("memory:", None, NOBODY), "workloads", clock)
        self._transport = MemoryTransport(wire, clock)

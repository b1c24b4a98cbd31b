"""Carries steps out, one request each; what the API server answers goes into the caches at once."""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias, TypeVar

import msgspec

from api import names
from api.jsons import JsonObject
from api.streams import Meta
from controller.voicing import Speaker, Tell, Voice
from controller.workloads.owning import controller_of
from controller.workloads.stepping import Again, Change, Create, Remove, Say, Step
from controller.workloads.story import troubles
from controller.workloads.views import Trouble
from kube.client import Client, Deletion
from kube.clock import Clock
from kube.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound
from kube.resources import EVENTS, SECRETS, Resource

# How long a deletion may take to show in a cache before it is asked for again.
_ECHO: Final = 10.0
_REMEMBERED: Final = 16384
_QUOTA: Final = "exceeded quota"
T = TypeVar("T")

Ident: TypeAlias = tuple[str, str, str]  # what is done, to which kind, by name


class _Bare(msgspec.Struct, frozen=True):
    metadata: Meta


_bare = msgspec.json.Decoder(_Bare)


class Actor:
    """Makes the requests; `observe` is told the API server's answer to each.

    Events name `instance` as who reports them.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        observe: Callable[[Resource, bytes], None],
        instance: str,
    ) -> None:
        self._client = client
        self._clock = clock
        self._observe = observe
        speaker = Speaker("workloads", instance)
        self.voice = Voice(partial(client.create, EVENTS), clock, speaker)
        self._removed: OrderedDict[str, float] = OrderedDict()
        self._released: OrderedDict[str, float] = OrderedDict()

    def is_done(self, step: Step) -> bool:
        """Tell whether a step was taken so lately that the caches may not show it yet."""
        match step:
            case Remove(uid=uid):
                return self._clock.monotonic() < self._removed.get(uid, 0.0)
            case Change(uid=uid):
                return self._clock.monotonic() < self._released.get(uid, 0.0)
            case Tell():
                return self.voice.has_told(step)
            case _:
                return False

    async def take(self, step: Step, namespace: str) -> None:
        """Take one step; raises what the API server refuses, but not what others did before us."""
        match step:
            case Create(resource, body):
                await self._create(resource, body, namespace)
            case Change():
                await self._change(step, namespace)
            case Remove():
                await self._remove(step, namespace)
            case Say():
                await self._say(step, namespace)
            case Tell():
                self.voice.tell(step, namespace)
            case Again():
                pass

    async def _create(self, resource: Resource, body: JsonObject, namespace: str) -> None:
        try:
            answer = await self._client.create(resource, body, namespace)
        except AlreadyExists:
            if resource is SECRETS:
                return  # nothing of ours can read one
            # Ours, and the cache does not show it yet, or a stranger's, which only people can mend.
            name = name_of(body)
            answer = await self._client.raw_get(resource.path(namespace, name))
            owner = controller_of(_bare.decode(answer).metadata)
            if owner is None or owner.uid != _owner_uid(body):
                raise
        self._observe(resource, answer)

    async def _change(self, step: Change, namespace: str) -> None:
        guard: JsonObject = {"uid": step.uid}
        if step.version:
            guard["resourceVersion"] = step.version
        told = step.patch.get("metadata")
        body = {**step.patch, "metadata": {**(told if isinstance(told, dict) else {}), **guard}}
        try:
            answer = await self._client.merge_patch(step.resource, step.name, body, namespace)
        except (NotFound, Conflict):
            return  # somebody was faster, and the next look sees what they did
        if isinstance(told, dict) and "finalizers" in told:
            self._note_release(step.uid, _bare.decode(answer).metadata)
        self._observe(step.resource, answer)

    def _note_release(self, uid: str, left: Meta) -> None:
        # The answer is no news to a cache, as it has the version of the state before.
        if left.deletion_timestamp is not None and not left.finalizers:
            _remember(self._released, uid, self._clock.monotonic() + _ECHO)

    async def _remove(self, step: Remove, namespace: str) -> None:
        how = Deletion(uid=step.uid or None, resource_version=step.version or None)
        try:
            await self._client.delete(step.resource, step.name, namespace, how)
        except (NotFound, Conflict):
            return  # gone already, changed meanwhile, or a namesake that is not ours to delete
        _remember(self._removed, step.uid, self._clock.monotonic() + _ECHO)

    async def _say(self, step: Say, namespace: str) -> None:
        body: JsonObject = {
            "apiVersion": step.resource.api_version,
            "kind": step.resource.kind,
            # With the UID, what is said of one that is gone cannot land on its namesake.
            "metadata": {"name": step.name, "namespace": namespace, "uid": step.uid},
            "status": step.status,
        }
        try:
            answer = await self._client.apply(
                step.resource, step.name, body, namespace,
                subresource="status", manager=names.WORKLOADS_MANAGER,
            )  # fmt: skip
        except (NotFound, Conflict):
            return
        self._observe(step.resource, answer)


def ident(step: Step) -> Ident:
    """Tell one step from another, whatever else is in it."""
    match step:
        case Create(resource, body):
            return "create", resource.full_name, name_of(body)
        case Again():
            return "again", "", ""
        case _:
            return type(step).__name__.lower(), step.resource.full_name, step.name


def trouble(step: Step, error: ApiError) -> Trouble:
    """Word what the API server refused."""
    over = isinstance(error, Forbidden) and _QUOTA in error.message
    return troubles.trouble(step, error.message, over_quota=over)


def name_of(body: JsonObject) -> str:
    """Give the name of an object that is to be made."""
    metadata = body.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def _owner_uid(body: JsonObject) -> str:
    metadata = body.get("metadata")
    references = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    first = references[0] if isinstance(references, list) and references else None
    return str(first.get("uid", "")) if isinstance(first, dict) else ""


def _remember(memory: OrderedDict[str, T], key: str, value: T) -> None:
    memory[key] = value
    if len(memory) > _REMEMBERED:
        memory.popitem(last=False)

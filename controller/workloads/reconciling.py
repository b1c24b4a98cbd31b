"""Keeps sets as they should be: looks at one, decides purely, acts thinly, and looks again."""

import logging
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import groupby
from typing import Generic, TypeVar

from pydantic import ValidationError

from api import names
from api.jsons import JsonObject
from api.models import Condition
from api.podcliqueset import MAX_PODS, PodCliqueSetSpec, PodCliqueSetStatus
from api.streams import Custom, Meta, Pod
from controller import pace
from controller.podgang import read_gang
from controller.workloads.steps import (
    Announce,
    CreateGang,
    CreatePod,
    DeleteGang,
    DeletePod,
    ReferToPods,
    Report,
    SetView,
    Step,
    steps,
)
from kube.cache import Added, Cache, Change, Deleted
from kube.client import Client, Deletion
from kube.clock import Clock
from kube.errors import AlreadyExists, Conflict, NotFound
from kube.objects import Key
from kube.resources import PODCLIQUESETS, PODGANGS, PODS, Resource
from kube.workqueue import Workqueue

_log = logging.getLogger(__name__)

T = TypeVar("T", Pod, Custom)

AT_ONCE = 16  # creations under way for one set


def set_of(meta: Meta) -> str:
    """Give the UID of the set that controls an object, or "" if none does.

    The kind counts too: guards let nobody else write it, while others may hold any UID.
    """
    kind = PODCLIQUESETS.kind
    found = (o.uid for o in meta.owner_references if o.controller and o.kind == kind)
    return next(found, "")


class Owned(Generic[T]):
    """Objects by the UID of the set that controls them; follows a cache.

    `wake` is called with the namespace and name of the owner for every change.
    """

    def __init__(self, cache: Cache[T], wake: Callable[[Key], None]) -> None:
        self._by_owner: dict[str, dict[str, T]] = defaultdict(dict)
        self._wake = wake
        cache.subscribe(self._on_change)

    def of(self, uid: str) -> dict[str, T]:
        """Give what this owner controls, by name."""
        return dict(self._by_owner.get(uid, {}))

    def _on_change(self, change: Change[T]) -> None:
        if not isinstance(change, Added):
            self._forget(change.old)
        if not isinstance(change, Deleted) and (uid := set_of(change.new.metadata)):
            self._by_owner[uid][change.new.metadata.name] = change.new
        last = change.old if isinstance(change, Deleted) else change.new
        for owner in last.metadata.owner_references:
            if owner.controller:
                self._wake((last.metadata.namespace, owner.name))

    def _forget(self, thing: T) -> None:
        # By what it was: its owner may have changed, or let go of it.
        uid, name = set_of(thing.metadata), thing.metadata.name
        self._by_owner.get(uid, {}).pop(name, None)
        if not self._by_owner.get(uid, {"": thing}):
            del self._by_owner[uid]


class Reconciler:
    """Does for one set what is to be done, each time its key comes up in the queue."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        caches: tuple[Cache[Custom], Cache[Custom], Cache[Pod]],
        may_write: Callable[[], bool],
    ) -> None:
        self.queue: Workqueue[Key] = Workqueue(clock)
        self._client = client
        self._clock = clock
        self._may_write = may_write
        self._gone: dict[Key, set[str]] = {}
        self._sets, self._gang_cache, self._pod_cache = caches
        self._sets.subscribe(self._on_set)
        self._gangs = Owned(self._gang_cache, self.queue.add)
        self._pods = Owned(self._pod_cache, self.queue.add)

    async def reconcile(self, key: Key) -> None:
        """Bring one set closer to what it wants; comes back by itself while there is more to do."""
        await self._clear(key)
        view = self._view(key)
        if view is None:
            return
        todo = steps(view, self._clock.now())
        # Steps of one kind are independent of each other; kinds follow one another.
        for kind, batch in groupby(todo, key=type):
            if not self._may_write():
                return
            failures = await pace.all_of([partial(self._take, view, s) for s in batch], AT_ONCE)
            if failures:
                wait = self.queue.retry(key)
                _log.warning(
                    "%s/%s: %s failed %d times, trying again in %.2f s: %s",
                    *key, kind.__name__, len(failures), wait, failures[0],
                )  # fmt: skip
                return

    async def _clear(self, key: Key) -> None:
        """Delete what sets that are gone have left. Garbage collection would, in its own time.

        Only in the state it was last seen: what has been orphaned meanwhile is not ours any more.
        """
        for uid in self._gone.pop(key, ()):
            if not self._may_write():
                return
            left = [
                *((PODGANGS, thing.metadata) for thing in self._gangs.of(uid).values()),
                *((PODS, thing.metadata) for thing in self._pods.of(uid).values()),
            ]
            for error in await pace.all_of([partial(self._clear_one, *o) for o in left], AT_ONCE):
                _log.info("%s/%s: left to garbage collection: %s", *key, error)

    async def _clear_one(self, resource: Resource, meta: Meta) -> None:
        if meta.deletion_timestamp is None:
            how = Deletion(uid=meta.uid, resource_version=meta.resource_version)
            await self._client.delete(resource, meta.name, meta.namespace, how)

    def _on_set(self, change: Change[Custom]) -> None:
        meta = (change.old if isinstance(change, Deleted) else change.new).metadata
        key = (meta.namespace, meta.name)
        if isinstance(change, Deleted):
            self._gone.setdefault(key, set()).add(meta.uid)
        self.queue.add(key)

    def _view(self, key: Key) -> SetView | None:
        found = self._sets.get(*key)
        if found is None:
            return None
        try:
            spec = PodCliqueSetSpec.model_validate_json(bytes(found.spec))
            status = PodCliqueSetStatus.model_validate_json(bytes(found.status))
        except ValidationError as error:
            # Admission refuses such a set; one stored before it was there is left as it is.
            _log.error("%s/%s is not a valid set and is left alone: %s", *key, error)
            return None
        if spec.pods > MAX_PODS:
            # The definition refuses it; this one was stored before the definition was there.
            _log.error("%s/%s asks for %d pods and is left alone", *key, spec.pods)
            return None
        owned = self._gangs.of(found.metadata.uid)
        gangs = {name: gang for name, raw in owned.items() if (gang := read_gang(raw))}
        return SetView(found.metadata, spec, status, gangs, self._pods.of(found.metadata.uid))

    async def _take(self, view: SetView, step: Step) -> None:
        namespace = view.metadata.namespace
        match step:
            case CreateGang(name, body):
                await self._create(PODGANGS, name, body, view)
            case CreatePod(name, body):
                await self._create(PODS, name, body, view)
            case DeleteGang(name, uid):
                await self._delete(PODGANGS, name, uid, namespace)
            case DeletePod(name, uid):
                await self._delete(PODS, name, uid, namespace)
            case ReferToPods(name, version, groups):
                body = {"metadata": {"resourceVersion": version}, "spec": {"podgroups": groups}}
                answer = await self._client.merge_patch(PODGANGS, name, body, namespace)
                self._gang_cache.observe(answer)
            case Announce(name, condition):
                await self._announce(view, name, condition)
            case Report(status):
                await self._report(view, status)

    async def _create(self, resource: Resource, name: str, body: JsonObject, view: SetView) -> None:
        namespace = view.metadata.namespace
        try:
            answer = await self._client.create(resource, body, namespace)
        except AlreadyExists:
            # Ours, and the cache does not show it yet, or a stranger's, which only people can mend.
            there = await self._client.get(resource, Custom, name, namespace)
            if set_of(there.metadata) != view.metadata.uid:
                raise
            return
        if resource is PODS:
            self._pod_cache.observe(answer)
        else:
            self._gang_cache.observe(answer)

    async def _delete(self, resource: Resource, name: str, uid: str, namespace: str) -> None:
        try:
            await self._client.delete(resource, name, namespace, Deletion(uid=uid))
        except (NotFound, Conflict):
            return  # gone already, or a namesake that is not ours to delete

    async def _announce(self, view: SetView, name: str, condition: Condition) -> None:
        namespace, uid = view.metadata.namespace, view.gangs[name].metadata.uid
        body: JsonObject = {
            "apiVersion": PODGANGS.api_version,
            "kind": PODGANGS.kind,
            # With the UID, what is said of a gang that is gone cannot land on its namesake.
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "status": {"conditions": [condition.model_dump(mode="json", by_alias=True)]},
        }
        answer = await self._client.apply(
            PODGANGS, name, body, namespace, subresource="status", manager=names.WORKLOADS_MANAGER
        )
        self._gang_cache.observe(answer)

    async def _report(self, view: SetView, status: PodCliqueSetStatus) -> None:
        meta = view.metadata
        body: JsonObject = {
            "apiVersion": PODCLIQUESETS.api_version,
            "kind": PODCLIQUESETS.kind,
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "status": status.model_dump(
                mode="json", by_alias=True, exclude={"conditions"}, exclude_none=True
            ),
        }
        answer = await self._client.apply(
            PODCLIQUESETS, meta.name, body, meta.namespace, subresource="status"
        )
        self._sets.observe(answer)

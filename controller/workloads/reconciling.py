"""Keeps sets as they should be: looks at one, decides purely, acts thinly, and looks again."""

import logging
from collections import defaultdict
from collections.abc import Callable
from itertools import groupby
from typing import Generic, TypeVar

from pydantic import ValidationError

from api import names
from api.jsons import JsonObject
from api.models import Condition
from api.podcliqueset import PodCliqueSetSpec, PodCliqueSetStatus
from api.podgang import PodGangSpec, PodGangStatus
from api.streams import Custom, Pod
from controller import pace
from controller.workloads.expansion import GANG_API, SET_API
from controller.workloads.steps import (
    Announce,
    CreateGang,
    CreatePod,
    DeleteGang,
    DeletePod,
    Gang,
    ReferToPods,
    Report,
    SetView,
    Step,
    steps,
)
from kube.cache import Cache, Change, Deleted
from kube.client import Client, Deletion
from kube.clock import Clock
from kube.errors import AlreadyExists, Conflict, NotFound
from kube.objects import Key
from kube.resources import PODCLIQUESETS, PODGANGS, PODS, Resource
from kube.workqueue import Workqueue

_log = logging.getLogger(__name__)

T = TypeVar("T", Pod, Custom)

AT_ONCE = 16  # creations under way for one set


class Owned(Generic[T]):
    """Objects by the UID of what controls them; follows a cache.

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
        thing = change.old if isinstance(change, Deleted) else change.new
        meta = thing.metadata
        uid = meta.controller_uid
        if not uid:
            return
        if isinstance(change, Deleted):
            self._by_owner[uid].pop(meta.name, None)
            if not self._by_owner[uid]:
                del self._by_owner[uid]
        else:
            self._by_owner[uid][meta.name] = change.new
        owner = next(owner for owner in meta.owner_references if owner.controller)
        self._wake((meta.namespace, owner.name))


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
        self._sets, self._gang_cache, self._pod_cache = caches
        self._sets.subscribe(self._on_set)
        self._gangs = Owned(self._gang_cache, self.queue.add)
        self._pods = Owned(self._pod_cache, self.queue.add)

    async def reconcile(self, key: Key) -> None:
        """Bring one set closer to what it wants; comes back by itself while there is more to do."""
        view = self._view(key)
        if view is None or not self._may_write():
            return
        todo = steps(view, self._clock.now())
        # Steps of one kind are independent of each other; kinds follow one another.
        for kind, batch in groupby(todo, key=type):
            failures = await pace.all_of((self._take(view, step) for step in batch), AT_ONCE)
            if failures:
                wait = self.queue.retry(key)
                _log.warning(
                    "%s/%s: %s failed %d times, trying again in %.2f s: %s",
                    *key, kind.__name__, len(failures), wait, failures[0],
                )  # fmt: skip
                return

    def _on_set(self, change: Change[Custom]) -> None:
        thing = change.old if isinstance(change, Deleted) else change.new
        self.queue.add((thing.metadata.namespace, thing.metadata.name))

    def _view(self, key: Key) -> SetView | None:
        found = self._sets.get(*key)
        if found is None:
            return None
        try:
            spec = PodCliqueSetSpec.model_validate_json(bytes(found.spec))
            status = PodCliqueSetStatus.model_validate_json(bytes(found.status))
            gangs = {
                name: Gang(
                    gang.metadata,
                    PodGangSpec.model_validate_json(bytes(gang.spec)),
                    PodGangStatus.model_validate_json(bytes(gang.status)),
                )
                for name, gang in self._gangs.of(found.metadata.uid).items()
            }
        except ValidationError as error:
            # Admission refuses such a set; one stored before it was there is left as it is.
            _log.error("%s/%s is not a valid set and is left alone: %s", *key, error)
            return None
        pods = self._pods.of(found.metadata.uid)
        return SetView(found.metadata, spec, status, gangs, pods)

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
                await self._announce(namespace, name, condition)
            case Report(status):
                await self._report(view, status)

    async def _create(self, resource: Resource, name: str, body: JsonObject, view: SetView) -> None:
        namespace = view.metadata.namespace
        try:
            answer = await self._client.create(resource, body, namespace)
        except AlreadyExists:
            # Ours, and the cache does not show it yet, or a stranger's, which only people can mend.
            there = await self._client.get(resource, Custom, name, namespace)
            if there.metadata.controller_uid != view.metadata.uid:
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

    async def _announce(self, namespace: str, name: str, condition: Condition) -> None:
        body: JsonObject = {
            "apiVersion": GANG_API,
            "kind": "PodGang",
            "metadata": {"name": name, "namespace": namespace},
            "status": {"conditions": [condition.model_dump(mode="json", by_alias=True)]},
        }
        answer = await self._client.apply(
            PODGANGS, name, body, namespace, subresource="status", manager=names.WORKLOADS_MANAGER
        )
        self._gang_cache.observe(answer)

    async def _report(self, view: SetView, status: PodCliqueSetStatus) -> None:
        body: JsonObject = {
            "apiVersion": SET_API,
            "kind": "PodCliqueSet",
            "metadata": {"name": view.metadata.name, "namespace": view.metadata.namespace},
            "status": status.model_dump(mode="json", by_alias=True, exclude={"conditions"}),
        }
        answer = await self._client.apply(
            PODCLIQUESETS, view.metadata.name, body, view.metadata.namespace, subresource="status"
        )
        self._sets.observe(answer)

"""Deletes lifted pods that have no slot any more, or whose gang was rolled back.

A Job counts pods that go before they are done as failures and gives up after a few. What befalls
a gang is no fault of its pods, so those of a Job say of themselves that they were disrupted, in
Kubernetes' own words; a Job whose podFailurePolicy ignores that does not count them.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from api import names
from api.jsons import JsonObject
from api.objects import timestamp
from api.reservation import State
from api.streams import Condition, Pod
from controller import pace
from controller.gangs import pod_conditions
from controller.gangs.views import GangView, Member
from kube.cache import Cache
from kube.client import Client, Deletion
from kube.clock import Clock
from kube.errors import Conflict, NotFound
from kube.resources import PODS

_log = logging.getLogger(__name__)

AT_ONCE: Final = 16


class Evictor:
    """Takes pods back."""

    def __init__(
        self, client: Client, clock: Clock, pods: Cache[Pod], fenced: Callable[[], int | None]
    ) -> None:
        self._client = client
        self._clock = clock
        self._pods = pods
        self._fenced = fenced

    async def evict(self, view: GangView, members: tuple[Member, ...]) -> None:
        """Delete these; raises the first refusal, after all others."""
        rolled_back = view.reservation is not None and view.reservation.state is State.ROLLED_BACK
        requests = [partial(self._evict, m.pod, bound=rolled_back) for m in members]
        for error in await pace.all_of(requests, AT_ONCE):
            if not isinstance(error, NotFound | Conflict):
                raise error

    async def _evict(self, pod: Pod, *, bound: bool) -> None:
        """Delete a pod; unless it is to go though it be `bound`, only as it was last seen."""
        if self._fenced() is None:
            return
        seen = await self._marked(pod) if _is_of_job(pod) and not _says(pod) else pod
        meta = seen.metadata
        if not bound and seen.spec.node_name:
            return  # meanwhile
        _log.info("%s/%s: taken back", meta.namespace, meta.name)
        how = Deletion(uid=meta.uid, resource_version=None if bound else meta.resource_version)
        await self._client.delete(PODS, meta.name, meta.namespace, how)

    async def _marked(self, pod: Pod) -> Pod:
        """Have the pod say why it goes; gives it as it is then."""
        condition: JsonObject = {
            "type": names.DISRUPTION_TARGET,
            "status": "True",
            "reason": names.REASON_TAKEN_BACK,
            "message": "its gang could not start, or not where this pod was to be",
            "lastTransitionTime": timestamp(self._clock.now()),
        }
        answer = await pod_conditions.say(self._client, pod, condition, names.DISRUPTION_MANAGER)
        self._pods.observe(answer)
        return msgspec.json.decode(answer, type=Pod)


def _is_of_job(pod: Pod) -> bool:
    return any(owner.controller and owner.kind == "Job" for owner in pod.metadata.owner_references)


def _says(pod: Pod) -> bool:
    said: tuple[Condition, ...] = pod.status.conditions
    return any(c.type == names.DISRUPTION_TARGET and c.status == "True" for c in said)

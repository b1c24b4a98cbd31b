"""Tells pods that ask for it when their whole gang is ready, by their readiness gate.

A gang is ready once every clique has its minimum with all containers ready. That is latched: a pod
that is made later, in place of another or at scale-out, need not wait for the whole again. What
containers do counts, and never what readiness gates say, or the gate would wait for itself.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Final

from api import names
from api.jsons import JsonObject
from api.objects import condition_of, timestamp
from api.streams import Pod, PodClique
from controller import pace
from controller.gangs import pod_conditions
from controller.gangs.views import GangView
from kube.cache import Cache
from kube.client import Client
from kube.clock import Clock
from kube.errors import Conflict, NotFound

AT_ONCE: Final = 16


def due(view: GangView) -> list[Pod]:
    """List the pods that are to be told that their gang is ready, in the order they start in."""
    waiting = [member for member in view.members if waits(member.pod)]
    if not waiting or not is_ready(view):
        return []
    depths = {name: depth(view.cliques, name) for name in {m.slot[0] for m in waiting}}
    waiting.sort(key=lambda member: (depths[member.slot[0]], member.slot))
    return [member.pod for member in waiting]


def is_ready(view: GangView) -> bool:
    """Whether the gang is ready, or has been once."""
    said = view.gang.status.conditions
    before = condition_of(said, names.READY)
    if condition_of(said, names.UNHEALTHY) or (before is not None and before.status == "True"):
        return True
    groups = view.gang.spec.pod_groups
    return view.gang.initialized and all(
        sum(m.up for m in view.of_clique(group.name)) >= group.min_replicas for group in groups
    )


def depth(cliques: Mapping[str, PodClique], name: str) -> int:
    """Say how many cliques start one after the other before this one."""
    steps, front, seen = 0, {name}, {name}
    while front:
        after = {p for n in front if n in cliques for p in cliques[n].spec.starts_after} - seen
        steps += bool(after)
        seen |= after
        front = after
    return steps


def waits(pod: Pod) -> bool:
    """Whether the pod asks to be told, and was not."""
    gates = pod.spec.readiness_gates
    return any(gate.condition_type == names.READINESS_GATE for gate in gates) and not any(
        c.type == names.READINESS_GATE and c.status == "True" for c in pod.status.conditions
    )


class Herald:
    """Writes the condition on pods. What they say already is read from them."""

    def __init__(
        self, client: Client, clock: Clock, pods: Cache[Pod], fenced: Callable[[], int | None]
    ) -> None:
        self._client = client
        self._clock = clock
        self._pods = pods
        self._fenced = fenced

    async def tell(self, view: GangView) -> None:
        """Write what is due; raises the first refusal, after all others."""
        failures = await pace.all_of([partial(self._write, pod) for pod in due(view)], AT_ONCE)
        # A pod that is gone, or another by now, is told when it is seen.
        for error in failures:
            if not isinstance(error, NotFound | Conflict):
                raise error

    async def _write(self, pod: Pod) -> None:
        if self._fenced() is None:
            return
        why = "every clique of its gang had its minimum up"
        condition = announcement(self._clock.now(), names.REASON_READY, why)
        self._pods.observe(await announce(self._client, pod, condition))


def announcement(now: datetime, reason: str, message: str) -> JsonObject:
    """Write down that a pod need not wait for its gang."""
    return {
        "type": names.READINESS_GATE,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": timestamp(now),
    }


async def announce(client: Client, pod: Pod, condition: JsonObject) -> bytes:
    """Say it on the pod, and give the answer."""
    return await pod_conditions.say(client, pod, condition, names.READINESS_MANAGER)

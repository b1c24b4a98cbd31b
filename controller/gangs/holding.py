"""Keeps foreign pods off room that waits: nominates gated pods for the nodes of their slots.

kube-scheduler leaves room for a nominated pod, gated or not, to pods of no higher priority. That
costs a write a pod, so only those are nominated that wait for others to start, or for their turn to
be let go while pods of others look for room too, and only once they have waited for a moment. A
nomination without a slot would keep room for nobody, and is taken back.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from api.jsons import JsonObject
from api.reservation import State
from api.streams import Pod
from controller import pace
from controller.gangs import startup
from controller.gangs.views import GangView, pinned_node
from kube.cache import Cache
from kube.client import Client
from kube.clock import Clock
from kube.errors import Conflict, NotFound
from kube.objects import Key
from kube.resources import PODS

LASTS_SECONDS: Final = 1.0  # what passes by sooner is not worth a write
AT_ONCE: Final = 16
AT_ONE_LOOK: Final = 64  # lifting must not wait until a thousand pods are nominated


@dataclass(frozen=True)
class Hold:
    """A node that a pod is to be nominated for; none, if its nomination is to go."""

    pod: Pod
    node: str


def is_rival(pod: Pod) -> bool:
    """Tell whether kube-scheduler may give the pod any room that it sees, if it is of no gang."""
    open_ = not (pod.spec.node_name or pod.gates or pod.finished or pinned_node(pod))
    return open_ and pod.metadata.deletion_timestamp is None


def changes(view: GangView, *, rivals: bool = False) -> list[Hold]:
    """List the pods whose nomination is not what it should be.

    With `rivals`, room is kept for those too who could be let go at once, and await their turn.
    """
    begun = view.reservation is not None and view.reservation.state in (State.LIFTING, State.BOUND)
    slots = view.nodes_by_slot() if begun else {}
    unmet = startup.unmet(view) if slots else {}
    found = []
    for member in view.members:
        if not member.gated:
            continue
        waits = member.slot in slots and (rivals or startup.is_held(member, unmet))
        node = slots[member.slot] if waits and slots[member.slot] not in view.lost else ""
        now = member.pod.status.nominated_node_name
        # One that has a slot and is about to be lifted may keep what it has.
        if now != node and (waits or member.slot not in slots):
            found.append(Hold(member.pod, node))
    return found


class Holder:
    """Writes nominations; what pods say already is read from them.

    `later` has a gang looked at again after so many seconds.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        pods: Cache[Pod],
        later: Callable[[Key, float], None],
        fenced: Callable[[], int | None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._pods = pods
        self._later = later
        self._fenced = fenced
        self._since: dict[Key, float] = {}

    async def hold(self, view: GangView, *, rivals: bool = False) -> None:
        """Write what is due; raises the first refusal, after all others."""
        key, now = view.gang.key, self._clock.monotonic()
        wanted = changes(view, rivals=rivals)
        if not wanted:
            self.forget(key)
            return
        left = self._since.setdefault(key, now) + LASTS_SECONDS - now
        due = [each for each in wanted if left <= 0 or not each.node]
        if left > 0:
            self._later(key, left)
        elif len(due) > AT_ONE_LOOK:
            self._later(key, 0.0)
        writes = [partial(self._write, each) for each in due[:AT_ONE_LOOK]]
        for error in await pace.all_of(writes, AT_ONCE):
            if not isinstance(error, NotFound | Conflict):
                raise error

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a gang."""
        self._since.pop(key, None)

    async def _write(self, hold: Hold) -> None:
        if self._fenced() is None:
            return
        meta = hold.pod.metadata
        body: JsonObject = {
            "metadata": {"uid": meta.uid},
            "status": {"nominatedNodeName": hold.node or None},
        }
        answer = await self._client.merge_patch(
            PODS, meta.name, body, meta.namespace, subresource="status"
        )
        self._pods.observe(answer)

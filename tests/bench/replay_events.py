"""What becomes of a replayed fleet: pods that report and are made anew, and a gang that asks."""

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Final

from api import names
from api.jsons import Json, JsonObject
from kube.resources import PODCLIQUES, PODCLIQUESETS, PODGANGS, PODS
from tests.bench.replay_documents import space_of
from tests.bench.replay_server import ReplayServer

PACE: Final = 1_000  # events a second
AT_ONCE: Final = 10
STEP: Final = 7_919  # has no factor in common with the number of pods: all have their turn
UNREADY_EVERY: Final = 10  # reports, as the gang's own status follows from these
READY: Final = (b"ContainersReady", b"Ready")
TOO_MUCH: Final = b'"cpu":"500"'  # more than a node has


@dataclass
class Events:
    """Events of pods, each said of another pod and at another instant than the one before."""

    server: ReplayServer
    told: int = 0

    async def report(self, count: int) -> None:
        """Have pods say something new of themselves."""
        await self._paced(count, anew=False)

    async def replace(self, count: int) -> None:
        """Delete pods and make them anew, bound where they were: two events each."""
        await self._paced(count, anew=True)

    async def _paced(self, count: int, *, anew: bool) -> None:
        begun = time.perf_counter()
        for number in range(count):
            self._tell(anew=anew)
            if number % AT_ONCE == 0:
                await asyncio.sleep(max(0.0, number / PACE - (time.perf_counter() - begun)))
        while self.server.waiting():
            await asyncio.sleep(0.1)

    def _tell(self, *, anew: bool) -> None:
        fleet, server = self.server.fleet, self.server
        self.told += 1
        step, late = divmod(self.told, 2) if anew else (self.told, 0)
        which = step * STEP % fleet.count(PODS.full_name)
        text = next(fleet.documents(PODS.full_name, which, which + 1))
        text = _with(text, b'"resourceVersion":"', b'"', b"%d" % server.next_version())
        text = _moved(text, self.told)
        if not anew:
            unready = self.told % UNREADY_EVERY == 0
            server.tell(PODS, "MODIFIED", _unready(text) if unready else text)
        elif late:
            server.tell(PODS, "ADDED", _with(text, b'"uid":"', b"-", b"%08x" % (10**8 + step)))
        else:
            server.tell(PODS, "DELETED", text)


def _with(text: bytes, before: bytes, after: bytes, value: bytes) -> bytes:
    """Put a value between the first of these and what follows."""
    head, found, tail = text.partition(before)
    return head + found + value + after + tail.partition(after)[2]


def _moved(text: bytes, told: int) -> bytes:
    """Say that conditions changed on another day."""
    day = b"2025-06-%02dT" % (2 + told // 1_000 % 27)
    return text.replace(b'"lastTransitionTime":"2025-06-01T', b'"lastTransitionTime":"' + day)


def _unready(text: bytes) -> bytes:
    for kind in READY:
        said = b'"type":"%s","status":"' % kind
        text = text.replace(said + b"True", said + b"False")
    return text


def ask(server: ReplayServer) -> str:
    """Have a gang ask for more than any node has; gives the path of its PodGang."""
    which = server.fleet.sets
    path = ""
    for kind in (PODCLIQUESETS, PODCLIQUES, PODS, PODGANGS):
        for template in server.fleet.templates[kind.full_name]:
            text = template.fill(which)
            thing: JsonObject = json.loads(text)
            if kind is PODS:
                thing = _gated(json.loads(text.replace(b'"cpu":"8"', TOO_MUCH)))
            if kind is PODGANGS:
                thing["status"] = {"phase": "Pending", "conditions": [_said(thing, "Initialized")]}
            path = kind.path(space_of(which), _name(thing))
            server.put(path, thing)
    return path


def refused(server: ReplayServer, gang: str) -> bool:
    """Whether it is said of a gang why it is not scheduled."""
    return _said(server.objects[gang], names.SCHEDULED) is not None


def _gated(pod: JsonObject) -> JsonObject:
    spec = pod["spec"]
    assert isinstance(spec, dict)
    own = {key: value for key, value in spec.items() if key not in ("nodeName", "affinity")}
    status: JsonObject = {"phase": "Pending", "conditions": []}
    return {**pod, "spec": {**own, "schedulingGates": [{"name": names.GATE}]}, "status": status}


def _said(gang: JsonObject, kind: str) -> Json:
    status = gang["status"]
    conditions = status["conditions"] if isinstance(status, dict) else None
    found = conditions if isinstance(conditions, list) else []
    return next((c for c in found if isinstance(c, dict) and c["type"] == kind), None)


def _name(thing: JsonObject) -> str:
    meta = thing["metadata"]
    assert isinstance(meta, dict)
    return str(meta["name"])

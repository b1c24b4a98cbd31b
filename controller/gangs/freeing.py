"""Sets a pod free: takes our gate off it without a pin, so that it starts without its gang. Pure.

This is for emergencies, and is all that is left of us on the pod: it goes wherever kube-scheduler
binds it. The pod says that it was set free, and when, in the same write that lifts it, so that
nobody ever takes it for one of a gang that failed and deletes it.
"""

from datetime import datetime

from api import names
from api.jsons import JsonObject
from api.objects import timestamp
from api.streams import Pod

_ANNOTATIONS = "/metadata/annotations"
_KEY = names.RELEASED_ANNOTATION.replace("/", "~1")


def is_free(pod: Pod) -> bool:
    """Whether the pod was set free."""
    return names.RELEASED_ANNOTATION in pod.metadata.annotations


def patch(pod: Pod, now: datetime) -> list[JsonObject]:
    """Write the patch; it fails as a whole if the pod is another one or our gate is gone."""
    gate = f"/spec/schedulingGates/{pod.gates.index(names.GATE)}"
    return [
        {"op": "test", "path": "/metadata/uid", "value": pod.metadata.uid},
        {"op": "test", "path": f"{gate}/name", "value": names.GATE},
        *_mark(pod, timestamp(now)),
        # Only ours: other gates belong to other controllers, which still count on them.
        {"op": "remove", "path": gate},
    ]


def _mark(pod: Pod, now: str) -> list[JsonObject]:
    if pod.metadata.annotations:
        return [{"op": "add", "path": f"{_ANNOTATIONS}/{_KEY}", "value": now}]
    # The first annotation brings the map along, and must not wipe out one that came meanwhile.
    version = pod.metadata.resource_version
    return [
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "add", "path": _ANNOTATIONS, "value": {names.RELEASED_ANNOTATION: now}},
    ]

"""A podSpec with each of its containers changed alike. Pure."""

from collections.abc import Callable

from api.jsons import Json, JsonObject
from policies.podspec_rules import CONTAINER_LISTS


def changed(pod_spec: JsonObject, change: Callable[[JsonObject], JsonObject]) -> JsonObject:
    """Change every container and init container; the podSpec itself stays as it is."""
    made = {**pod_spec}
    for kind in CONTAINER_LISTS:
        containers = pod_spec.get(kind)
        if isinstance(containers, list):
            made[kind] = [_one(container, change) for container in containers]
    return made


def _one(container: Json, change: Callable[[JsonObject], JsonObject]) -> Json:
    return change(container) if isinstance(container, dict) else container

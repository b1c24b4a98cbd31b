"""What a PodCliqueSet's author left out, filled in, as JSON Patch operations.

The API server fills in the definition's own defaults before it asks us; they are filled in here all
the same, so that a manifest means the same wherever it is read.
"""

from typing import Final

from api import names
from api.cliques import MAX_REPLICAS
from api.jsons import Json, JsonObject
from api.podcliqueset import StartupType, UpdateType
from policies.filling import Filled, Patch, absent, each, inside, put

REPLICAS: Final = 1
STARTUP_TYPE: Final = StartupType.ANY_ORDER.value
UPDATE_TYPE: Final = UpdateType.ROLLING_RECREATE.value
TERMINATION_DELAY: Final = "4h"
RESTART_POLICY: Final = "Always"
GRACE_SECONDS: Final = 30


def defaulted(raw: JsonObject) -> Filled:
    """Fill in what was left out. Parts that need nothing are shared with `raw`, never changed."""
    patch: list[JsonObject] = []
    return Filled(inside(raw, "spec", "", patch, _spec), tuple(patch))


def holding(raw: JsonObject) -> tuple[JsonObject, ...]:
    """Put the finalizer on a new set, so that it never goes before what is made for it.

    Whoever makes things for sets, `workloads` or Grove's operator, would put on the same one in a
    write of its own, and takes it off.
    """
    metadata = raw.get("metadata")
    if not isinstance(metadata, dict):
        return ()
    written = metadata.get("finalizers")
    if not written:
        return ({"op": "add", "path": "/metadata/finalizers", "value": [names.SET_FINALIZER]},)
    if not isinstance(written, list) or names.SET_FINALIZER in written:
        return ()
    return ({"op": "add", "path": "/metadata/finalizers/-", "value": names.SET_FINALIZER},)


def _spec(spec: JsonObject, path: str, patch: Patch) -> JsonObject:
    spec = put(spec, path, patch, absent(spec, replicas=0))
    spec = inside(spec, "updateStrategy", path, patch, _update_strategy)
    return inside(spec, "template", path, patch, _template)


def _update_strategy(strategy: JsonObject, path: str, patch: Patch) -> JsonObject:
    return put(strategy, path, patch, absent(strategy, type=UPDATE_TYPE))


def _template(template: JsonObject, path: str, patch: Patch) -> JsonObject:
    values = absent(
        template,
        cliqueStartupType=STARTUP_TYPE,
        terminationDelay=TERMINATION_DELAY,
        headlessServiceConfig={"publishNotReadyAddresses": True},
    )
    template = inside(template, "headlessServiceConfig", path, patch, _service)
    template = put(template, path, patch, values)
    template = each(template, "cliques", path, patch, _clique)
    return each(template, "podCliqueScalingGroups", path, patch, _group)


def _service(service: JsonObject, path: str, patch: Patch) -> JsonObject:
    return put(service, path, patch, absent(service, publishNotReadyAddresses=True))


def _clique(clique: JsonObject, path: str, patch: Patch) -> JsonObject:
    spec = clique.get("spec")
    if not isinstance(spec, dict):
        return clique
    place = f"{path}/spec"
    values: JsonObject = {}
    name = clique.get("name")
    if spec.get("roleName") in (None, "") and isinstance(name, str) and name:
        values["roleName"] = name
    replicas = spec.get("replicas")
    if replicas is None or (replicas == 0 and not isinstance(replicas, bool)):
        replicas = values["replicas"] = REPLICAS
    if spec.get("minAvailable") is None and _counts(replicas):
        values["minAvailable"] = replicas
    filled = put(spec, place, patch, values) if values else spec
    if "autoScalingConfig" in spec:
        filled = _lowest(filled, "autoScalingConfig", place, patch, replicas)
    filled = inside(filled, "podSpec", place, patch, _pod)
    return clique if filled is spec else {**clique, "spec": filled}


def _pod(pod: JsonObject, path: str, patch: Patch) -> JsonObject:
    values: JsonObject = {}
    if pod.get("terminationGracePeriodSeconds") is None:
        values["terminationGracePeriodSeconds"] = GRACE_SECONDS
    if pod.get("restartPolicy") in (None, ""):
        values["restartPolicy"] = RESTART_POLICY
    return put(pod, path, patch, values) if values else pod


def _group(group: JsonObject, path: str, patch: Patch) -> JsonObject:
    group = put(group, path, patch, absent(group, replicas=REPLICAS, minAvailable=1))
    return _lowest(group, "scaleConfig", path, patch, group.get("replicas"))


def _lowest(holder: JsonObject, key: str, path: str, patch: Patch, replicas: Json) -> JsonObject:
    """Let autoscaling go down to the count that is written, if no lowest count is."""
    if key not in holder or not _counts(replicas):
        return holder

    def fill(scaling: JsonObject, at: str, patch: Patch) -> JsonObject:
        return put(scaling, at, patch, absent(scaling, minReplicas=replicas))

    return inside(holder, key, path, patch, fill)


def _counts(value: Json) -> bool:
    """Tell whether a count can be taken over: one that is refused should be refused once."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_REPLICAS

"""What a PodCliqueSet's author left out, filled in, as JSON Patch operations.

Works on raw JSON and trusts no type: what is of another one is left for the rules to refuse. The
API server fills in the definition's own defaults before it asks us; they are filled in here all the
same, so that a manifest means the same wherever it is read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from api import names
from api.cliques import MAX_CLIQUES, MAX_REPLICAS
from api.jsons import Json, JsonObject
from api.podcliqueset import StartupType, UpdateType

REPLICAS: Final = 1
TERMINATION_DELAY: Final = "4h"
RESTART_POLICY: Final = "Always"
GRACE_SECONDS: Final = 30


@dataclass(frozen=True)
class Defaulted:
    """A set with nothing left out, and the operations that make it of what was written."""

    object: JsonObject
    patch: tuple[JsonObject, ...]


def defaulted(raw: JsonObject) -> Defaulted:
    """Fill in what was left out. Parts that need nothing are shared with `raw`, never changed."""
    patch: list[JsonObject] = []
    return Defaulted(_inside(raw, "spec", "", patch, _spec), tuple(patch))


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


_Patch = list[JsonObject]
_Fill = Callable[[JsonObject, str, _Patch], JsonObject]


def _inside(holder: JsonObject, key: str, path: str, patch: _Patch, fill: _Fill) -> JsonObject:
    """Fill in one field of an object, if there is an object in it."""
    inner = holder.get(key)
    if not isinstance(inner, dict):
        return holder
    filled = fill(inner, f"{path}/{key}", patch)
    return holder if filled is inner else {**holder, key: filled}


def _each(holder: JsonObject, key: str, path: str, patch: _Patch, fill: _Fill) -> JsonObject:
    """Fill in each object in a list, unless there are more than are taken."""
    inner = holder.get(key)
    if not isinstance(inner, list) or len(inner) > MAX_CLIQUES:
        return holder
    filled: list[Json] = [
        fill(item, f"{path}/{key}/{i}", patch) if isinstance(item, dict) else item
        for i, item in enumerate(inner)
    ]
    return {**holder, key: filled}


def _put(holder: JsonObject, path: str, patch: _Patch, values: JsonObject) -> JsonObject:
    """Set fields. `add` also replaces what is there, if only as nothing."""
    if not values:
        return holder
    for key, value in values.items():
        patch.append({"op": "add", "path": f"{path}/{key}", "value": value})
    return {**holder, **values}


def _spec(spec: JsonObject, path: str, patch: _Patch) -> JsonObject:
    spec = _put(spec, path, patch, _absent(spec, replicas=0))
    spec = _inside(spec, "updateStrategy", path, patch, _update_strategy)
    return _inside(spec, "template", path, patch, _template)


def _update_strategy(strategy: JsonObject, path: str, patch: _Patch) -> JsonObject:
    return _put(strategy, path, patch, _absent(strategy, type=UpdateType.ROLLING_RECREATE.value))


def _template(template: JsonObject, path: str, patch: _Patch) -> JsonObject:
    values = _absent(
        template,
        cliqueStartupType=StartupType.ANY_ORDER.value,
        terminationDelay=TERMINATION_DELAY,
        headlessServiceConfig={"publishNotReadyAddresses": True},
    )
    template = _inside(template, "headlessServiceConfig", path, patch, _service)
    template = _put(template, path, patch, values)
    template = _each(template, "cliques", path, patch, _clique)
    return _each(template, "podCliqueScalingGroups", path, patch, _group)


def _service(service: JsonObject, path: str, patch: _Patch) -> JsonObject:
    return _put(service, path, patch, _absent(service, publishNotReadyAddresses=True))


def _clique(clique: JsonObject, path: str, patch: _Patch) -> JsonObject:
    spec = clique.get("spec")
    if not isinstance(spec, dict):
        return clique
    inside = f"{path}/spec"
    values: JsonObject = {}
    name = clique.get("name")
    if spec.get("roleName") in (None, "") and isinstance(name, str) and name:
        values["roleName"] = name
    replicas = spec.get("replicas")
    if replicas is None or (replicas == 0 and not isinstance(replicas, bool)):
        replicas = values["replicas"] = REPLICAS
    if spec.get("minAvailable") is None and _counts(replicas):
        values["minAvailable"] = replicas
    filled = _put(spec, inside, patch, values)
    filled = _lowest(filled, "autoScalingConfig", inside, patch, replicas)
    filled = _inside(filled, "podSpec", inside, patch, _pod)
    return clique if filled is spec else {**clique, "spec": filled}


def _pod(pod: JsonObject, path: str, patch: _Patch) -> JsonObject:
    values = _absent(pod, terminationGracePeriodSeconds=GRACE_SECONDS)
    if pod.get("restartPolicy") in (None, ""):
        values["restartPolicy"] = RESTART_POLICY
    return _put(pod, path, patch, values)


def _group(group: JsonObject, path: str, patch: _Patch) -> JsonObject:
    group = _put(group, path, patch, _absent(group, replicas=REPLICAS, minAvailable=1))
    return _lowest(group, "scaleConfig", path, patch, group.get("replicas"))


def _lowest(holder: JsonObject, key: str, path: str, patch: _Patch, replicas: Json) -> JsonObject:
    """Let autoscaling go down to the count that is written, if no lowest count is."""

    def fill(scaling: JsonObject, inside: str, patch: _Patch) -> JsonObject:
        return _put(scaling, inside, patch, _absent(scaling, minReplicas=replicas))

    return _inside(holder, key, path, patch, fill) if _counts(replicas) else holder


def _absent(holder: JsonObject, **defaults: Json) -> JsonObject:
    return {key: value for key, value in defaults.items() if holder.get(key) is None}


def _counts(value: Json) -> bool:
    """Tell whether a count can be taken over: one that is refused should be refused once."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_REPLICAS

"""A new pod of a gang gets our scheduling gate, so that it waits until its gang has room."""

from typing import Final

from api import names
from api.jsons import Json, JsonObject
from policies.problems import Problem

GANG_LABELS: Final = (names.PODGANG_LABEL, names.GANG_LABEL)
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
GATES_PATH: Final = "/spec/schedulingGates"


def gate_pod(pod: JsonObject) -> list[JsonObject] | Problem:
    """Give the JSON Patch that adds our gate to a pod of a gang.

    Empty for a pod that belongs to no gang, that has the gate, or that mirrors a static pod (its
    kubelet runs it whatever we say). Gates of others are left as they are. A gang's pod that is on
    a node already is a problem: the API server forbids gates there, so it could not wait.
    """
    if not is_gang_pod(pod) or MIRROR_ANNOTATION in _metadata(pod, "annotations"):
        return []
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return Problem("spec", "is required")
    if spec.get("nodeName"):
        return Problem(
            "spec.nodeName",
            f"a pod of a gang waits behind the gate {names.GATE}, which a pod with a node cannot "
            f"carry; leave nodeName out, or the label that names the gang",
        )
    gates = spec.get("schedulingGates")
    if gates is not None and not isinstance(gates, list):
        return Problem("spec.schedulingGates", "must be a list")
    return _missing_gate(gates)


def is_gang_pod(pod: JsonObject) -> bool:
    """Tell whether a pod's labels say that it belongs to a gang."""
    labels = _metadata(pod, "labels")
    return any(label in labels for label in GANG_LABELS)


def _missing_gate(gates: list[Json] | None) -> list[JsonObject]:
    ours: JsonObject = {"name": names.GATE}
    if gates is None:
        return [{"op": "add", "path": GATES_PATH, "value": [ours]}]
    if any(isinstance(gate, dict) and gate.get("name") == names.GATE for gate in gates):
        return []
    return [{"op": "add", "path": f"{GATES_PATH}/-", "value": ours}]


def _metadata(pod: JsonObject, field: str) -> JsonObject:
    metadata = pod.get("metadata")
    found = metadata.get(field) if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}

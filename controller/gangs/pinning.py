"""The one patch that pins a gated pod to its node and takes our gate off. Pure.

The API server judges a pod's gates on the object as it was, so both happen in one write: there is
no instant at which the pod is released but may go anywhere. A pin can never be taken back.
"""

from api import names
from api.jsons import Json, JsonObject
from api.streams import Pod

_AFFINITY = "/spec/affinity"
_NODE = f"{_AFFINITY}/nodeAffinity"
_REQUIRED = f"{_NODE}/requiredDuringSchedulingIgnoredDuringExecution"
_TERMS = f"{_REQUIRED}/nodeSelectorTerms"


def lift(pod: Pod, node: str) -> list[JsonObject]:
    """Write the patch; it fails as a whole if the pod is another one or our gate is gone."""
    position = pod.gates.index(names.GATE)
    gate = f"/spec/schedulingGates/{position}"
    return [
        {"op": "test", "path": "/metadata/uid", "value": pod.metadata.uid},
        {"op": "test", "path": f"{gate}/name", "value": names.GATE},
        *_pin(pod, node),
        # Only ours: other gates belong to other controllers, which still count on them.
        {"op": "remove", "path": gate},
    ]


def _pin(pod: Pod, node: str) -> list[JsonObject]:
    only: JsonObject = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms: Json = [{"matchFields": [only]}]
    required: JsonObject = {"nodeSelectorTerms": terms}
    affinity = pod.spec.affinity
    if affinity is None:
        whole: JsonObject = {"requiredDuringSchedulingIgnoredDuringExecution": required}
        return [{"op": "add", "path": _AFFINITY, "value": {"nodeAffinity": whole}}]
    if affinity.node_affinity is None:
        whole = {"requiredDuringSchedulingIgnoredDuringExecution": required}
        return [{"op": "add", "path": _NODE, "value": whole}]
    if affinity.node_affinity.required is None:
        return [{"op": "add", "path": _REQUIRED, "value": required}]
    # Terms are alternatives, so every one of them must name the node. An empty term matches
    # nothing and must stay as it is.
    patch: list[JsonObject] = []
    for i, term in enumerate(affinity.node_affinity.required.node_selector_terms):
        if term.match_fields:
            patch.append({"op": "add", "path": f"{_TERMS}/{i}/matchFields/-", "value": only})
        elif term.match_expressions:
            patch.append({"op": "add", "path": f"{_TERMS}/{i}/matchFields", "value": [only]})
    return patch

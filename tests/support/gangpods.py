"""Pods of gangs as their authors write them."""

import copy
from typing import Final, cast

import jsonpatch

from api import names
from api.jsons import Json, JsonObject
from api.topology import ClusterTopologyBindingSpec
from policies import pod_admission
from policies.admission import Operation, Request
from policies.answers import Allow, Answer
from policies.known import NOTHING, Known
from policies.policy import BUILT_IN, Policy

MIRROR: Final = "kubernetes.io/config.mirror"
PLAIN: Final = {names.GANG_LABEL: "llm", names.GANG_SIZE_LABEL: "4"}
GROVES: Final = {names.PODGANG_LABEL: "llm-0"}
NETWORK: Final = ClusterTopologyBindingSpec.model_validate(
    {"levels": [{"domain": "zone", "key": "z"}, {"domain": "rack", "key": "r"}]}
)


def pod(
    labels: dict[str, str],
    spec: JsonObject | None = None,
    *,
    readiness_gate: str | None = None,
    mirror: str | None = None,
) -> JsonObject:
    """A pod with these labels, and annotations by what they are for."""
    annotations = {names.READINESS_GATE_ANNOTATION: readiness_gate, MIRROR: mirror}
    return {
        "metadata": {
            "name": "p",
            "labels": {**labels},
            "annotations": {key: value for key, value in annotations.items() if value is not None},
        },
        "spec": {"containers": [{"name": "main"}], **(spec or {})},
    }


def judged(of: JsonObject, policy: Policy = BUILT_IN, known: Known = NOTHING) -> Answer:
    """What is answered to the pod's creation."""
    return pod_admission.judge(policy, known, Request(Operation.CREATE, "Pod", of))


def admitted(of: JsonObject, policy: Policy = BUILT_IN, known: Known = NOTHING) -> JsonObject:
    """What the API server makes of the pod and the answer."""
    answer = judged(of, policy, known)
    assert isinstance(answer, Allow), answer
    return cast("JsonObject", jsonpatch.apply_patch(copy.deepcopy(of), list(answer.patch)))


def part(of: JsonObject, *path: str) -> Json:
    """What is at that path."""
    found: Json = of
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    return found

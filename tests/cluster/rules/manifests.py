"""The manifests that the rule suite edits: a plain set, one of every field, and topologies."""

from typing import Final

from api import names
from api.jsons import Json, JsonObject
from policies.policy import BUILT_IN, Policy
from tests.cluster.rules.cases import Case, Outcome
from tests.support.edits import Edits, edited

API: Final = "grove.io/v1alpha1"
TEMPLATE: Final = "spec.template"
CLIQUES: Final = f"{TEMPLATE}.cliques"
GROUPS: Final = f"{TEMPLATE}.podCliqueScalingGroups"
CLAIMS: Final = f"{TEMPLATE}.resourceClaimTemplates"

# The namespace that the suite asks in; a lab is asked once.
SPACE: Final = "rules"
# Bindings that the suite makes before it asks: the widest level comes first.
BROAD: Final = "rules-broad"
OTHER: Final = "rules-other"
LEVELS: Final = ("zone", "block", "rack", "host")


def container(name: str = "main", **more: Json) -> JsonObject:
    """A container that says no more than it must."""
    return {"name": name, "image": "registry.example/engine:1.0", **more}


def clique(name: str, replicas: int = 1, **more: Json) -> JsonObject:
    """A clique of one container a pod."""
    spec: JsonObject = {"roleName": name, "replicas": replicas, **more}
    return {"name": name, "spec": {**spec, "podSpec": {"containers": [container()]}}}


def plain() -> JsonObject:
    """A router that stands alone, and an engine of a leader and four workers, scaled as one."""
    return {
        "apiVersion": API,
        "kind": "PodCliqueSet",
        "metadata": {"name": "llm"},
        "spec": {
            "replicas": 1,
            "template": {
                "cliques": [clique("router", 2), clique("leader"), clique("worker", 4)],
                "podCliqueScalingGroups": [
                    {"name": "engine", "cliqueNames": ["leader", "worker"], "replicas": 3}
                ],
            },
        },
    }


def single(name: str = "llm") -> JsonObject:
    """A set of one clique, for rules that count characters or cliques."""
    made = plain()
    made["metadata"] = {"name": name}
    made["spec"] = {"replicas": 1, "template": {"cliques": [clique("worker", 4)]}}
    return made


def device_request(name: str = "gpu") -> JsonObject:
    """A claim template's spec with one request."""
    exactly: JsonObject = {"deviceClassName": "gpu.example.com", "count": 1}
    return {"spec": {"devices": {"requests": [{"name": name, "exactly": exactly}]}}}


def sharing() -> JsonObject:
    """The plain set with a claim template in line, and claims shared at each of three places."""
    made = plain()
    spec = made["spec"]
    assert isinstance(spec, dict)
    template = spec["template"]
    assert isinstance(template, dict)
    template["resourceClaimTemplates"] = [{"name": "fabric", "templateSpec": device_request()}]
    everywhere: JsonObject = {"name": "fabric", "scope": "AllReplicas"}
    here: JsonObject = {**everywhere, "filter": {"childCliqueNames": ["router"]}}
    there: JsonObject = {"name": "cache", "namespace": "shared", "scope": "PerReplica"}
    inside: JsonObject = {**everywhere, "filter": {"childCliqueNames": ["worker"]}}
    own: JsonObject = {"name": "fabric", "scope": "PerReplica"}
    template["resourceSharing"] = [here, there]
    for listed, shared in (("cliques", own), ("podCliqueScalingGroups", inside)):
        entries = template[listed]
        assert isinstance(entries, list)
        assert isinstance(entries[0], dict)
        entries[0]["resourceSharing"] = [shared]
    return made


def packed(required: str = "", preferred: str = "", topology: str = "") -> JsonObject:
    """A topology constraint of these parts."""
    pack: JsonObject = {}
    if required:
        pack["required"] = required
    if preferred:
        pack["preferred"] = preferred
    return {**({"topologyName": topology} if topology else {}), "pack": pack}


def scaling(low: int | None, high: int) -> JsonObject:
    """Limits of an autoscaler, with a metric."""
    target: JsonObject = {"type": "Utilization", "averageUtilization": 70}
    metric: JsonObject = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    limits: JsonObject = {"maxReplicas": high, "metrics": [metric]}
    return limits if low is None else {"minReplicas": low, **limits}


def binding(name: str = "rules-tried", *levels: tuple[str, str]) -> JsonObject:
    """A ClusterTopologyBinding of (domain, node label) levels; of four if none are given."""
    chosen = levels or tuple(
        zip(
            LEVELS,
            (names.ZONE_KEY, names.BLOCK_KEY, names.RACK_KEY, names.HOSTNAME_KEY),
            strict=True,
        )
    )
    return {
        "apiVersion": API,
        "kind": "ClusterTopologyBinding",
        "metadata": {"name": name},
        "spec": {"levels": [{"domain": domain, "key": key} for domain, key in chosen]},
    }


PLAIN: Final = plain()
SINGLE: Final = single()
SHARING: Final = sharing()


def created(
    rule: str,
    what: str,
    edits: Edits,
    then: Outcome,
    base: JsonObject = PLAIN,
    policy: Policy = BUILT_IN,
) -> Case:
    """The case of creating the base with these edits."""
    return Case(rule, what, edited(base, edits), then, policy=policy)


def updated(rule: str, what: str, edits: Edits, then: Outcome, before: JsonObject = PLAIN) -> Case:
    """The case of making these edits to a stored set."""
    return Case(rule, what, edited(before, edits), then, before=before)

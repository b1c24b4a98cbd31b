"""Rules 2.7: what may change in a stored set and what may not, a rule for each field."""

from typing import Final

from api.jsons import Json, JsonObject
from tests.cluster.rules.cases import Case, Stored, refused
from tests.cluster.rules.manifests import (
    CLAIMS,
    CLIQUES,
    GROUPS,
    PLAIN,
    SHARING,
    TEMPLATE,
    clique,
    container,
    device_request,
    scaling,
    updated,
)
from tests.support.edits import GONE, Edits, edited

_TYPE: Final = f"{TEMPLATE}.cliqueStartupType"
_ROUTER: Final = f"{CLIQUES}[0].spec"
_WORKER: Final = f"{CLIQUES}[2].spec"
_POD: Final = f"{_ROUTER}.podSpec"
_GROUP: Final = f"{GROUPS}[0]"
_SHARES: Final = f"{TEMPLATE}.resourceSharing"
_EXPLICIT: Final = edited(
    PLAIN, {_TYPE: "CliqueStartupTypeExplicit", f"{_WORKER}.startsAfter": ["leader"]}
)
_IN_ORDER: Final = edited(PLAIN, {_TYPE: "CliqueStartupTypeInOrder"})
_TWO_GROUPS: Final = edited(PLAIN, {f"{GROUPS}[1]": {"name": "front", "cliqueNames": ["router"]}})


def _again(rule: str, before: JsonObject = PLAIN) -> Case:
    """The field is sent as it is stored, and another one changes beside it."""
    return updated(rule, "the same again", {"spec.replicas": 0}, Stored(), before)


def _swapped(base: JsonObject) -> Edits:
    return {CLIQUES: [_listed(base, i) for i in (1, 0, 2)]}


def _listed(base: JsonObject, index: int) -> Json:
    spec = base["spec"]
    assert isinstance(spec, dict)
    template = spec["template"]
    assert isinstance(template, dict)
    cliques = template["cliques"]
    assert isinstance(cliques, list)
    return cliques[index]


_FROZEN: Final = (
    _again("2.7.clique-count"),
    updated("2.7.clique-count", "a clique added", {f"{CLIQUES}[3]": clique("cache")},
            refused(CLIQUES, "immutable")),
    updated("2.7.clique-count", "a clique taken out", {f"{CLIQUES}[0]": GONE},
            refused(CLIQUES, "immutable")),
    _again("2.7.clique-name"),
    updated("2.7.clique-name", "a clique renamed", {f"{CLIQUES}[0].name": "front"},
            refused(CLIQUES, "immutable")),
    updated("2.7.clique-order", "under any order", _swapped(PLAIN), Stored()),
    updated("2.7.clique-order", "under the order of the list", _swapped(_IN_ORDER),
            refused(CLIQUES, "immutable"), _IN_ORDER),
    updated("2.7.clique-order", "under an explicit order", _swapped(_EXPLICIT),
            refused(CLIQUES, "immutable"), _EXPLICIT),
    _again("2.7.role-name"),
    updated("2.7.role-name", "changed", {f"{_ROUTER}.roleName": "front"},
            refused(f"{_ROUTER}.roleName", "immutable")),
    updated("2.7.min-available", "the default written out", {f"{_WORKER}.minAvailable": 4},
            Stored()),
    updated("2.7.min-available", "lowered", {f"{_WORKER}.minAvailable": 3},
            refused(f"{_WORKER}.minAvailable", "immutable")),
    updated("2.7.starts-after", "an empty list for none", {f"{_ROUTER}.startsAfter": []},
            Stored()),
    updated("2.7.starts-after", "added", {f"{_WORKER}.startsAfter": ["leader", "router"]},
            refused(f"{_WORKER}.startsAfter", "immutable"), _EXPLICIT),
    updated("2.7.starts-after", "taken out", {f"{_WORKER}.startsAfter": GONE},
            refused(f"{_WORKER}.startsAfter", "immutable"), _EXPLICIT),
    _again("2.7.scheduler-name"),
    updated("2.7.scheduler-name", "changed", {f"{_POD}.schedulerName": "kai-scheduler"},
            refused(f"{_POD}.schedulerName", "immutable"),
            edited(PLAIN, {f"{_POD}.schedulerName": "default-scheduler"})),
    _again("2.7.clique-sharing", SHARING),
    updated("2.7.clique-sharing", "changed",
            {f"{CLIQUES}[0].resourceSharing[0].scope": "AllReplicas"},
            refused(f"{CLIQUES}[0].resourceSharing", "immutable"), SHARING),
    updated("2.7.startup-type", "the default written out", {_TYPE: "CliqueStartupTypeAnyOrder"},
            Stored()),
    updated("2.7.startup-type", "changed", {_TYPE: "CliqueStartupTypeInOrder"},
            refused(_TYPE, "immutable")),
    _again("2.7.group-set", _TWO_GROUPS),
    updated("2.7.group-set", "a group added",
            {f"{GROUPS}[1]": {"name": "front", "cliqueNames": ["router"]}},
            refused(GROUPS, "immutable")),
    updated("2.7.group-set", "a group taken out", {f"{GROUPS}[1]": GONE},
            refused(GROUPS, "immutable"), _TWO_GROUPS),
    updated("2.7.group-set", "a group renamed", {f"{_GROUP}.name": "motor"},
            refused(GROUPS, "immutable")),
    _again("2.7.group-cliques"),
    updated("2.7.group-cliques", "a member taken out", {f"{_GROUP}.cliqueNames": ["leader"]},
            refused(f"{_GROUP}.cliqueNames", "immutable")),
    updated("2.7.group-minimum", "the default written out", {f"{_GROUP}.minAvailable": 1},
            Stored()),
    updated("2.7.group-minimum", "raised", {f"{_GROUP}.minAvailable": 2},
            refused(f"{_GROUP}.minAvailable", "immutable")),
    _again("2.7.group-sharing", SHARING),
    updated("2.7.group-sharing", "taken out", {f"{_GROUP}.resourceSharing": GONE},
            refused(f"{_GROUP}.resourceSharing", "immutable"), SHARING),
    _again("2.7.claim-templates", SHARING),
    updated("2.7.claim-templates", "another request",
            {f"{CLAIMS}[0].templateSpec": device_request("nic")},
            refused(CLAIMS, "immutable"), SHARING),
    updated("2.7.claim-templates", "one more",
            {f"{CLAIMS}[1]": {"name": "nic", "templateSpec": device_request("nic")}},
            refused(CLAIMS, "immutable"), SHARING),
    _again("2.7.set-sharing", SHARING),
    updated("2.7.set-sharing", "another scope", {f"{_SHARES}[0].scope": "PerReplica"},
            refused(_SHARES, "immutable"), SHARING),
    updated("2.7.set-sharing", "one less", {f"{_SHARES}[1]": GONE},
            refused(_SHARES, "immutable"), SHARING),
)  # fmt: skip

_ALONE: Final = edited(PLAIN, {f"{_ROUTER}.minAvailable": 1})
_SCALING: Final = f"{_ROUTER}.autoScalingConfig"
_SCALED: Final = edited(_ALONE, {_SCALING: scaling(1, 5)})

_FREE: Final = (
    updated("2.7.pod-spec", "another image", {f"{_POD}.containers": [container(image="new:2")]},
            Stored()),
    updated("2.7.pod-spec", "a variable of a bad name",
            {f"{_POD}.containers": [container(env=[{"name": "NOT=THIS"}])]},
            refused(f"{_POD}.containers[0].env[0].name", "NOT=THIS")),
    updated("2.7.clique-labels", "changed", {f"{CLIQUES}[0].labels": {"role": "front"}}, Stored()),
    updated("2.7.clique-labels", "a bad value", {f"{CLIQUES}[0].labels": {"role": "two words"}},
            refused(f"{CLIQUES}[0].labels")),
    updated("2.7.clique-annotations", "changed", {f"{CLIQUES}[0].annotations": {"note": "é"}},
            Stored()),
    updated("2.7.clique-annotations", "a bad key", {f"{CLIQUES}[0].annotations": {"a/b/c": ""}},
            refused(f"{CLIQUES}[0].annotations")),
    updated("2.7.clique-replicas", "more of them",
            {f"{_WORKER}.replicas": 6, f"{_WORKER}.minAvailable": 4}, Stored()),
    updated("2.7.clique-replicas", "fewer than the minimum",
            {f"{_WORKER}.replicas": 3, f"{_WORKER}.minAvailable": 4},
            refused(f"{_WORKER}.minAvailable", "3")),
    updated("2.7.auto-scaling", "added", {_SCALING: scaling(1, 5)}, Stored(), _ALONE),
    updated("2.7.auto-scaling", "changed", {_SCALING: scaling(2, 9)}, Stored(), _SCALED),
    updated("2.7.auto-scaling", "taken out", {_SCALING: GONE}, Stored(), _SCALED),
    updated("2.7.auto-scaling", "an upper limit below the lower", {_SCALING: scaling(5, 4)},
            refused(f"{_SCALING}.maxReplicas"), _SCALED),
    updated("2.7.termination-delay", "changed", {f"{TEMPLATE}.terminationDelay": "10m"}, Stored()),
    updated("2.7.termination-delay", "none", {f"{TEMPLATE}.terminationDelay": "0s"},
            refused(f"{TEMPLATE}.terminationDelay")),
    updated("2.7.priority-class", "changed", {f"{TEMPLATE}.priorityClassName": "high"}, Stored()),
    updated("2.7.priority-class", "longer than any name",
            {f"{TEMPLATE}.priorityClassName": "x" * 254},
            refused(f"{TEMPLATE}.priorityClassName", "253")),
    updated("2.7.headless-service", "changed",
            {f"{TEMPLATE}.headlessServiceConfig": {"publishNotReadyAddresses": False}}, Stored()),
    updated("2.7.headless-service", "not a yes or no",
            {f"{TEMPLATE}.headlessServiceConfig": {"publishNotReadyAddresses": "perhaps"}},
            refused(f"{TEMPLATE}.headlessServiceConfig.publishNotReadyAddresses")),
    updated("2.7.group-replicas", "more of them", {f"{_GROUP}.replicas": 7}, Stored()),
    updated("2.7.group-replicas", "none of them", {f"{_GROUP}.replicas": 0},
            refused(f"{_GROUP}.replicas")),
    updated("2.7.scale-config", "added", {f"{_GROUP}.scaleConfig": scaling(1, 9)}, Stored()),
    updated("2.7.scale-config", "an upper limit below the lower",
            {f"{_GROUP}.scaleConfig": scaling(5, 4)},
            refused(f"{_GROUP}.scaleConfig.maxReplicas")),
    updated("2.7.update-strategy", "changed", {"spec.updateStrategy": {"type": "OnDelete"}},
            Stored()),
    updated("2.7.update-strategy", "one there is not", {"spec.updateStrategy": {"type": "Never"}},
            refused("spec.updateStrategy.type", "OnDelete")),
    updated("2.7.replicas", "more of them", {"spec.replicas": 2}, Stored()),
    updated("2.7.replicas", "negative", {"spec.replicas": -1}, refused("spec.replicas")),
    updated("2.7.annotations", "changed",
            {"metadata.annotations": {"note": "x"}, "metadata.labels": {"team": "a"}}, Stored()),
    updated("2.7.annotations", "a label of a bad value", {"metadata.labels": {"team": "two words"}},
            refused("metadata.labels")),
)  # fmt: skip

# In the order of the table: what must stay, then what may change. Topology constraints and the
# NVLink annotation stay too; they are 2.5.6 and 2.6.3.
ROWS: Final = (
    "2.7.clique-count", "2.7.clique-name", "2.7.clique-order", "2.7.role-name",
    "2.7.min-available", "2.7.starts-after", "2.7.scheduler-name", "2.7.clique-sharing",
    "2.7.startup-type", "2.7.group-set", "2.7.group-cliques", "2.7.group-minimum",
    "2.7.group-sharing", "2.7.claim-templates", "2.7.set-sharing",
    "2.7.pod-spec", "2.7.clique-labels", "2.7.clique-annotations", "2.7.clique-replicas",
    "2.7.auto-scaling", "2.7.termination-delay", "2.7.priority-class", "2.7.headless-service",
    "2.7.group-replicas", "2.7.scale-config", "2.7.update-strategy", "2.7.replicas",
    "2.7.annotations",
)  # fmt: skip

CASES: Final[tuple[Case, ...]] = (*_FROZEN, *_FREE)

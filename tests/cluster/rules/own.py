"""Rules that Grove does not have, each for what could never run or would surprise its author."""

from typing import Final

from api.jsons import Json, JsonObject
from tests.cluster.rules.cases import Case, Stored, refused
from tests.cluster.rules.manifests import (
    CLIQUES,
    GROUPS,
    PLAIN,
    TEMPLATE,
    clique,
    container,
    created,
    scaling,
    single,
)
from tests.support.edits import edited

ROWS: Final = (
    "own.full-names", "own.pods-in-all", "own.containers", "own.shape", "own.node-terms",
    "own.room", "own.membership", "own.visitors", "own.update-budget", "own.namesakes",
    "own.waiter", "own.services", "own.bounds",
)  # fmt: skip
# It says something, and refuses nothing.
WARNING: Final = ("own.room", "own.services")
# What no node of a lab holds; the largest has eight.
GPUS_OF_NO_NODE: Final = 16

_SHARED: Final[JsonObject] = {"name": "fabric", "scope": "PerReplica"}
_WORKER: Final = f"{CLIQUES}[2].spec"
_POD: Final = f"{_WORKER}.podSpec"
_BUDGET: Final = "spec.updateStrategy.rollingUpdate"


def _needing(gpus: int) -> Json:
    resources: JsonObject = {"limits": {"nvidia.com/gpu": gpus}}
    return [container(resources=resources)]


def _volumes(count: int) -> Json:
    return [{"name": f"v{i}", "emptyDir": {}} for i in range(count)]


LARGEST: Final = edited(PLAIN, {f"{_POD}.containers": _needing(GPUS_OF_NO_NODE)})


def _terms(*terms: Json) -> JsonObject:
    required: JsonObject = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


_GPU_NODES: Final[Json] = {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}

CASES: Final[tuple[Case, ...]] = (
    created("own.full-names", "a clique that sounds like a group", {
                f"{CLIQUES}[3]": clique("engine-worker")}, Stored()),
    created("own.full-names", "a clique called like a copy of another",
            {f"{CLIQUES}[3]": clique("engine-0-worker")},
            refused(f"{CLIQUES}[3].name", "engine-0-worker", "worker")),
    created("own.pods-in-all", "very many pods",
            {"spec.replicas": 100, f"{GROUPS}[0].replicas": 30, f"{_WORKER}.replicas": 5},
            Stored()),
    created("own.pods-in-all", "more pods than anybody means",
            {"spec.replicas": 5_000}, refused("spec.replicas", "20000")),
    created("own.update-budget", "a count and a percentage",
            {_BUDGET: {"maxUnavailable": 2, "maxSurge": "25%"}}, Stored()),
    created("own.update-budget", "surplus pods only",
            {_BUDGET: {"maxUnavailable": 0, "maxSurge": 1}}, Stored(), single()),
    created("own.update-budget", "nothing at all", {_BUDGET: {"maxUnavailable": "0%"}},
            refused(f"{_BUDGET}.maxUnavailable", "nothing could be replaced")),
    created("own.update-budget", "surplus copies of a group",
            {_BUDGET: {"maxUnavailable": 0, "maxSurge": 1}},
            refused(f"{_BUDGET}.maxUnavailable", "in place")),
    created("own.update-budget", "more than all of them", {_BUDGET: {"maxSurge": "101%"}},
            refused(f"{_BUDGET}.maxSurge")),
    created("own.containers", "one container", {f"{_POD}.containers": [container()]}, Stored()),
    created("own.containers", "no container", {f"{_POD}.containers": []},
            refused(f"{_POD}.containers", "at least one")),
    created("own.shape", "a port as a number",
            {f"{_POD}.containers": [container(ports=[{"containerPort": 80}])]},
            Stored({f"{_POD}.containers[0].ports[0].protocol": "TCP"})),
    created("own.shape", "a port as text",
            {f"{_POD}.containers": [container(ports=[{"containerPort": "http"}])]},
            refused(f"{_POD}.containers[0].ports[0].containerPort")),
    created("own.shape", "a misspelt type deep in a pod",
            {f"{_POD}.tolerations": {"operator": "Exists"}}, refused(f"{_POD}.tolerations")),
    created("own.node-terms", "one term of two that says something",
            {f"{_POD}.affinity": _terms(_GPU_NODES, {})}, Stored()),
    created("own.node-terms", "only a term that no node matches",
            {f"{_POD}.affinity": _terms({})}, refused(f"{_POD}.affinity", "empty")),
    created("own.room", "pods as large as a node", {f"{_POD}.containers": _needing(8)}, Stored()),
    created("own.room", "pods larger than any node", {}, Stored(warnings=("nvidia.com/gpu",)),
            LARGEST),
    created("own.membership", "a label that names a queue",
            {f"{CLIQUES}[2].labels": {"penstock.dev/queue": "blue"}}, Stored()),
    created("own.membership", "a label that names another gang",
            {f"{CLIQUES}[2].labels": {"grove.io/podgang": "other-0"}},
            refused(f"{CLIQUES}[2].labels[grove.io/podgang]", "which gang")),
    created("own.visitors", "containers from the start", {f"{_POD}.initContainers": [container()]},
            Stored()),
    created("own.visitors", "a container of the kind that comes later",
            {f"{_POD}.ephemeralContainers": [container()]},
            refused(f"{_POD}.ephemeralContainers", "kubectl debug")),
    created("own.namesakes", "a clique and a group of one name, of which one scales",
            {f"{GROUPS}[0].name": "router", f"{GROUPS}[0].scaleConfig": scaling(1, 4)}, Stored()),
    created("own.namesakes", "a clique and a group of one name, of which both scale",
            {f"{GROUPS}[0].name": "router", f"{GROUPS}[0].scaleConfig": scaling(1, 4),
             f"{CLIQUES}[0].spec.autoScalingConfig": scaling(2, 4)},
            refused(f"{CLIQUES}[0].name", "rename one")),
    created("own.namesakes", "a clique and a group of one name, which share alike",
            {f"{GROUPS}[0].name": "router", f"{GROUPS}[0].resourceSharing": [_SHARED],
             f"{CLIQUES}[0].resourceSharing": [_SHARED]},
            refused(f"{CLIQUES}[0].resourceSharing[0].name", "rename")),
    created("own.waiter", "a container called like the one that waits, where nobody waits",
            {f"{_POD}.containers": [container("grove-initc")]}, Stored()),
    created("own.waiter", "a container called like the one that waits beside it",
            {f"{_POD}.containers": [container("grove-initc")],
             f"{TEMPLATE}.cliqueStartupType": "CliqueStartupTypeInOrder"},
            refused(f"{_POD}.containers[0].name", "choose another")),
    created("own.bounds", "as many volumes as rules look at", {f"{_POD}.volumes": _volumes(256)},
            Stored()),
    created("own.bounds", "more volumes than rules look at", {f"{_POD}.volumes": _volumes(257)},
            refused(f"{_POD}.volumes", "holds too much")),
    created("own.services", "a name that services may have", {"metadata.name": "b7"}, Stored()),
    created("own.services", "a name that older services may not have",
            {"metadata.name": "7b"}, Stored(warnings=("1.36",))),
)  # fmt: skip

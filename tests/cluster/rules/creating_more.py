"""Rules 2.3.11 to 2.3.19 and 2.4: startup order, autoscaling, groups, pods, and names too long."""

from typing import Final

from api.jsons import Json, JsonObject
from tests.cluster.rules.cases import Case, Fault, Refused, Stored, refused
from tests.cluster.rules.manifests import (
    CLIQUES,
    GROUPS,
    PLAIN,
    SINGLE,
    TEMPLATE,
    clique,
    container,
    created,
    packed,
    scaling,
    updated,
)
from tests.support.edits import Edits, edited

ROWS: Final = (*(f"2.3.{row}" for row in range(11, 20)), "2.4")

_TYPE: Final = f"{TEMPLATE}.cliqueStartupType"
_EXPLICIT: Final[Edits] = {_TYPE: "CliqueStartupTypeExplicit"}
_DELAY: Final = f"{TEMPLATE}.terminationDelay"
_ROUTER: Final = f"{CLIQUES}[0].spec"
_WORKER: Final = f"{CLIQUES}[2].spec"
_POD: Final = f"{_ROUTER}.podSpec"
_GROUP: Final = f"{GROUPS}[0]"
_SCALING: Final = f"{_ROUTER}.autoScalingConfig"
_SCALE: Final = f"{_GROUP}.scaleConfig"


def _waiting(edges: dict[str, list[str]], kind: str) -> Edits:
    listed: list[Json] = [clique(name, startsAfter=[*after]) for name, after in edges.items()]
    return {_TYPE: f"CliqueStartupType{kind}", CLIQUES: listed}


_PAIR: Final = {"prefill": ["router"], "router": ["prefill"]}
_RING: Final = {"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]}
_DIAMOND: Final = {"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}

_ORDER: Final = (
    created("2.3.11", "a diamond", _waiting(_DIAMOND, "Explicit"), Stored(), SINGLE),
    created("2.3.11", "after an unknown clique",
            {**_EXPLICIT, f"{_WORKER}.startsAfter": ["nobody"]},
            refused(f"{_WORKER}.startsAfter[0]", "nobody")),
    created("2.3.11", "after an unknown clique where no order counts",
            {f"{_WORKER}.startsAfter": ["nobody"]}, Stored(warnings=("nobody",))),
    created("2.3.11", "a cycle of two named as a path", _waiting(_PAIR, "Explicit"),
            refused(f"{CLIQUES}[0].spec.startsAfter", "prefill → router → prefill"), SINGLE),
    created("2.3.11", "a cycle of three named as a path", _waiting(_RING, "Explicit"),
            refused(f"{CLIQUES}[0].spec.startsAfter", "a → b → c → a"), SINGLE),
    created("2.3.11", "a cycle although no order is asked for", _waiting(_PAIR, "AnyOrder"),
            refused(f"{CLIQUES}[0].spec.startsAfter", "prefill → router → prefill"), SINGLE),
    created("2.3.11", "a cycle under the order of the list", _waiting(_PAIR, "InOrder"),
            refused(f"{CLIQUES}[0].spec.startsAfter", "prefill → router → prefill"), SINGLE),
    created("2.3.11", "two cycles in one reply",
            _waiting({**_PAIR, "x": ["y"], "y": ["x"]}, "Explicit"),
            Refused((
                Fault(f"{CLIQUES}[0].spec.startsAfter", ("prefill → router → prefill",)),
                Fault(f"{CLIQUES}[2].spec.startsAfter", ("x → y → x",)),
            )), SINGLE),
)  # fmt: skip

_SCALED: Final = (
    created("2.3.12", "limits around the replicas",
            {f"{_ROUTER}.minAvailable": 1, _SCALING: scaling(1, 8)}, Stored()),
    created("2.3.12", "a lower limit below the minimum", {_SCALING: scaling(1, 8)},
            refused(f"{_SCALING}.minReplicas", "2")),
    created("2.3.12", "an upper limit below the lower", {_SCALING: scaling(5, 4)},
            refused(f"{_SCALING}.maxReplicas", "5")),
    created("2.3.12", "an upper limit below the replicas", {
                f"{_ROUTER}.replicas": 6, f"{_ROUTER}.minAvailable": 1, _SCALING: scaling(1, 4)},
            refused(f"{_SCALING}.maxReplicas", "6")),
)  # fmt: skip


def _group(name: str, *members: str, **more: Json) -> JsonObject:
    return {"name": name, "cliqueNames": list(members), **more}


_GROUPED: Final = (
    created("2.3.13", "a group of two cliques", {f"{_GROUP}.minAvailable": 3}, Stored()),
    created("2.3.13", "a group with limits", {_SCALE: scaling(3, 3)}, Stored()),
    created("2.3.13", "a group in capitals", {f"{_GROUP}.name": "Engine"},
            refused(f"{_GROUP}.name", "Engine")),
    created("2.3.13", "a group without name", {f"{_GROUP}.name": ""}, refused(f"{_GROUP}.name")),
    created("2.3.13", "two groups of one name", {f"{GROUPS}[1]": _group("engine", "router")},
            refused(f"{GROUPS}[1].name", "engine")),
    created("2.3.13", "a group of an unknown clique",
            {f"{_GROUP}.cliqueNames": ["leader", "nobody"]},
            refused(f"{_GROUP}.cliqueNames[1]", "nobody")),
    created("2.3.13", "a clique in two groups", {f"{GROUPS}[1]": _group("more", "worker")},
            refused(f"{GROUPS}[1].cliqueNames[0]", "worker", "engine")),
    created("2.3.13", "a clique twice in a group",
            {f"{_GROUP}.cliqueNames": ["leader", "worker", "leader"]},
            refused(f"{_GROUP}.cliqueNames[2]", "leader")),
    created("2.3.13", "a group of nobody", {f"{GROUPS}[1]": _group("empty")},
            refused(f"{GROUPS}[1].cliqueNames")),
    created("2.3.13", "a group of no copies", {f"{_GROUP}.replicas": 0},
            refused(f"{_GROUP}.replicas", "0")),
    created("2.3.13", "a group's minimum of none", {f"{_GROUP}.minAvailable": 0},
            refused(f"{_GROUP}.minAvailable", "0")),
    created("2.3.13", "a group's minimum above its replicas", {f"{_GROUP}.minAvailable": 4},
            refused(f"{_GROUP}.minAvailable", "3", "4")),
    created("2.3.13", "a group's lower limit below its minimum",
            {f"{_GROUP}.minAvailable": 2, _SCALE: scaling(1, 5)},
            refused(f"{_SCALE}.minReplicas", "2")),
    created("2.3.13", "a group's upper limit below the lower", {_SCALE: scaling(3, 2)},
            refused(f"{_SCALE}.maxReplicas", "3")),
    created("2.3.13", "a member that scales by itself",
            {f"{_WORKER}.autoScalingConfig": scaling(4, 8)},
            refused(f"{_WORKER}.autoScalingConfig", "engine")),
)  # fmt: skip

_DELAYS: Final = (
    *(created("2.3.14", f"a delay of {delay}", {_DELAY: delay}, Stored())
      for delay in ("90s", "1h30m", "0.5h", "250ms")),
    *(created("2.3.14", f"a delay of {delay}", {_DELAY: delay}, refused(_DELAY))
      for delay in ("0s", "-5m", "soon", "4", "")),
)  # fmt: skip

_SPREAD: Final[Json] = [
    {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "llm"}},
    }
]
_TWICE: Final[Json] = [{"name": "MODE", "value": "a"}, {"name": "MODE", "value": "b"}]
_BAD: Final[Json] = [{"name": "NOT=THIS", "value": "a"}]


def _env(env: Json, place: str = "containers") -> Edits:
    name = "main" if place == "containers" else "prepare"
    return {f"{_POD}.{place}": [container(name, env=env)]}


_PODS: Final = (
    *(created("2.3.16", f"restart policy {kind} and no warning", {f"{_POD}.restartPolicy": kind},
              Stored()) for kind in ("Always", "OnFailure", "Never")),
    created("2.3.16", "a restart policy there is not", {f"{_POD}.restartPolicy": "Sometimes"},
            refused(f"{_POD}.restartPolicy", "Sometimes")),
    updated("2.3.17", "spread constraints added later",
            {f"{_POD}.topologySpreadConstraints": _SPREAD},
            Stored(warnings=("topologySpreadConstraints",))),
    created("2.3.17", "spread constraints", {f"{_POD}.topologySpreadConstraints": _SPREAD},
            refused(f"{_POD}.topologySpreadConstraints")),
    created("2.3.17", "a node chosen beforehand", {f"{_POD}.nodeName": "n-1"},
            refused(f"{_POD}.nodeName")),
    created("2.3.18", "variables", _env([{"name": "MODE", "value": "a"}, {"name": "a.b-c"}]),
            Stored()),
    created("2.3.18", "one name in two containers",
            {f"{_POD}.containers": [container("a", env=[{"name": "MODE"}]),
                                    container("b", env=[{"name": "MODE"}])]}, Stored()),
    created("2.3.18", "a variable twice", _env(_TWICE),
            refused(f"{_POD}.containers[0].env[1]", "MODE")),
    created("2.3.18", "a variable twice in an init container", _env(_TWICE, "initContainers"),
            refused(f"{_POD}.initContainers[0].env[1]", "MODE")),
    created("2.3.18", "a variable of a bad name", _env(_BAD),
            refused(f"{_POD}.containers[0].env[0].name", "NOT=THIS")),
    created("2.3.18", "a variable of a bad name in an init container",
            _env(_BAD, "initContainers"),
            refused(f"{_POD}.initContainers[0].env[0].name", "NOT=THIS")),
    created("2.3.19", "no topology no domain no scheduler", {}, Stored()),
    created("2.3.19", "topology NVLink and scheduler in one reply",
            {f"{TEMPLATE}.topologyConstraint": packed("rack", topology="no-such-binding"),
             "metadata.annotations[grove.io/mnnvl-group]": "Not A Label",
             f"{_POD}.schedulerName": "elsewhere"},
            Refused((
                Fault(f"{TEMPLATE}.topologyConstraint.topologyName", ("no-such-binding",)),
                Fault("metadata.annotations[grove.io/mnnvl-group]"),
                Fault(f"{_POD}.schedulerName", ("elsewhere",)),
            ))),
    updated("2.3.19", "the scheduler also on update", {f"{_POD}.schedulerName": "elsewhere"},
            refused(f"{_POD}.schedulerName")),
)  # fmt: skip


def _long(set_name: int, group: int, member: int) -> JsonObject:
    """The plain set with names of these lengths."""
    worker = "w" * member
    return edited(PLAIN, {
        "metadata.name": "s" * set_name,
        f"{CLIQUES}[2].name": worker,
        f"{_GROUP}.name": "g" * group,
        f"{_GROUP}.cliqueNames": ["leader", worker],
    })  # fmt: skip


def _alone(set_name: int, clique_name: int) -> JsonObject:
    return edited(
        SINGLE, {"metadata.name": "s" * set_name, f"{CLIQUES}[0].name": "c" * clique_name}
    )


_BUDGET: Final = tuple(
    created(rule, what, {}, then, base)
    for rule in ("2.4", "2.3.15")
    for what, then, base in (
        ("45 characters of set and clique", Stored(), _alone(20, 25)),
        ("45 characters of set group and clique", Stored(), _long(15, 15, 15)),
        ("46 characters of set and clique",
         Refused((Fault("metadata.name", ("46", "45")), Fault(f"{CLIQUES}[0].name", ("46", "45")))),
         _alone(21, 25)),
        ("46 characters of set group and clique",
         Refused((
             Fault("metadata.name", ("46", "45")),
             Fault(f"{_GROUP}.name", ("46", "45")),
             Fault(f"{CLIQUES}[2].name", ("46", "45")),
         )), _long(15, 15, 16)),
    )
)  # fmt: skip

CASES: Final[tuple[Case, ...]] = (*_ORDER, *_SCALED, *_GROUPED, *_DELAYS, *_PODS, *_BUDGET)

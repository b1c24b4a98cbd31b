"""Rules 2.3.1 to 2.3.10: what a set must satisfy to be stored, shared claims included."""

from typing import Final

from api.jsons import Json
from tests.cluster.rules.cases import Case, Fault, Refused, Stored, refused
from tests.cluster.rules.manifests import (
    CLAIMS,
    CLIQUES,
    GROUPS,
    SHARING,
    TEMPLATE,
    clique,
    created,
    device_request,
)
from tests.support.edits import Edits

ROWS: Final = tuple(f"2.3.{row}" for row in range(1, 11))

_TYPE: Final = f"{TEMPLATE}.cliqueStartupType"
_SHARES: Final = f"{TEMPLATE}.resourceSharing"
_WORKER: Final = f"{CLIQUES}[2].spec"
_EXPLICIT: Final[Edits] = {_TYPE: "CliqueStartupTypeExplicit"}
# Where claims are shared: the set, a clique, a scaling group.
_LISTS: Final = {
    "set": _SHARES,
    "clique": f"{CLIQUES}[0].resourceSharing",
    "group": f"{GROUPS}[0].resourceSharing",
}


def _schedulers(*written: str) -> Edits:
    return {
        f"{CLIQUES}[{i}].spec.podSpec.schedulerName": name for i, name in enumerate(written) if name
    }


def _after(*names: str) -> Edits:
    return {**_EXPLICIT, f"{_WORKER}.startsAfter": list(names)}


_NAMES: Final = (
    created("2.3.1", "a name of letters digits and dashes", {"metadata.name": "llm-7b"}, Stored()),
    created("2.3.1", "no replicas at all", {"spec.replicas": 0}, Stored()),
    *(
        created("2.3.1", f"a set called {name}", {"metadata.name": name}, refused("metadata.name"))
        for name in ("LLM", "llm_7b", "-llm")
    ),
    created("2.3.1", "negative replicas", {"spec.replicas": -1}, refused("spec.replicas", "0")),
    *(
        created("2.3.2", f"startup type {kind}", {_TYPE: f"CliqueStartupType{kind}"}, Stored())
        for kind in ("AnyOrder", "InOrder", "Explicit")
    ),
    created("2.3.2", "a startup type without prefix", {_TYPE: "Explicit"}, refused(_TYPE)),
    created("2.3.2", "an empty startup type", {_TYPE: ""}, refused(_TYPE)),
)

_CLAIM_TEMPLATES: Final = (
    created("2.3.3", "a claim template", {}, Stored(), SHARING),
    created(
        "2.3.3",
        "two claim templates",
        {f"{CLAIMS}[1]": {"name": "nic", "templateSpec": device_request("nic")}},
        Stored(),
        SHARING,
    ),
    created(
        "2.3.3", "a claim template without name", {f"{CLAIMS}[0].name": ""},
        refused(f"{CLAIMS}[0].name"), SHARING,
    ),
    created(
        "2.3.3",
        "two claim templates of one name",
        {f"{CLAIMS}[1]": {"name": "fabric", "templateSpec": device_request()}},
        refused(f"{CLAIMS}[1].name", "fabric"),
        SHARING,
    ),
    created(
        "2.3.3",
        "a claim template without requests",
        {f"{CLAIMS}[0].templateSpec.spec.devices.requests": []},
        refused(f"{CLAIMS}[0].templateSpec.spec.devices.requests"),
        SHARING,
    ),
    created(
        "2.3.3",
        "a claim template without devices",
        {f"{CLAIMS}[0].templateSpec": {"spec": {}}},
        refused(f"{CLAIMS}[0].templateSpec.spec.devices.requests"),
        SHARING,
    ),
)  # fmt: skip


def _shared(place: str, path: str) -> tuple[Case, ...]:
    twice: Json = {"name": "fabric", "scope": "AllReplicas"}
    nameless: Json = {"name": "", "scope": "AllReplicas"}
    elsewhere: Json = {"name": "fabric", "namespace": "shared", "scope": "AllReplicas"}
    alone: Json = {"name": "fabric", "scope": "Some"}
    outside: Json = {"name": "cache", "namespace": "shared", "scope": "PerReplica"}
    return (
        created("2.3.4", f"a claim of elsewhere shared in a {place}", {path: [outside]},
                Stored(), SHARING),
        created("2.3.4", f"both scopes in a {place}",
                {path: [twice, {"name": "cache", "scope": "PerReplica"}]}, Stored(), SHARING),
        created("2.3.4", f"a shared claim without name in a {place}", {path: [nameless]},
                refused(f"{path}[0].name"), SHARING),
        created("2.3.4", f"one claim shared twice in a {place}", {path: [twice, twice]},
                refused(f"{path}[1].name", "fabric"), SHARING),
        created("2.3.4", f"a namespace for a template in line in a {place}", {path: [elsewhere]},
                refused(f"{path}[0].namespace"), SHARING),
        created("2.3.4", f"an unknown scope in a {place}", {path: [alone]},
                refused(f"{path}[0].scope"), SHARING),
    )  # fmt: skip


def _filtered(filters: Json, place: str = "set") -> Edits:
    return {_LISTS[place]: [{"name": "fabric", "scope": "AllReplicas", "filter": filters}]}


_FILTER: Final = f"{_SHARES}[0].filter"
_GROUP_FILTER: Final = f"{_LISTS['group']}[0].filter"

_SHARED_CLAIMS: Final = (
    *(made for place, path in _LISTS.items() for made in _shared(place, path)),
    created("2.3.5", "a filter by cliques", _filtered({"childCliqueNames": ["router", "worker"]}),
            Stored(), SHARING),
    created("2.3.5", "a filter by groups", _filtered({"childScalingGroupNames": ["engine"]}),
            Stored(), SHARING),
    created("2.3.5", "a group filter by its members",
            _filtered({"childCliqueNames": ["leader"]}, "group"), Stored(), SHARING),
    created("2.3.5", "a filter of nothing", _filtered({}), refused(_FILTER), SHARING),
    created("2.3.5", "a filter of two empty lists",
            _filtered({"childCliqueNames": [], "childScalingGroupNames": []}),
            refused(_FILTER), SHARING),
    created("2.3.5", "a filter by an unknown clique", _filtered({"childCliqueNames": ["nobody"]}),
            refused(f"{_FILTER}.childCliqueNames[0]", "nobody"), SHARING),
    created("2.3.5", "a filter by an unknown group",
            _filtered({"childScalingGroupNames": ["nobody"]}),
            refused(f"{_FILTER}.childScalingGroupNames[0]", "nobody"), SHARING),
    created("2.3.5", "a group filter of nothing", _filtered({}, "group"),
            refused(_GROUP_FILTER), SHARING),
    created("2.3.5", "a group filter by a clique outside",
            _filtered({"childCliqueNames": ["router"]}, "group"),
            refused(f"{_GROUP_FILTER}.childCliqueNames[0]", "router"), SHARING),
)  # fmt: skip

_ROLES: Final = (
    created("2.3.6", "three cliques of three roles", {}, Stored()),
    created("2.3.6", "no clique", {CLIQUES: [], GROUPS: []}, refused(CLIQUES)),
    created("2.3.6", "a clique without name", {f"{CLIQUES}[0].name": ""},
            refused(f"{CLIQUES}[0].name")),
    created("2.3.6", "a clique in capitals", {f"{CLIQUES}[0].name": "Router"},
            refused(f"{CLIQUES}[0].name", "Router")),
    created("2.3.6", "two cliques of one name",
            {f"{CLIQUES}[3]": clique("router", roleName="second")},
            refused(f"{CLIQUES}[3]", "router")),
    created("2.3.6", "two cliques of one role", {f"{CLIQUES}[1].spec.roleName": "router"},
            refused(f"{CLIQUES}[1].spec.roleName", "router")),
    created("2.3.7", "labels and annotations",
            {f"{CLIQUES}[0].labels": {"example.com/role": "front", "empty": ""},
             f"{CLIQUES}[0].annotations": {"example.com/note": "as long as one likes: é, 日本"}},
            Stored()),
    created("2.3.7", "a label of a bad key", {f"{CLIQUES}[0].labels": {"-role": "front"}},
            refused(f"{CLIQUES}[0].labels", "-role")),
    created("2.3.7", "a label of a bad value", {f"{CLIQUES}[0].labels": {"role": "two words"}},
            refused(f"{CLIQUES}[0].labels", "role")),
    created("2.3.7", "an annotation of a bad key",
            {f"{CLIQUES}[0].annotations": {"a/b/c": "deep"}},
            refused(f"{CLIQUES}[0].annotations", "a/b/c")),
    created("2.3.8", "no scheduler", {}, Stored()),
    created("2.3.8", "the default scheduler",
            _schedulers(*["default-scheduler"] * 3), Stored()),
    created("2.3.8", "names that stand for one scheduler",
            _schedulers("default-scheduler", "kai-scheduler", ""), Stored()),
    created("2.3.8", "an unknown scheduler everywhere", _schedulers(*["elsewhere"] * 3),
            refused(f"{CLIQUES}[0].spec.podSpec.schedulerName", "elsewhere")),
    created("2.3.8", "two schedulers in one set", _schedulers("", "", "elsewhere"),
            refused(f"{CLIQUES}[2].spec.podSpec.schedulerName", "elsewhere")),
)  # fmt: skip

_COUNTS: Final = (
    created("2.3.9", "a minimum of all", {f"{_WORKER}.minAvailable": 4}, Stored()),
    created("2.3.9", "a minimum of one", {f"{_WORKER}.minAvailable": 1}, Stored()),
    created("2.3.9", "negative replicas of a clique", {f"{_WORKER}.replicas": -1},
            refused(f"{_WORKER}.replicas", "-1")),
    created("2.3.9", "a minimum of none", {f"{_WORKER}.minAvailable": 0},
            refused(f"{_WORKER}.minAvailable", "0")),
    created("2.3.9", "a minimum above the replicas", {f"{_WORKER}.minAvailable": 5},
            refused(f"{_WORKER}.minAvailable", "4", "5")),
    created("2.3.10", "two that come before", _after("router", "leader"), Stored()),
    created("2.3.10", "after nobody", _after(""), refused(f"{_WORKER}.startsAfter[0]")),
    created("2.3.10", "after itself", _after("worker"),
            refused(f"{_WORKER}.startsAfter[0]", "worker")),
    created("2.3.10", "after one twice", _after("leader", "leader"),
            refused(f"{_WORKER}.startsAfter[1]", "leader")),
)  # fmt: skip

_EVERYTHING_WRONG: Final = created(
    "2.3.6",
    "many faults in one reply",
    {
        "metadata.name": "LLM",
        "spec.replicas": -1,
        f"{TEMPLATE}.terminationDelay": "0s",
        f"{CLIQUES}[0].spec.minAvailable": 9,
        f"{CLIQUES}[1].spec.roleName": "router",
        f"{_WORKER}.startsAfter": ["nobody"],
        _TYPE: "CliqueStartupTypeExplicit",
        f"{CLIQUES}[2].labels": {"-role": "front"},
        f"{_WORKER}.podSpec.nodeName": "n-1",
        f"{GROUPS}[0].minAvailable": 7,
    },
    Refused(
        (
            Fault("metadata.name"),
            Fault("spec.replicas"),
            Fault(f"{TEMPLATE}.terminationDelay"),
            Fault(f"{CLIQUES}[0].spec.minAvailable", ("9",)),
            Fault(f"{CLIQUES}[1].spec.roleName", ("router",)),
            Fault(f"{_WORKER}.startsAfter[0]", ("nobody",)),
            Fault(f"{CLIQUES}[2].labels"),
            Fault(f"{_WORKER}.podSpec.nodeName"),
            Fault(f"{GROUPS}[0].minAvailable", ("7",)),
        )
    ),
)

CASES: Final[tuple[Case, ...]] = (
    *_NAMES, *_CLAIM_TEMPLATES, *_SHARED_CLAIMS, *_ROLES, *_COUNTS, _EVERYTHING_WRONG,
)  # fmt: skip

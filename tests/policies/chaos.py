"""Sets that people would write, and what nobody would."""

import copy
from typing import Final

from hypothesis import strategies as st

from api import names
from api.jsons import Json, JsonObject
from tests.policies.drafts import POD, clique, draft, group

SCALARS: Final[st.SearchStrategy[Json]] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.sampled_from(["a", "b", "none", "4h", "rack", "net", "\ud800", 2**70])
)
KEYS: Final = st.text(max_size=5) | st.sampled_from(
    ["metadata", "name", "spec", "template", "cliques", "podSpec", "replicas", "startsAfter"]
)
JSONS: Final[st.SearchStrategy[Json]] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4)
)

_SCALING: JsonObject = {"minReplicas": 2, "maxReplicas": 5, "metrics": [{"type": "Resource"}]}
_CLOSE: JsonObject = {"topologyName": "net", "pack": {"required": "rack", "preferred": "host"}}
_SHARED: list[Json] = [
    {"name": "gpus", "scope": "AllReplicas", "filter": {"childCliqueNames": ["b"]}}
]
_CONTAINER: JsonObject = {
    "name": "main",
    "env": [{"name": "A", "value": "x"}, {"name": "B"}],
    "resources": {"requests": {"cpu": "1", "memory": 4}, "limits": {"nvidia.com/gpu": 2}},
}
_POD: JsonObject = {
    "initContainers": [{**_CONTAINER, "restartPolicy": "Always"}],
    "containers": [_CONTAINER],
    "schedulerName": "kai-scheduler",
    "overhead": {"cpu": "100m"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "x", "operator": "Exists"}]}]
            }
        }
    },
}
# Every field that a rule looks at.
EVERYTHING: Final[JsonObject] = draft(
    clique("a", counts={"replicas": 4, "minAvailable": 2, "autoScalingConfig": _SCALING}),
    clique(
        "b",
        "a",
        pod=_POD,
        counts={"roleName": "worker"},
        labels={"l": "v"},
        annotations={"n": "v", names.MNNVL_ANNOTATION: "none"},
        topologyConstraint=_CLOSE,
        resourceSharing=[{"name": "gpus", "scope": "PerReplica"}],
    ),
    groups=(
        group(
            "g",
            "b",
            counts={"replicas": 3, "minAvailable": 2, "scaleConfig": _SCALING},
            annotations={names.MNNVL_ANNOTATION: "none"},
            topologyConstraint={"pack": {"required": "block"}},
            resourceSharing=_SHARED,
        ),
    ),
    annotations={names.MNNVL_ANNOTATION: "none"},
    topologyConstraint={"topologyName": "net", "packDomain": "zone"},
    terminationDelay="1h30m",
    headlessServiceConfig={"publishNotReadyAddresses": False},
    resourceClaimTemplates=[
        {"name": "gpus", "templateSpec": {"spec": {"devices": {"requests": [{"name": "x"}]}}}}
    ],
    resourceSharing=[
        {"name": "gpus", "scope": "AllReplicas", "filter": {"childScalingGroupNames": ["g"]}}
    ],
)

Path = tuple[str | int, ...]


def paths(raw: Json, so_far: Path = ()) -> list[Path]:
    """Every place in a document."""
    inside: list[tuple[str | int, Json]] = []
    if isinstance(raw, dict):
        inside = list(raw.items())
    elif isinstance(raw, list):
        inside = list(enumerate(raw))
    return [so_far, *(path for key, value in inside for path in paths(value, (*so_far, key)))]


def replaced(raw: JsonObject, path: Path, value: Json) -> JsonObject:
    """A copy of a document with something else in one place."""
    made: Json = copy.deepcopy(raw)
    if not path:
        return value if isinstance(value, dict) else {"spec": value}
    at: Json = made
    for step in path[:-1]:
        at = at[step]  # type: ignore[index]
    at[path[-1]] = value  # type: ignore[index]
    assert isinstance(made, dict)
    return made


@st.composite
def broken_sets(draw: st.DrawFn) -> JsonObject:
    """A set of every field, with anything at all in one to three places."""
    made = EVERYTHING
    for _ in range(draw(st.integers(1, 3))):
        made = replaced(made, draw(st.sampled_from(paths(made))), draw(JSONS))
    return made


@st.composite
def sets(draw: st.DrawFn) -> JsonObject:
    """A set as people write them: some fields left out, names that may clash."""
    name = st.sampled_from(["a", "b", "c", "B", ""])
    count = st.none() | st.integers(-1, 6)
    cliques = draw(st.lists(st.builds(_a_clique, name, count, count, st.lists(name)), max_size=4))
    groups = draw(
        st.lists(st.builds(_a_group, name, count, count, st.lists(name, max_size=3)), max_size=2)
    )
    startup = draw(st.sampled_from(["AnyOrder", "InOrder", "Explicit"]))
    return draft(cliques=[*cliques], groups=tuple(groups), startup=startup)


def _a_clique(name: str, replicas: int | None, minimum: int | None, after: list[str]) -> JsonObject:
    counts: JsonObject = {"replicas": replicas, "minAvailable": minimum}
    return clique(name, *after, pod=POD, counts=counts)


def _a_group(
    name: str, replicas: int | None, minimum: int | None, members: list[str]
) -> JsonObject:
    return group(name, *members, counts={"replicas": replicas, "minAvailable": minimum})

"""PodCliqueSets as hypothesis makes them: valid ones of every field, and such with one fault.

`podcliquesets` are taken by admission. `broken` names what is wrong with a set, so that a test can
say who must find it; `shaken` makes no promise at all.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from hypothesis import strategies as st

from api.jsons import Json, JsonObject
from tests.support.edits import GONE, Edits, at, edited
from tests.support.generated_pods import (
    annotation_maps,
    keys,
    label_maps,
    named,
    parts,
    pod_specs,
    some,
    words,
)

# A binding's name and its levels, the widest first.
Bindings: TypeAlias = Mapping[str, Sequence[str]]

TEMPLATE: Final = "spec.template"
CLIQUES: Final = f"{TEMPLATE}.cliques"
GROUPS: Final = f"{TEMPLATE}.podCliqueScalingGroups"
MNNVL: Final = "grove.io/mnnvl-group"
STARTUP: Final = ("AnyOrder", "InOrder", "Explicit")
SCHEDULERS: Final = ("", "default-scheduler", "kai-scheduler")

_metrics: Final[st.SearchStrategy[list[Json]]] = some(
    st.sampled_from(
        [
            {"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}},
            {"type": "Pods", "pods": {
                "metric": {"name": "queued", "selector": {"matchLabels": {"a": "b"}}},
                "target": {"type": "AverageValue", "averageValue": "30"}}},
            {"type": "External", "external": {
                "metric": {"name": "lag"}, "target": {"type": "Value", "value": 100}}},
        ]
    ), 2,
)  # fmt: skip
_requests: Final = named(
    words,
    st.one_of(
        st.builds(
            lambda n: {"exactly": {
                "deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": n,
                "selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}],
            }},
            st.integers(1, 8),
        ),
        st.just({"firstAvailable": [{"name": "big", "deviceClassName": "big.example.com"}]}),
    ), 2,
).filter(bool)  # fmt: skip
_claim_specs: Final = st.builds(
    lambda requests, metadata: {
        **({"metadata": metadata} if metadata else {}),
        "spec": {"devices": {"requests": requests}},
    },
    _requests,
    parts(labels=label_maps, annotations=annotation_maps),
)
_delays: Final = st.sampled_from(["4h", "90s", "1h30m", "0.5h", "250ms", "10m0s"])


@st.composite
def podcliquesets(draw: st.DrawFn, bindings: Bindings | None = None) -> JsonObject:
    """A set that admission takes; constraints speak of these bindings, and of none without any."""
    names = draw(st.lists(words, unique=True, min_size=1, max_size=5))
    groups, free = _grouped(draw, names)
    templates = draw(st.lists(words, unique=True, max_size=2))
    schedulers = SCHEDULERS[: draw(st.integers(1, 3))]
    cliques = [
        _clique(draw, i, names, schedulers, alone=name in free) for i, name in enumerate(names)
    ]
    template: JsonObject = {"cliques": [*cliques]}
    if draw(st.booleans()):
        template["cliqueStartupType"] = f"CliqueStartupType{draw(st.sampled_from(STARTUP))}"
    if groups:
        template["podCliqueScalingGroups"] = [*groups]
    template |= draw(
        parts(
            priorityClassName=st.sampled_from(["", "high"]),
            headlessServiceConfig=st.builds(
                lambda yes: {"publishNotReadyAddresses": yes}, st.booleans()
            ),
            terminationDelay=_delays,
        )
    )
    if templates:
        template["resourceClaimTemplates"] = [
            {"name": name, "templateSpec": draw(_claim_specs)} for name in templates
        ]
    _share(draw, template, templates)
    if bindings:
        _pack(draw, template, bindings)
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {
            "name": draw(words),
            **draw(parts(labels=label_maps, annotations=_marked(draw))),
        },
        "spec": {
            "template": template,
            **draw(
                parts(
                    replicas=st.integers(0, 3),
                    updateStrategy=_update_strategies,
                )
            ),
        },
    }


_update_strategies = parts(
    type=st.sampled_from(["RollingRecreate", "OnDelete"]),
    paused=st.booleans(),
    rollingUpdate=parts(
        maxUnavailable=st.one_of(st.integers(1, 3), st.sampled_from(["1%", "100%"])),
        maxSurge=st.one_of(st.integers(0, 3), st.sampled_from(["0%", "50%"])),
        progressDeadlineSeconds=st.integers(1, 3600),
    ),
)


def _marked(draw: st.DrawFn) -> st.SearchStrategy[dict[str, str]]:
    """Annotations, some with the one for NVLink."""
    more = {MNNVL: "none"} if draw(st.booleans()) else {}
    return annotation_maps.map(lambda found: {**found, **more})


def _grouped(draw: st.DrawFn, names: list[str]) -> tuple[list[JsonObject], set[str]]:
    """Scaling groups over some of the cliques, and the cliques that stand alone."""
    homes = [draw(st.integers(0, 2)) for _ in names]
    called = draw(st.lists(words, unique=True, min_size=2, max_size=2))
    groups: list[JsonObject] = []
    free = {n for n, where in zip(names, homes, strict=True) if where == 0}
    for home, name in enumerate(called, start=1):
        members: list[Json] = [n for n, where in zip(names, homes, strict=True) if where == home]
        if not members:
            continue
        replicas = draw(st.integers(1, 4))
        minimum = draw(st.integers(1, replicas))
        group: JsonObject = {"name": name, "cliqueNames": members, "replicas": replicas}
        group |= draw(parts(minAvailable=st.just(minimum), annotations=_marked(draw)))
        # A clique that stands alone under this name may scale and share itself.
        if name not in free and draw(st.booleans()):
            group["scaleConfig"] = _limits(draw, minimum, replicas)
        groups.append(group)
    return groups, free


def _limits(draw: st.DrawFn, minimum: int, replicas: int) -> JsonObject:
    low = draw(st.integers(minimum, replicas))
    limits: JsonObject = {"maxReplicas": draw(st.integers(replicas, replicas + 5))}
    return limits | draw(parts(minReplicas=st.just(low), metrics=_metrics))


def _clique(
    draw: st.DrawFn,
    index: int,
    names: list[str],
    schedulers: tuple[str, ...],
    *,
    alone: bool,
) -> JsonObject:
    replicas = draw(st.integers(1, 8))
    minimum = draw(st.integers(1, replicas))
    spec: JsonObject = {
        "roleName": f"role-{index}",
        "replicas": replicas,
        "podSpec": draw(pod_specs(schedulers)),
    }
    spec |= draw(parts(minAvailable=st.just(minimum)))
    if index and draw(st.booleans()):
        before = draw(st.lists(st.sampled_from(names[:index]), unique=True, max_size=3))
        spec["startsAfter"] = [*before]
    if alone and draw(st.booleans()):
        written = spec.get("minAvailable", replicas)
        assert isinstance(written, int)
        spec["autoScalingConfig"] = _limits(draw, written, replicas)
    more = draw(parts(labels=label_maps, annotations=_marked(draw)))
    return {"name": names[index], **more, "spec": spec}


def _share(draw: st.DrawFn, template: JsonObject, templates: list[str]) -> None:
    """Share claims at some of the three places."""
    cliques, groups = _objects(template, "cliques"), _objects(template, "podCliqueScalingGroups")
    members: list[JsonObject] = [{"childCliqueNames": [clique["name"]]} for clique in cliques]
    members += [{"childScalingGroupNames": [group["name"]]} for group in groups]
    if draw(st.booleans()):
        template["resourceSharing"] = draw(_shares(templates, members))
    for clique in cliques:
        if draw(st.booleans()):
            clique["resourceSharing"] = draw(_shares(templates, []))
    for group in groups:
        inside = group["cliqueNames"]
        assert isinstance(inside, list)
        alone = {clique["name"] for clique in cliques} - {*inside}
        if group["name"] not in alone and draw(st.booleans()):
            filters: list[JsonObject] = [{"childCliqueNames": inside}]
            group["resourceSharing"] = draw(_shares(templates, filters))


def _shares(templates: list[str], filters: list[JsonObject]) -> st.SearchStrategy[list[Json]]:
    inside: list[JsonObject] = [{"name": name} for name in templates]
    outside: list[JsonObject] = [{"name": "elsewhere", "namespace": "shared"}, {"name": "here"}]
    scopes = st.sampled_from(["AllReplicas", "PerReplica"])
    chosen: list[JsonObject] = [{}]
    chosen += [{"filter": found} for found in filters]

    def shared(which: JsonObject, scope: str, more: JsonObject) -> Json:
        return {**which, "scope": scope, **more}

    one = st.builds(shared, st.sampled_from([*inside, *outside]), scopes, st.sampled_from(chosen))
    return st.lists(one, max_size=2, unique_by=lambda share: str(at(share, "name")))


def _pack(draw: st.DrawFn, template: JsonObject, bindings: Bindings) -> None:
    """Ask for closeness at some of the three places, never wider inside than outside."""
    name = draw(st.sampled_from(sorted(bindings)))
    levels = bindings[name]
    depths = st.lists(st.integers(0, len(levels) - 1), min_size=3, max_size=3).map(sorted)
    required, preferred = draw(depths), draw(depths)
    outside = (
        [template],
        _objects(template, "podCliqueScalingGroups"),
        _objects(template, "cliques"),
    )
    for depth, places in enumerate(outside):
        for place in places:
            some_of = parts(
                required=st.just(levels[required[depth]]),
                preferred=st.just(levels[preferred[depth]]),
            )
            pack, asks = draw(st.tuples(some_of, st.booleans()))
            if pack and asks:
                place["topologyConstraint"] = {"topologyName": name, "pack": pack}


def _objects(template: JsonObject, field: str) -> list[JsonObject]:
    found = template.get(field, [])
    assert isinstance(found, list)
    return [entry for entry in found if isinstance(entry, dict)]


@dataclass(frozen=True)
class Broken:
    """A set with one fault: what is wrong, and whether our rules must find it."""

    how: str
    body: JsonObject
    by_rules: bool = True


_Break = Callable[[JsonObject], Edits]

# Each is made to the first clique, or to the set.
_BY_RULES: Final[Mapping[str, _Break]] = {
    "a set in capitals": lambda _: {"metadata.name": "LLM"},
    "negative replicas": lambda _: {"spec.replicas": -1},
    "no cliques": lambda _: {CLIQUES: []},
    "no template": lambda _: {TEMPLATE: {}},
    "a startup type without prefix": lambda _: {f"{TEMPLATE}.cliqueStartupType": "Explicit"},
    "no delay": lambda _: {f"{TEMPLATE}.terminationDelay": "0s"},
    "a clique twice": lambda body: {f"{CLIQUES}[{_count(body)}]": _first(body)},
    "a clique in capitals": lambda _: {f"{CLIQUES}[0].name": "Leader"},
    "a clique of 64 characters": lambda _: {f"{CLIQUES}[0].name": "c" * 64},
    "negative pods": lambda _: {f"{CLIQUES}[0].spec.replicas": -1},
    "a minimum of none": lambda _: {f"{CLIQUES}[0].spec.minAvailable": 0},
    "a minimum out of reach": lambda _: {f"{CLIQUES}[0].spec.minAvailable": 9},
    "a clique after itself": lambda body: {
        f"{TEMPLATE}.cliqueStartupType": "CliqueStartupTypeExplicit",
        f"{CLIQUES}[0].spec.startsAfter": [at_text(body, f"{CLIQUES}[0].name")],
    },
    "a clique after nobody": lambda _: {
        f"{TEMPLATE}.cliqueStartupType": "CliqueStartupTypeExplicit",
        f"{CLIQUES}[0].spec.startsAfter": ["there-is-no-such"],
    },
    "a label of two words": lambda _: {f"{CLIQUES}[0].labels": {"a": "two words"}},
    "a key of two slashes": lambda _: {f"{CLIQUES}[0].annotations": {"a/b/c": ""}},
    "a restart policy there is not": lambda _: {
        f"{CLIQUES}[0].spec.podSpec.restartPolicy": "Sometimes"
    },
    "a chosen node": lambda _: {f"{CLIQUES}[0].spec.podSpec.nodeName": "n-1"},
    "a foreign scheduler": lambda _: {f"{CLIQUES}[0].spec.podSpec.schedulerName": "elsewhere"},
    "no containers": lambda _: {f"{CLIQUES}[0].spec.podSpec.containers": []},
    "a variable without name": lambda _: {
        f"{CLIQUES}[0].spec.podSpec.containers[0].env": [{"name": "", "value": "x"}]
    },
    "a group of nobody": lambda _: {GROUPS: [{"name": "g", "cliqueNames": []}]},
    "a group of strangers": lambda _: {GROUPS: [{"name": "g", "cliqueNames": ["stranger"]}]},
    "an unknown binding": lambda _: {
        f"{TEMPLATE}.topologyConstraint": {"topologyName": "none", "pack": {"required": "rack"}}
    },
    "NVLink where there is none": lambda _: {f"metadata.annotations[{MNNVL}]": "fabric"},
    "a claim of no request": lambda _: {
        f"{TEMPLATE}.resourceClaimTemplates": [{"name": "c", "templateSpec": {"spec": {}}}]
    },
    "a claim for nobody": lambda _: {
        f"{TEMPLATE}.resourceSharing": [{"name": "c", "scope": "PerReplica", "filter": {}}]
    },
    "replicas as text": lambda _: {"spec.replicas": "2"},
    "a clique as text": lambda _: {f"{CLIQUES}[0]": "leader"},
    "pods without end": lambda _: {f"{CLIQUES}[0].spec.replicas": 2**63},
}
# Of pods the rules read only what they judge by; the rest is the schema's.
_BY_SCHEMA: Final[Mapping[str, _Break]] = {
    "a pull policy there is not": lambda _: {
        f"{CLIQUES}[0].spec.podSpec.containers[0].imagePullPolicy": "Sometimes"
    },
    "a port as text": lambda _: {
        f"{CLIQUES}[0].spec.podSpec.containers[0].ports": [{"containerPort": "http"}]
    },
    "an unknown field": lambda _: {f"{CLIQUES}[0].spec.podSpec.nodeNames": "n-1"},
    "an unknown field of a set": lambda _: {"spec.replica": 2},
    "tolerations as an object": lambda _: {f"{CLIQUES}[0].spec.podSpec.tolerations": {}},
}


@st.composite
def broken(draw: st.DrawFn, bindings: Bindings | None = None) -> Broken:
    """A set with exactly one fault."""
    body = draw(podcliquesets(bindings))
    how = draw(st.sampled_from([*_BY_RULES, *_BY_SCHEMA]))
    edits = {**_BY_RULES, **_BY_SCHEMA}[how](body)
    return Broken(how, edited(body, edits), by_rules=how in _BY_RULES)


_replacements: Final[st.SearchStrategy[Json]] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "0", "null", "../..", "\x1b[31m", "a\nb", "é", "e\u0301", "x" * 10_000]),
    st.just([]),
    st.just({}),
    st.builds(lambda key: {key: "x"}, keys),
)


@st.composite
def shaken(draw: st.DrawFn, bindings: Bindings | None = None) -> JsonObject:
    """A set in which anything below `spec` was replaced or taken out; nobody knows what it is."""
    body = draw(podcliquesets(bindings))
    for _ in range(draw(st.integers(1, 3))):
        paths = places(body["spec"], "spec")
        path = draw(st.sampled_from(paths))
        takes_out = draw(st.booleans())
        body = edited(body, {path: GONE if takes_out else draw(_replacements)})
        if not isinstance(body.get("spec"), dict):
            break
    return body


def places(found: Json, path: str) -> list[str]:
    """The path of everything in an object, itself included."""
    below: list[tuple[str, Json]] = []
    if isinstance(found, dict):
        below = [(f"{path}[{key}]", value) for key, value in found.items() if _spelled(key)]
    elif isinstance(found, list):
        below = [(f"{path}[{i}]", value) for i, value in enumerate(found)]
    return [path, *(place for where, value in below for place in places(value, where))]


def _spelled(key: str) -> bool:
    # Others cannot be told from an index, or from the end of a path.
    return not key.isdigit() and "]" not in key and bool(key)


def at_text(body: JsonObject, path: str) -> str:
    """The text at a path."""
    found = at(body, path)
    assert isinstance(found, str)
    return found


def _first(body: JsonObject) -> Json:
    found = at(body, f"{CLIQUES}[0]")
    assert isinstance(found, dict)
    return found


def _count(body: JsonObject) -> int:
    found = at(body, CLIQUES)
    assert isinstance(found, list)
    return len(found)

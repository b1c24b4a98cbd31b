"""Sets to be judged, and what is said of them."""

import copy
from collections.abc import Mapping
from typing import Final

from api.capacity import Capacity
from api.jsons import Json, JsonObject
from api.topology import ClusterTopologyBindingSpec
from policies import podcliqueset_admission
from policies.admission import Operation, Request
from policies.answers import Allow, Answer, Refuse
from policies.known import NOTHING, Known, Snapshot
from policies.policy import BUILT_IN, Policy
from policies.problems import Problem

CLIQUES: Final = "spec.template.cliques"
GROUPS: Final = "spec.template.podCliqueScalingGroups"
NONE: Final[JsonObject] = {}
POD: Final[JsonObject] = {"containers": [{"name": "main", "image": "x"}]}
LEVELS: Final = ("zone", "block", "rack", "host")


def clique(
    name: Json, *after: Json, pod: Json = POD, counts: JsonObject = NONE, **more: Json
) -> JsonObject:
    spec: JsonObject = {"startsAfter": [*after], "podSpec": copy.deepcopy(pod), **counts}
    return {"name": name, "spec": spec, **more}


def group(name: Json, *members: Json, counts: JsonObject = NONE, **more: Json) -> JsonObject:
    return {"name": name, "cliqueNames": [*members], **counts, **more}


def draft(
    *cliques: Json,
    groups: tuple[Json, ...] = (),
    name: Json = "llm",
    startup: str = "Explicit",
    annotations: JsonObject = NONE,
    **template: Json,
) -> JsonObject:
    filled: JsonObject = {
        "cliqueStartupType": f"CliqueStartupType{startup}",
        "cliques": [*cliques] or [clique("a")],
        "podCliqueScalingGroups": [*groups],
        **template,
    }
    return {
        "metadata": {"name": name, "annotations": {**annotations}},
        "spec": {"replicas": 1, "template": filled},
    }


def judged(
    raw: JsonObject,
    before: JsonObject | None = None,
    policy: Policy = BUILT_IN,
    known: Known = NOTHING,
) -> Answer:
    """Judge a set that is created, or changed if there is one before, and leave it as it is."""
    untouched = copy.deepcopy(raw)
    answer = asked(raw, before, policy, known)
    assert raw == untouched
    return answer


def asked(
    raw: JsonObject, before: JsonObject | None, policy: Policy = BUILT_IN, known: Known = NOTHING
) -> Answer:
    operation = Operation.CREATE if before is None else Operation.UPDATE
    request = Request(operation, "PodCliqueSet", raw, before)
    return podcliqueset_admission.judge(policy, known, request)


def problems(
    raw: JsonObject,
    before: JsonObject | None = None,
    policy: Policy = BUILT_IN,
    known: Known = NOTHING,
) -> list[Problem]:
    answer = judged(raw, before, policy, known)
    return list(answer.problems) if isinstance(answer, Refuse) else []


def warnings(
    raw: JsonObject,
    before: JsonObject | None = None,
    policy: Policy = BUILT_IN,
    known: Known = NOTHING,
) -> list[str]:
    answer = judged(raw, before, policy, known)
    assert isinstance(answer, Allow), answer
    return list(answer.warnings)


def only(found: list[Problem], path: str) -> str:
    assert [problem.path for problem in found] == [path], found
    return found[0].message


def edited(raw: JsonObject, path: str, value: Json) -> JsonObject:
    """Give a copy with one field set; steps of the path are parted by slashes."""
    made = copy.deepcopy(raw)
    *steps, last = path.split("/")
    at: Json = made
    for step in steps:
        at = at[int(step)] if isinstance(at, list) else at.setdefault(step, {})  # type: ignore[union-attr]
    if isinstance(at, list):
        at[int(last)] = value
    else:
        assert isinstance(at, dict)
        at[last] = value
    return made


def constraint(required: Json = None, preferred: Json = None, name: Json = None) -> JsonObject:
    pack = {"required": required, "preferred": preferred}
    made: JsonObject = {"pack": {key: value for key, value in pack.items() if value is not None}}
    return made if name is None else {"topologyName": name, **made}


def cluster(
    *bindings: str,
    node: Mapping[str, int] | None = None,
    domains: Mapping[str, dict[str, int]] | None = None,
) -> Snapshot:
    """A cluster with bindings of these names, all of the same levels, and of that size."""
    levels = [{"domain": level, "key": f"example.com/{level}"} for level in LEVELS]
    spec = ClusterTopologyBindingSpec.model_validate({"levels": levels})
    largest = None if node is None else Capacity(dict(node), dict(domains or {}))
    return Snapshot(dict.fromkeys(bindings or ("net",), spec), largest)

"""Reviews for every route of the webhook, each full of what costs most there."""

from collections.abc import Callable, Iterator
from typing import Final

import orjson

from api import names
from api.jsons import Json, JsonObject
from policies.policy import Policy
from policies.policy_source import MOST_VALUES
from tests.cluster.rules.manifests import PLAIN
from tests.support import bad_reviews, gangpods
from tests.support.bad_input import MIB, greedy
from tests.support.bad_reviews import Case, review
from webhook.routes import PATHS

AGAIN: Final = "/validate/podcliquesets"
BINDINGS: Final = "/validate/clustertopologybindings"
PODS: Final = "/mutate/pods"
MANAGED: Final = "/authorize/managed"
POLICY: Final = "/validate/policy"

# Not quite as many values as the webhook reads of one object.
MANY: Final = 90_000

STRICT: Final = Policy.model_validate(
    {
        "rules": [
            {"id": "secure", "podSecurity": "restricted"},
            {"id": "images", "images": {"requireDigest": True, "deny": ["*/bad:*", "*old*"]}},
            {"id": "few", "cel": "size(pod.allContainers) < 9 && pod.volumes.all(v, v.name != '')"},
        ]
    }
)
"""A policy that has pods looked at all over."""

Made = Iterator[tuple[str, JsonObject]]


def policies() -> Iterator[tuple[str, str]]:
    """Policies of nearly as many bytes as are taken, of what costs most to read or to find."""
    yield "unknown keys", "".join(f"k{i}: 1\n" for i in range(33_000))[:250_000]
    yield (
        "unknown keys that are just read",
        "".join(f"k{i}: 1\n" for i in range(MOST_VALUES // 2 - 1)),
    )
    yield "numbers for names", f"schedulers: [{'7,' * 120_000}]"
    yield "numbers that are just read", f"schedulers: [{'7,' * (MOST_VALUES - 9)}]"
    yield "queues", "queues:\n" + "- {name: q, namespaces: [a]}\n" * (MOST_VALUES // 7)
    yield "queues of many", f"queues:\n- name: q\n  namespaces: [{'a,' * (MOST_VALUES - 9)}]\n"
    yield "a text", f"pods: {{queue: {'x' * 250_000}}}"
    yield "quotes", f"pods: {{queue: '{chr(39) * 250_000}'}}"
    yield "escapes", 'pods: {queue: "' + "\\u00e9" * 40_000 + '"}'
    yield "lists in lists", "[" * 250_000
    yield "lists", f"[{'[],' * 80_000}]"
    yield "blank lines", "\n" * 250_000
    yield "a comment", "#" * 250_000
    yield "one key again", "a: 1\n" * (MOST_VALUES // 2 - 1)
    long = "(" * 900 + "1" + ")" * 900
    yield "long expressions", _rules(long for _ in range(100))
    # All different, since what was read once is known.
    lists = (f"[{i}{',1' * 190}].all(x, x < 2)" for i in range(128))
    yield "expressions", _rules(lists)
    few = (f"[{i}{',1' * 190}].all(x, x < 3)" for i in range(32))
    yield "expressions that are just read", _rules(few)


def _rules(expressions: Iterator[str]) -> str:
    each = (f"- {{id: r{i}, cel: '{one}'}}\n" for i, one in enumerate(expressions))
    return "rules:\n" + "".join(each)


def bindings() -> Made:
    """Topology bindings."""
    head: JsonObject = {"metadata": {"name": "net"}}
    level: JsonObject = {"domain": "-", "key": "-"}
    specs: dict[str, JsonObject] = {
        "levels": {"levels": [level] * (MANY // 3)},
        "levels that are none": {"levels": [7] * MANY},
        "an endless level": {"levels": [{"domain": "a-" * (MIB - 1024), "key": "!"}] * 1},
        "schedulers": {
            "levels": [],
            "schedulerTopologyBindings": [
                {"schedulerName": f"s{i}", "topologyReference": ""} for i in range(MANY // 3)
            ],
        },
        "unknown fields": {f"f{i}": 1 for i in range(MANY)},
    }
    for what, spec in specs.items():
        yield what, {**head, "spec": spec}


def _affinity(terms: list[Json]) -> JsonObject:
    required: JsonObject = {"nodeSelectorTerms": terms}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def pods() -> Made:
    """Pods of plain gangs and of sets."""
    host: JsonObject = {"name": "c", "image": "bad", "ports": [{"hostPort": 1}]}
    specs: dict[str, JsonObject] = {
        "containers": {"containers": [host] * (MANY // 6)},
        "visitors": {"ephemeralContainers": [{"image": f"i{i}"} for i in range(MANY // 2)]},
        "volumes": {"volumes": [{"hostPath": {}, "image": {}} for _ in range(MANY // 3)]},
        "variables": {"containers": [{"name": "c", "env": [{"name": "="}] * (MANY // 2)}]},
        "node terms": {"affinity": _affinity([{}] * MANY)},
        "settings": {"securityContext": {"sysctls": [{"name": "x"}] * (MANY // 2)}},
        "capabilities": {
            "containers": [{"securityContext": {"capabilities": {"add": ["X"] * MANY}}}]
        },
        "gates": {"schedulingGates": [{"name": f"g{i}"} for i in range(MANY // 2)]},
        "conditions": {"readinessGates": [{"conditionType": "x"}] * (MANY // 2)},
        "an endless image": {"containers": [{"image": "a/" * (MIB - 1024)}]},
    }
    for what, spec in specs.items():
        yield what, gangpods.pod(gangpods.PLAIN, spec)
        yield f"{what} of a set", gangpods.pod(gangpods.GROVES, spec)
    labels = {f"k{i}": "v" for i in range(MANY)}
    yield "labels", gangpods.pod({**gangpods.PLAIN, **labels})


def managed() -> Made:
    """Objects that were made for a set."""
    labels: JsonObject = {names.MANAGED_BY_LABEL: names.MANAGED_BY, names.PART_OF_LABEL: "llm"}
    nested: Json = 1
    for _ in range(60):
        nested = [nested]
    parts: dict[str, JsonObject] = {
        "finalizers": {"metadata": {"finalizers": [f"f{i}" for i in range(MANY)]}},
        "owners": {"metadata": {"ownerReferences": [{"uid": "u"}] * (MANY // 2)}},
        "labels": {"metadata": {"labels": {**labels, **{f"k{i}": "v" for i in range(MANY)}}}},
        "an endless set": {"metadata": {"labels": {**labels, names.PART_OF_LABEL: "a" * MIB}}},
        "a spec": {"spec": {f"f{i}": nested for i in range(1_500)}},
        "a spec of lists": {"spec": {"args": [[]] * MANY}},
    }
    for what, part in parts.items():
        metadata = part.get("metadata")
        more = metadata if isinstance(metadata, dict) else {}
        yield what, {**part, "metadata": {"name": "a", "labels": labels, **more}}


def _each(path: str, kind: str, made: Made) -> Iterator[Case]:
    """A new one, and one that is changed in nothing, or from nearly nothing."""
    for what, raw in made:
        text = orjson.dumps(raw)
        small = orjson.dumps({"metadata": raw["metadata"]})
        for how, old in (("new", b"null"), ("unchanged", text), ("changed", small)):
            yield Case(f"{what}, {how}", review(text, old=old, kind=kind), path)


def _policies() -> Made:
    for what, text in policies():
        both: JsonObject = {names.POLICY_KEY: text, names.CANDIDATE_KEY: f"{text}\n"}
        yield what, {"metadata": {"name": names.POLICY_CONFIG}, "data": both}


def _pods() -> Iterator[Case]:
    """New ones only: of others nothing is asked."""
    for what, raw in pods():
        yield Case(what, review(orjson.dumps(raw), kind="Pod"), PODS)


def _again() -> Iterator[Case]:
    # The judge is that of the route before, which is asked about all of them.
    for bad in greedy(PLAIN):
        if bad.what.endswith((" labels", " variables", " chain")):
            yield Case(bad.what, review(bad.text), AGAIN)


def _small() -> Iterator[Case]:
    """What is of no kind that any route knows."""
    for path in PATHS:
        for what, token in (("a list", b"[7]"), ("nothing", b"null"), ("nested", b"[" * 99_999)):
            yield Case(f"{what} at {path}", review(token), path)


GROUPS: Final[dict[str, Callable[[], Iterator[Case]]]] = {
    **bad_reviews.GROUPS,
    "sets judged again": _again,
    "bindings": lambda: _each(BINDINGS, "ClusterTopologyBinding", bindings()),
    "pods": _pods,
    "managed objects": lambda: _each(MANAGED, "PodClique", managed()),
    "policies": lambda: _each(POLICY, "ConfigMap", _policies()),
    "what no route knows": _small,
}
"""All sorts of bad reviews for all routes."""

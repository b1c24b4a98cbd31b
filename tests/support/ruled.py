"""A policy with a rule of each kind in each mode, and the sets and pods that break them."""

from collections.abc import Callable, Mapping
from typing import Final

import orjson

from api import names
from api.jsons import Json, JsonObject
from tests.support.living import engine_set

MODES: Final = ("enforce", "warn", "audit", "off")
ANNA: Final = "anna@example.com"
BERTA: Final = "berta@example.com"
SUBMITTERS: Final = "ruled-submitters"
OWN: Final = "ruled-own"
CLOSED: Final = "ruled-closed"
ANOTHER: Final = "ruled-scheduler"

# What rules ask, each of which the plain set keeps to.
ASKED: Final[Mapping[str, JsonObject]] = {
    "images": {"images": {"allow": ["registry.example/*"], "deny": ["*:latest"]}},
    "digests": {"images": {"requireDigest": True}},
    "security": {"podSecurity": "baseline"},
    "restricted": {"podSecurity": "restricted"},
    "cel-pod": {
        "cel": "pod.containers.all(c, c.cpu.requests <= 64000)",
        "message": "more processors than a node has",
    },
    "cel-set": {"cel": "set.labels.size() < 9 && !has(set.labels.forbidden)"},
    "cel-unclear": {"cel": "!has(pod.nodeSelector.odd) || pod.nodeSelector.none == ''"},
}
IMAGE: Final = f"registry.example/engine@sha256:{'0' * 64}"
NOBODY: Final[JsonObject] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
CAREFUL: Final[JsonObject] = {
    "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}
}  # fmt: skip
LIMITS: Final[JsonObject] = {
    "gangs": 2,
    "podsPerGang": {"max": 4},
    "gpusPerGang": 8,
    "replicasPerClique": 3,
    "priorityClasses": ["ruled-low"],
}


def policy(space: str) -> str:
    """Write it: who names the queue of a mode is held against all rules in that mode."""
    open_ones = [_queue(_name(mode), space, mode, LIMITS) for mode in MODES]
    shut = [_queue(_name(mode, CLOSED), "ruled-elsewhere", mode, {}) for mode in MODES]
    own: JsonObject = {"name": OWN, "namespaces": [space], "default": True}
    rules: list[Json] = [
        {"id": f"{what}-{mode}", "mode": mode, "queues": [_name(mode)], **asked}
        for what, asked in ASKED.items()
        for mode in MODES
    ]
    gives: JsonObject = {
        "id": "own",
        "queues": [OWN],
        "startup": "gate",
        "readinessGate": True,
        "requests": {"cpu": "250m"},
        "ports": [{"name": "http", "containerPort": 8000}],
    }
    exempt: list[Json] = [
        {
            "id": name,
            "reason": "moves to a queue of its own",
            "expires": expires,
            "rules": ["queue-gangs-*"],
            "namespaces": [space],
            "names": [name],
        }
        for name, expires in (("excused", "2999-01-01T00:00:00Z"), ("late", "2020-01-01T00:00:00Z"))
    ]
    whole: JsonObject = {
        "schedulers": [names.DEFAULT_SCHEDULER, ANOTHER],
        "queues": [*open_ones, *shut, own],
        "rules": rules,
        "mutations": [gives],
        "exemptions": exempt,
    }
    return orjson.dumps(whole).decode()


def _name(mode: str, prefix: str = "ruled") -> str:
    return f"{prefix}-{mode}"


def _queue(name: str, space: str, mode: str, limits: JsonObject) -> JsonObject:
    return {
        "name": name,
        "namespaces": [space],
        "mode": mode,
        "submitters": {"groups": [SUBMITTERS]},
        "limits": limits,
        "topology": {"required": "rack", "whenPodsAtLeast": 3},
        "schedulers": ["default-scheduler"],
        "startup": {"maxCliques": 3, "maxEdges": 2, "maxDepth": 2},
    }


def plain(mode: str = "") -> JsonObject:
    """A set that keeps to all rules, in the queue of a mode or in none by name."""
    body = engine_set("ruled", pods=1, gpus=1)
    container(body)["resources"] = {
        "requests": {"cpu": "1"},
        "limits": {"nvidia.com/gpu": "1"},
    }
    container(body)["image"] = IMAGE
    container(body)["securityContext"] = {**CAREFUL}
    pod(body)["securityContext"] = {**NOBODY}
    if mode:
        label(body, names.QUEUE_LABEL, _name(mode))
    return body


def label(body: JsonObject, key: str, word: str) -> None:
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    there = metadata.get("labels")
    metadata["labels"] = {**(there if isinstance(there, dict) else {}), key: word}


def cliques(body: JsonObject) -> list[JsonObject]:
    found = template(body)["cliques"]
    assert isinstance(found, list)
    return [each for each in found if isinstance(each, dict)]


def template(body: JsonObject) -> JsonObject:
    spec = body["spec"]
    assert isinstance(spec, dict)
    found = spec["template"]
    assert isinstance(found, dict)
    return found


def clique(body: JsonObject) -> JsonObject:
    found = cliques(body)[0]["spec"]
    assert isinstance(found, dict)
    return found


def pod(body: JsonObject) -> JsonObject:
    found = clique(body)["podSpec"] if body["kind"] == "PodCliqueSet" else body["spec"]
    assert isinstance(found, dict)
    return found


def container(body: JsonObject) -> JsonObject:
    listed = pod(body)["containers"]
    assert isinstance(listed, list)
    assert isinstance(listed[0], dict)
    return listed[0]


def too_many_gangs(body: JsonObject) -> None:
    spec = body["spec"]
    assert isinstance(spec, dict)
    spec["replicas"] = 3


def too_many_gpus(body: JsonObject) -> None:
    container(body)["resources"] = {"limits": {"nvidia.com/gpu": "9"}}


def too_many_pods(body: JsonObject) -> None:
    clique(body)["replicas"] = 4


def too_important(body: JsonObject) -> None:
    pod(body)["priorityClassName"] = "ruled-high"


def too_far_apart(body: JsonObject) -> None:
    clique(body)["replicas"] = 3


def of_another_scheduler(body: JsonObject) -> None:
    pod(body)["schedulerName"] = ANOTHER


def too_many_in_a_gang(body: JsonObject) -> None:
    clique(body)["replicas"] = 3
    _add_cliques(body, {"second": []})


def of_too_many_cliques(body: JsonObject) -> None:
    _add_cliques(body, {"second": [], "third": [], "fourth": []})


def of_too_many_dependencies(body: JsonObject) -> None:
    _add_cliques(body, {"second": ["engine"], "third": ["engine", "second"]})


def too_drawn_out(body: JsonObject) -> None:
    _add_cliques(body, {"second": ["engine"], "third": ["second"]})


def _add_cliques(body: JsonObject, after: Mapping[str, list[Json]]) -> None:
    more: list[Json] = [
        {"name": name, "spec": {**clique(body), "roleName": name, "startsAfter": parents}}
        for name, parents in after.items()
    ]
    template(body)["cliques"] = [*cliques(body), *more]
    template(body)["cliqueStartupType"] = "CliqueStartupTypeExplicit"


def of_a_strange_image(body: JsonObject) -> None:
    container(body)["image"] = "elsewhere.example/engine:1.0"


def of_a_denied_image(body: JsonObject) -> None:
    container(body)["image"] = "registry.example/engine:latest"


def of_a_tag(body: JsonObject) -> None:
    container(body)["image"] = "registry.example/engine:1.0"


def on_the_node(body: JsonObject) -> None:
    pod(body)["hostNetwork"] = True


def as_root(body: JsonObject) -> None:
    container(body)["securityContext"] = {}


def too_hungry(body: JsonObject) -> None:
    container(body)["resources"] = {"requests": {"cpu": "65"}}


def forbidden(body: JsonObject) -> None:
    label(body, "forbidden", "yes")


def without_an_answer(body: JsonObject) -> None:
    pod(body)["nodeSelector"] = {"odd": "yes"}


def gang_pod(mode: str) -> JsonObject:
    """A plain gang's pod that keeps to all rules."""
    labels: JsonObject = {names.GANG_LABEL: "loose", names.GANG_SIZE_LABEL: "1"}
    if mode:
        labels[names.QUEUE_LABEL] = _name(mode)
    main: JsonObject = {"name": "main", "image": IMAGE, "securityContext": {**CAREFUL}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "loose", "labels": labels},
        "spec": {"containers": [main], "securityContext": {**NOBODY}},
    }


Breaks = Callable[[JsonObject], None]

OF_SETS: Final[tuple[tuple[str, Breaks], ...]] = (
    ("queue-gangs-are-few", too_many_gangs),
    ("queue-gangs-are-sized", too_many_gpus),
    ("queue-gangs-are-sized", too_many_in_a_gang),
    ("queue-cliques-are-sized", too_many_pods),
    ("queue-priorities-are-allowed", too_important),
    ("queue-large-gangs-are-near", too_far_apart),
    ("queue-schedulers-are-allowed", of_another_scheduler),
    ("queue-startup-is-short", of_too_many_cliques),
    ("queue-startup-is-short", of_too_many_dependencies),
    ("queue-startup-is-short", too_drawn_out),
    ("images", of_a_strange_image),
    ("images", of_a_denied_image),
    ("digests", of_a_tag),
    ("security", on_the_node),
    ("restricted", as_root),
    ("cel-pod", too_hungry),
    ("cel-set", forbidden),
    ("cel-unclear", without_an_answer),
)
OF_PODS: Final[tuple[tuple[str, Breaks], ...]] = (
    ("images", of_a_strange_image),
    ("images", of_a_denied_image),
    ("digests", of_a_tag),
    ("security", on_the_node),
    ("restricted", as_root),
    ("cel-pod", too_hungry),
)

"""How much of a pod's lists the rules look at, and that what holds more is not let in.

Rules read these lists through `listed` alone, which cuts them by the same table that `overfull`
reports by: so nothing is left out of sight without a word, whatever the policy says. The whole
review is bounded too, but rules that look at everything in turn would still take too long.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from api.jsons import Json, JsonObject
from policies import globs, reading
from policies.problems import Problem

CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
TERMS: Final = "nodeSelectorTerms"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
TERMS_PATH: Final = f"affinity.nodeAffinity.{REQUIRED}.{TERMS}"

# Many times what pods in use hold. There are some forty capabilities and as many safe settings.
MOST: Final[Mapping[str, int]] = MappingProxyType(
    {
        "initContainers": 256,
        "containers": 256,
        "ephemeralContainers": 256,
        "volumes": 256,
        "env": 2_000,
        "envFrom": 1_024,
        "ports": 256,
        "volumeMounts": 1_024,
        "add": 256,
        "drop": 256,
        "sysctls": 256,
        TERMS: 1_024,
    }
)
# Longer than any reference to an image that can be pulled: patterns see no more of it.
LONGEST_IMAGE: Final = globs.LONGEST

_IN_CONTAINERS: Final = ("env", "envFrom", "ports", "volumeMounts")


def listed(holder: JsonObject, field: str) -> list[Json]:
    """Give a list of a pod as far as rules look at it; `overfull` tells if there is more."""
    found = holder.get(field)
    if not isinstance(found, list):
        return []
    most = MOST[field]
    return found if len(found) <= most else found[:most]


def terms(pod: JsonObject) -> list[Json] | None:
    """Give the terms of a pod's required node affinity, or None where there is no such list."""
    affinity = pod.get("affinity")
    if not isinstance(affinity, dict):
        return None
    required = reading.mapping(reading.mapping(affinity.get("nodeAffinity")).get(REQUIRED))
    return listed(required, TERMS) if isinstance(required.get(TERMS), list) else None


def overfull(path: str, pod: JsonObject) -> Iterator[Problem]:
    """Find all in a pod's spec that holds more than rules look at."""
    for field in (*CONTAINERS, "volumes"):
        if field in pod:
            yield from _over(path, pod, field)
    context = pod.get("securityContext")
    if isinstance(context, dict) and "sysctls" in context:
        yield from _over(f"{path}.securityContext", context, "sysctls")
    if "affinity" in pod:
        yield from _terms(path, pod)
    for field in CONTAINERS:
        for i, each in enumerate(listed(pod, field)):
            if isinstance(each, dict):
                yield from _container(f"{path}.{field}[{i}]", each)
    for i, each in enumerate(listed(pod, "volumes")):
        if isinstance(each, dict) and "image" in each:
            source = reading.mapping(each["image"])
            yield from _image(f"{path}.volumes[{i}].image.reference", source.get("reference"))


def _terms(path: str, pod: JsonObject) -> Iterator[Problem]:
    required: JsonObject = pod
    *way, field = TERMS_PATH.split(".")
    for step in way:
        required = reading.mapping(required.get(step))
    yield from _over(".".join((path, *way)), required, field)


def _container(path: str, container: JsonObject) -> Iterator[Problem]:
    for field in _IN_CONTAINERS:
        if field in container:
            yield from _over(path, container, field)
    context = container.get("securityContext")
    if isinstance(context, dict) and "capabilities" in context:
        where = f"{path}.securityContext.capabilities"
        capabilities = reading.mapping(context["capabilities"])
        yield from _over(where, capabilities, "add")
        yield from _over(where, capabilities, "drop")
    yield from _image(f"{path}.image", container.get("image"))


def _over(path: str, holder: JsonObject, field: str) -> Iterator[Problem]:
    found = holder.get(field)
    if isinstance(found, list) and len(found) > MOST[field]:
        yield Problem(
            f"{path}.{field}",
            f"holds too much: at most {MOST[field]} are taken, got {len(found)}, since no rule "
            "looks at more; take some out",
        )


def _image(path: str, written: Json) -> Iterator[Problem]:
    if isinstance(written, str) and len(written) > LONGEST_IMAGE:
        yield Problem(
            path,
            f"is too long: at most {LONGEST_IMAGE} characters are taken, got {len(written)}, "
            "since patterns look at no more; name the image by a shorter reference",
        )

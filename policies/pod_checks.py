"""The policy's own rules over pods: which images, and how much they may do on their node.

Cliques of a set run the same few images, so each is looked at once for each rule.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from api.jsons import JsonObject
from policies import bounds, globs, images, pod_security, reading
from policies.pod_security_glance import Glance
from policies.policy_checks import ImageCheck, PodCheck
from policies.problems import Problem


@dataclass(frozen=True)
class Used:
    """An image and its full name."""

    written: str
    tagged: str
    has_digest: bool


@dataclass(frozen=True)
class Pods:
    """Pods by their paths, and the images of all of them."""

    specs: Sequence[tuple[str, JsonObject]]
    images: Sequence[Used]


def look(specs: Sequence[tuple[str, JsonObject]]) -> Pods:
    """Find the images of pods."""
    found: dict[str, Used] = {}
    for _, pod in specs:
        for field in bounds.CONTAINERS:
            for each in bounds.listed(pod, field):
                written = each.get("image") if isinstance(each, dict) else None
                if isinstance(written, str) and written not in found:
                    found[written] = _used(written)
        for each in bounds.listed(pod, "volumes"):
            if isinstance(each, dict) and "image" in each:
                written = reading.text(reading.mapping(each["image"]).get("reference")) or ""
                if written not in found:
                    found[written] = _used(written)
    return Pods(specs, [used for written, used in found.items() if written])


def _used(written: str) -> Used:
    image = images.read(written[: bounds.LONGEST_IMAGE])
    return Used(written, image.tagged, bool(image.digest))


def check(rule: PodCheck, pods: Pods) -> Iterator[Problem]:
    """Find what in the pods' specs breaks the rule."""
    if rule.images is not None:
        yield from _images(rule.images, pods)
    if rule.pod_security is not None:
        glance = Glance(rule.pod_security)
        for path, pod in pods.specs:
            if not glance.surely_keeps(pod):
                yield from pod_security.check(rule.pod_security, path, pod)


def _images(wanted: ImageCheck, pods: Pods) -> Iterator[Problem]:
    wrong = {used.written: found for used in pods.images if (found := [*_wrong(wanted, used)])}
    for path, pod in pods.specs if wrong else ():
        for where, written in _places(path, pod):
            for message in wrong.get(written, ()):
                yield Problem(where, message)


def _wrong(wanted: ImageCheck, used: Used) -> Iterator[str]:
    shown = f"image {used.written[: globs.LONGEST]!r}"
    if wanted.require_digest and not used.has_digest:
        yield f"{shown} must be named by its digest (@sha256:…)"
    denied = next((each for each in wanted.deny if globs.matches(each, used.tagged)), None)
    if denied is not None:
        yield f"{shown} is denied by {denied!r}"
    elif wanted.allow and not globs.any_matches(wanted.allow, used.tagged):
        yield f"{shown} is none of: {', '.join(wanted.allow[:5])}"


def _places(path: str, pod: JsonObject) -> Iterator[tuple[str, str]]:
    for field in bounds.CONTAINERS:
        for i, each in enumerate(bounds.listed(pod, field)):
            name = reading.text(reading.mapping(each).get("image"))
            if name:
                yield f"{path}.{field}[{i}].image", name
    for i, each in enumerate(bounds.listed(pod, "volumes")):
        source = reading.mapping(reading.mapping(each).get("image"))
        name = reading.text(source.get("reference"))
        if name:
            yield f"{path}.volumes[{i}].image.reference", name

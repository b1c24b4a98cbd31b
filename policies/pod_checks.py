"""The policy's own rules over pods: which images, and how much they may do on their node."""

from collections.abc import Iterator

from api.jsons import JsonObject
from policies import globs, images, pod_security, reading
from policies.policy_checks import ImageCheck, PodCheck
from policies.problems import Problem

_MOST = 256


def check(rule: PodCheck, path: str, pod: JsonObject) -> Iterator[Problem]:
    """Find what in a pod's spec breaks the rule."""
    if rule.images is not None:
        yield from _images(rule.images, path, pod)
    if rule.pod_security is not None:
        yield from pod_security.check(rule.pod_security, path, pod)


def _images(wanted: ImageCheck, path: str, pod: JsonObject) -> Iterator[Problem]:
    for where, written in _written(path, pod):
        image = images.read(written)
        shown = f"image {written!r}"
        if wanted.require_digest and not image.digest:
            yield Problem(where, f"{shown} must be named by its digest (@sha256:…)")
        denied = next((each for each in wanted.deny if globs.matches(each, image.tagged)), None)
        if denied is not None:
            yield Problem(where, f"{shown} is denied by {denied!r}")
        elif wanted.allow and not globs.any_matches(wanted.allow, image.tagged):
            yield Problem(where, f"{shown} is none of: {', '.join(wanted.allow[:5])}")


def _written(path: str, pod: JsonObject) -> Iterator[tuple[str, str]]:
    for field in pod_security.LISTS:
        for i, each in enumerate(reading.items(pod.get(field))[:_MOST]):
            name = reading.text(reading.mapping(each).get("image"))
            if name:
                yield f"{path}.{field}[{i}].image", name[: globs.LONGEST]
    for i, each in enumerate(reading.items(pod.get("volumes"))[:_MOST]):
        source = reading.mapping(reading.mapping(each).get("image"))
        name = reading.text(source.get("reference"))
        if name:
            yield f"{path}.volumes[{i}].image.reference", name[: globs.LONGEST]

"""How a pod's spec refers to claims on devices. Pure."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Final

from api.jsons import Json, JsonObject
from controller.workloads import containers
from policies import syntax

_DIGITS: Final = 8
_LONGEST: Final = 63


def entry(claim: str) -> str:
    """Name a pod's entry for a claim: like the claim, where that can be a pod's word for it."""
    if syntax.is_label(claim):
        return claim
    digest = hashlib.sha256(claim.encode()).hexdigest()[:_DIGITS]
    return f"{claim.replace('.', '-')[: _LONGEST - _DIGITS - 1]}-{digest}"


def with_claims(
    spec: JsonObject, entries: Sequence[JsonObject], takes: Callable[[JsonObject], bool]
) -> JsonObject:
    """Add entries to a pod's spec, and to each of its containers that takes them.

    What the author refers to by the same name stays the author's.
    """
    written = {_name(item) for item in items(spec.get("resourceClaims"))}
    added = [item for item in entries if item["name"] not in written]
    made: JsonObject = {**spec, "resourceClaims": [*items(spec.get("resourceClaims")), *added]}
    taken = [item["name"] for item in added]
    return containers.changed(
        made, lambda container: _claiming(container, taken) if takes(container) else container
    )


def items(raw: Json) -> list[Json]:
    """Give a list, also where there is none."""
    return raw if isinstance(raw, list) else []


def _claiming(container: JsonObject, added: Sequence[Json]) -> JsonObject:
    raw = container.get("resources")
    resources = raw if isinstance(raw, dict) else {}
    claims = items(resources.get("claims"))
    written = {_name(claim) for claim in claims}
    more: list[Json] = [{"name": name} for name in added if name not in written]
    return {**container, "resources": {**resources, "claims": [*claims, *more]}}


def _name(raw: Json) -> Json:
    return raw.get("name") if isinstance(raw, dict) else None

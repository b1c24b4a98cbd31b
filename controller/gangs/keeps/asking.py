"""What a person wants kept, in the engine's words: like a gang of one clique. Pure."""

from collections.abc import Sequence
from typing import Final

import msgspec

from api import names, quantities
from api.jsons import Json, JsonObject
from api.quantities import PODS, Amounts, BadQuantityError
from api.streams import Pod
from controller.gangs import topologies
from controller.gangs.keeps.views import Keep, KeepView
from controller.gangs.topologies import Network
from scheduler import needs
from scheduler.eligible import Constraints
from scheduler.filters.claims import Claims
from scheduler.filters.counted import merged
from scheduler.requests import Anchor, Closeness, GangRequest, Want

CLIQUE: Final = "room"


class UnreadableError(ValueError):
    """What is asked for cannot be read, and never will be: it does not change."""


def request(
    view: KeepView, indices: Sequence[int], networks: Sequence[Network], claims: Claims
) -> GangRequest:
    """Ask for these slots, near those that there are; UnreadableError says what is wrong."""
    keep = view.keep
    need, constraints = _slot(keep, claims)
    near = _closeness(keep)
    levels = frozenset({near.required, near.preferred} - {""})
    name = keep.metadata.annotations.get(names.TOPOLOGY_NAME_ANNOTATION, "")
    born = keep.metadata.creation_timestamp
    return GangRequest(
        *keep.key,
        tuple(Want(CLIQUE, index, need, constraints) for index in indices),
        near=near,
        anchors=tuple(Anchor(slot.node, CLIQUE) for slot in view.slots()),
        topology=topologies.meant(networks, name, (levels,)).name,
        born=born.isoformat() if born else "",
    )


def _slot(keep: Keep, claims: Claims) -> tuple[Amounts, Constraints]:
    template = keep.spec.template
    try:
        if template is None:
            return {PODS: 1, **quantities.amounts(keep.spec.requests)}, Constraints()
        pod = _pod(keep, template.spec, template.metadata.labels if template.metadata else {})
        claimed = claims.of(pod)
        return merged(needs.of_pod(pod), claimed.takes), Constraints.of(pod, claimed)
    except (msgspec.ValidationError, BadQuantityError) as error:
        raise UnreadableError(f"its template cannot be read: {error}") from error


def _pod(keep: Keep, spec: JsonObject, labels: dict[str, str]) -> Pod:
    meta = keep.metadata
    told: JsonObject = {"name": meta.name, "namespace": meta.namespace, "labels": {**labels}}
    return msgspec.convert({"metadata": told, "spec": _as_stored(spec)}, Pod)


def _as_stored(spec: JsonObject) -> JsonObject:
    """Write amounts as text, as the API server does with those of pods."""
    found = dict(spec)
    for key in ("containers", "initContainers"):
        every = spec.get(key)
        if isinstance(every, list):
            found[key] = [_sized(each) for each in every]
    if "overhead" in spec:
        found["overhead"] = _texts(spec["overhead"])
    sized = _sized(found)
    return sized if isinstance(sized, dict) else found


def _sized(thing: Json) -> Json:
    resources = thing.get("resources") if isinstance(thing, dict) else None
    if not isinstance(thing, dict) or not isinstance(resources, dict):
        return thing
    told = {
        key: _texts(value) if key in ("requests", "limits") else value
        for key, value in resources.items()
    }
    return {**thing, "resources": told}


def _texts(amounts: Json) -> Json:
    if not isinstance(amounts, dict):
        return amounts
    return {
        name: str(amount) if isinstance(amount, int | float) else amount
        for name, amount in amounts.items()
    }


def _closeness(keep: Keep) -> Closeness:
    constraint = keep.spec.topology_constraint
    pack = constraint.pack_constraint if constraint else None
    return Closeness(pack.required or "", pack.preferred or "") if pack else Closeness()

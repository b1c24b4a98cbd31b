"""Plain gangs as `gangs` sees them: labelled pods, their PodGang, and what is reserved for it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from api import names
from api.jsons import Json, JsonObject
from api.objects import timestamp
from api.podgang import PodGangSpec, PodGangStatus
from api.streams import Meta, Node, Pod
from controller.gangs import plain_bodies
from controller.gangs.plain_bodies import Wanted
from controller.gangs.plain_deciding import Amend, Confirm, Make, PlainStep, PlainView, Unmake
from controller.gangs.plain_slots import Ledger, Room
from controller.podgang import Gang
from scheduler import needs
from tests.support.clusters import node, pod
from tests.support.sets import NOW

KEY: Final = ("default", "train")
UID: Final = "uid-train"


def plain(
    name: str,
    *,
    size: str = "3",
    minimum: str | None = None,
    gated: bool = True,
    on: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    gpus: str = "1",
    born: int = 0,
    phase: str = "Pending",
    going: bool = False,
    priority: str = "",
) -> Pod:
    """A pod of the gang `train`, gated; or lifted and bound, if a node is given."""
    told = {names.GANG_LABEL: "train", names.GANG_SIZE_LABEL: size}
    if minimum is not None:
        told[names.GANG_MINIMUM_LABEL] = minimum
    only: Json = {"key": "metadata.name", "operator": "In", "values": [on]}
    terms: Json = {"nodeSelectorTerms": [{"matchFields": [only]}]}
    affinity: Json = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    waits = gated and not on
    return pod(
        name,
        {"nvidia.com/gpu": gpus},
        metadata={
            "labels": {**told, **(labels or {})},
            "annotations": {**(annotations or {})},
            "creationTimestamp": f"2026-01-01T00:00:{born:02}Z",
            **({"deletionTimestamp": timestamp(NOW)} if going else {}),
        },
        spec={
            "schedulerName": names.DEFAULT_SCHEDULER,
            "priorityClassName": priority,
            "schedulingGates": [{"name": names.GATE}] if waits else [],
            **({"nodeName": on, "affinity": affinity} if on else {}),
        },
        status={"phase": phase},
    )


def stored(body: JsonObject, status: Json = None, version: int = 1) -> Gang:
    """The PodGang as it is read back."""
    meta = body["metadata"]
    assert isinstance(meta, dict)
    return Gang(
        msgspec.convert({**meta, "uid": UID, "resourceVersion": str(version)}, Meta),
        PodGangSpec.model_validate(body["spec"]),
        PodGangStatus.model_validate(status or {}),
    )


def after(view: PlainView, step: PlainStep) -> PlainView:
    """What there is once the step has been taken."""
    there = view.there
    match step:
        case Make(wanted):
            return replace(view, there=stored(wanted.body()))
        case Amend(_, wanted, _):
            assert there is not None
            status: Json = there.status.model_dump(mode="json", by_alias=True)
            return replace(view, there=stored(wanted.body(), status))
        case Confirm(gang, whole, message):
            said = plain_bodies.status(gang, whole=whole, message=message, now=NOW)
            return replace(view, there=replace(gang, status=PodGangStatus.model_validate(said)))
        case Unmake():
            return replace(view, there=None, ledger=Ledger({}, {}))
        case _:
            return view


def seen(*pods: Pod, there: Gang | None = None) -> PlainView:
    return PlainView(KEY, pods, there, Ledger({}, {}), {})


def gang_of(pods: Sequence[str], indices: Sequence[int] | None = None, minimum: int = 3) -> Gang:
    """A PodGang that was whole."""
    slots = tuple(zip(indices or range(len(pods)), pods, strict=True))
    whole: JsonObject = {
        "conditions": [
            {
                "type": names.INITIALIZED,
                "status": "True",
                "reason": names.PODS_CREATED,
                "lastTransitionTime": timestamp(NOW),
            }
        ]
    }
    return stored(Wanted(KEY, slots, minimum).body(), whole)


def ledger(
    slots: Mapping[int, str],
    *,
    like: Pod | None = None,
    nodes: Sequence[Node] | None = None,
    committed: bool = True,
) -> Ledger:
    """Room on these nodes, each for such a pod."""
    need = needs.of_pod(like or plain("any"))
    rooms = {index: Room(name, need) for index, name in slots.items()}
    there = [node(name) for name in slots.values()] if nodes is None else nodes
    return Ledger(rooms, {each.metadata.name: each for each in there}, committed)


def slots(step: PlainStep) -> dict[int, str]:
    """The pods that the step gives slots."""
    assert isinstance(step, Make | Amend), step
    return dict(step.wanted.slots)


CLOSE = {names.TOPOLOGY_LABEL: "net", names.TOPOLOGY_LEVEL_LABEL: "rack"}


def close_view(*pods: Pod) -> PlainView:
    """What is seen of pods where there is a topology binding `net`."""
    return replace(seen(*pods), topologies={"net": {"zone": "z", "rack": "r"}})

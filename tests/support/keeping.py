"""Reservations by people, and entries of the ledger that draw on them, as `gangs` sees them."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import msgspec

from api.jsons import Json, JsonObject
from api.keep import KeepSpec, KeepStatus, State
from api.reservation import Share, Use
from api.reservation import State as EntryState
from api.streams import Meta
from controller.gangs.keeps.views import Keep
from controller.gangs.views import Reservation
from tests.support.sets import NOW, reservation

GPU = "nvidia.com/gpu"
ANYBODY: JsonObject = {"labelSelector": {}}


def keep(
    name: str = "room",
    slots: Mapping[int, str] | None = None,
    state: State | None = None,
    **spec: Json,
) -> Keep:
    """A keep made now, of one GPU each, in the slots that it has."""
    there = dict(slots or {})
    owners: Json = [ANYBODY]
    written: JsonObject = {"owners": owners, "requests": {GPU: "1"}, **spec}
    meta = Meta(
        name=name,
        namespace="default",
        uid=f"uid-{name}",
        resource_version="9",
        creation_timestamp=NOW,
    )
    said: JsonObject = {
        "state": (state or (State.AVAILABLE if there else State.PENDING)).value,
        "requests": {GPU: "1", "pods": "1"} if there else {},
        "slots": [{"index": index, "node": node} for index, node in there.items()],
    }
    return Keep(meta, KeepSpec.model_validate(written), KeepStatus.model_validate(said))


def user(
    slots: Mapping[int, str],
    drawn: Mapping[str, int],
    state: EntryState = EntryState.HELD,
    *,
    name: str = "demo-0",
    of: str = "room",
) -> Reservation:
    """A gang's entry with these slots, which draws so many GPUs of each node."""
    made = reservation({("a", i): node for i, node in slots.items()}, state, name=name)
    shares = [
        Share(node=node, requests={GPU: str(gpus), "pods": str(gpus)})
        for node, gpus in drawn.items()
    ]
    uses = Use(name=of, uid=f"uid-{of}", shares=shares)
    late = NOW + timedelta(hours=1)
    spec = made.spec.model_copy(update={"uses": uses, "deadline": late.isoformat()})
    return replace(made, spec=spec)


def raw(kept: Keep, version: int) -> bytes:
    """A keep as the API server streams it."""
    meta: Json = msgspec.to_builtins(kept.metadata)
    assert isinstance(meta, dict)
    body: JsonObject = {
        "kind": "Reservation",
        "metadata": {**meta, "resourceVersion": str(version)},
        "spec": kept.spec.model_dump(mode="json", by_alias=True, exclude_none=True),
        "status": kept.status.model_dump(mode="json", by_alias=True),
    }
    return msgspec.json.encode(body)

"""Reservation: the ledger of room kept for a gang. It belongs to slots, not to pods."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from api import quantities
from api.cliques import MAX_REPLICAS
from api.models import LongName, Model


class State(StrEnum):
    """How far a reservation has come; one without a state was only just made and is Held."""

    HELD = "Held"
    LIFTING = "Lifting"
    BOUND = "Bound"
    EXPIRED = "Expired"
    ROLLED_BACK = "RolledBack"


class GangReference(Model):
    """Whose room it is; the UID tells a gang from its namesake made later."""

    name: LongName
    uid: Annotated[str, Field(max_length=64)]


class Slot(Model):
    """Room for one pod of a clique, whichever pod takes it."""

    index: Annotated[int, Field(ge=0, le=MAX_REPLICAS)]
    node: LongName


class SlotGroup(Model):
    """The slots of one clique, and what each of them takes."""

    name: LongName
    requests: Annotated[
        dict[str, Annotated[str, Field(max_length=64, pattern=quantities.PATTERN)]],
        Field(max_length=64, description="What one pod takes of its node."),
    ]
    slots: Annotated[list[Slot], Field(max_length=MAX_REPLICAS)]


class ReservationSpec(Model):
    """Which room is kept for whom, and until when."""

    gang: GangReference
    deadline: Annotated[
        str,
        Field(
            max_length=64,
            description="Until when the room is kept if nothing was lifted.",
            json_schema_extra={"format": "date-time"},
        ),
    ]
    generation: Annotated[
        int, Field(ge=0, description="The term of the leader that planned it.")
    ] = 0
    score: Annotated[float | None, Field(ge=0, le=1)] = None
    groups: Annotated[list[SlotGroup], Field(max_length=4096)]


class ReservationStatus(Model):
    """How far the reservation has come."""

    state: State = State.HELD

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

    name: Annotated[LongName, Field(description="The PodGang's name.")]
    uid: Annotated[str, Field(max_length=64, description="The PodGang's UID.")]


class Slot(Model):
    """Room for one pod of a clique, whichever pod takes it."""

    index: Annotated[
        int, Field(ge=0, le=MAX_REPLICAS, description="Which pod of the clique, counted from 0.")
    ]
    node: Annotated[LongName, Field(description="The node that the room is on.")]


class SlotGroup(Model):
    """The slots of one clique, and what each of them takes."""

    name: Annotated[LongName, Field(description="The clique's full name.")]
    requests: Annotated[
        dict[str, Annotated[str, Field(max_length=64, pattern=quantities.PATTERN)]],
        Field(max_length=64, description="What one pod takes of its node."),
    ]
    slots: Annotated[
        list[Slot], Field(max_length=MAX_REPLICAS, description="Room for one pod each.")
    ]


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
    score: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description="How near the slots are to each other: 1 is one domain of the last level.",
        ),
    ] = None
    fragmentation: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description="How much of what was wholly free was broken for it: 0 is nothing.",
        ),
    ] = None
    domain: Annotated[
        str,
        Field(
            max_length=1024,
            description="The narrowest domain that holds all slots, by its path from the widest "
            "level down; empty where they share none.",
        ),
    ] = ""
    attempt: Annotated[
        int,
        Field(ge=0, description="Which try at the gang this is, from 0; a roll-back ends a try."),
    ] = 0
    repairs: Annotated[
        int,
        Field(ge=0, description="How many pods of this try were not bound in time and made anew."),
    ] = 0
    groups: Annotated[
        list[SlotGroup], Field(max_length=4096, description="The room, clique by clique.")
    ]


class ReservationStatus(Model):
    """How far the reservation has come."""

    state: Annotated[
        State,
        Field(description="Held, Lifting, Bound at the end, or Expired or RolledBack instead."),
    ] = State.HELD
    attempt: Annotated[
        int, Field(ge=0, description="The try that the state is about; of another it says nothing.")
    ] = 0
    bind_by: Annotated[
        str,
        Field(
            max_length=64,
            description="Until when the pods that were lifted so far are to be bound.",
        ),
    ] = ""
    retry_at: Annotated[
        str, Field(max_length=64, description="After a roll-back, when the next try may begin.")
    ] = ""
    message: Annotated[str, Field(max_length=1024, description="Why the try was rolled back.")] = ""

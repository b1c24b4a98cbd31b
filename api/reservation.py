"""Reservation: the ledger of room kept for a gang. It belongs to slots, not to pods.

The same kind is served for what people have kept, see `api.keep`. The two are told apart by their
spec: the ledger's names a gang, and the API server takes it from Penstock alone.
"""

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


class Share(Model):
    """What is drawn on one node."""

    node: Annotated[LongName, Field(description="The node.")]
    requests: Annotated[
        dict[str, Annotated[str, Field(max_length=64, pattern=quantities.PATTERN)]],
        Field(max_length=64, description="How much of what is kept there."),
    ]


class Use(Model):
    """The reservation by a person that room was drawn on; the UID tells it from a namesake."""

    name: Annotated[LongName, Field(description="The reservation's name, in the same namespace.")]
    uid: Annotated[str, Field(max_length=64, description="The reservation's UID.")]
    shares: Annotated[
        list[Share],
        Field(
            max_length=MAX_REPLICAS,
            description="How much was drawn, by node; never more than the slots there take.",
        ),
    ] = []


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


class Refused(Model):
    """What kube-scheduler refused of a gang that was begun, although its room was reserved."""

    times: Annotated[
        int, Field(ge=1, description="How often in a row; after each, the next try comes later.")
    ]
    at: Annotated[
        str,
        Field(
            max_length=64,
            description="When its pods were taken back last.",
            json_schema_extra={"format": "date-time"},
        ),
    ]
    message: Annotated[
        str, Field(max_length=1024, description="What kube-scheduler said of them.")
    ] = ""
    nodes: Annotated[
        list[LongName],
        Field(max_length=16, description="On which nodes, of late; others are tried first."),
    ] = []


Deadline = Annotated[
    str,
    Field(
        max_length=64,
        description="Until when the room is kept if nothing was lifted.",
        json_schema_extra={"format": "date-time"},
    ),
]
Generation = Annotated[int, Field(ge=0, description="The term of the leader that planned it.")]
Score = Annotated[
    float | None,
    Field(
        ge=0,
        le=1,
        description="How near the slots are to each other: 1 is one domain of the last level.",
    ),
]
Fragmentation = Annotated[
    float | None,
    Field(
        ge=0,
        le=1,
        description="How much of what was wholly free was broken for it: 0 is nothing.",
    ),
]
Domain = Annotated[
    str,
    Field(
        max_length=1024,
        description="The narrowest domain that holds all slots, by its path from the widest "
        "level down; empty where they share none.",
    ),
]
Attempt = Annotated[
    int,
    Field(ge=0, description="Which try at the gang this is, from 0; a roll-back ends a try."),
]
Repairs = Annotated[
    int,
    Field(ge=0, description="How many pods of this try kube-scheduler refused and were made anew."),
]
RefusedLater = Annotated[
    Refused | None,
    Field(description="Pods that were refused; those made later are tried again ever later."),
]
Uses = Annotated[
    Use | None,
    Field(description="The reservation by a person whose room the slots draw on, if any."),
]
Groups = Annotated[
    list[SlotGroup], Field(max_length=4096, description="The room, clique by clique.")
]


class ReservationSpec(Model):
    """Which room is kept for whom, and until when."""

    gang: GangReference
    deadline: Deadline
    generation: Generation = 0
    score: Score = None
    fragmentation: Fragmentation = None
    domain: Domain = ""
    attempt: Attempt = 0
    repairs: Repairs = 0
    refused: RefusedLater = None
    uses: Uses = None
    groups: Groups


StateAttempt = Annotated[
    int, Field(ge=0, description="The try that the state is about; of another it says nothing.")
]
BindBy = Annotated[
    str,
    Field(
        max_length=64,
        description="Until when the pods that were lifted so far are to be bound.",
    ),
]
RetryAt = Annotated[
    str, Field(max_length=64, description="After a roll-back, when the next try may begin.")
]


class ReservationStatus(Model):
    """How far the reservation has come."""

    state: State = State.HELD
    attempt: StateAttempt = 0
    bind_by: BindBy = ""
    retry_at: RetryAt = ""
    message: Annotated[str, Field(max_length=1024)] = ""

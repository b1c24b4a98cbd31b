"""Room that a person has kept: a Reservation with owner rules instead of a gang."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import ConfigDict, Field

from api import quantities
from api.jsons import JsonObject
from api.models import Conditions, LongName, Model
from api.podgang import GangConstraint
from api.validations import Validation, extension

MOST_SLOTS: Final = 1_000
MOST_RULES: Final = 16
MOST_TOLD: Final = 1_000  # users of one keep that its status names
LASTS: Final = "24h"  # where its author does not say
LONGEST_HOURS: Final = 8_784  # a leap year
# Whole units only, as many as there may be of each; the API server adds them up by itself.
TTL_PATTERN: Final = r"^([0-9]{1,7}h)?([0-9]{1,7}m)?([0-9]{1,7}s)?$"

# Label values and names of labels, as selectors have them.
_Word = Annotated[str, Field(max_length=63)]
_Key = Annotated[str, Field(min_length=1, max_length=317)]

RULED: Final = Validation(
    "has(self.object) || has(self.controller) || has(self.labelSelector)",
    "write at least one of object, controller and labelSelector: an empty rule names nobody",
    reason="FieldValueRequired",
)


class Operator(StrEnum):
    """How a selector holds a label against values."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class OwnerReference(Model):
    """An object of the reservation's own namespace."""

    kind: Annotated[
        str, Field(min_length=1, max_length=63, description="The object's kind, such as PodGang.")
    ]
    name: Annotated[LongName, Field(description="The object's name.")]
    uid: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=64,
            description="The object's UID; with it, a namesake made later is not meant.",
        ),
    ] = None


class SelectorRequirement(Model):
    """One requirement of a selector."""

    key: Annotated[_Key, Field(description="The label's key.")]
    operator: Annotated[
        Operator, Field(description="In, NotIn, Exists or DoesNotExist, as anywhere.")
    ]
    values: Annotated[
        list[_Word], Field(max_length=64, description="What In and NotIn hold the label against.")
    ] = []


class LabelSelector(Model):
    """Whoever has such labels; all that is written must hold. An empty one means everybody."""

    match_labels: Annotated[
        dict[str, _Word], Field(max_length=64, description="Labels and the values they must have.")
    ] = {}
    match_expressions: Annotated[
        list[SelectorRequirement],
        Field(max_length=64, description="Further requirements, all of which must hold."),
    ] = []


class OwnerRule(Model):
    """Who may use the room: all that one rule says must hold of a gang, or of each of its pods."""

    model_config = ConfigDict(json_schema_extra=extension(RULED))

    object: Annotated[
        OwnerReference | None,
        Field(description="A PodGang, the PodCliqueSet of gangs, or a Pod, by name."),
    ] = None
    controller: Annotated[
        OwnerReference | None,
        Field(description="Whoever controls the gang or its pods, such as a Job."),
    ] = None
    label_selector: Annotated[
        LabelSelector | None, Field(description="Labels of the gang or of its pods.")
    ] = None


class TemplateMeta(Model):
    """Labels that the pods will have, where affinity speaks of them."""

    labels: Annotated[
        dict[str, _Word], Field(max_length=64, description="Labels of the pods to come.")
    ] = {}


class PodTemplate(Model):
    """A pod such as those that will come: what it takes, and which nodes it may use."""

    metadata: Annotated[
        TemplateMeta | None, Field(description="What the pods to come are labelled with.")
    ] = None
    spec: Annotated[
        JsonObject,
        Field(
            description="The podSpec of one of them; no pod is made of it.",
            json_schema_extra={"x-penstock-schema": "PodSpec"},
        ),
    ]


Requests = Annotated[
    dict[str, Annotated[str, Field(max_length=64, pattern=quantities.PATTERN)]],
    Field(max_length=64),
]


class KeepSpec(Model):
    """What is kept, for whom and for how long."""

    owners: list[OwnerRule]
    replicas: int = 1
    requests: Requests = {}
    template: PodTemplate | None = None
    topology_constraint: GangConstraint | None = None
    ttl: str | None = None
    expires: str | None = None
    allocate_once: bool = True


class State(StrEnum):
    """How far such a reservation has come; one without a status is Pending."""

    PENDING = "Pending"
    AVAILABLE = "Available"
    ALLOCATED = "Allocated"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    EXPIRED = "Expired"


ENDED: Final = frozenset({State.SUCCEEDED, State.FAILED, State.EXPIRED})


class KeptSlot(Model):
    """Room for one of the pods to come."""

    index: Annotated[int, Field(ge=0, lt=MOST_SLOTS, description="Which of them, counted from 0.")]
    node: Annotated[LongName, Field(description="The node that the room is on.")]


class User(Model):
    """A gang that uses the room."""

    gang: Annotated[LongName, Field(description="The PodGang's name.")]
    uid: Annotated[str, Field(max_length=64, description="The PodGang's UID.")]
    pods: Annotated[
        int, Field(ge=0, le=2**31 - 1, description="How many of its pods have their place in it.")
    ]


class KeepStatus(Model):
    """What became of it."""

    state: State = State.PENDING
    message: str = ""
    expires_at: str = ""
    requests: Requests = {}
    slots: list[KeptSlot] = []
    users: list[User] = []
    kept: Requests = {}
    used: Requests = {}
    conditions: Conditions = []

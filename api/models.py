"""How every custom resource model is set up: camelCase at the API, bounds on everything."""

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Name = Annotated[str, Field(min_length=1, max_length=63)]
LongName = Annotated[str, Field(min_length=1, max_length=253)]
Namespace = Annotated[str, Field(min_length=1, max_length=63)]
Instant = Annotated[str, Field(max_length=64, json_schema_extra={"format": "date-time"})]
# What tells one version of a template from another.
Hash = Annotated[str, Field(max_length=128)]
# A label selector in its short form: a=b,c=d.
Selector = Annotated[str, Field(max_length=1024)]
# What we count stays within 32 bits, as Grove's clients read it.
Counted = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Model(BaseModel):
    """A piece of a custom resource. Unknown fields are dropped, as the API server prunes them."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        extra="ignore",
    )


class Condition(Model):
    """One observation of an object, with the reason and since when."""

    type: Annotated[
        str, Field(min_length=1, max_length=316, description="What is observed, in CamelCase.")
    ]
    status: Annotated[
        str,
        Field(
            pattern="^(True|False|Unknown)$",
            max_length=7,
            description="Whether it holds: True, False or Unknown.",
        ),
    ]
    reason: Annotated[
        str, Field(min_length=1, max_length=1024, description="Why, in one word for programs.")
    ]
    message: Annotated[str, Field(max_length=32768, description="Why, in words for people.")] = ""
    last_transition_time: Annotated[Instant, Field(description="When the status last changed.")]
    observed_generation: Annotated[
        int, Field(ge=0, description="The generation of the object that was observed.")
    ] = 0


Conditions = Annotated[
    list[Condition],
    Field(
        max_length=32,
        description="What has been observed, one entry a type.",
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    ),
]


class LastError(Model):
    """One thing that went wrong when the object was last worked on."""

    code: Annotated[
        str, Field(max_length=128, description="What went wrong, for programs: ERR_SYNC_PODCLIQUE.")
    ]
    description: Annotated[str, Field(max_length=32768, description="What went wrong, for people.")]
    observed_at: Annotated[Instant, Field(description="When it was seen.")]


LastErrors = Annotated[
    list[LastError],
    Field(
        max_length=64, description="What went wrong in the last round; empty when all went well."
    ),
]


class OperationType(StrEnum):
    """What was done to the object."""

    RECONCILE = "Reconcile"
    DELETE = "Delete"


class OperationState(StrEnum):
    """How far it has come."""

    PROCESSING = "Processing"
    SUCCEEDED = "Succeeded"
    ERROR = "Error"


class LastOperation(Model):
    """What was last done to the object, and how it went."""

    type: Annotated[
        OperationType, Field(description="What was done: Reconcile, or Delete at the end.")
    ]
    state: Annotated[
        OperationState,
        Field(description="How far it has come: Processing, Succeeded, or Error to be retried."),
    ]
    description: Annotated[str, Field(max_length=32768, description="The same in words.")]
    last_update_time: Annotated[Instant, Field(description="When this was written.")]


class Status(Model):
    """What every status says, whatever the kind."""

    observed_generation: Annotated[
        int, Field(ge=0, description="The generation of the spec that this status speaks of.")
    ] = 0
    conditions: Conditions = []
    last_errors: LastErrors = []
    last_operation: Annotated[
        LastOperation | None, Field(description="What was last done to the object.")
    ] = None

"""How every custom resource model is set up: camelCase at the API, bounds on everything."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Name = Annotated[str, Field(min_length=1, max_length=63)]
LongName = Annotated[str, Field(min_length=1, max_length=253)]
Namespace = Annotated[str, Field(min_length=1, max_length=63)]


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

    type: Annotated[str, Field(min_length=1, max_length=316)]
    status: Annotated[str, Field(pattern="^(True|False|Unknown)$", max_length=7)]
    reason: Annotated[str, Field(min_length=1, max_length=1024)]
    message: Annotated[str, Field(max_length=32768)] = ""
    last_transition_time: Annotated[
        str, Field(max_length=64, json_schema_extra={"format": "date-time"})
    ]
    observed_generation: Annotated[int, Field(ge=0)] = 0


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

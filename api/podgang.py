"""PodGang: pods that start together or not at all; made by `workloads`, judged by `gangs`."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from api.cliques import MAX_REPLICAS
from api.models import Conditions, LongName, Model, Namespace


class Phase(StrEnum):
    """Where a gang is on its way."""

    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"


class PodReference(Model):
    """One pod of the gang."""

    namespace: Namespace
    name: LongName


class PodGroup(Model):
    """The gang's pods of one clique."""

    name: Annotated[LongName, Field(description="The clique's full name.")]
    pod_references: Annotated[
        list[PodReference],
        Field(max_length=MAX_REPLICAS, description="Its pods, sorted by name."),
    ]
    min_replicas: Annotated[
        int,
        Field(ge=0, le=MAX_REPLICAS, description="How many of them the gang cannot start without."),
    ]


class PodGangSpec(Model):
    """What belongs to the gang."""

    pod_groups: Annotated[
        list[PodGroup],
        # Grove spells this one in lower case.
        Field(alias="podgroups", max_length=4096, description="The gang's pods by clique."),
    ]
    priority_class_name: Annotated[str, Field(max_length=253)] = ""


class PodGangStatus(Model):
    """What became of the gang."""

    phase: Annotated[
        Phase, Field(description="Pending, Starting once lifted, Running once its minimum runs.")
    ] = Phase.PENDING
    placement_score: Annotated[
        float | None,
        Field(ge=0, le=1, description="How near its pods are to each other: 1 is one rack."),
    ] = None
    conditions: Conditions = []

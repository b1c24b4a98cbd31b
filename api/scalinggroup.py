"""PodCliqueScalingGroup: cliques of one replica of a set that are scaled as one."""

from typing import Annotated

from pydantic import ConfigDict, Field

from api.cliques import MAX_CLIQUES, MAX_REPLICAS, Count
from api.models import Counted, Hash, Instant, Model, Name, Selector, Status
from api.validations import SCALED_WHOLE, extension, unchanging


class PodCliqueScalingGroupSpec(Model):
    """Which cliques belong together, and how many copies of them run."""

    model_config = ConfigDict(
        json_schema_extra=extension(
            SCALED_WHOLE,
            unchanging("cliqueNames", optional=False),
            unchanging("minAvailable", optional=False),
        )
    )

    replicas: Annotated[Count, Field(description="How many copies of the group to run.")] = 1
    min_available: Annotated[
        Count,
        Field(description="How many copies the first gang contains; each further one is a gang."),
    ] = 1
    clique_names: Annotated[
        list[Name],
        Field(
            max_length=MAX_CLIQUES,
            description="The cliques that belong together, by their names in the set.",
        ),
    ]


class CopiesToUpdate(Model):
    """Which ready copies of the group are replaced one by one."""

    current: Annotated[Counted, Field(description="Index of the copy that is being replaced.")]
    completed: Annotated[
        list[Counted],
        Field(max_length=MAX_REPLICAS, description="Indices of the copies replaced before it."),
    ] = []


class ScalingGroupUpdate(Model):
    """How far a change has reached the group's copies."""

    update_started_at: Annotated[
        Instant, Field(description="When the change began to reach the copies.")
    ]
    update_ended_at: Annotated[
        Instant | None, Field(description="When it had reached all of them.")
    ] = None
    pod_clique_set_generation_hash: Annotated[
        Hash, Field(description="The set's templates that the copies are to follow.")
    ]
    updated_pod_cliques_count: Annotated[
        Counted, Field(description="PodCliques of the group that follow them already.")
    ] = 0
    total_pod_cliques_count: Annotated[
        Counted, Field(description="PodCliques that the group has in all its copies.")
    ] = 0
    ready_replica_indices_selected_to_update: Annotated[
        CopiesToUpdate | None, Field(description="Ready copies, which are replaced in turn.")
    ] = None


class PodCliqueScalingGroupStatus(Status):
    """How many copies there are and how they do."""

    replicas: Annotated[Counted, Field(description="Copies that the spec asks for.")] = 0
    scheduled_replicas: Annotated[
        Counted, Field(description="Copies whose cliques all have their minimum on nodes.")
    ] = 0
    available_replicas: Annotated[
        Counted, Field(description="Copies whose cliques all have their minimum ready.")
    ] = 0
    updated_replicas: Annotated[
        Counted, Field(description="Copies made from the newest templates.")
    ] = 0
    selector: Annotated[Selector, Field(description="Selects the pods for autoscalers.")] = ""
    current_pod_clique_set_generation_hash: Annotated[
        Hash, Field(description="The set's templates that all copies follow now.")
    ] = ""
    update_progress: Annotated[
        ScalingGroupUpdate | None, Field(description="How far the last change has come.")
    ] = None

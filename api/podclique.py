"""PodClique: the pods of one role in one replica of a set, or in one copy of a group."""

from typing import Annotated, Final

from pydantic import ConfigDict, Field

from api.cliques import MAX_REPLICAS, CliqueSpec, Count
from api.models import Counted, Hash, Instant, LongName, Model, Selector, Status
from api.validations import SCALED_WHOLE, extension, unchanging

# One clique outside of a scaling group waits for every copy that the group has in the base gang.
MAX_PARENTS: Final = 1_024


class PodCliqueSpec(CliqueSpec):
    """What the pods look like, how many there are, and whom they wait for."""

    model_config = ConfigDict(
        json_schema_extra=extension(
            SCALED_WHOLE,
            unchanging("roleName", optional=True),
            unchanging("minAvailable", optional=True),
            unchanging("startsAfter", optional=True),
        )
    )

    replicas: Annotated[
        Count, Field(description="How many pods to run; 0 lets all of them go.")
    ] = 1
    starts_after: Annotated[
        list[LongName],
        Field(
            max_length=MAX_PARENTS,
            description="Full names of the PodCliques that must be up before this one starts.",
        ),
    ] = []


class PodsToUpdate(Model):
    """Which ready pods are replaced one by one."""

    current: Annotated[LongName, Field(description="The pod that is being replaced.")]
    completed: Annotated[
        list[LongName],
        Field(max_length=MAX_REPLICAS, description="The pods replaced before it."),
    ] = []


class PodCliqueUpdate(Model):
    """How far a change has reached the clique's pods."""

    update_started_at: Annotated[
        Instant | None, Field(description="When the change began to reach the pods.")
    ] = None
    update_ended_at: Annotated[
        Instant | None, Field(description="When it had reached all of them.")
    ] = None
    pod_clique_set_generation_hash: Annotated[
        Hash, Field(description="The set's templates that the pods are to follow.")
    ]
    pod_template_hash: Annotated[Hash, Field(description="The pod template they are to follow.")]
    ready_pods_selected_to_update: Annotated[
        PodsToUpdate | None, Field(description="Ready pods, which are replaced in turn.")
    ] = None


class PodCliqueStatus(Status):
    """How many pods there are and how they do."""

    replicas: Annotated[Counted, Field(description="Pods that are not being deleted.")] = 0
    ready_replicas: Annotated[Counted, Field(description="Pods that are ready.")] = 0
    updated_replicas: Annotated[
        Counted, Field(description="Pods made from the newest template.")
    ] = 0
    schedule_gated_replicas: Annotated[
        Counted, Field(description="Pods that wait behind a scheduling gate.")
    ] = 0
    scheduled_replicas: Annotated[Counted, Field(description="Pods that have a node.")] = 0
    hpa_pod_selector: Annotated[
        Selector, Field(description="Selects the pods for autoscalers.")
    ] = ""
    current_pod_clique_set_generation_hash: Annotated[
        Hash, Field(description="The set's templates that all pods follow now.")
    ] = ""
    current_pod_template_hash: Annotated[
        Hash, Field(description="The pod template that all pods follow now.")
    ] = ""
    update_progress: Annotated[
        PodCliqueUpdate | None, Field(description="How far the last change has come.")
    ] = None

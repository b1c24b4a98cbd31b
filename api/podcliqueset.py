"""PodCliqueSet: a whole inference system, as its author writes it."""

import re
from enum import StrEnum
from typing import Annotated, Final

from pydantic import ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from api.cliques import (
    MAX_CLIQUES,
    MAX_REPLICAS,
    Annotations,
    AutoScalingConfig,
    CliqueTemplate,
    Count,
)
from api.models import (
    Conditions,
    Counted,
    Hash,
    Instant,
    LongName,
    Model,
    Name,
    Selector,
    Status,
)
from api.sharing import (
    MAX_CLAIM_TEMPLATES,
    MAX_SHARED,
    ClaimTemplate,
    GroupResourceSharing,
    SetResourceSharing,
)
from api.topology import TopologyConstraint
from api.validations import Validation, extension

# Of a whole set, all replicas and copies counted: beyond it nobody means what is written.
MAX_PODS: Final = 20_000
LONGEST_DEADLINE: Final = 7 * 24 * 3600


class StartupType(StrEnum):
    """In which order the cliques of a gang start."""

    ANY_ORDER = "CliqueStartupTypeAnyOrder"
    IN_ORDER = "CliqueStartupTypeInOrder"
    EXPLICIT = "CliqueStartupTypeExplicit"


class UpdateType(StrEnum):
    """Who deletes the pods that a change makes old."""

    ROLLING_RECREATE = "RollingRecreate"
    ON_DELETE = "OnDelete"


_PERCENT: Final = "^(100|[0-9]{1,2})%$"


def _share(value: object) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_REPLICAS:
        return value
    if isinstance(value, str) and re.fullmatch(_PERCENT, value):
        return value
    raise PydanticCustomError(
        "share", "should be a count such as 1, or a percentage such as 25%, of at most 100%"
    )


# A count, or a percentage of how many there are.
Share = Annotated[
    int | str,
    PlainValidator(_share),
    WithJsonSchema(
        {
            "x-kubernetes-int-or-string": True,
            "minimum": 0,
            "maximum": MAX_REPLICAS,
            "pattern": _PERCENT,
            "maxLength": 4,
        }
    ),
]


class RollingUpdate(Model):
    """How far RollingRecreate may go at a time, and how long it may take."""

    max_unavailable: Annotated[
        Share | None,
        Field(
            description="How many pods of a clique, or copies of a scaling group, may be missing or"
            " not ready during an update: a count, or a percentage, rounded down. If left out it is"
            " 1, or 0 for a clique that has a surplus."
        ),
    ] = None
    max_surge: Annotated[
        Share | None,
        Field(
            description="How many pods a clique may have beyond its replicas during an update: a"
            " count, or a percentage, rounded up. 0 if left out, and always for scaling groups."
        ),
    ] = None
    progress_deadline_seconds: Annotated[
        int | None,
        Field(
            ge=1,
            le=LONGEST_DEADLINE,
            description="After how long without progress an update is said to be stuck. It goes on"
            " all the same.",
        ),
    ] = None


class UpdateStrategy(Model):
    """How a change reaches pods that run."""

    type: Annotated[
        UpdateType,
        Field(description="RollingRecreate replaces them in turn, OnDelete as you delete them."),
    ] = UpdateType.ROLLING_RECREATE
    paused: Annotated[
        bool | None,
        Field(description="Whether a change of the templates is to wait until this is off again."),
    ] = None
    rolling_update: Annotated[
        RollingUpdate | None,
        Field(description="How RollingRecreate goes about it; of no effect for OnDelete."),
    ] = None


class HeadlessServiceConfig(Model):
    """The service that gives the pods of a replica their host names."""

    publish_not_ready_addresses: Annotated[
        bool, Field(description="Whether names of pods resolve before they are ready.")
    ] = True


class ScalingGroupTemplate(Model):
    """Cliques that are scaled, and started, as one: a leader with its workers, say."""

    name: Annotated[Name, Field(description="The group's name, unique in the set.")]
    clique_names: Annotated[
        list[Name],
        Field(max_length=MAX_CLIQUES, description="The cliques that belong together."),
    ]
    annotations: Annotated[Annotations, Field(description="Annotations for the group.")] = {}
    replicas: Annotated[Count, Field(description="How many copies of the group to run.")] = 1
    min_available: Annotated[
        Count,
        Field(description="How many copies the first gang contains; each further one is a gang."),
    ] = 1
    scale_config: Annotated[
        AutoScalingConfig | None, Field(description="Scale the whole group by metrics.")
    ] = None
    resource_sharing: Annotated[
        list[GroupResourceSharing],
        Field(max_length=MAX_SHARED, description="Claims shared inside the group."),
    ] = []
    topology_constraint: Annotated[
        TopologyConstraint | None,
        Field(description="How close together each copy's pods must be."),
    ] = None


class SetTemplate(Model):
    """What one replica of the set consists of."""

    cliques: Annotated[
        list[CliqueTemplate],
        Field(
            max_length=MAX_CLIQUES,
            description="The roles: cliques of pods that are alike.",
            json_schema_extra={
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
        ),
    ]
    clique_startup_type: Annotated[
        StartupType,
        Field(description="In which order cliques start. Explicit follows startsAfter."),
    ] = StartupType.ANY_ORDER
    priority_class_name: Annotated[
        str, Field(max_length=253, description="Priority of the set's gangs among others.")
    ] = ""
    headless_service_config: Annotated[
        HeadlessServiceConfig | None,
        Field(description="The service that gives the pods their host names."),
    ] = None
    topology_constraint: Annotated[
        TopologyConstraint | None,
        Field(description="How close together the pods of one replica must be."),
    ] = None
    termination_delay: Annotated[
        str | None,
        Field(
            max_length=64,
            description="How long a gang may lack its minimum before it is made anew, as 4h.",
        ),
    ] = None
    resource_claim_templates: Annotated[
        list[ClaimTemplate],
        Field(max_length=MAX_CLAIM_TEMPLATES, description="Claim templates, for sharing."),
    ] = []
    resource_sharing: Annotated[
        list[SetResourceSharing],
        Field(max_length=MAX_SHARED, description="Claims shared inside a replica of the set."),
    ] = []
    pod_clique_scaling_groups: Annotated[
        list[ScalingGroupTemplate],
        Field(max_length=MAX_CLIQUES, description="Groups of cliques that scale together."),
    ] = []


# As `PodCliqueSetSpec.pods` counts them, for `/scale`, which no webhook is asked about.
_PODS: Final = (
    "self.replicas * self.template.cliques.map(c, c.spec.replicas *"
    " (has(self.template.podCliqueScalingGroups)"
    " ? ([1] + self.template.podCliqueScalingGroups"
    ".filter(g, c.name in g.cliqueNames).map(g, g.replicas)).max() : 1)).sum()"
)
FEW_PODS: Final = Validation(
    f"{_PODS} <= {MAX_PODS}",
    f"the set asks for more than {MAX_PODS} pods: lower replicas of the set, cliques or groups",
    path=".replicas",
    message_expression=(
        f"'the set asks for %d pods, more than {MAX_PODS}:"
        f" lower replicas of the set, cliques or groups'.format([{_PODS}])"
    ),
)


class PodCliqueSetSpec(Model):
    """How many copies of the system to run, and what each consists of."""

    model_config = ConfigDict(json_schema_extra=extension(FEW_PODS))

    replicas: Annotated[
        int, Field(ge=0, le=MAX_REPLICAS, description="How many copies of the whole system to run.")
    ] = 0
    update_strategy: Annotated[
        UpdateStrategy | None, Field(description="How a change reaches pods that run.")
    ] = None
    template: SetTemplate

    @property
    def pods(self) -> int:
        """How many pods the set asks for, over all replicas and copies of groups."""
        copies = {
            name: group.replicas
            for group in self.template.pod_clique_scaling_groups
            for name in group.clique_names
        }
        one = sum(c.spec.replicas * copies.get(c.name, 1) for c in self.template.cliques)
        return self.replicas * one


class GangPhase(StrEnum):
    """Where a gang of the set is on its way."""

    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"
    FAILED = "Failed"
    SUCCEEDED = "Succeeded"


class GangSummary(Model):
    """One gang of the set, in short."""

    name: Annotated[LongName, Field(description="The PodGang's name.")]
    phase: Annotated[GangPhase, Field(description="Where the gang is on its way.")]
    conditions: Conditions = []


class ReplicaUpdate(Model):
    """How far a change has reached one replica of the set."""

    replica_index: Annotated[Counted, Field(description="Which replica, counted from 0.")]
    update_started_at: Annotated[
        Instant | None, Field(description="When the change began to reach the replica.")
    ] = None
    update_ended_at: Annotated[
        Instant | None, Field(description="When it had reached all of it.")
    ] = None


class SetUpdate(Model):
    """How far a change of the templates has come."""

    update_started_at: Annotated[
        Instant | None, Field(description="When the change was first seen.")
    ] = None
    update_ended_at: Annotated[
        Instant | None, Field(description="When it had reached every replica.")
    ] = None
    updated_pod_cliques_count: Annotated[
        Counted,
        Field(description="PodCliques outside groups that follow it, over all replicas."),
    ] = 0
    total_pod_cliques_count: Annotated[
        Counted, Field(description="PodCliques outside groups, over all replicas.")
    ] = 0
    updated_pod_clique_scaling_groups_count: Annotated[
        Counted, Field(description="Scaling groups that follow it, over all replicas.")
    ] = 0
    total_pod_clique_scaling_groups_count: Annotated[
        Counted, Field(description="Scaling groups, over all replicas.")
    ] = 0
    currently_updating: Annotated[
        list[ReplicaUpdate],
        Field(max_length=16, description="The replicas that the change is reaching now."),
    ] = []


class PodCliqueSetStatus(Status):
    """How far the set has come."""

    replicas: Annotated[Counted, Field(description="Replicas that the spec asks for.")] = 0
    updated_replicas: Annotated[
        Counted, Field(description="Replicas made from the newest templates.")
    ] = 0
    available_replicas: Annotated[
        Counted, Field(description="Replicas whose cliques and groups all have their minimum.")
    ] = 0
    hpa_pod_selector: Annotated[
        Selector, Field(description="Selects the set's pods for autoscalers.")
    ] = ""
    pod_gang_statuses: Annotated[
        list[GangSummary], Field(max_length=MAX_PODS, description="The set's gangs, in short.")
    ] = []
    current_generation_hash: Annotated[
        Hash, Field(description="Stands for all pod templates of the set as they are now.")
    ] = ""
    update_progress: Annotated[
        SetUpdate | None, Field(description="How far the last change of the templates has come.")
    ] = None

"""PodCliqueSet: a whole inference system, as its author writes it."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from api.cliques import (
    MAX_CLIQUES,
    MAX_REPLICAS,
    Annotations,
    AutoScalingConfig,
    CliqueTemplate,
    Count,
)
from api.models import Conditions, Model, Name
from api.sharing import (
    MAX_CLAIM_TEMPLATES,
    MAX_SHARED,
    ClaimTemplate,
    GroupResourceSharing,
    SetResourceSharing,
)
from api.topology import TopologyConstraint

# Of a whole set, all replicas and copies counted: beyond it nobody means what is written.
MAX_PODS: Final = 20_000


class StartupType(StrEnum):
    """In which order the cliques of a gang start."""

    ANY_ORDER = "CliqueStartupTypeAnyOrder"
    IN_ORDER = "CliqueStartupTypeInOrder"
    EXPLICIT = "CliqueStartupTypeExplicit"


class UpdateType(StrEnum):
    """Who deletes the pods that a change makes old."""

    ROLLING_RECREATE = "RollingRecreate"
    ON_DELETE = "OnDelete"


class UpdateStrategy(Model):
    """How a change reaches pods that run."""

    type: Annotated[
        UpdateType,
        Field(description="RollingRecreate replaces them in turn, OnDelete as you delete them."),
    ] = UpdateType.ROLLING_RECREATE


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
            description="The roles.",
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


class PodCliqueSetSpec(Model):
    """How many copies of the system to run, and what each consists of."""

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


class PodCliqueSetStatus(Model):
    """How far the set has come."""

    observed_generation: Annotated[int, Field(ge=0)] = 0
    replicas: Annotated[int, Field(ge=0)] = 0
    available_replicas: Annotated[int, Field(ge=0)] = 0
    hpa_pod_selector: Annotated[str, Field(max_length=1024)] = ""
    conditions: Conditions = []

"""PodCliqueSet: a whole inference system, as its author writes it."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from api.jsons import JsonObject
from api.models import Conditions, Model, Name

MAX_CLIQUES: Final = 64
MAX_REPLICAS: Final = 10_000
# Of a whole set, all replicas and copies counted: beyond it nobody means what is written.
MAX_PODS: Final = 20_000


class StartupType(StrEnum):
    """In which order the cliques of a gang start."""

    ANY_ORDER = "CliqueStartupTypeAnyOrder"
    IN_ORDER = "CliqueStartupTypeInOrder"
    EXPLICIT = "CliqueStartupTypeExplicit"


class CliqueSpec(Model):
    """How the pods of one role look and how many there are."""

    role_name: Annotated[
        str, Field(max_length=253, description="What the role is called; unique in the set.")
    ] = ""
    replicas: Annotated[
        int, Field(ge=0, le=MAX_REPLICAS, description="How many pods of this role a gang has.")
    ] = 1
    min_available: Annotated[
        int | None,
        Field(
            ge=0,
            le=MAX_REPLICAS,
            description="How many of them a gang cannot start without; all of them if left out.",
        ),
    ] = None
    starts_after: Annotated[
        list[Name],
        Field(
            max_length=MAX_CLIQUES, description="Cliques that must be up before this one starts."
        ),
    ] = []
    pod_spec: Annotated[
        JsonObject,
        Field(
            description="The pods' spec, as in any pod template.",
            json_schema_extra={
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "additionalProperties": None,
            },
        ),
    ]

    @property
    def minimum(self) -> int:
        """The pods a gang needs of this clique."""
        return self.replicas if self.min_available is None else self.min_available


class CliqueTemplate(Model):
    """One role of the system."""

    name: Annotated[Name, Field(description="The clique's name, unique in the set.")]
    labels: Annotated[
        dict[str, Annotated[str, Field(max_length=63)]],
        Field(max_length=64, description="Labels for its pods."),
    ] = {}
    annotations: Annotated[
        dict[str, Annotated[str, Field(max_length=16384)]],
        Field(max_length=64, description="Annotations for its pods."),
    ] = {}
    spec: CliqueSpec


class ScalingGroupTemplate(Model):
    """Cliques that are scaled, and started, as one: a leader with its workers, say."""

    name: Annotated[Name, Field(description="The group's name, unique in the set.")]
    clique_names: Annotated[
        list[Name],
        Field(max_length=MAX_CLIQUES, description="The cliques that belong together."),
    ]
    replicas: Annotated[
        int, Field(ge=0, le=MAX_REPLICAS, description="How many copies of the group to run.")
    ] = 1
    min_available: Annotated[
        int,
        Field(
            ge=0,
            le=MAX_REPLICAS,
            description="How many copies the first gang contains; each further one is a gang.",
        ),
    ] = 1


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
    pod_clique_scaling_groups: Annotated[
        list[ScalingGroupTemplate],
        Field(max_length=MAX_CLIQUES, description="Groups of cliques that scale together."),
    ] = []


class PodCliqueSetSpec(Model):
    """How many copies of the system to run, and what each consists of."""

    replicas: Annotated[
        int, Field(ge=0, le=MAX_REPLICAS, description="How many copies of the whole system to run.")
    ] = 0
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

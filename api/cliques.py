"""A clique: pods of one role, alike, counted together."""

from typing import Annotated, Final

from pydantic import Field

from api.jsons import JsonObject
from api.models import LongName, Model, Name
from api.sharing import MAX_SHARED, ResourceSharing
from api.topology import TopologyConstraint

MAX_CLIQUES: Final = 64
MAX_REPLICAS: Final = 10_000
MAX_METRICS: Final = 32

Labels = Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=64)]
Annotations = Annotated[dict[str, Annotated[str, Field(max_length=16384)]], Field(max_length=64)]
Count = Annotated[int, Field(ge=0, le=MAX_REPLICAS)]


class AutoScalingConfig(Model):
    """Between which counts a HorizontalPodAutoscaler moves, and by which metrics."""

    min_replicas: Annotated[
        Count | None, Field(description="The lowest count; the replicas written if left out.")
    ] = None
    max_replicas: Annotated[Count, Field(description="The highest count.")]
    metrics: Annotated[
        list[JsonObject],
        Field(
            max_length=MAX_METRICS,
            description="Metrics, as in a HorizontalPodAutoscaler of autoscaling/v2.",
            json_schema_extra={
                "x-kubernetes-list-type": "atomic",
                "items": {"x-penstock-schema": "MetricSpec"},
            },
        ),
    ] = []


class CliqueSpec(Model):
    """How the pods of one role look and how many there are."""

    role_name: Annotated[
        str,
        Field(
            max_length=253,
            description="What the role is called, unique in the set; the clique's name if empty.",
        ),
    ] = ""
    replicas: Annotated[
        Count, Field(description="How many pods of this role a gang has; 0 is taken for 1.")
    ] = 1
    min_available: Annotated[
        Count | None,
        Field(description="How many of them a gang cannot start without; all if left out."),
    ] = None
    starts_after: Annotated[
        list[LongName],
        Field(
            max_length=MAX_CLIQUES, description="Cliques that must be up before this one starts."
        ),
    ] = []
    auto_scaling_config: Annotated[
        AutoScalingConfig | None,
        Field(description="Scale the clique by metrics; not for members of a scaling group."),
    ] = None
    pod_spec: Annotated[
        JsonObject,
        Field(
            description="The pods' spec, as in any pod template; see kubectl explain pod.spec.",
            json_schema_extra={"x-penstock-schema": "PodSpec"},
        ),
    ]

    @property
    def minimum(self) -> int:
        """The pods a gang needs of this clique."""
        return self.replicas if self.min_available is None else self.min_available


class CliqueTemplate(Model):
    """One role of the system."""

    name: Annotated[Name, Field(description="The clique's name, unique in the set.")]
    labels: Annotated[Labels, Field(description="Labels for its pods.")] = {}
    annotations: Annotated[Annotations, Field(description="Annotations for its pods.")] = {}
    topology_constraint: Annotated[
        TopologyConstraint | None,
        Field(description="How close together this clique's pods must be."),
    ] = None
    resource_sharing: Annotated[
        list[ResourceSharing],
        Field(max_length=MAX_SHARED, description="Claims that this clique's pods share."),
    ] = []
    spec: CliqueSpec

"""Where a gang's pods must or should be close together, and what the levels of closeness are."""

from typing import Annotated, Final

from pydantic import ConfigDict, Field

from api.models import Conditions, LongName, Model
from api.validations import Validation, extension

MAX_LEVELS: Final = 16
MAX_BACKENDS: Final = 16
DOMAIN_PATTERN: Final = "^[a-z][a-z0-9-]*$"
# A node label's key: an optional DNS prefix and a name.
KEY_PATTERN: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
)

Domain = Annotated[str, Field(min_length=1, max_length=63, pattern=DOMAIN_PATTERN)]
LabelKey = Annotated[str, Field(min_length=1, max_length=63, pattern=KEY_PATTERN)]


# The words of the next three are Grove's, which tools look for.
PACK_WANTED: Final = Validation(
    "has(self.pack) || has(self.packDomain)",
    "topologyConstraint must specify pack or deprecated packDomain",
    path=".pack",
    reason="FieldValueRequired",
)
PACKED_ONCE: Final = Validation(
    "!(has(self.packDomain) && has(self.pack) && has(self.pack.required))",
    "must not set both pack.required and deprecated packDomain",
    path=".pack.required",
)
LEVEL_WANTED: Final = Validation(
    "has(self.required) || has(self.preferred)",
    "pack must specify at least one of required or preferred",
    reason="FieldValueRequired",
)


def _no_pack_domain(path: str, absent: str) -> Validation:
    return Validation(
        f"oldSelf.hasValue() || {absent}",
        "packDomain is deprecated and cannot be used on new workloads; use pack.required",
        path=path,
        reason="FieldValueForbidden",
        on_create=True,
    )


# Asked of a whole set, so that sets of old, which have it, can still be changed.
NO_PACK_DOMAIN: Final = (
    _no_pack_domain(
        ".spec.template.topologyConstraint.packDomain",
        "!has(self.spec.template.topologyConstraint)"
        " || !has(self.spec.template.topologyConstraint.packDomain)",
    ),
    _no_pack_domain(
        ".spec.template.cliques",
        "self.spec.template.cliques.all(c,"
        " !has(c.topologyConstraint) || !has(c.topologyConstraint.packDomain))",
    ),
    _no_pack_domain(
        ".spec.template.podCliqueScalingGroups",
        "!has(self.spec.template.podCliqueScalingGroups)"
        " || self.spec.template.podCliqueScalingGroups.all(g,"
        " !has(g.topologyConstraint) || !has(g.topologyConstraint.packDomain))",
    ),
)


class Pack(Model):
    """Into one domain of which level pods go."""

    model_config = ConfigDict(json_schema_extra=extension(LEVEL_WANTED))

    required: Annotated[
        Domain | None,
        Field(description="The level that must hold them all, such as rack; else they wait."),
    ] = None
    preferred: Annotated[
        Domain | None,
        Field(description="The level that should hold them all; wider ones do if it cannot."),
    ] = None


class TopologyConstraint(Model):
    """How close together pods must, or should, be."""

    model_config = ConfigDict(json_schema_extra=extension(PACK_WANTED, PACKED_ONCE))

    topology_name: Annotated[
        LongName | None,
        Field(description="The ClusterTopologyBinding whose levels are meant; inherited if empty."),
    ] = None
    pack: Annotated[
        Pack | None, Field(description="Keep the pods inside one domain of a level.")
    ] = None
    pack_domain: Annotated[
        Domain | None, Field(description="Deprecated: write pack.required instead.")
    ] = None

    @property
    def required(self) -> str | None:
        """The level that must hold all pods, whichever way it is written."""
        return (self.pack.required if self.pack else None) or self.pack_domain

    @property
    def preferred(self) -> str | None:
        """The level that should hold all pods."""
        return self.pack.preferred if self.pack else None


class TopologyLevel(Model):
    """One level of the network and the node label that tells its domains apart."""

    domain: Annotated[Domain, Field(description="What sets call this level, such as rack.")]
    key: Annotated[
        LabelKey, Field(description="The node label whose values are the level's domains.")
    ]


class SchedulerTopology(Model):
    """A scheduler's own topology object, kept by somebody else."""

    scheduler_name: Annotated[LongName, Field(description="The scheduler that reads the object.")]
    topology_reference: Annotated[LongName, Field(description="The object's name.")]


class ClusterTopologyBindingSpec(Model):
    """The levels of a cluster's network."""

    levels: Annotated[
        list[TopologyLevel],
        Field(min_length=1, max_length=MAX_LEVELS, description="The levels, widest first."),
    ]
    scheduler_topology_bindings: Annotated[
        list[SchedulerTopology],
        Field(
            max_length=MAX_BACKENDS,
            description="Topology objects of schedulers that are managed elsewhere.",
        ),
    ] = []


class SchedulerTopologyStatus(Model):
    """Whether a scheduler's own topology object says what the binding says."""

    scheduler_name: Annotated[LongName, Field(description="The scheduler that reads the object.")]
    topology_reference: Annotated[LongName, Field(description="The object's name.")]
    in_sync: Annotated[bool, Field(description="Whether its levels are those of the binding.")]
    scheduler_backend_topology_observed_generation: Annotated[
        int, Field(ge=0, description="The object's generation that was looked at; 0 if none was.")
    ] = 0
    message: Annotated[
        str, Field(max_length=32768, description="What differs, if something does.")
    ] = ""


class ClusterTopologyBindingStatus(Model):
    """Whether schedulers know the same levels."""

    observed_generation: Annotated[
        int, Field(ge=0, description="The generation of the spec that this status speaks of.")
    ] = 0
    conditions: Conditions = []
    scheduler_topology_statuses: Annotated[
        list[SchedulerTopologyStatus],
        Field(max_length=MAX_BACKENDS, description="How each scheduler's own object compares."),
    ] = []

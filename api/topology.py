"""Where a gang's pods must or should be close together, and what the levels of closeness are."""

from typing import Annotated, Final

from pydantic import Field

from api.models import LongName, Model

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


class Pack(Model):
    """Into one domain of which level pods go."""

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

"""What the policy says of queues: who may use one, and how large and how near its gangs are."""

from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel
from typing_extensions import override

from api.models import LongName
from policies import globs, syntax

MOST_QUEUES: Final = 256
MOST_NAMED: Final = 256

Glob = Annotated[str, Field(min_length=1, max_length=globs.LONGEST)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]


class PolicyModel(BaseModel):
    """A piece of the policy file. An unknown key is a mistake, never a thing to overlook."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="forbid"
    )

    @override
    def __deepcopy__(self, _memo: object = None) -> Self:
        """Stand for a copy: nobody changes a policy, and each that is read copies its defaults."""
        return self


class Mode(StrEnum):
    """What comes of a broken rule."""

    ENFORCE = "enforce"
    WARN = "warn"
    AUDIT = "audit"
    OFF = "off"


class Submitters(PolicyModel):
    """Who. Nobody named means everybody."""

    users: Annotated[list[Glob], Field(max_length=MOST_NAMED)] = []
    groups: Annotated[list[Glob], Field(max_length=MOST_NAMED)] = []
    service_accounts: Annotated[
        list[Glob], Field(max_length=MOST_NAMED, description="Each as namespace:name.")
    ] = []

    @field_validator("service_accounts")
    @classmethod
    def _have_a_namespace(cls, value: list[str]) -> list[str]:
        for written in value:
            if written.count(":") != 1:
                raise ValueError(f"{written!r} is no service account: write namespace:name")
        return value

    @property
    def are_all(self) -> bool:
        """Whether nobody is left out."""
        return not (self.users or self.groups or self.service_accounts)


class PodsPerGang(PolicyModel):
    """Between which counts the pods of a gang must be."""

    min: Count = 0
    max: Count | None = None

    @model_validator(mode="after")
    def _are_in_order(self) -> Self:
        if self.max is not None and self.max < self.min:
            raise ValueError(f"max ({self.max}) is less than min ({self.min})")
        return self


class Limits(PolicyModel):
    """How large gangs may be. A set counts as large as its autoscaling may make it."""

    gangs: Annotated[Count | None, Field(description="The most gangs that one set comes to.")] = (
        None
    )
    pods_per_gang: PodsPerGang = PodsPerGang()
    gpus_per_gang: Count | None = None
    replicas_per_clique: Count | None = None
    priority_classes: Annotated[
        list[LongName] | None,
        Field(max_length=MOST_NAMED, description="Which of them pods may have; left out for any."),
    ] = None


class QueueTopology(PolicyModel):
    """How near the pods of a large gang must be."""

    required: Annotated[
        LongName, Field(description="The level, or a narrower one, that each such gang must ask.")
    ]
    when_pods_at_least: Annotated[int, Field(ge=1, le=1_000_000)] = 2


class StartupLimits(PolicyModel):
    """How far a startup order may be drawn out."""

    max_cliques: Count | None = None
    max_edges: Count | None = None
    max_depth: Count | None = None


class Queue(PolicyModel):
    """One line in which gangs stand for room."""

    name: Annotated[str, Field(min_length=1, max_length=63)]
    namespaces: Annotated[
        list[Glob],
        Field(min_length=1, max_length=MOST_NAMED, description="Which ones may use it; * for all."),
    ]
    submitters: Submitters = Submitters()
    default: Annotated[
        bool, Field(description="Whether it is meant where its namespaces name no queue.")
    ] = False
    mode: Annotated[
        Mode | None, Field(description="What comes of breaking what this queue asks.")
    ] = None
    limits: Limits = Limits()
    topology: QueueTopology | None = None
    schedulers: Annotated[
        list[LongName], Field(max_length=16, description="Those allowed; none named for any.")
    ] = []
    startup: StartupLimits = StartupLimits()

    @field_validator("name")
    @classmethod
    def _can_be_a_label(cls, value: str) -> str:
        if not syntax.is_value(value):
            raise ValueError(f"{value!r} cannot be a label's value: {syntax.VALUE_RULE}")
        return value

    def has(self, namespace: str) -> bool:
        """Whether gangs of this namespace may stand in it."""
        return globs.any_matches(self.namespaces, namespace)

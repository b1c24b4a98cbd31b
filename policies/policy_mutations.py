"""What the policy gives to gangs that leave it out, by queue."""

from typing import Annotated, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from api import quantities
from api.models import LongName
from api.quantities import BadQuantityError
from policies import syntax
from policies.policy_checks import Id
from policies.policy_queues import MOST_NAMED, Glob, PolicyModel

MOST_MUTATIONS: Final = 64
PORT_NAME: Final = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"

Resource = Literal["cpu", "memory", "ephemeral-storage"]


class GivenTopology(PolicyModel):
    """How near a gang must be that says nothing of it."""

    level: Annotated[LongName, Field(min_length=1)]
    topology: Annotated[
        LongName, Field(description="Which one has this level; left out for the only one.")
    ] = ""

    @field_validator("level", "topology")
    @classmethod
    def _can_be_a_label(cls, value: str) -> str:
        # Plain gangs say it in labels.
        if not syntax.is_value(value):
            raise ValueError(f"{value!r} cannot be a label's value: {syntax.VALUE_RULE}")
        return value


class GivenPort(PolicyModel):
    """A port of the first container."""

    container_port: Annotated[int, Field(ge=1, le=65535)]
    name: Annotated[str, Field(max_length=15, pattern=PORT_NAME)] | None = None
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"

    @field_validator("name")
    @classmethod
    def _is_a_port_name(cls, value: str | None) -> str | None:
        if value is not None and (value.isdecimal() or "--" in value):
            raise ValueError(f"{value!r} can name no port: it needs a letter, and no '--'")
        return value


class Mutation(PolicyModel):
    """What is filled in for gangs in some queues. What a manifest says is never written over."""

    id: Id
    queues: Annotated[list[Glob], Field(min_length=1, max_length=MOST_NAMED)] = ["*"]
    cliques: Annotated[
        list[Glob],
        Field(
            min_length=1,
            max_length=MOST_NAMED,
            description="To which cliques of a set requests and ports are given.",
        ),
    ] = ["*"]
    readiness_gate: Annotated[
        bool, Field(description="Give every pod of a gang the gang's readiness gate.")
    ] = False
    startup: Annotated[
        Literal["gate", "init"] | None, Field(description="How a set's cliques wait for others.")
    ] = None
    topology: GivenTopology | None = None
    requests: Annotated[
        dict[Resource, Annotated[str, Field(max_length=32)]],
        Field(description="What each container asks for that asks for none, nor limits it."),
    ] = {}
    ports: Annotated[
        list[GivenPort],
        Field(max_length=16, description="Of the first container, if it says no ports."),
    ] = []

    @field_validator("requests")
    @classmethod
    def _are_amounts(cls, value: dict[Resource, str]) -> dict[Resource, str]:
        for resource, written in value.items():
            try:
                amount = quantities.parse(written)
            except BadQuantityError as error:
                raise ValueError(f"{resource}: {error}") from error
            if amount < 0:
                raise ValueError(f"{resource}: {written!r} is less than nothing")
        return value

    @field_validator("ports")
    @classmethod
    def _are_told_apart(cls, value: list[GivenPort]) -> list[GivenPort]:
        named = [port.name for port in value if port.name]
        numbered = [(port.container_port, port.protocol) for port in value]
        if len({*named}) < len(named) or len({*numbered}) < len(numbered):
            raise ValueError("a port is there twice")
        return value

    @model_validator(mode="after")
    def _gives_something(self) -> Self:
        gives = (self.readiness_gate, self.startup, self.topology, self.requests, self.ports)
        if not any(gives):
            raise ValueError(
                "must give something: readinessGate, startup, topology, requests or ports"
            )
        return self

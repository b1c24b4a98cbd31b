"""The policy: what a cluster's owners decide about gangs, and what holds if they decide nothing."""

from collections.abc import Sequence
from typing import Annotated, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from api import durations, names
from api.durations import BadDurationError
from api.models import LongName
from policies import syntax
from policies.policy_checks import MOST_CHECKS, MOST_EXPRESSIONS, Exemption, PodCheck
from policies.policy_mutations import MOST_MUTATIONS, Mutation
from policies.policy_queues import MOST_QUEUES, Mode, PolicyModel, Queue

API_VERSION: Final = "policy.penstock.dev/v1"
KIND: Final = "GangPolicy"


class TopologyPolicy(PolicyModel):
    """Whether sets may ask for closeness."""

    enabled: bool = True


class MnnvlPolicy(PolicyModel):
    """Whether sets may ask for multi-node NVLink domains."""

    enabled: bool = False


class PodPolicy(PolicyModel):
    """What gangs' pods are given."""

    readiness_gate: Annotated[
        bool, Field(description="Give every pod of a gang the gang's readiness gate.")
    ] = False
    queue: Annotated[
        str, Field(max_length=63, description="The queue of pods that name none; empty for none.")
    ] = ""

    @field_validator("queue")
    @classmethod
    def _can_be_a_label(cls, value: str) -> str:
        # Else every pod that is given it would be refused.
        if not syntax.is_value(value):
            raise ValueError(f"{value!r} cannot be a label's value: {syntax.VALUE_RULE}")
        return value


class TimeoutPolicy(PolicyModel):
    """For how long Penstock waits."""

    gang: Annotated[
        str | None,
        Field(
            max_length=64,
            description="How long gangs that say nothing of it may wait to be bound, such as 30m; "
            "0 for ever. Left out, the flag of gangs says it.",
        ),
    ] = None

    @field_validator("gang")
    @classmethod
    def _is_a_duration(cls, value: str | None) -> str | None:
        try:
            if value is not None and durations.seconds(value) < 0:
                raise ValueError(f"{value!r} is less than nothing")
        except BadDurationError as error:
            raise ValueError(str(error)) from error
        return value


class ProtectionPolicy(PolicyModel):
    """Who may change what Penstock makes."""

    enabled: bool = True
    exempt_user_names: Annotated[list[LongName], Field(max_length=64)] = []


class Policy(PolicyModel):
    """All of it. A policy without any key is the built-in one."""

    api_version: Literal["policy.penstock.dev/v1"] = API_VERSION
    kind: Literal["GangPolicy"] = KIND
    schedulers: Annotated[
        list[LongName],
        Field(
            min_length=1,
            max_length=16,
            description="The kube-scheduler profiles that bind gangs; pods of others are not ours.",
        ),
    ] = [names.DEFAULT_SCHEDULER]
    scheduler_names: Annotated[
        dict[Annotated[str, Field(max_length=253)], LongName],
        Field(max_length=64, description="Which name stands for which; an empty one counts too."),
    ] = {
        "": names.DEFAULT_SCHEDULER,
        "kai-scheduler": names.DEFAULT_SCHEDULER,
        "grove-scheduler": names.DEFAULT_SCHEDULER,
    }
    topology: TopologyPolicy = TopologyPolicy()
    mnnvl: MnnvlPolicy = MnnvlPolicy()
    pods: PodPolicy = PodPolicy()
    managed_resources: ProtectionPolicy = ProtectionPolicy()
    timeouts: TimeoutPolicy = TimeoutPolicy()
    mode: Annotated[
        Mode, Field(description="What comes of a broken rule that has no mode of its own.")
    ] = Mode.ENFORCE
    unmatched_namespaces: Annotated[
        Literal["allow", "deny"],
        Field(description="Whether gangs may be where no queue is for them, if there are queues."),
    ] = "allow"
    queues: Annotated[list[Queue], Field(max_length=MOST_QUEUES)] = []
    rules: Annotated[list[PodCheck], Field(max_length=MOST_CHECKS)] = []
    mutations: Annotated[list[Mutation], Field(max_length=MOST_MUTATIONS)] = []
    exemptions: Annotated[list[Exemption], Field(max_length=MOST_CHECKS)] = []

    @model_validator(mode="after")
    def _names_are_told_apart(self) -> Self:
        _no_two("queues", "name", [queue.name for queue in self.queues])
        _no_two("rules", "id", [rule.id for rule in self.rules])
        _no_two("mutations", "id", [mutation.id for mutation in self.mutations])
        _no_two("exemptions", "id", [exemption.id for exemption in self.exemptions])
        return self

    @model_validator(mode="after")
    def _expressions_are_few(self) -> Self:
        many = sum(rule.cel is not None for rule in self.rules)
        if many > MOST_EXPRESSIONS:
            raise ValueError(too_many_expressions(many))
        return self

    @field_validator("scheduler_names")
    @classmethod
    def _names_stand_for_themselves(cls, value: dict[str, str]) -> dict[str, str]:
        # Else a pod that is looked at twice would be given two names in turn.
        for written, meant in value.items():
            if value.get(meant, meant) != meant:
                raise ValueError(
                    f"{written!r} stands for {meant!r}, which itself stands for {value[meant]!r}: "
                    f"write {value[meant]!r} at once"
                )
        return value

    def scheduler_of(self, written: str) -> str:
        """Give the scheduler that a pod's or clique's schedulerName stands for."""
        return self.scheduler_names.get(written, written or names.DEFAULT_SCHEDULER)

    def ours(self, written: str) -> bool:
        """Whether pods with this schedulerName are gangs of ours."""
        return self.scheduler_of(written) in self.schedulers


def too_many_expressions(many: int) -> str:
    """Say that more rules are expressions than may be."""
    return f"rules: {many} of them ask cel, and at most {MOST_EXPRESSIONS} may"


class TwiceError(ValueError):
    """Two of a list have one name; `steps` lead to the second."""

    def __init__(self, message: str, steps: tuple[str | int, ...]) -> None:
        super().__init__(message)
        self.steps = steps


def _no_two(what: str, key: str, names_there: Sequence[str]) -> None:
    for i, name in enumerate(names_there):
        if name in names_there[:i]:
            raise TwiceError(f"{name!r} is there already", (what, i, key))


BUILT_IN: Final = Policy()

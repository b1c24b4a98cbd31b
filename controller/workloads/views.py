"""A set and all that was made for it, at one instant. Whose a thing is, its owners' UIDs tell."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import TypeAlias

from api.jsons import JsonObject
from api.podclique import PodCliqueSpec, PodCliqueStatus
from api.podcliqueset import PodCliqueSetSpec, PodCliqueSetStatus
from api.scalinggroup import PodCliqueScalingGroupSpec, PodCliqueScalingGroupStatus
from api.streams import Meta, Pod
from controller.podgang import Gang
from controller.workloads.making.judging import GoesBy
from controller.workloads.updates import hashing
from kube.objects import Key
from kube.resources import Resource


@dataclass(frozen=True)
class Clique:
    """A PodClique there is."""

    metadata: Meta
    spec: PodCliqueSpec
    status: PodCliqueStatus

    @cached_property
    def spec_hash(self) -> str:
        """What stands for its podSpec; worked out once for each state of the PodClique."""
        return hashing.spec_hash(self.spec.pod_spec)


@dataclass(frozen=True)
class Group:
    """A PodCliqueScalingGroup there is."""

    metadata: Meta
    spec: PodCliqueScalingGroupSpec
    status: PodCliqueScalingGroupStatus


@dataclass(frozen=True)
class Thing:
    """Any other object there is: a service, an autoscaler, a claim. `body` is all of it."""

    metadata: Meta
    body: JsonObject


class Startup(StrEnum):
    """How a clique's pods are kept from starting before those they wait for."""

    GATE = "gate"
    INIT = "init"


@dataclass(frozen=True)
class Choices:
    """What whoever runs Penstock has chosen."""

    startup: Startup = Startup.GATE
    waiter_image: str = ""
    mnnvl: bool = False
    gates: bool = True
    """Whether pods wait behind our gate: not while gang scheduling is switched off."""
    goes_by: GoesBy | None = None
    """What the webhook is known to judge pods by."""


@dataclass(frozen=True)
class Trouble:
    """A step that the API server refused when the set was last worked on."""

    code: str  # as Grove spells them: ERR_CREATE_POD
    description: str
    name: str  # of the object concerned
    over_quota: bool = False


@dataclass(frozen=True)
class Unread:
    """An object that says what it cannot, and is left as it is."""

    metadata: Meta
    trouble: Trouble


# How often a gang gave up, when it was made, and its name: who is less goes first.
Rank: TypeAlias = tuple[int, datetime, str]


@dataclass(frozen=True)
class Rival:
    """A half-made gang of another set in the namespace; a quota has refused it pods since then."""

    rank: Rank
    since: datetime


@dataclass(frozen=True)
class SetView:
    """A set, and what it owns, at one instant.

    `pods` are by the full name of their clique; those that are going away or have ended are among
    them. `levels` are the topology bindings there are: to each domain its node label's key, widest
    first. `claim_templates` are all that there are of ResourceClaimTemplates, each as a whole, by
    namespace and name. `unread` names groups and cliques that are there and cannot be read. The set
    is `in_a_crowd` while many others start as well, and it is looked at again when they have.
    """

    metadata: Meta
    spec: PodCliqueSetSpec
    status: PodCliqueSetStatus
    cliques: Mapping[str, Clique] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)
    gangs: Mapping[str, Gang] = field(default_factory=dict)
    pods: Mapping[str, tuple[Pod, ...]] = field(default_factory=dict)
    things: Mapping[Resource, Mapping[str, Thing]] = field(default_factory=dict)
    levels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    claim_templates: Mapping[Key, JsonObject] = field(default_factory=dict)
    choices: Choices = Choices()
    troubles: tuple[Trouble, ...] = ()
    rivals: tuple[Rival, ...] = ()
    unread: frozenset[str] = frozenset()
    in_a_crowd: bool = False

    def things_of(self, resource: Resource) -> Mapping[str, Thing]:
        """Give the set's objects of another kind, by name."""
        return self.things.get(resource, {})

    def pods_of(self, clique: str) -> tuple[Pod, ...]:
        """Give the pods of a clique, named in full."""
        return self.pods.get(clique, ())

"""PodGang: pods that start together or not at all; made by `workloads`, judged by `gangs`."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final

from pydantic import ConfigDict, Field, model_validator

from api import names
from api.cliques import MAX_REPLICAS
from api.jsons import Json, JsonObject
from api.models import Conditions, LongName, Model, Namespace
from api.validations import Validation, extension

MAX_GROUPS: Final = 4096

# A node label's key; the API server has checked it where the label is.
NodeKey = Annotated[str, Field(min_length=1, max_length=317)]

_GROUPS: Final = "podGroups"
_PACKS: Final = "networkPackGroupConfigs"

WRITTEN_ONCE: Final = Validation(
    "has(self.podgroups) != has(self.podGroups)",
    "write the gang's pods once: under podgroups, or under podGroups as older objects do",
    path=".podgroups",
    reason="FieldValueRequired",
)
PACKED_ONCE: Final = Validation(
    "!has(self.topologyConstraintGroupConfigs) || !has(self.networkPackGroupConfigs)",
    "write topologyConstraintGroupConfigs, or networkPackGroupConfigs in older objects, not both",
    path=".networkPackGroupConfigs",
)


class Phase(StrEnum):
    """Where a gang is on its way."""

    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"


class ObjectReference(Model):
    """One object, by name."""

    namespace: Annotated[Namespace, Field(description="The object's namespace.")]
    name: Annotated[LongName, Field(description="The object's name.")]


class PackConstraint(Model):
    """Inside one domain of which level pods go, the levels named by node label keys."""

    required: Annotated[
        NodeKey | None,
        Field(description="The node label whose one value they must share; else they wait."),
    ] = None
    preferred: Annotated[
        NodeKey | None,
        Field(description="The node label whose one value they should share, if it can be."),
    ] = None


class GangConstraint(Model):
    """How close together pods must, or should, be."""

    pack_constraint: Annotated[
        PackConstraint | None, Field(description="Keep the pods inside one domain of a level.")
    ] = None


class PodGroup(Model):
    """The gang's pods of one clique."""

    name: Annotated[LongName, Field(description="The clique's full name.")]
    pod_references: Annotated[
        list[ObjectReference],
        Field(
            max_length=MAX_REPLICAS,
            description="Its pods by name, or by slot in a gang of labelled pods.",
        ),
    ]
    min_replicas: Annotated[
        int,
        Field(ge=0, le=MAX_REPLICAS, description="How many of them the gang cannot start without."),
    ]
    topology_constraint: Annotated[
        GangConstraint | None, Field(description="How close together the clique's pods must be.")
    ] = None


class GroupConstraint(Model):
    """Closeness of some of the gang's cliques: those of one copy of a scaling group."""

    name: Annotated[LongName, Field(description="What these cliques are called together.")]
    pod_group_names: Annotated[
        list[LongName],
        Field(max_length=MAX_GROUPS, description="The cliques, by their names in podgroups."),
    ]
    topology_constraint: Annotated[
        GangConstraint | None, Field(description="How close together their pods must be.")
    ] = None


class PodGangSpec(Model):
    """What belongs to the gang, whichever spelling it was written in."""

    pod_groups: Annotated[
        list[PodGroup],
        # Grove spells this one in lower case.
        Field(alias="podgroups", max_length=MAX_GROUPS, description="The gang's pods by clique."),
    ]
    topology_constraint: Annotated[
        GangConstraint | None, Field(description="How close together all of the pods must be.")
    ] = None
    topology_constraint_group_configs: Annotated[
        list[GroupConstraint],
        Field(max_length=MAX_GROUPS, description="Closeness of some of the cliques."),
    ] = []
    spread_constraints: Annotated[
        list[JsonObject],
        Field(
            max_length=16,
            description="How gangs with the same labels spread over domains, as pods do.",
            json_schema_extra={"items": {"x-penstock-schema": "TopologySpreadConstraint"}},
        ),
    ] = []
    priority_class_name: Annotated[
        str, Field(max_length=253, description="Priority of the gang among others.")
    ] = ""
    reuse_reservation_ref: Annotated[
        ObjectReference | None,
        Field(description="A gang placed before, whose room is to be used again if it is as good."),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _read(cls, given: object) -> object:
        return current(given) if isinstance(given, dict) else given


class PackGroup(Model):
    """Cliques that should be near each other, in the older spelling."""

    name: Annotated[
        LongName | None, Field(description="What these cliques are called together.")
    ] = None
    pod_group_names: Annotated[
        list[LongName], Field(max_length=MAX_GROUPS, description="The cliques, by their names.")
    ]
    topology_constraint: Annotated[
        GangConstraint | None, Field(description="How close together their pods must be.")
    ] = None


class ServedPodGangSpec(PodGangSpec):
    """What belongs to the gang."""

    model_config = ConfigDict(json_schema_extra=extension(WRITTEN_ONCE, PACKED_ONCE))

    pod_groups: Annotated[
        list[PodGroup],
        Field(alias="podgroups", max_length=MAX_GROUPS, description="The gang's pods by clique."),
    ] = []
    older_pod_groups: Annotated[
        list[PodGroup],
        Field(
            alias="podGroups",
            max_length=MAX_GROUPS,
            description="Older spelling of podgroups, still read.",
        ),
    ] = []
    network_pack_group_configs: Annotated[
        list[PackGroup],
        Field(
            max_length=MAX_GROUPS,
            description="Older spelling of topologyConstraintGroupConfigs, still read.",
        ),
    ] = []


def current(spec: Mapping[str, Json]) -> dict[str, Json]:
    """Say a spec in today's words, whichever spelling it was written in."""
    told = {key: value for key, value in spec.items() if key not in {_GROUPS, _PACKS}}
    if _GROUPS in spec:
        told.setdefault("podgroups", spec[_GROUPS])
    packs = spec.get(_PACKS)
    if isinstance(packs, list):
        told.setdefault(
            "topologyConstraintGroupConfigs",
            [_pack(number, pack) for number, pack in enumerate(packs)],
        )
    return told


def _pack(number: int, pack: Json) -> Json:
    if not isinstance(pack, dict):
        return pack
    # What had no constraint was to be packed as well as possible: a node, else the next level.
    near: Json = {"packConstraint": {"preferred": names.HOSTNAME_KEY}}
    return {"name": f"network-pack-{number}", "topologyConstraint": near} | pack


class PodGangStatus(Model):
    """What became of the gang."""

    phase: Annotated[
        Phase, Field(description="Pending, Starting once lifted, Running once its minimum runs.")
    ] = Phase.PENDING
    placement_score: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description="How near its pods are to each other: 1 is one domain of the last level.",
        ),
    ] = None
    conditions: Conditions = []

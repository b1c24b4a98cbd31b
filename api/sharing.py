"""Devices that pods share: claim templates in a set, and who gets one claim together."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from api.jsons import JsonObject
from api.models import LongName, Model, Name, Namespace

MAX_CLAIM_TEMPLATES: Final = 32
MAX_SHARED: Final = 32


class SharingScope(StrEnum):
    """How many pods share one claim."""

    ALL_REPLICAS = "AllReplicas"
    PER_REPLICA = "PerReplica"


class ClaimTemplate(Model):
    """A claim template written in line, for the sharing rules below to name."""

    name: Annotated[LongName, Field(description="The template's name, unique in the set.")]
    template_spec: Annotated[
        JsonObject,
        Field(
            description="A ResourceClaimTemplate's spec, of resource.k8s.io.",
            json_schema_extra={"x-penstock-schema": "ResourceClaimTemplateSpec"},
        ),
    ]


class ResourceSharing(Model):
    """Pods that use one claim together."""

    name: Annotated[
        LongName, Field(description="A template of the set, or a ResourceClaimTemplate object.")
    ]
    namespace: Annotated[
        Namespace | None,
        Field(description="Where that object is, if not in the set's own namespace."),
    ] = None
    scope: Annotated[
        SharingScope,
        Field(description="One claim for all replicas of the owner, or one for each."),
    ]


class GroupFilter(Model):
    """Which cliques of a group share."""

    child_clique_names: Annotated[
        list[Name], Field(max_length=64, description="Names of cliques in the group.")
    ] = []


class SetFilter(Model):
    """Which parts of a set share."""

    child_clique_names: Annotated[
        list[Name], Field(max_length=64, description="Names of cliques in the set.")
    ] = []
    child_scaling_group_names: Annotated[
        list[Name], Field(max_length=64, description="Names of scaling groups in the set.")
    ] = []


class GroupResourceSharing(ResourceSharing):
    """A claim shared inside a scaling group."""

    filter: Annotated[
        GroupFilter | None, Field(description="Only these; all of the group if left out.")
    ] = None


class SetResourceSharing(ResourceSharing):
    """A claim shared inside a set."""

    filter: Annotated[
        SetFilter | None, Field(description="Only these; all of the set if left out.")
    ] = None

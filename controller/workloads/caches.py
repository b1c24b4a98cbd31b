"""The kinds that `workloads` follows, each in a cache."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from api import names
from api.jsons import Json, JsonObject
from api.streams import Custom, Meta, Pod
from controller.workloads.views import Thing
from kube.cache import Cache, Reader, Source
from kube.client import Scope
from kube.resources import (
    AUTOSCALERS,
    CLAIM_TEMPLATES,
    COMPUTE_DOMAINS,
    PODCLIQUES,
    PODCLIQUESETS,
    PODGANGS,
    PODS,
    RESOURCE_CLAIMS,
    ROLE_BINDINGS,
    ROLES,
    SCALING_GROUPS,
    SERVICEACCOUNTS,
    SERVICES,
    TOPOLOGY_BINDINGS,
    Resource,
)

CUSTOM: Final = (PODCLIQUESETS, SCALING_GROUPS, PODCLIQUES, PODGANGS, TOPOLOGY_BINDINGS)
# Of these, whole objects are kept.
THINGS: Final = (SERVICES, AUTOSCALERS, SERVICEACCOUNTS, ROLES, ROLE_BINDINGS)
# Not every cluster serves these; they are followed from when it does.
OPTIONAL_THINGS: Final = (RESOURCE_CLAIMS, COMPUTE_DOMAINS)
OPTIONAL: Final = (*OPTIONAL_THINGS, CLAIM_TEMPLATES)
NEEDED: Final = (*CUSTOM, PODS, *THINGS)

# A selector keeps other people's objects out of memory; whose one is, the owner's UID decides.
_MINE: Final = Scope(labels=f"{names.MANAGED_BY_LABEL}={names.MANAGED_BY}")

AnyCache: TypeAlias = Cache[Custom] | Cache[Pod] | Cache[Thing]


@dataclass(frozen=True)
class Caches:
    """All caches, by what is kept of their objects."""

    customs: Mapping[Resource, Cache[Custom]]
    pods: Cache[Pod]
    things: Mapping[Resource, Cache[Thing]]

    @property
    def all(self) -> Mapping[Resource, AnyCache]:
        """Give every cache by its kind."""
        return {**self.customs, PODS: self.pods, **self.things}

    def observe(self, resource: Resource, answer: bytes) -> None:
        """Take the API server's answer to a write into the cache of its kind, if there is one."""
        if resource is PODS:
            self.pods.observe(answer)
        elif resource in self.customs:
            self.customs[resource].observe(answer)
        elif resource in self.things:
            self.things[resource].observe(answer)


def caches(source: Source, rng: random.Random) -> Caches:
    """Make a cache of every kind; none of them runs yet."""
    things = {
        kind: Cache(source, kind, Reader(read_thing), rng, _MINE)
        for kind in (*THINGS, *OPTIONAL_THINGS)
    }
    templates = Cache(source, CLAIM_TEMPLATES, Reader(read_thing), rng)
    return Caches(
        {kind: Cache(source, kind, Custom, rng) for kind in CUSTOM},
        Cache(source, PODS, Pod, rng, _MINE),
        {**things, CLAIM_TEMPLATES: templates},
    )


def read_thing(raw: msgspec.Raw) -> Thing:
    """Decode an object as a whole, without the record of who wrote which field."""
    found: Json = msgspec.json.decode(raw)
    body: JsonObject = found if isinstance(found, dict) else {}
    metadata = body.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    return Thing(msgspec.convert(metadata, Meta), body)

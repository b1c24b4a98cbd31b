"""A stand-in for Grove's operator: makes gangs and pods behind its own gate, and lifts that gate.

It knows nothing of Penstock, has the rights of Grove's account and no others, and takes its gate
off a pod as Grove does: once its gang refers to it, and, where the gang is a scaled one, once every
clique of its base gang has its minimum scheduled.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import msgspec

from api.jsons import Json, JsonObject
from api.podcliqueset import PodCliqueSetSpec
from api.streams import Custom, Pod
from kube.client import Client
from kube.errors import ApiError, Conflict, NotFound
from kube.resources import (
    NAMESPACES,
    PODCLIQUES,
    PODCLIQUESETS,
    PODGANGS,
    PODS,
    SCALING_GROUPS,
    SERVICEACCOUNTS,
    TOPOLOGY_BINDINGS,
    Resource,
)
from tests.support.upstream import GATE, Upstream

SPACE: Final = "grove-system"
ACCOUNT: Final = "grove-operator"
PATIENCE: Final = 30.0
_RBAC: Final = "rbac.authorization.k8s.io"
DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition",
    namespaced=False,
)  # fmt: skip
CLUSTERROLES: Final = Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTERROLEBINDINGS: Final = Resource(
    _RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
BASE: Final = "grove.io/base-podgang"
GANG: Final = "grove.io/podgang"


def definitions() -> Iterator[JsonObject]:
    """The definitions that Grove brings, as far as they matter here."""
    for kind in (PODCLIQUESETS, PODCLIQUES, SCALING_GROUPS, TOPOLOGY_BINDINGS):
        yield _definition(kind, {"type": "object", **_ANYTHING})
    # Its conditions are one list, written as a whole, and a status has a phase.
    status: JsonObject = {
        "type": "object",
        "required": ["phase"],
        "properties": {
            "phase": {"type": "string"},
            "placementScore": {"type": "number"},
            "conditions": {"type": "array", "items": {"type": "object", **_ANYTHING}},
        },
    }
    yield _definition(PODGANGS, status)


_ANYTHING: Final[JsonObject] = {"x-kubernetes-preserve-unknown-fields": True}


def _definition(kind: Resource, status: JsonObject) -> JsonObject:
    properties: JsonObject = {"spec": {"type": "object", **_ANYTHING}, "status": status}
    version: JsonObject = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {"status": {}},
    }
    called: JsonObject = {"plural": kind.plural, "kind": kind.kind}
    return {
        "apiVersion": DEFINITIONS.api_version,
        "kind": DEFINITIONS.kind,
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": called,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version],
        },
    }


async def settle(person: Client) -> None:
    """Bring the definitions, and the account with the rights that Grove's chart gives it."""
    for body in definitions():
        await person.create(DEFINITIONS, body)
    every: list[Json] = ["get", "list", "watch", "create", "update", "patch", "delete"]
    rules: list[Json] = [
        {"apiGroups": ["grove.io", "scheduler.grove.io"], "resources": ["*"], "verbs": every},
        {"apiGroups": [""], "resources": ["pods"], "verbs": every},
    ]
    await person.create(NAMESPACES, {"metadata": {"name": SPACE}})
    await person.create(SERVICEACCOUNTS, {"metadata": {"name": ACCOUNT}}, SPACE)
    await person.create(CLUSTERROLES, {"metadata": {"name": ACCOUNT}, "rules": rules})
    role: JsonObject = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": ACCOUNT}
    who: JsonObject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": SPACE}
    binding: JsonObject = {"metadata": {"name": ACCOUNT}, "roleRef": role, "subjects": [who]}
    await person.create(CLUSTERROLEBINDINGS, binding)
    async with asyncio.timeout(PATIENCE):
        for kind in (PODCLIQUESETS, PODCLIQUES, SCALING_GROUPS, TOPOLOGY_BINDINGS, PODGANGS):
            while True:
                with suppress(NotFound):
                    await person.probe(kind)
                    break
                await asyncio.sleep(0.2)


@dataclass
class StandIn:
    """Acts in one namespace by its own account. `keeps` names gangs whose gates it leaves on."""

    client: Client
    namespace: str
    keeps: set[str] = field(default_factory=set)

    async def make(self, name: str, spec: PodCliqueSetSpec) -> Upstream:
        """Make all of a set in Grove's order: gangs before the pods they refer to later."""
        space = self.namespace
        body: JsonObject = {
            "apiVersion": PODCLIQUESETS.api_version,
            "kind": PODCLIQUESETS.kind,
            "metadata": {"name": name},
            "spec": spec.model_dump(mode="json", by_alias=True, exclude_none=True),
        }
        made = msgspec.json.decode(await self.client.create(PODCLIQUESETS, body, space))
        grove = Upstream(name, space, made["metadata"]["uid"], spec)
        gangs = list(grove.gangs())
        for gang in gangs:
            await self._begin(gang)
        groups = await self._all(SCALING_GROUPS, grove.groups())
        cliques = await self._all(PODCLIQUES, grove.cliques(groups))
        pods = list(grove.pods(cliques))
        # As Grove names them: by the API server, so that nobody knows the names before.
        named = await self._all_named(pods)
        for gang in gangs:
            await self.refer(gang, named)
        return grove

    async def begin_alone(self, gang: JsonObject, pods: list[JsonObject]) -> None:
        """Make a gang that no set owns, and its pods, which are told by their labels alone."""
        await self._begin(gang)
        named = await self._all_named(pods)
        await self.refer(gang, named)

    async def refer(self, gang: JsonObject, named: Mapping[str, str]) -> None:
        """Have a gang refer to its pods, and say that all were made."""
        spec = gang["spec"]
        assert isinstance(spec, dict)
        told: JsonObject = msgspec.json.decode(msgspec.json.encode(spec))
        groups = told["podgroups"]
        assert isinstance(groups, list)
        for group in groups:
            assert isinstance(group, dict)
            for reference in _listed(group["podReferences"]):
                reference["name"] = named[str(reference["name"])]
        name = _name(gang)
        await self.client.merge_patch(PODGANGS, name, {"spec": told}, self.namespace)
        await self._say(name, initialized=True)

    async def run(self) -> None:
        """Take our gate off pods, over and over, until cancelled."""
        while True:
            with suppress(ApiError):
                await self.lift()
            await asyncio.sleep(0.2)

    async def lift(self) -> None:
        """Take our gate off those pods that may go."""
        gangs = {g.metadata.name: g for g in await self._gangs()}
        pods = (await self.client.list_pages(PODS, Pod, self.namespace)).items
        scheduled = {pod.metadata.name for pod in pods if _scheduled(pod)}
        for pod in pods:
            gang = pod.metadata.labels.get(GANG, "")
            if GATE not in pod.gates or gang in self.keeps or gang not in gangs:
                continue
            base = pod.metadata.labels.get(BASE)
            if base and not _minimum_scheduled(gangs.get(base), scheduled):
                continue
            if pod.metadata.name in _references(gangs[gang]):
                left: list[Json] = [{"name": gate} for gate in pod.gates if gate != GATE]
                meta: JsonObject = {"resourceVersion": pod.metadata.resource_version}
                body: JsonObject = {"metadata": meta, "spec": {"schedulingGates": left or None}}
                with suppress(Conflict):
                    await self.client.merge_patch(PODS, pod.metadata.name, body, self.namespace)

    async def _gangs(self) -> list[Custom]:
        return (await self.client.list_pages(PODGANGS, Custom, self.namespace)).items

    async def _begin(self, gang: JsonObject) -> None:
        empty: JsonObject = msgspec.json.decode(msgspec.json.encode(gang))
        spec = empty["spec"]
        assert isinstance(spec, dict)
        for group in _listed(spec["podgroups"]):
            group["podReferences"] = []
        await self.client.create(PODGANGS, empty, self.namespace)
        await self._say(_name(gang), initialized=False)

    async def _say(self, name: str, *, initialized: bool) -> None:
        """Write what Grove says of a gang, beside what is there by then."""
        while True:
            raw = await self.client.raw_get(PODGANGS.path(self.namespace, name))
            found: JsonObject = msgspec.json.decode(raw)
            status, meta = found.get("status"), found["metadata"]
            assert isinstance(meta, dict)
            there = status.get("conditions") if isinstance(status, dict) else None
            others: list[Json] = [c for c in _listed(there) if c["type"] != "Initialized"]
            condition: JsonObject = {
                "type": "Initialized",
                "status": "True" if initialized else "False",
                "reason": "PodGangPodsCreated" if initialized else "PodGangPodsCreationPending",
                "message": "said by the stand-in",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            }
            body: JsonObject = {
                "metadata": {"resourceVersion": meta["resourceVersion"]},
                "status": {"phase": "Pending", "conditions": [*others, condition]},
            }
            with suppress(Conflict):
                await self.client.merge_patch(
                    PODGANGS, name, body, self.namespace, subresource="status"
                )
                return

    async def _all(self, kind: Resource, bodies: Iterator[JsonObject]) -> dict[str, str]:
        """Make objects; gives their UIDs by name."""
        made = [
            msgspec.json.decode(await self.client.create(kind, b, self.namespace)) for b in bodies
        ]
        return {each["metadata"]["name"]: each["metadata"]["uid"] for each in made}

    async def _all_named(self, pods: list[JsonObject]) -> dict[str, str]:
        """Make pods that the API server names; gives these names by the ones they were to have."""
        found: dict[str, str] = {}
        for pod in pods:
            meta = pod["metadata"]
            assert isinstance(meta, dict)
            name = str(meta.pop("name"))
            meta["generateName"] = f"{name.rsplit('-', 1)[0]}-"
            answer = msgspec.json.decode(await self.client.create(PODS, pod, self.namespace))
            found[name] = answer["metadata"]["name"]
        return found


def _listed(found: Json) -> list[JsonObject]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _name(body: JsonObject) -> str:
    meta = body["metadata"]
    assert isinstance(meta, dict)
    return str(meta["name"])


def _groups(gang: Custom) -> list[JsonObject]:
    return _listed(msgspec.json.decode(gang.spec).get("podgroups"))


def _references(gang: Custom) -> set[str]:
    return {str(r["name"]) for group in _groups(gang) for r in _listed(group["podReferences"])}


def _minimum_scheduled(base: Custom | None, scheduled: set[str]) -> bool:
    if base is None:
        return False
    for group in _groups(base):
        there = {str(each["name"]) for each in _listed(group["podReferences"])} & scheduled
        minimum = group["minReplicas"]
        assert isinstance(minimum, int)
        if len(there) < minimum:
            return False
    return True


def _scheduled(pod: Pod) -> bool:
    return any(c.type == "PodScheduled" and c.status == "True" for c in pod.status.conditions)

"""What the policy's own expressions see of a gang: named fields, never the raw object.

Every field is always there: what is left out, or of a wrong type, is empty, 0 or false. A field is
read when an expression asks for it, so that what no rule asks for costs nothing. Values of
variables, arguments and commands are no part of it: they may be secrets.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from api import quantities
from api.jsons import Json, JsonObject
from policies import bounds, gang_sizes, reading
from policies.cel.kinds import (
    BOOL,
    INT,
    STRING,
    STRINGS,
    WORDS,
    Kind,
    ListOf,
    Record,
    record,
    same,
)
from policies.gang_sizes import GangSizes
from policies.once import Once
from policies.podcliqueset_view import Clique, Group, SetView

# As long as people's words may be; nobody compares what is longer.
_LONGEST: Final = 4096
_LONGEST_AMOUNT: Final = 32


class PodSeen(dict[str, Json]):
    """A pod that is to be: its spec, which nobody changes, and where it is to be.

    A copy of the spec's outermost level, so that its fields are read without a detour.
    """

    def __init__(self, namespace: str, spec: JsonObject) -> None:
        super().__init__(spec)
        self.namespace = namespace
        # Not cached properties: those take a lock, which takes longer than what they would keep.
        self._containers: list[JsonObject] | None = None
        self._all: list[JsonObject] | None = None
        self._gpus: int | None = None

    def containers(self) -> list[JsonObject]:
        """Give those that run together."""
        if self._containers is None:
            self._containers = _objects(self.get("containers"))
        return self._containers

    def all_containers(self) -> list[JsonObject]:
        """Give those of every list."""
        if self._all is None:
            self._all = [each for key in bounds.CONTAINERS for each in _objects(self.get(key))]
        return self._all

    def gpus(self) -> int:
        """Count the GPUs that it asks for."""
        if self._gpus is None:
            self._gpus = gang_sizes.gpus_of(self)
        return self._gpus


@dataclass(frozen=True)
class SetSeen:
    """A whole set."""

    namespace: str
    labels: JsonObject
    view: SetView
    pods: list[PodSeen]
    """Of its cliques, in their order."""

    @Once
    def sizes(self) -> GangSizes:
        """How large its gangs are."""
        return gang_sizes.of_set(self.view, [pod.gpus() for pod in self.pods])

    @Once
    def cliques(self) -> list["CliqueSeen"]:
        """Its cliques."""
        return [CliqueSeen(*each) for each in zip(self.view.cliques, self.pods, strict=True)]


@dataclass(frozen=True)
class CliqueSeen:
    """A clique of a set."""

    clique: Clique
    pod: PodSeen


def _text(key: str) -> Callable[[JsonObject], str]:
    def read(holder: JsonObject) -> str:
        found = holder.get(key)
        if isinstance(found, str):
            return found if len(found) <= _LONGEST else found[:_LONGEST]
        return ""

    return read


def _number(key: str) -> Callable[[JsonObject], int]:
    def read(holder: JsonObject) -> int:
        found = holder.get(key)
        return found if isinstance(found, int) and not isinstance(found, bool) else 0

    return read


def _flag(key: str) -> Callable[[JsonObject], bool]:
    return lambda holder: holder.get(key) is True


def _security_flag(key: str) -> Callable[[JsonObject], bool]:
    def read(holder: JsonObject) -> bool:
        context = holder.get("securityContext")
        return isinstance(context, dict) and context.get(key) is True

    return read


def _there(key: str) -> Callable[[JsonObject], bool]:
    return lambda holder: bool(holder.get(key))


def _objects(value: Json) -> list[JsonObject]:
    if not isinstance(value, list):
        return []
    return [each if isinstance(each, dict) else {} for each in value]


def _many(key: str) -> Callable[[JsonObject], list[JsonObject]]:
    return lambda holder: _objects(holder.get(key))


def _names(key: str) -> Callable[[JsonObject], list[str]]:
    name = _text("name")
    return lambda holder: [name(each) for each in _objects(holder.get(key))]


def _words(value: Json) -> dict[str, str]:
    return {
        key: text[:_LONGEST]
        for key, text in reading.mapping(value).items()
        if isinstance(text, str)
    }


def _amount(resource: str) -> Record:
    """Describe what a container asks for of a resource, as Kubernetes fills it in."""

    remembered = lru_cache(maxsize=1024)(lambda text: gang_sizes.amount(resource, text))

    def requests(container: JsonObject) -> int:
        resources = container.get("resources")
        if not isinstance(resources, dict):
            return 0
        asked = resources.get("requests")
        if isinstance(asked, dict) and (written := asked.get(resource)) is not None:
            if isinstance(written, str) and len(written) <= _LONGEST_AMOUNT:
                return remembered(written)
            return gang_sizes.amount(resource, written)
        return limits(container)

    def limits(container: JsonObject) -> int:
        resources = container.get("resources")
        asked = resources.get("limits") if isinstance(resources, dict) else None
        written = asked.get(resource) if isinstance(asked, dict) else None
        if isinstance(written, str) and len(written) <= _LONGEST_AMOUNT:
            return remembered(written)
        return gang_sizes.amount(resource, written)

    return record("amount", dict, {"requests": (INT, requests), "limits": (INT, limits)})


_PORT: Final = record(
    "port",
    dict,
    {
        "name": (STRING, _text("name")),
        "containerPort": (INT, _number("containerPort")),
        "hostPort": (INT, _number("hostPort")),
        "protocol": (STRING, lambda port: _text("protocol")(port) or "TCP"),
    },
)
_GPUS: Final = record(
    "amount",
    dict,
    {"requests": (INT, gang_sizes.gpus_asked), "limits": (INT, gang_sizes.gpus_limited)},
)
_CONTAINER: Final = record(
    "container",
    dict,
    {
        "name": (STRING, _text("name")),
        "image": (STRING, _text("image")),
        "imagePullPolicy": (STRING, _text("imagePullPolicy")),
        "restartPolicy": (STRING, _text("restartPolicy")),
        "gpu": (_GPUS, same),
        "cpu": (_amount(quantities.CPU), same),
        "memory": (_amount("memory"), same),
        "ephemeralStorage": (_amount("ephemeral-storage"), same),
        "ports": (ListOf(_PORT), _many("ports")),
        "env": (STRINGS, _names("env")),
        "livenessProbe": (BOOL, _there("livenessProbe")),
        "readinessProbe": (BOOL, _there("readinessProbe")),
        "startupProbe": (BOOL, _there("startupProbe")),
        "privileged": (BOOL, _security_flag("privileged")),
    },
)
_TOLERATION: Final = record(
    "toleration",
    dict,
    {
        "key": (STRING, _text("key")),
        "operator": (STRING, lambda one: _text("operator")(one) or "Equal"),
        "value": (STRING, _text("value")),
        "effect": (STRING, _text("effect")),
    },
)
_VOLUME: Final = record(
    "volume",
    dict,
    {
        "name": (STRING, _text("name")),
        "type": (STRING, lambda one: next((key for key in sorted(one) if key != "name"), "")),
    },
)

_CONTAINERS: Final = ListOf(_CONTAINER)


def _highest(part: Clique | Group) -> int:
    return (part.scaling.highest if part.scaling else None) or part.replicas or 0


def _level(part: Clique | Group | SetView) -> str:
    return (part.constraint.must if part.constraint else None) or ""


POD: Final = record(
    "pod",
    PodSeen,
    {
        "namespace": (STRING, lambda pod: pod.namespace),
        "containers": (_CONTAINERS, PodSeen.containers),
        "initContainers": (_CONTAINERS, _many("initContainers")),
        "allContainers": (_CONTAINERS, PodSeen.all_containers),
        "gpus": (INT, PodSeen.gpus),
        "hostNetwork": (BOOL, _flag("hostNetwork")),
        "hostPID": (BOOL, _flag("hostPID")),
        "hostIPC": (BOOL, _flag("hostIPC")),
        "nodeSelector": (WORDS, lambda pod: _words(pod.get("nodeSelector"))),
        "priorityClassName": (STRING, _text("priorityClassName")),
        "restartPolicy": (STRING, lambda pod: _text("restartPolicy")(pod) or "Always"),
        "runAsNonRoot": (BOOL, _security_flag("runAsNonRoot")),
        "runtimeClassName": (STRING, _text("runtimeClassName")),
        "schedulerName": (STRING, _text("schedulerName")),
        "serviceAccountName": (STRING, _text("serviceAccountName")),
        "terminationGracePeriodSeconds": (INT, _number("terminationGracePeriodSeconds")),
        "tolerations": (ListOf(_TOLERATION), _many("tolerations")),
        "volumes": (ListOf(_VOLUME), _many("volumes")),
    },
)
_CLIQUE: Final = record(
    "clique",
    CliqueSeen,
    {
        "name": (STRING, lambda each: each.clique.name or ""),
        "roleName": (STRING, lambda each: each.clique.role or ""),
        "replicas": (INT, lambda each: each.clique.replicas or 0),
        "minAvailable": (INT, lambda each: each.clique.minimum or 0),
        "maxReplicas": (INT, lambda each: _highest(each.clique)),
        "startsAfter": (STRINGS, lambda each: [name for _, name in each.clique.starts_after]),
        "topology": (STRING, lambda each: _level(each.clique)),
        "labels": (WORDS, lambda each: _words(each.clique.raw.get("labels"))),
        "pod": (POD, lambda each: each.pod),
    },
)
_GROUP: Final = record(
    "scaling group",
    Group,
    {
        "name": (STRING, lambda group: group.name or ""),
        "cliqueNames": (STRINGS, lambda group: [name for _, name in group.cliques]),
        "replicas": (INT, lambda group: group.replicas or 0),
        "minAvailable": (INT, lambda group: group.minimum or 0),
        "maxReplicas": (INT, _highest),
        "topology": (STRING, _level),
    },
)
SET: Final = record(
    "set",
    SetSeen,
    {
        "name": (STRING, lambda seen: seen.view.name or ""),
        "namespace": (STRING, lambda seen: seen.namespace),
        "labels": (WORDS, lambda seen: _words(seen.labels)),
        "annotations": (WORDS, lambda seen: _words(seen.view.annotations)),
        "replicas": (INT, lambda seen: seen.view.replicas or 0),
        "cliques": (ListOf(_CLIQUE), lambda seen: seen.cliques),
        "groups": (ListOf(_GROUP), lambda seen: [*seen.view.groups]),
        "gangs": (INT, lambda seen: seen.sizes.gangs),
        "podsPerGang": (INT, lambda seen: seen.sizes.pods),
        "gpusPerGang": (INT, lambda seen: seen.sizes.gpus),
        "priorityClassName": (STRING, lambda seen: _text("priorityClassName")(seen.view.template)),
        "startupType": (STRING, lambda seen: _text("cliqueStartupType")(seen.view.template)),
        "topology": (STRING, lambda seen: _level(seen.view)),
        "updateStrategy": (STRING, lambda seen: _text("type")(seen.view.updates)),
    },
)
VARIABLES: Final[Mapping[str, Kind]] = {"pod": POD, "set": SET, "queue": STRING}

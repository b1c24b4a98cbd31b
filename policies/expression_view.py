"""What the policy's own expressions see of a gang: named fields, never the raw object.

Every field is always there: what is left out, or of a wrong type, is empty, 0 or false. A field is
read when an expression asks for it, so that what no rule asks for costs nothing. Values of
variables, arguments and commands are no part of it: they may be secrets.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Final

from api import quantities
from api.jsons import Json, JsonObject
from api.quantities import BadQuantityError
from policies import gang_sizes, pod_security, reading
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
)
from policies.cel.running import ExpressionError
from policies.gang_sizes import GangSizes
from policies.podcliqueset_view import Clique, Group, SetView

# As long as people's words may be; nobody compares what is longer.
_LONGEST: Final = 4096
_MOST_RESOURCES: Final = 256
_GPU: Final = gang_sizes.GPU_SUFFIX
_NOTHING: Final[JsonObject] = {}


@dataclass(frozen=True)
class PodSeen:
    """A pod that is to be."""

    namespace: str
    spec: JsonObject

    @cached_property
    def containers(self) -> list[JsonObject]:
        """Those that run together."""
        return _objects(self.spec.get("containers"))

    @cached_property
    def all_containers(self) -> list[JsonObject]:
        """Those of every list."""
        return [each for key in pod_security.LISTS for each in _objects(self.spec.get(key))]


@dataclass(frozen=True)
class SetSeen:
    """A whole set."""

    namespace: str
    labels: JsonObject
    view: SetView

    @cached_property
    def sizes(self) -> GangSizes:
        """How large its gangs are."""
        return gang_sizes.of_set(self.view)

    @cached_property
    def cliques(self) -> list["CliqueSeen"]:
        """Its cliques."""
        return [CliqueSeen(self.namespace, each) for each in self.view.cliques]


@dataclass(frozen=True)
class CliqueSeen:
    """A clique of a set."""

    namespace: str
    clique: Clique


def _text(key: str) -> Callable[[JsonObject], str]:
    def read(holder: JsonObject) -> str:
        found = holder.get(key)
        if isinstance(found, str):
            return found if len(found) <= _LONGEST else found[:_LONGEST]
        return ""

    return read


def _number(key: str) -> Callable[[JsonObject], int]:
    return lambda holder: reading.number(holder.get(key)) or 0


def _flag(key: str) -> Callable[[JsonObject], bool]:
    return lambda holder: holder.get(key) is True


def _security_flag(key: str) -> Callable[[JsonObject], bool]:
    return lambda holder: reading.mapping(holder.get("securityContext")).get(key) is True


def _there(key: str) -> Callable[[JsonObject], bool]:
    return lambda holder: bool(holder.get(key))


def _objects(value: Json) -> list[JsonObject]:
    return [reading.mapping(each) for each in reading.items(value)]


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

    def requests(container: JsonObject) -> int:
        found = container.get("resources")
        resources = found if isinstance(found, dict) else _NOTHING
        asked = resources.get("requests")
        written = asked.get(resource) if isinstance(asked, dict) else None
        return limits(container) if written is None else _whole(resource, written)

    def limits(container: JsonObject) -> int:
        found = container.get("resources")
        resources = found if isinstance(found, dict) else _NOTHING
        asked = resources.get("limits")
        written = asked.get(resource) if isinstance(asked, dict) else None
        return 0 if written is None else _whole(resource, written)

    return record("amount", dict, {"requests": (INT, requests), "limits": (INT, limits)})


def _gpus(*fields: str) -> Callable[[JsonObject], int]:
    """Count devices called GPUs, of whichever maker; the first of these fields counts."""

    def read(container: JsonObject) -> int:
        resources = reading.mapping(container.get("resources"))
        asked: JsonObject = {}
        for field in reversed(fields):
            asked |= reading.mapping(resources.get(field))
        if len(asked) > _MOST_RESOURCES:
            raise ExpressionError("a container names too many resources")
        return sum(_whole(name, asked[name]) for name in asked if name.endswith(_GPU))

    return read


def _whole(name: str, written: Json) -> int:
    if not isinstance(written, str | int) or isinstance(written, bool):
        return 0
    try:
        return quantities.whole(name, str(written))
    except BadQuantityError:
        return 0  # told where types are looked at


def _same(container: JsonObject) -> JsonObject:
    return container


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
    {"requests": (INT, _gpus("requests", "limits")), "limits": (INT, _gpus("limits"))},
)
_CONTAINER: Final = record(
    "container",
    dict,
    {
        "name": (STRING, _text("name")),
        "image": (STRING, _text("image")),
        "imagePullPolicy": (STRING, _text("imagePullPolicy")),
        "restartPolicy": (STRING, _text("restartPolicy")),
        "gpu": (_GPUS, _same),
        "cpu": (_amount(quantities.CPU), _same),
        "memory": (_amount("memory"), _same),
        "ephemeralStorage": (_amount("ephemeral-storage"), _same),
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


def _pod(read: Callable[[JsonObject], object]) -> Callable[[PodSeen], object]:
    return lambda pod: read(pod.spec)


POD: Final = record(
    "pod",
    PodSeen,
    {
        "namespace": (STRING, lambda pod: pod.namespace),
        "containers": (_CONTAINERS, attrgetter("containers")),
        "initContainers": (_CONTAINERS, _pod(_many("initContainers"))),
        "allContainers": (_CONTAINERS, attrgetter("all_containers")),
        "gpus": (INT, _pod(gang_sizes.gpus_of)),
        "hostNetwork": (BOOL, _pod(_flag("hostNetwork"))),
        "hostPID": (BOOL, _pod(_flag("hostPID"))),
        "hostIPC": (BOOL, _pod(_flag("hostIPC"))),
        "nodeSelector": (WORDS, _pod(lambda spec: _words(spec.get("nodeSelector")))),
        "priorityClassName": (STRING, _pod(_text("priorityClassName"))),
        "restartPolicy": (STRING, _pod(lambda spec: _text("restartPolicy")(spec) or "Always")),
        "runAsNonRoot": (BOOL, _pod(_security_flag("runAsNonRoot"))),
        "runtimeClassName": (STRING, _pod(_text("runtimeClassName"))),
        "schedulerName": (STRING, _pod(_text("schedulerName"))),
        "serviceAccountName": (STRING, _pod(_text("serviceAccountName"))),
        "terminationGracePeriodSeconds": (INT, _pod(_number("terminationGracePeriodSeconds"))),
        "tolerations": (ListOf(_TOLERATION), _pod(_many("tolerations"))),
        "volumes": (ListOf(_VOLUME), _pod(_many("volumes"))),
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
        "pod": (POD, lambda each: PodSeen(each.namespace, each.clique.pod)),
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

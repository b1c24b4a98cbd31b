"""A quick look at a pod of a set that tells whether rules could find anything in it.

Nearly all pods pass: one call into C says that their fields have the right types and their lists
are no longer than rules look at, and only names are left to be looked at here. Rule after rule over
the same containers takes three times as long. Whoever does not pass is held against the rules, and
may pass there.
"""

from collections.abc import Mapping
from types import NoneType
from typing import Annotated, Final, Literal, TypeVar

import msgspec

from api import names
from api.jsons import JsonObject
from policies import bounds, podspec_shapes, syntax
from policies.podspec_shapes import Shape

CONTAINERS_OF_WAITERS: Final = frozenset({names.WAITER})
VOLUMES_OF_WAITERS: Final = frozenset({names.POD_INFO_VOLUME, names.TOKEN_VOLUME})
"""What pods that wait for others are given, so that they can have none of their own called so."""

_ONE: Final = msgspec.Meta(min_length=1)
_NONE: Final = msgspec.Meta(max_length=0)
# What is longer is no name, and must not be kept in mind as one that was looked at.
_NAME: Final = Annotated[str, msgspec.Meta(max_length=syntax.LONGEST_NAME)]
_IMAGE: Final = Annotated[str, msgspec.Meta(max_length=bounds.LONGEST_IMAGE)]


class _Thing(msgspec.Struct):
    """Whatever is not looked at here any further."""


class _Named(msgspec.Struct):
    name: str | None = None


class _Container(msgspec.Struct):
    name: str
    env: list[_Named] | None = None


class _Pod(msgspec.Struct):
    containers: list[_Container]
    initContainers: list[_Container] | None = None  # noqa: N815 - as manifests have it
    volumes: list[_Named] | None = None


def surely_fits(pod: JsonObject) -> bool:
    """Tell whether no rule could find anything in the pod; False may mean either."""
    try:
        seen = msgspec.convert(pod, _POD)
    except (msgspec.ValidationError, UnicodeError):
        return False
    for each in (*(seen.initContainers or ()), *seen.containers):
        if each.name in CONTAINERS_OF_WAITERS or (each.env and not _are_named(each.env)):
            return False
    return VOLUMES_OF_WAITERS.isdisjoint([each.name for each in seen.volumes or ()])


def _are_named(variables: list[_Named]) -> bool:
    found = {each.name or "" for each in variables}
    return len(found) == len(variables) and syntax.are_variables(found)


Seen = TypeVar("Seen", bound=msgspec.Struct)


def _struct(base: type[Seen], kinds: Mapping[str, object], *required: str) -> type[Seen]:
    """Make what msgspec reads an object by; what is not required may also be null."""
    fields = [
        (name, kind) if name in required else (name, kind | None, None)  # type: ignore[operator]  # a type at run time
        for name, kind in kinds.items()
    ]
    return msgspec.defstruct(base.__name__, fields, bases=(base,), kw_only=True, gc=False)  # type: ignore[return-value]  # made of its base


def _shaped(base: type[Seen], shape: Shape, *required: str, **closer: object) -> type[Seen]:
    """Make the same of a shape, with some of its fields looked at more closely."""
    kinds = {name: _bounded(name, kind) for name, kind in shape.fields.items()}
    return _struct(base, kinds | closer, *shape.required, *required)


def _bounded(name: str, kind: object) -> object:
    """Give a list that is no longer than rules look at, and anything else as it is."""
    most = bounds.MOST.get(name)
    return kind if most is None else Annotated[kind, msgspec.Meta(max_length=most)]


def _listed(name: str, kind: type[msgspec.Struct]) -> object:
    return _bounded(name, list[kind])  # type: ignore[valid-type]  # made at run time


def _lists(*listed: str) -> type[_Thing]:
    return _struct(_Thing, {name: _bounded(name, list) for name in listed})


_CONTAINER: Final = _shaped(
    _Container,
    podspec_shapes.CONTAINER,
    env=_listed("env", _shaped(_Named, podspec_shapes.VARIABLE, name=_NAME)),
    ports=_listed("ports", _shaped(_Thing, podspec_shapes.PORT)),
    volumeMounts=_listed("volumeMounts", _shaped(_Thing, podspec_shapes.MOUNT)),
    image=_IMAGE,
    securityContext=_struct(_Thing, {"capabilities": _lists("add", "drop")}),
)
_VOLUME: Final = _struct(_Named, {"name": str, "image": _struct(_Thing, {"reference": _IMAGE})})
# Of these a node must match one, and an empty one matches none.
_TERM: Final = _struct(_Thing, {"matchExpressions": Annotated[list, _ONE]}, "matchExpressions")
_TERMS: Final = Annotated[_listed(bounds.TERMS, _TERM), _ONE]
_NODES: Final = _struct(_Thing, {bounds.REQUIRED: _struct(_Thing, {bounds.TERMS: _TERMS})})
_POD: Final = _shaped(
    _Pod,
    podspec_shapes.POD,
    "containers",
    containers=Annotated[_listed("containers", _CONTAINER), _ONE],
    initContainers=_listed("initContainers", _CONTAINER),
    ephemeralContainers=Annotated[list, _NONE],
    volumes=_listed("volumes", _VOLUME),
    securityContext=_lists("sysctls"),
    affinity=_struct(_Thing, {"nodeAffinity": _NODES}),
    nodeName=Annotated[str, _NONE],
    restartPolicy=Literal["Always", "OnFailure", "Never"],
    topologySpreadConstraints=NoneType,
)
# msgspec finds out about a type when it is first used. Two threads that both do so can crash.
surely_fits({})

"""Which types the fields of a pod's spec have, where people write most of it.

The definitions say so in full, but only after the webhook that fills in defaults; what is wrong
here is told together with everything else that is wrong.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import msgspec

from api.jsons import Json, JsonObject
from policies import bounds
from policies.problems import Problem

_WORDS: Final[Mapping[type, str]] = MappingProxyType(
    {
        str: "must be a string",
        int: "must be a whole number",
        bool: "must be true or false",
        list: "must be a list",
        dict: "must be an object",
    }
)


@dataclass(frozen=True)
class Shape:
    """An object's fields by their type, those it must have, and what its lists of objects hold."""

    fields: Mapping[str, type]
    required: tuple[str, ...] = ()
    items: Mapping[str, "Shape"] = field(default_factory=dict)


def _typed(
    string: str = "", integer: str = "", boolean: str = "", array: str = "", object_: str = ""
) -> Mapping[str, type]:
    named = {str: string, int: integer, bool: boolean, list: array, dict: object_}
    return {name: kind for kind, each in named.items() for name in each.split()}


VARIABLE: Final = Shape(_typed(string="name value", object_="valueFrom"), ("name",))
PORT: Final = Shape(
    _typed(string="hostIP name protocol", integer="containerPort hostPort"), ("containerPort",)
)
MOUNT: Final = Shape(
    _typed(
        string="mountPath mountPropagation name recursiveReadOnly subPath subPathExpr",
        boolean="readOnly",
        array="bindMountOptions",
    ),
    ("mountPath", "name"),
)
CONTAINER: Final = Shape(
    _typed(
        array="args command env envFrom ports resizePolicy restartPolicyRules volumeDevices "
        "volumeMounts",
        string="image imagePullPolicy name restartPolicy terminationMessagePath "
        "terminationMessagePolicy workingDir",
        object_="lifecycle livenessProbe readinessProbe resources securityContext startupProbe",
        boolean="stdin stdinOnce tty",
    ),
    ("name",),
    {"env": VARIABLE, "ports": PORT, "volumeMounts": MOUNT},
)
POD: Final = Shape(
    _typed(
        integer="activeDeadlineSeconds priority terminationGracePeriodSeconds",
        object_="affinity dnsConfig nodeSelector os overhead resources schedulingGroup "
        "securityContext",
        boolean="automountServiceAccountToken enableServiceLinks hostIPC hostNetwork hostPID "
        "hostUsers setHostnameAsFQDN shareProcessNamespace",
        array="containers ephemeralContainers evictionResponders hostAliases imagePullSecrets "
        "initContainers readinessGates resourceClaims schedulingGates tolerations "
        "topologySpreadConstraints volumes",
        string="dnsPolicy hostname hostnameOverride nodeName preemptionPolicy priorityClassName "
        "restartPolicy runtimeClassName schedulerName serviceAccount serviceAccountName subdomain",
    ),
    # That it has containers is a rule, since an empty list will not do either.
    items={"containers": CONTAINER, "initContainers": CONTAINER},
)


def _struct(name: str, shape: Shape) -> type[msgspec.Struct]:
    """Make of a shape what msgspec reads by: stricter in nothing but whole numbers like 1.0."""
    types: dict[str, object] = {**shape.fields}
    types |= {each: list[_struct(each, inner)] for each, inner in shape.items.items()}  # type: ignore[misc]  # made at run time
    fields = [
        (each, kind) if each in shape.required else (each, kind | None, None)  # type: ignore[operator]  # a type at run time
        for each, kind in types.items()
    ]
    return msgspec.defstruct(name, fields, kw_only=True)


_POD: Final = _struct("Pod", POD)
# msgspec finds out about a type when it is first used. Two threads that both do so can crash.
msgspec.convert({}, _POD)


def pod_misfits(path: str, pod: JsonObject) -> Iterator[Problem]:
    """Find fields of a pod's spec of other types, and what its lists of objects lack."""
    try:
        # In C, and nearly always the last word: only what does not fit is looked at closely.
        msgspec.convert(pod, _POD)
    except (msgspec.ValidationError, UnicodeError):
        # Half a character is no text to msgspec. What to say of it is for others.
        yield from misfits(path, pod, POD)


def misfits(path: str, value: JsonObject, shape: Shape) -> Iterator[Problem]:
    """Find fields of other types, and objects in lists that lack what they must have."""
    for name in shape.required:
        if value.get(name) is None:
            yield Problem(f"{path}.{name}", "is required")
    fields, items = shape.fields, shape.items
    for name, inner in value.items():
        kind = fields.get(name)
        if kind is None or inner is None or (type(inner) is kind and name not in items):
            continue
        if not _fits(inner, kind):
            yield Problem(f"{path}.{name}", _WORDS[kind])
        elif name in items and isinstance(inner, list):
            yield from _inside(f"{path}.{name}", bounds.listed(value, name), items[name])


def _inside(path: str, items: list[Json], shape: Shape) -> Iterator[Problem]:
    for i, item in enumerate(items):
        if not isinstance(item, dict):
            yield Problem(f"{path}[{i}]", "must be an object")
        else:
            yield from misfits(f"{path}[{i}]", item, shape)


def _fits(value: Json, kind: type) -> bool:
    if type(value) is kind:
        return True
    # The API server takes 1.0 for a whole number.
    return kind is int and isinstance(value, float) and value.is_integer()

"""Schemas of Kubernetes' own types, taken from what an API server publishes about itself.

The documents (OpenAPI v3) describe types for people and clients; a definition wants them in the
structural dialect, small: nothing referred to, no descriptions, no defaults that mean "absent".
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, cast

from api.jsons import Json, JsonObject

# What the models call them, and what the API server does.
TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "PodSpec": "io.k8s.api.core.v1.PodSpec",
        "TopologySpreadConstraint": "io.k8s.api.core.v1.TopologySpreadConstraint",
        "MetricSpec": "io.k8s.api.autoscaling.v2.MetricSpec",
        "ResourceClaimTemplateSpec": "io.k8s.api.resource.v1.ResourceClaimTemplateSpec",
    }
)
DOCUMENTS: Final = (
    "/openapi/v3/api/v1",
    "/openapi/v3/apis/autoscaling/v2",
    "/openapi/v3/apis/resource.k8s.io/v1",
)

_REFERENCE: Final = "#/components/schemas/"
_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
# Numbers and strings both: a form that only an extension can say. Fractions need quotes.
_QUANTITY: Final[JsonObject] = {
    "x-kubernetes-int-or-string": True,
    "pattern": (
        r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
        r"([KMGTPE]i|[numkMGTPE]|[eE][+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+))?$"
    ),
}
_LEAVES: Final[Mapping[str, JsonObject]] = MappingProxyType(
    {
        "io.k8s.apimachinery.pkg.api.resource.Quantity": _QUANTITY,
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"x-kubernetes-int-or-string": True},
    }
)
# Kubernetes bounds nothing inside of a pod but the whole; what rules look at has bounds of its own.
MOST_ITEMS: Final = 4096
LONGEST_TEXT: Final = 1 << 21  # more than can be stored
_KEPT: Final = ("type", "format", "enum", "required", "x-kubernetes-map-type")


class MissingTypeError(LookupError):
    """The documents do not describe a type that is needed."""


def extract(documents: Iterable[JsonObject]) -> dict[str, JsonObject]:
    """Give each type of TYPES in the structural dialect."""
    schemas: dict[str, JsonObject] = {}
    for document in documents:
        components = cast("JsonObject", document.get("components") or {})
        schemas |= cast("dict[str, JsonObject]", components.get("schemas") or {})
    return {ours: _Extraction(schemas).named(theirs) for ours, theirs in TYPES.items()}


class _Extraction:
    """Rewrites schemas, putting what they refer to in its place."""

    def __init__(self, schemas: Mapping[str, JsonObject]) -> None:
        self._schemas = schemas

    def named(self, name: str) -> JsonObject:
        if name in _LEAVES:
            return dict(_LEAVES[name])
        if name not in self._schemas:
            raise MissingTypeError(
                f"no document describes {name}: give those of {', '.join(DOCUMENTS)}"
            )
        schema = self.node(self._schemas[name])
        return _template_meta(schema) if name == _OBJECT_META else schema

    def node(self, node: JsonObject) -> JsonObject:
        reference = _reference(node)
        if reference:
            return self.named(reference)
        kept: JsonObject = {key: node[key] for key in _KEPT if key in node}
        properties = node.get("properties")
        values = node.get("additionalProperties")
        items = node.get("items")
        if isinstance(properties, dict):
            required = kept.get("required")
            kept["properties"] = {
                name: _optional(name, self.node(cast("JsonObject", child)), required)
                for name, child in properties.items()
            }
        if isinstance(values, dict):
            kept["additionalProperties"] = self.node(values)
            kept["maxProperties"] = MOST_ITEMS
        if isinstance(items, dict):
            kept |= self._list(node, items)
            kept["maxItems"] = MOST_ITEMS
        if kept.get("type") == "string" and "enum" not in kept:
            kept["maxLength"] = LONGEST_TEXT
        if kept.get("type") == "object" and not {"properties", "additionalProperties"} & set(kept):
            # Somebody else's words, such as a driver's parameters.
            kept["x-kubernetes-preserve-unknown-fields"] = True
        return kept

    def _list(self, node: JsonObject, items: JsonObject) -> JsonObject:
        element = self.node(items)
        kind = node.get("x-kubernetes-list-type")
        if kind not in ("map", "set"):
            return {"items": element}  # atomic, as lists are if nothing is said
        merged: JsonObject = {"x-kubernetes-list-type": kind}
        if kind == "map":
            keys = cast("list[str]", node["x-kubernetes-list-map-keys"])
            merged["x-kubernetes-list-map-keys"] = list[Json](keys)
            self._default_keys(items, element, keys)
        return {"items": element} | merged

    def _default_keys(self, items: JsonObject, element: JsonObject, keys: Iterable[str]) -> None:
        """Give keys that may be left out their defaults: every element must have its keys."""
        source = self._schemas[_reference(items)] if _reference(items) else items
        described = cast("Mapping[str, JsonObject]", source.get("properties") or {})
        properties = cast("dict[str, JsonObject]", element["properties"])
        required = cast("list[str]", element.get("required") or [])
        for key in keys:
            if key not in required:
                properties[key]["default"] = described[key]["default"]


def _reference(node: JsonObject) -> str:
    """Name the type that a node stands for, or "" when it is described in place."""
    target = node.get("$ref")
    alternatives = node.get("allOf")
    if isinstance(alternatives, list):
        # How the documents attach a default to a reference.
        (only,) = cast("list[JsonObject]", alternatives)
        target = only.get("$ref")
    return target.removeprefix(_REFERENCE) if isinstance(target, str) else ""


def _optional(name: str, schema: JsonObject, required: Json) -> JsonObject:
    """Let a word that may be left out be empty too: both mean the same to the API server."""
    words = schema.get("enum")
    if not isinstance(words, list) or "" in words:
        return schema
    if isinstance(required, list) and name in required:
        return schema
    return schema | {"enum": [*words, ""]}


def _template_meta(schema: JsonObject) -> JsonObject:
    """Narrow an object's metadata to what a template can have."""
    properties = cast("dict[str, JsonObject]", schema["properties"])
    kept: dict[str, Json] = {k: v for k, v in properties.items() if k != "managedFields"}
    # Clients in typed languages write a null here.
    kept["creationTimestamp"] = properties["creationTimestamp"] | {"nullable": True}
    return schema | {"properties": kept}

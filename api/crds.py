"""CustomResourceDefinitions made from the models, so that there is one source for both.

The API server takes a narrower dialect than JSON Schema ("structural"): no references, no null
type, nothing but validations beside a type. `structural` narrows what pydantic emits.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, cast

from api import names
from api.jsons import Json, JsonObject
from api.kinds import Column, Kind
from api.models import Model
from api.validations import extension

_KEPT: Final = frozenset(
    {
        "type", "description", "format", "pattern", "enum", "default", "nullable", "required",
        "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "maxProperties",
        "properties", "items", "additionalProperties",
    }
)  # fmt: skip
_ANY_OBJECT: Final = MappingProxyType[str, Json](
    {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
)
_OPAQUE: Final = MappingProxyType[str, JsonObject]({})


def definition(kind: Kind, types: Mapping[str, JsonObject] = _OPAQUE) -> JsonObject:
    """Make the definition of a kind, ready to apply.

    `types` are schemas of Kubernetes' own types; of those not there, any object is taken.
    """
    version: JsonObject = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _object_schema(kind, types)},
        "subresources": _subresources(kind),
        "additionalPrinterColumns": [_column(column) for column in kind.columns],
    }
    spec: JsonObject = {
        "group": kind.group,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "names": {
            "kind": kind.kind,
            "listKind": f"{kind.kind}List",
            "plural": kind.plural,
            "singular": kind.kind.lower(),
            "shortNames": list(kind.short),
        },
        "versions": [version],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": kind.crd_name,
            "labels": {"app.kubernetes.io/part-of": "penstock"},
            # Removing Penstock must not remove the workloads that people described with it.
            "annotations": {"helm.sh/resource-policy": "keep", names.DEFINITION: digest(spec)},
        },
        "spec": spec,
    }


def digest(spec: JsonObject) -> str:
    """Tell one definition from another, in a few characters."""
    written = json.dumps(spec, sort_keys=True).encode()
    return hashlib.sha256(written).hexdigest()[:16]


def structural(model: type[Model], types: Mapping[str, JsonObject] = _OPAQUE) -> JsonObject:
    """Give a model's schema in the dialect the API server takes."""
    schema = cast("JsonObject", model.model_json_schema(by_alias=True, mode="validation"))
    definitions = cast("Mapping[str, JsonObject]", schema.get("$defs", {}))
    return _Narrowing(definitions, types).narrow(schema)


@dataclass(frozen=True)
class _Narrowing:
    """What a schema's references lead to: parts of the model, and Kubernetes' own types."""

    definitions: Mapping[str, JsonObject]
    types: Mapping[str, JsonObject]

    def narrow(self, node: JsonObject) -> JsonObject:
        node = self._resolved(node)
        foreign = node.get("x-penstock-schema")
        if isinstance(foreign, str):
            return _described(node) | self.types.get(foreign, _ANY_OBJECT)
        kept: JsonObject = {
            key: value
            for key, value in node.items()
            if (key in _KEPT or key.startswith("x-kubernetes-")) and value is not None
        }
        if kept.get("default") in ("", [], {}):
            # Absent and empty mean the same; a stored default would only be noise in every object.
            del kept["default"]
        if kept.get("type") == "integer":
            # Stated, so that clients in typed languages choose a wide enough number.
            kept["format"] = "int32" if _fits_int32(kept) else "int64"
        for key in ("items", "additionalProperties"):
            child = kept.get(key)
            if isinstance(child, dict):
                kept[key] = _without_description(self.narrow(child))
            elif child is not None:
                kept.pop(key)
        properties = kept.get("properties")
        if isinstance(properties, dict):
            kept["properties"] = {
                name: self.narrow(cast("JsonObject", child)) for name, child in properties.items()
            }
        return kept

    def _resolved(self, node: JsonObject) -> JsonObject:
        """Put referenced schemas in place and drop the `null` alternative of optional fields."""
        options = node.get("anyOf")
        if isinstance(options, list):
            real = [o for o in cast("list[JsonObject]", options) if o.get("type") != "null"]
            if len(real) != 1:
                raise TypeError(f"no structural form for alternatives: {options}")
            rest = {k: v for k, v in node.items() if k not in {"anyOf", "default"}}
            node = {**real[0], **rest}
        reference = node.get("$ref")
        if isinstance(reference, str):
            target = self.definitions[reference.removeprefix("#/$defs/")]
            rest = {k: v for k, v in node.items() if k != "$ref"}
            node = self._resolved({**target, **rest})
        return node


def _described(node: JsonObject) -> JsonObject:
    return {"description": node["description"]} if "description" in node else {}


def _fits_int32(node: JsonObject) -> bool:
    highest = node.get("maximum")
    return isinstance(highest, int) and highest < 2**31


def _without_description(node: JsonObject) -> JsonObject:
    # An element is described by the field that holds it.
    return {key: value for key, value in node.items() if key != "description"}


def _object_schema(kind: Kind, types: Mapping[str, JsonObject]) -> JsonObject:
    return extension(*kind.rules) | {
        "type": "object",
        "description": kind.about,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": structural(kind.spec, types),
            "status": structural(kind.status),
        },
    }


def _subresources(kind: Kind) -> JsonObject:
    status: JsonObject = {"status": {}}
    if kind.scale is None:
        return status
    return status | {
        "scale": {
            "specReplicasPath": kind.scale.spec,
            "statusReplicasPath": kind.scale.status,
            "labelSelectorPath": kind.scale.selector,
        }
    }


def _column(column: Column) -> JsonObject:
    shown: JsonObject = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return shown | {"priority": 1} if column.wide else shown


def file_name(kind: Kind) -> str:
    """Name the file a kind's definition is kept in."""
    return f"{kind.group}_{kind.plural}.yaml"

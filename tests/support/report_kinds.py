"""Kinds of policy reports, as strict about their fields as the published definitions are.

Written from the fields of PolicyReport in kubernetes-sigs/wg-policy-prototypes (v1alpha2) and of
Report in openreports/reports-api (v1alpha1, as of 0.2): types, choices and required fields.
"""

from typing import Final

from api.jsons import Json, JsonObject
from kube.resources import OPEN_REPORTS, POLICY_REPORTS, Resource

DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition",
    namespaced=False,
)  # fmt: skip

_TEXT: Final[JsonObject] = {"type": "string"}
_NUMBER: Final[JsonObject] = {"type": "integer"}
_OUTCOMES: Final = ("pass", "fail", "warn", "error", "skip")
_SEVERITIES: Final = {
    POLICY_REPORTS: ("high", "low", "medium"),
    OPEN_REPORTS: ("critical", "high", "low", "medium", "info"),
}


def _object(required: tuple[str, ...] = (), /, **fields: Json) -> JsonObject:
    made: JsonObject = {"type": "object", "properties": fields}
    return {**made, "required": [*required]} if required else made


def _texts(*names: str) -> JsonObject:
    return dict.fromkeys(names, _TEXT)


def _list(of: JsonObject) -> JsonObject:
    return {"type": "array", "items": of}


def _choice(*words: str) -> JsonObject:
    return {**_TEXT, "enum": [*words]}


_WORDS_BY_KEY: Final[JsonObject] = {"type": "object", "additionalProperties": _TEXT}
_REFERENCE: Final = _object(
    **_texts("apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid")
)
_REQUIREMENT: Final = _object(("key", "operator"), **_texts("key", "operator"), values=_list(_TEXT))
_SELECTOR: Final = _object(matchExpressions=_list(_REQUIREMENT), matchLabels=_WORDS_BY_KEY)
_INSTANT: Final = _object(
    ("nanos", "seconds"),
    nanos={**_NUMBER, "format": "int32"},
    seconds={**_NUMBER, "format": "int64"},
)
_LIMITS: Final = _object(maxResults=_NUMBER, statusFilter=_list(_choice(*_OUTCOMES)))


def _schema(kind: Resource) -> JsonObject:
    result = _object(
        ("policy",),
        **_texts("category", "message", "policy", "rule", "source"),
        properties=_WORDS_BY_KEY,
        resourceSelector=_SELECTOR,
        resources=_list(_REFERENCE),
        result=_choice(*_OUTCOMES),
        scored={"type": "boolean"},
        severity=_choice(*_SEVERITIES[kind]),
        timestamp=_INSTANT,
    )
    more: JsonObject = {}
    if kind is OPEN_REPORTS:
        more = {"source": _TEXT, "configuration": _object(("limits",), limits=_LIMITS)}
    return _object(
        **_texts("apiVersion", "kind"),
        metadata={"type": "object"},
        results=_list(result),
        scope=_REFERENCE,
        scopeSelector=_SELECTOR,
        summary=_object(**dict.fromkeys(_OUTCOMES, _NUMBER)),
        **more,
    )


def definition(kind: Resource) -> JsonObject:
    """Write the definition of one kind of reports."""
    called: JsonObject = {
        "plural": kind.plural,
        "singular": kind.kind.lower(),
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
    }
    version: JsonObject = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _schema(kind)},
    }
    return {
        "apiVersion": DEFINITIONS.api_version,
        "kind": DEFINITIONS.kind,
        # The API server asks this of groups that end in k8s.io.
        "metadata": {
            "name": kind.full_name,
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": kind.group, "scope": "Namespaced", "names": called, "versions": [version],
        },
    }  # fmt: skip

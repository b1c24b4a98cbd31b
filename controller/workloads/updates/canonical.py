"""A pod template in the one form that all templates for the same pods share. Pure.

The API server, its clients and we ourselves write one and the same template in different ways:
with a default or without, `0.5` or `500m`, `resources: {}` or nothing. None of that may roll a
fleet. The tables below are part of the hash: a row more changes the hashes of live sets.
"""

from collections.abc import Mapping
from typing import Final

from api import quantities
from api.jsons import Json, JsonObject

# What Kubernetes takes for granted: by the field around it, then by field. "" is the podSpec.
_PROBE: Final[Mapping[str, Json]] = {
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
    "initialDelaySeconds": 0,
}
_CONTAINER: Final[Mapping[str, Json]] = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "stdin": False,
    "stdinOnce": False,
    "tty": False,
}
_FILES: Final[Mapping[str, Json]] = {"defaultMode": 0o644}
_GRANTED: Final[Mapping[str, Mapping[str, Json]]] = {
    "": {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
        "hostNetwork": False,
        "hostPID": False,
        "hostIPC": False,
    },
    "containers": _CONTAINER,
    "initContainers": _CONTAINER,
    "ports": {"protocol": "TCP"},
    "livenessProbe": _PROBE,
    "readinessProbe": _PROBE,
    "startupProbe": _PROBE,
    "httpGet": {"scheme": "HTTP"},
    "fieldRef": {"apiVersion": "v1"},
    "configMap": _FILES,
    "secret": _FILES,
    "projected": _FILES,
    "downwardAPI": _FILES,
    "hostPath": {"type": ""},
}
# Objects that say nothing while they are empty. Others do: `emptyDir: {}`, `labelSelector: {}`.
_SILENT: Final = frozenset(
    (
        "affinity",
        "annotations",
        "capabilities",
        "labels",
        "lifecycle",
        "limits",
        "metadata",
        "nodeAffinity",
        "nodeSelector",
        "overhead",
        "podAffinity",
        "podAntiAffinity",
        "requests",
        "resources",
        "securityContext",
    )
)
_AMOUNTS: Final = frozenset(("limits", "requests", "overhead"))
_AMOUNT: Final = frozenset(("sizeLimit", "divisor"))


def pod_spec(written: JsonObject) -> JsonObject:
    """Give the spec's one form: what is set, without what Kubernetes takes for granted."""
    return _fields(written, "")


def _fields(holder: JsonObject, around: str) -> JsonObject:
    granted = _GRANTED.get(around, {})
    kept: JsonObject = {}
    for key, value in holder.items():
        form = _form(value, key, around)
        if form is None or (form == {} and key in _SILENT) or form == []:
            continue
        # JSON has true and 1 apart, Python has not.
        if key in granted and granted[key] == form and type(granted[key]) is type(form):
            continue
        kept[key] = form
    return kept


def _form(value: Json, key: str, around: str) -> Json:
    if isinstance(value, dict):
        return _fields(value, key)
    if isinstance(value, list):
        return [_form(item, "", key) if not isinstance(item, dict) else _fields(item, key)
                for item in value]  # fmt: skip
    if around in _AMOUNTS or key in _AMOUNT:
        return _amount(value)
    return value


def _amount(value: Json) -> Json:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return value
    try:
        return format(quantities.parse(str(value)).normalize(), "f")
    except quantities.BadQuantityError:
        return value

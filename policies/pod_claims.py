"""What a pod says of itself that concerns gangs, by its labels, annotations and spec."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from api import names
from api.jsons import JsonObject
from policies import reading
from policies.problems import Problem

GANG_LABELS: Final = (names.PODGANG_LABEL, names.GANG_LABEL)
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"


@dataclass(frozen=True)
class Claim:
    """A pod that says it belongs to a gang."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: JsonObject

    @property
    def is_plain(self) -> bool:
        """Whether its labels alone make the gang, with no PodGang behind them."""
        return names.PODGANG_LABEL not in self.labels

    @property
    def scheduler(self) -> str:
        """The schedulerName as written."""
        written = self.spec.get("schedulerName")
        return written if isinstance(written, str) else ""


@dataclass(frozen=True)
class Bystander:
    """A pod that is no gang's business."""


def read(pod: JsonObject) -> Claim | Bystander | Problem:
    """Read what the pod claims.

    A pod that mirrors a static one claims nothing: its kubelet runs it whatever we say.
    """
    if not is_gang_pod(pod):
        return Bystander()
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return Problem("spec", "is required")
    return Claim(_words(pod, "labels"), _words(pod, "annotations"), spec)


def is_gang_pod(pod: JsonObject) -> bool:
    """Tell whether the pod is some gang's business, however badly it is written."""
    labels = _written(pod, "labels")
    if not any(isinstance(labels.get(label), str) for label in GANG_LABELS):
        return False
    return not isinstance(_written(pod, "annotations").get(MIRROR_ANNOTATION), str)


def is_of_a_set(pod: JsonObject) -> bool:
    """Tell whether a PodGang that was made for a set is said to be behind the pod."""
    return names.PODGANG_LABEL in _words(pod, "labels")


def _words(pod: JsonObject, field: str) -> Mapping[str, str]:
    found = _written(pod, field)
    return {key: value for key, value in found.items() if isinstance(value, str)}


def _written(pod: JsonObject, field: str) -> JsonObject:
    return reading.mapping(reading.mapping(pod.get("metadata")).get(field))

"""The PodGang of a plain gang as it is written, and whether one says the same already. Pure."""

from dataclasses import dataclass, field
from datetime import datetime

from api import names
from api.jsons import Json, JsonObject
from api.models import Condition
from api.objects import settled, timestamp
from api.podgang import PodGangSpec
from api.streams import Meta, Pod
from controller.gangs import plain_slots
from controller.gangs.plain_pods import Whereabouts
from controller.podgang import Gang
from kube.objects import Key
from kube.resources import EVENTS, PODGANGS, PODS


@dataclass(frozen=True)
class Closeness:
    """The topology by name, and the node label whose one value all pods must share."""

    topology: str = ""
    key: str = ""


@dataclass(frozen=True)
class Wanted:
    """What the PodGang of a plain gang is to say; slots are indices and the pods that have them."""

    key: Key
    slots: tuple[tuple[int, str], ...]
    minimum: int
    priority_class: str = ""
    closeness: Closeness = Closeness()
    whereabouts: Whereabouts = field(default_factory=Whereabouts)
    timeout: str = ""

    def body(self) -> JsonObject:
        """Write it new. Nobody owns it: it goes when its pods have gone."""
        namespace, name = self.key
        return {
            "apiVersion": PODGANGS.api_version,
            "kind": PODGANGS.kind,
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {names.GANG_LABEL: name},
                "annotations": {k: v for k, v in self._annotations().items() if v is not None},
            },
            "spec": {k: v for k, v in self._spec().items() if v is not None},
        }

    def patch(self, gang: Meta) -> JsonObject:
        """Write the merge patch that has it said; it fails if the PodGang has changed since."""
        return {
            "metadata": {
                "resourceVersion": gang.resource_version,
                "annotations": self._annotations(),
            },
            "spec": self._spec(),
        }

    def is_said_by(self, gang: Gang) -> bool:
        """Whether the PodGang says all of it, and nothing else of these."""
        there = gang.metadata.annotations
        return PodGangSpec.model_validate(self._spec_there()) == gang.spec and all(
            there.get(key) == value for key, value in self._annotations().items()
        )

    def _annotations(self) -> dict[str, Json]:
        return {
            names.SLOTS_ANNOTATION: plain_slots.spelled(index for index, _ in self.slots),
            names.TOPOLOGY_NAME_ANNOTATION: self.closeness.topology or None,
            names.SPREAD_ANNOTATION: self.whereabouts.spread or None,
            names.PREFERRED_ZONE: self.whereabouts.zone or None,
            names.GANG_TIMEOUT: self.timeout or None,
        }

    def _spec(self) -> JsonObject:
        """Write the spec; what is to be absent is null."""
        namespace, name = self.key
        pods: list[Json] = [{"namespace": namespace, "name": pod} for _, pod in self.slots]
        required: JsonObject = {"packConstraint": {"required": self.closeness.key}}
        return {
            "podgroups": [{"name": name, "minReplicas": self.minimum, "podReferences": pods}],
            "priorityClassName": self.priority_class or None,
            "topologyConstraint": required if self.closeness.key else None,
        }

    def _spec_there(self) -> JsonObject:
        return {key: value for key, value in self._spec().items() if value is not None}


def closeness_of(gang: Gang) -> Closeness:
    """Read how close together a PodGang of ours keeps its pods."""
    constraint = gang.spec.topology_constraint
    pack = constraint.pack_constraint if constraint else None
    return Closeness(
        gang.metadata.annotations.get(names.TOPOLOGY_NAME_ANNOTATION, ""),
        (pack.required if pack else None) or "",
    )


def told(gang: Gang, *, whole: bool, message: str, now: datetime) -> Condition:
    """Say whether the pods that must start together were all there."""
    condition = Condition(
        type=names.INITIALIZED,
        status="True" if whole else "False",
        reason=names.PODS_CREATED if whole else names.PODS_PENDING,
        message=message,
        last_transition_time=timestamp(now),
        observed_generation=gang.metadata.generation,
    )
    return settled(gang.status.conditions, condition)


def status(gang: Gang, *, whole: bool, message: str, now: datetime) -> JsonObject:
    """Write that as the only thing which is said of the status here."""
    condition = told(gang, whole=whole, message=message, now=now)
    return {"conditions": [condition.model_dump(mode="json", by_alias=True)]}


def taken(holder: Meta, pod: Pod, now: datetime) -> JsonObject:
    """Write the Event that says why the pod's gang does not come about."""
    meta = pod.metadata
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        # The same name each time, so that each pod is told once; names of pods come again.
        "metadata": {"name": f"{meta.uid}.{holder.uid}", "namespace": meta.namespace},
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": f"{names.GROUP}/gangs",
        "reportingInstance": names.GANGS_ACCOUNT,
        "action": "Wait",
        "type": "Warning",
        "reason": names.REASON_NAME_TAKEN,
        "regarding": {
            "apiVersion": PODS.api_version,
            "kind": PODS.kind,
            "name": meta.name,
            "namespace": meta.namespace,
            "uid": meta.uid,
        },
        "note": f"the pod waits: a PodGang {holder.name}, which was not made for labelled pods, "
        f"has the name of its gang; choose another for the label {names.GANG_LABEL}",
    }

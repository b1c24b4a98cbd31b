"""What is to be done for a set now: the difference between what it wants and what there is. Pure.

Each step can be repeated and each prefix of them can be where a process died: the next look at the
set finds what is left to do.
"""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from api import names
from api.jsons import Json, JsonObject
from api.models import Condition
from api.objects import condition_of, timestamp
from api.podcliqueset import PodCliqueSetSpec, PodCliqueSetStatus
from api.podgang import PodGangSpec
from api.streams import Meta, Pod
from controller.podgang import Gang
from controller.workloads.expansion import WantedGang, expand, gang_body, pod_groups


@dataclass(frozen=True)
class SetView:
    """A set, and what it owns, at one instant. What it owns is told by UID, never by label."""

    metadata: Meta
    spec: PodCliqueSetSpec
    status: PodCliqueSetStatus
    gangs: Mapping[str, Gang]
    pods: Mapping[str, Pod]


@dataclass(frozen=True)
class CreateGang:
    """Make a PodGang."""

    name: str
    body: JsonObject


@dataclass(frozen=True)
class CreatePod:
    """Make a pod."""

    name: str
    body: JsonObject


@dataclass(frozen=True)
class DeleteGang:
    """Remove a gang that is wanted no more; its UID guards against removing a namesake."""

    name: str
    uid: str


@dataclass(frozen=True)
class DeletePod:
    """Remove a pod that is wanted no more."""

    name: str
    uid: str


@dataclass(frozen=True)
class ReferToPods:
    """Bring a gang's list of pods up to date."""

    name: str
    resource_version: str
    groups: list[Json]


@dataclass(frozen=True)
class Announce:
    """Say on a gang whether all its pods were made."""

    name: str
    condition: Condition


@dataclass(frozen=True)
class Report:
    """Write the set's status."""

    status: PodCliqueSetStatus


Step: TypeAlias = CreateGang | CreatePod | DeleteGang | DeletePod | ReferToPods | Announce | Report


def steps(view: SetView, now: datetime) -> list[Step]:
    """List what is to be done now, in an order that is right at every prefix."""
    if view.metadata.deletion_timestamp is not None:
        return []  # garbage collection takes what the set owns
    wanted = expand(view.metadata, view.spec)
    found = [*_gangs(view, wanted), *_pods(view, wanted), *_membership(view, wanted, now)]
    status = _status(view, wanted)
    return [*found, Report(status)] if status != view.status else found


def _gangs(view: SetView, wanted: tuple[WantedGang, ...]) -> Iterator[Step]:
    for gang in wanted:
        if gang.name not in view.gangs:
            yield CreateGang(gang.name, gang_body(view.metadata, view.spec, gang))
    keep = {gang.name for gang in wanted}
    for name, there in sorted(view.gangs.items()):
        if name not in keep and there.metadata.deletion_timestamp is None:
            yield DeleteGang(name, there.metadata.uid)


def _pods(view: SetView, wanted: tuple[WantedGang, ...]) -> Iterator[Step]:
    keep = {pod.name: pod for gang in wanted for clique in gang.cliques for pod in clique.pods}
    scheduler = _scheduler(view, keep)
    for name, pod in keep.items():
        # One that is still terminating keeps its name; its successor comes when it is gone.
        if name not in view.pods:
            yield CreatePod(name, pod.body(scheduler))
    for name, there in sorted(view.pods.items()):
        if name not in keep and there.metadata.deletion_timestamp is None:
            yield DeletePod(name, there.metadata.uid)


def _scheduler(view: SetView, wanted: Container[str]) -> str:
    # No other name is taken from a pod: whoever could forge one would choose the set's scheduler.
    given = {pod.spec.scheduler_name for name, pod in view.pods.items() if name in wanted}
    return names.DEFAULT_SCHEDULER if names.DEFAULT_SCHEDULER in given else ""


def _membership(view: SetView, wanted: tuple[WantedGang, ...], now: datetime) -> Iterator[Step]:
    present = {n: p for n, p in view.pods.items() if p.metadata.deletion_timestamp is None}
    for gang in wanted:
        there = view.gangs.get(gang.name)
        if there is None or there.metadata.deletion_timestamp is not None:
            continue
        # Once all were made, the gang refers to all that are wanted: one that is being replaced
        # keeps its place, and only a smaller wish makes the gang smaller.
        wished = {pod.name for clique in gang.cliques for pod in clique.pods}
        made = wished if there.initialized else present
        groups = pod_groups(view.metadata, gang, made)
        if groups != _written(there.spec):
            yield ReferToPods(gang.name, there.metadata.resource_version, groups)
        condition = _initialized(gang, there, present, now)
        if condition is not None:
            yield Announce(gang.name, condition)


def _written(spec: PodGangSpec) -> list[Json]:
    return [
        {
            "name": group.name,
            "minReplicas": group.min_replicas,
            "podReferences": [
                {"namespace": ref.namespace, "name": ref.name} for ref in group.pod_references
            ],
        }
        for group in spec.pod_groups
    ]


def _initialized(
    gang: WantedGang, there: Gang, present: Mapping[str, Pod], now: datetime
) -> Condition | None:
    """Give the condition to write, or None if it is right. Once true it stays true, as in Grove."""
    if there.initialized:
        return None
    before = condition_of(there.status.conditions, names.INITIALIZED)
    wanted = [pod.name for clique in gang.cliques for pod in clique.pods]
    made = sum(name in present for name in wanted)
    if made == len(wanted):
        status, reason = "True", names.PODS_CREATED
    else:
        status, reason = "False", names.PODS_PENDING
    if before is not None and before.status == status:
        return None
    return Condition(
        type=names.INITIALIZED,
        status=status,
        reason=reason,
        message=f"{made} of {len(wanted)} pods are made" if status == "False" else "",
        last_transition_time=timestamp(now),
        observed_generation=there.metadata.generation,
    )


def _status(view: SetView, wanted: tuple[WantedGang, ...]) -> PodCliqueSetStatus:
    base_gangs = [gang for gang in wanted if not gang.base]
    available = sum(_available(gang, view.pods) for gang in base_gangs)
    return view.status.model_copy(
        update={
            "observed_generation": view.metadata.generation,
            "replicas": view.spec.replicas,
            "available_replicas": available,
            "hpa_pod_selector": (
                f"{names.MANAGED_BY_LABEL}={names.MANAGED_BY},"
                f"{names.PART_OF_LABEL}={view.metadata.name}"
            ),
        }
    )


def _available(gang: WantedGang, pods: Mapping[str, Pod]) -> bool:
    """Whether every clique of the gang has its minimum ready."""
    return all(
        sum(_ready(pods.get(pod.name)) for pod in clique.pods) >= clique.minimum
        for clique in gang.cliques
    )


def _ready(pod: Pod | None) -> bool:
    if pod is None or pod.metadata.deletion_timestamp is not None:
        return False
    return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)

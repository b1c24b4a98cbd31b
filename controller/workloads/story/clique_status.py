"""What a PodClique's status says, from its pods. Pure.

Pods that are going away count nowhere: one that was told to end takes no requests, whatever its
conditions still say.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from api import names
from api.models import Condition, LastError, LastOperation
from api.objects import condition_of
from api.podclique import PodCliqueStatus, PodCliqueUpdate
from api.streams import ContainerStatus, Pod
from controller.workloads.story import observing
from controller.workloads.story.observing import condition
from controller.workloads.views import Clique


@dataclass(frozen=True)
class Counts:
    """A clique's pods, counted."""

    there: int = 0  # also those that have failed
    working: int = 0  # those that have not: at work, or done with it
    scheduled: int = 0
    completed: int = 0  # done
    ready: int = 0
    up: int = 0  # all containers ready, whatever readiness gates say
    gated: int = 0
    updated: int = 0  # made from the newest template
    given: bool = False  # whether their PodClique has that template
    failing: int = 0  # crashed or started, and not up


def count(pods: Iterable[Pod], newest: str) -> Counts:
    """Count pods; those whose label has the hash `newest` follow the newest template.

    It is empty where their PodClique has not been given that template.
    """
    there = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    working = [pod for pod in there if not pod.failed]
    scheduled = [pod for pod in working if pod.spec.node_name]
    up = [pod for pod in scheduled if pod.containers_ready]
    return Counts(
        there=len(there),
        working=len(working),
        scheduled=len(scheduled),
        ready=sum(map(_ready, up)),
        up=len(up),
        gated=sum(bool(pod.spec.scheduling_gates) for pod in working),
        updated=sum(_hash(pod) == newest for pod in there),
        given=bool(newest),
        completed=sum(pod.completed for pod in scheduled),
        failing=sum(
            _failing(pod) for pod in scheduled if not pod.containers_ready and not pod.completed
        ),
    )


def minimum(clique: Clique) -> int:
    """How many pods the clique needs; none once it is scaled to nothing."""
    return clique.spec.minimum if clique.spec.replicas else 0


def breached(clique: Clique, counts: Counts) -> bool:
    """Whether fewer pods are at work than the clique needs.

    A pod that has a node and has not started yet is taken for fine: pulling an image takes long.
    """
    return counts.scheduled - counts.failing < minimum(clique)


@dataclass(frozen=True)
class Told:
    """What a status says that does not follow from the pods."""

    errors: list[LastError]
    operation: LastOperation
    generation_hash: str
    group_updates: bool = False  # copies of the scaling group around it are being replaced


def status(
    clique: Clique,
    counts: Counts,
    update: PodCliqueUpdate | None,
    others: Iterable[Condition],
    told: Told,
    now: datetime,
) -> PodCliqueStatus:
    """Give the status; `others` are conditions that are judged elsewhere."""
    before = clique.status
    meta = clique.metadata
    updating = told.group_updates or (update is not None and update.update_ended_at is None)
    complete = counts.working == counts.there == clique.spec.replicas
    current = counts.given and counts.updated == counts.there
    followed = complete and not updating and current
    said = {
        "observed_generation": (
            meta.generation if complete and not told.errors else before.observed_generation
        ),
        "conditions": [*_conditions(clique, counts, now, updating=updating), *others],
        "last_errors": told.errors,
        "last_operation": told.operation,
        "replicas": counts.there,
        "ready_replicas": counts.ready,
        "updated_replicas": counts.updated,
        "schedule_gated_replicas": counts.gated,
        "scheduled_replicas": counts.scheduled,
        "hpa_pod_selector": selector(
            meta.labels.get(names.PART_OF_LABEL, ""), names.PODCLIQUE_LABEL, meta.name
        ),
        "current_pod_clique_set_generation_hash": (
            told.generation_hash if followed else before.current_pod_clique_set_generation_hash
        ),
        "current_pod_template_hash": (
            meta.labels.get(names.TEMPLATE_HASH_LABEL, "")
            if followed
            else before.current_pod_template_hash
        ),
        "update_progress": update,
    }
    return observing.status(before, said)


def selector(set_name: str, label: str = "", value: str = "") -> str:
    """Select a set's pods, or those with one label more, as autoscalers want it."""
    text = f"{names.MANAGED_BY_LABEL}={names.MANAGED_BY},{names.PART_OF_LABEL}={set_name}"
    return f"{text},{label}={value}" if label else text


def _conditions(
    clique: Clique, counts: Counts, now: datetime, *, updating: bool
) -> list[Condition]:
    said = (
        (names.MIN_AVAILABLE_BREACHED, _breach(clique, counts, updating=updating)),
        (names.CLIQUE_SCHEDULED, _scheduled(clique, counts)),
    )
    old = clique.status.conditions
    return [condition(old, kind, what, clique.metadata, now) for kind, what in said]


def _breach(clique: Clique, counts: Counts, *, updating: bool) -> tuple[str, str, str]:
    needed = minimum(clique)
    if updating:
        return (
            "Unknown",
            names.REASON_UPDATING,
            "not judged while pods are replaced",
        )
    if counts.scheduled < needed:
        message = f"{counts.scheduled} pods have a node, {needed} are needed"
        return "True", names.SCHEDULED_BELOW_MINIMUM, message
    fine = counts.scheduled - counts.failing
    if fine < needed:
        message = (
            f"{needed} pods are needed; of the {counts.scheduled} that have a node,"
            f" {counts.failing} crashed or started without getting ready"
        )
        return "True", names.INSUFFICIENT_READY, message
    done = f", {counts.completed} of them done" if counts.completed else ""
    message = f"{fine} pods are at work or starting{done}, {needed} needed"
    return "False", names.SUFFICIENT_READY, message


def _scheduled(clique: Clique, counts: Counts) -> tuple[str, str, str]:
    """Tell whether the minimum has nodes and, if not, whether it ever had since it was asked for.

    Gang termination makes nothing anew that has lost nothing.
    """
    needed = minimum(clique)
    message = f"{counts.scheduled} pods have a node, {needed} are needed"
    if counts.scheduled < needed:
        before = condition_of(clique.status.conditions, names.CLIQUE_SCHEDULED)
        if before is None or before.reason in {names.NEVER_SCHEDULED, names.SCALED_TO_NOTHING}:
            return "False", names.NEVER_SCHEDULED, message
        return "False", names.INSUFFICIENT_SCHEDULED, message
    if not needed:
        return "True", names.SCALED_TO_NOTHING, message
    return "True", names.SUFFICIENT_SCHEDULED, message


def _ready(pod: Pod) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)


def _hash(pod: Pod) -> str:
    return pod.metadata.labels.get(names.TEMPLATE_HASH_LABEL, "")


def _failing(pod: Pod) -> bool:
    return any(_crashed(c) or (c.started and not c.ready) for c in pod.status.container_statuses)


def _crashed(container: ContainerStatus) -> bool:
    ended = container.last_state.terminated
    return not container.ready and ended is not None and ended.exit_code != 0

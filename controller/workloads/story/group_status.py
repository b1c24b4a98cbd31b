"""What a PodCliqueScalingGroup's status says, from its copies' cliques. Pure."""

from collections.abc import Iterable
from datetime import datetime

from api import names
from api.models import Condition
from api.scalinggroup import PodCliqueScalingGroupStatus, ScalingGroupUpdate
from controller.workloads.story import observing
from controller.workloads.story.clique_status import Told, selector
from controller.workloads.story.observing import condition
from controller.workloads.story.standing import Copies
from controller.workloads.views import Group


def minimum(group: Group) -> int:
    """How many copies the group needs; none once it is scaled to nothing."""
    return group.spec.min_available if group.spec.replicas else 0


def status(
    group: Group,
    copies: Copies,
    update: ScalingGroupUpdate | None,
    others: Iterable[Condition],
    told: Told,
    now: datetime,
) -> PodCliqueScalingGroupStatus:
    """Give the status; `others` are conditions that are judged elsewhere."""
    before = group.status
    meta = group.metadata
    updating = update is not None and update.update_ended_at is None
    wanted = group.spec.replicas
    followed = not updating and copies.following == wanted
    breach = _breach(group, copies, updating=updating)
    said = {
        "observed_generation": (
            meta.generation
            if copies.whole == wanted and not told.errors
            else before.observed_generation
        ),
        "conditions": [
            condition(before.conditions, names.MIN_AVAILABLE_BREACHED, breach, meta, now),
            *others,
        ],
        "last_errors": told.errors,
        "last_operation": told.operation,
        "replicas": copies.there,
        "scheduled_replicas": copies.scheduled,
        "available_replicas": copies.available,
        "updated_replicas": copies.updated,
        "selector": selector(
            meta.labels.get(names.PART_OF_LABEL, ""), names.SCALING_GROUP_LABEL, meta.name
        ),
        "current_pod_clique_set_generation_hash": (
            told.generation_hash if followed else before.current_pod_clique_set_generation_hash
        ),
        "update_progress": update,
    }
    return observing.status(before, said)


def breached(group: Group, copies: Copies) -> bool:
    """Whether fewer copies are whole and at work than the group needs."""
    return copies.fine < minimum(group)


def _breach(group: Group, copies: Copies, *, updating: bool) -> tuple[str, str, str]:
    if updating:
        return (
            "Unknown",
            names.REASON_UPDATING,
            "not judged while copies are replaced",
        )
    message = f"{copies.fine} copies are at work or starting, {minimum(group)} are needed"
    if breached(group, copies):
        return "True", names.INSUFFICIENT_COPIES, message
    return "False", names.SUFFICIENT_COPIES, message

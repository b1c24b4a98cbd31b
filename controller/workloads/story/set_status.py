"""What a PodCliqueSet's status says. Pure."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from api import names
from api.models import Condition
from api.podcliqueset import GangPhase, GangSummary, PodCliqueSetStatus, SetUpdate
from api.podgang import Phase
from controller.podgang import Gang
from controller.workloads.making import closeness
from controller.workloads.story import observing
from controller.workloads.story.clique_status import Told, selector
from controller.workloads.story.observing import condition
from controller.workloads.story.standing import Stand
from controller.workloads.views import SetView
from controller.workloads.wants import Wanted

# A set of thousands of gangs must fit into one object of the API server.
MOST_GANGS: Final = 1000
_MOST_TOLD: Final = 100  # of those, with all of their conditions


def status(
    view: SetView,
    wanted: Wanted,
    stand: Stand,
    update: SetUpdate | None,
    others: Iterable[Condition],
    told: Told,
) -> PodCliqueSetStatus:
    """Give the status; `others` are its conditions."""
    before = view.status
    synced = _complete(view, wanted) and not told.errors
    said = {
        "observed_generation": view.metadata.generation if synced else before.observed_generation,
        "conditions": list(others),
        "last_errors": told.errors,
        "last_operation": told.operation,
        "replicas": sum(replica.there for replica in stand.replicas),
        "updated_replicas": sum(replica.updated for replica in stand.replicas),
        "available_replicas": sum(replica.available for replica in stand.replicas),
        "hpa_pod_selector": selector(view.metadata.name),
        "pod_gang_statuses": _gangs(view, wanted),
        "current_generation_hash": told.generation_hash,
        "update_progress": update,
    }
    return observing.status(before, said)


def conditions(
    view: SetView, progressing: tuple[str, str, str] | None, order_trouble: str, now: datetime
) -> Iterator[Condition]:
    """Tell of an update, of levels that the cluster lacks, and of an order that never completes."""
    old, meta = view.status.conditions, view.metadata
    if progressing is not None:
        yield condition(old, names.PROGRESSING, progressing, meta, now)
    near = closeness.topology_state(view)
    if near is not None:
        said = near.status, near.reason, near.message
        yield condition(old, names.TOPOLOGY_UNAVAILABLE, said, meta, now)
    if order_trouble:
        said = "True", names.ORDER_NEVER_COMPLETES, order_trouble
        yield condition(old, names.STARTUP_IMPOSSIBLE, said, meta, now)


def _complete(view: SetView, wanted: Wanted) -> bool:
    """Whether all that the set wants has been made, its pods too, and nothing else is left."""
    return (
        view.cliques.keys() == wanted.cliques.keys()
        and view.groups.keys() == {group.name for group in wanted.groups}
        and view.gangs.keys() == {gang.name for gang in wanted.gangs}
        and all(gang.initialized for gang in view.gangs.values())
    )


def _gangs(view: SetView, wanted: Wanted) -> list[GangSummary]:
    """Tell of the set's gangs in short; of too many, of those that do not run yet first."""
    gangs = [gang for want in wanted.gangs if (gang := view.gangs.get(want.name))]
    if len(gangs) > MOST_GANGS:
        gangs = sorted(gangs, key=lambda gang: gang.status.phase is Phase.RUNNING)[:MOST_GANGS]
    return [_summary(gang, whole=number < _MOST_TOLD) for number, gang in enumerate(gangs)]


def _summary(gang: Gang, *, whole: bool) -> GangSummary:
    conditions = sorted(gang.status.conditions, key=lambda c: c.type) if whole else []
    return GangSummary.model_construct(
        name=gang.metadata.name,
        phase=GangPhase(gang.status.phase.value),
        conditions=conditions,
    )

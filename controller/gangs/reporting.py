"""What a gang's status should say, from what is known of it. Pure."""

from datetime import datetime

from api import names
from api.models import Condition
from api.objects import settled, timestamp
from api.podgang import Phase, PodGangStatus
from api.reservation import State
from controller.gangs.deciding import Place, Wait
from controller.gangs.views import GangView
from scheduler import explain
from scheduler.placing import NoFit


def status(
    view: GangView, step: Wait | Place, refusal: NoFit | str | None, now: datetime
) -> PodGangStatus:
    """Give the gang's status as `gangs` would write it: all but what `workloads` says.

    `refusal` is the engine's, or what the API server said when the plan was written down.
    """
    reason, message = _reason(view, step, refusal)
    condition = Condition(
        type=names.SCHEDULED,
        status="True" if reason == names.REASON_BOUND else "False",
        reason=reason,
        message=message,
        last_transition_time=timestamp(now),
        observed_generation=view.gang.metadata.generation,
    )
    reservation = view.reservation
    return PodGangStatus(
        phase=_phase(view),
        placement_score=reservation.spec.score if reservation else None,
        conditions=[settled(view.gang.status.conditions, condition)],
    )


def _reason(view: GangView, step: Wait | Place, refusal: NoFit | str | None) -> tuple[str, str]:
    if isinstance(step, Wait):
        return step.reason, step.message
    bound = view.reservation is not None and view.reservation.state is State.BOUND
    if bound and not step.minimum:
        # The gang itself is bound without its extras.
        return names.REASON_BOUND, f"{len(step.extras)} further pods wait for room"
    if isinstance(refusal, str):
        return names.REASON_NOT_RESERVED, refusal
    return names.REASON_INSUFFICIENT, explain.sentence(refusal) if refusal else ""


def _phase(view: GangView) -> Phase:
    reservation = view.reservation
    if reservation is None or reservation.state is State.HELD:
        return Phase.RUNNING if _runs(view) else Phase.PENDING
    return Phase.RUNNING if _runs(view) else Phase.STARTING


def _runs(view: GangView) -> bool:
    """Whether every clique has its minimum running."""
    return all(
        sum(m.pod.status.phase == "Running" for m in view.of_clique(group.name))
        >= max(1, group.min_replicas)
        for group in view.gang.spec.pod_groups
    )

"""What a gang's status should say, from what is known of it. Pure."""

from datetime import datetime

from api import names
from api.models import Condition
from api.objects import settled, timestamp
from api.podgang import Phase, PodGangStatus
from api.reservation import State
from controller.gangs.deciding import Begin, Close, Lift, Place, Step, Wait
from controller.gangs.views import GangView
from scheduler import explain
from scheduler.placing import NoFit


def status(view: GangView, step: Step, refusal: NoFit | None, now: datetime) -> PodGangStatus:
    """Give the gang's status as `gangs` would write it: all but what `workloads` says."""
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


def _reason(view: GangView, step: Step, refusal: NoFit | None) -> tuple[str, str]:
    if isinstance(step, Wait):
        return step.reason, step.message
    if isinstance(step, Close) or (
        view.reservation is not None and view.reservation.state is State.BOUND
    ):
        return names.REASON_BOUND, _waiting(step)
    if isinstance(step, Place) and refusal is not None:
        return names.REASON_INSUFFICIENT, explain.sentence(refusal)
    if isinstance(step, Lift):
        return names.REASON_LIFTING, f"{len(step.lifts)} pods are to be lifted"
    return (names.REASON_RESERVED if isinstance(step, Begin) else names.REASON_PLACING), ""


def _waiting(step: Step) -> str:
    """Mention extras without room; the gang itself is bound without them."""
    if not isinstance(step, Place):
        return ""
    return f"{len(step.minimum) + len(step.extras)} further pods wait for room"


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

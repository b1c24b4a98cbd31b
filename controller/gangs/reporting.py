"""What a gang's status should say, from what is known of it. Pure."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from api import names
from api.models import Condition
from api.objects import condition_of, settled, timestamp
from api.podgang import Phase, PodGangStatus
from api.reservation import State
from controller.gangs.deciding import Place, Wait
from controller.gangs.views import GangView
from controller.podgang import Gang
from scheduler import explain
from scheduler.answers import NoFit

_FEW: Final = 3  # cliques that are named; of the others their number is told


def status(
    view: GangView,
    step: Wait | Place,
    refusal: NoFit | str | None,
    now: datetime,
    unheeded: str = "",
    overdue: str = "",
) -> PodGangStatus:
    """Give the gang's status as `gangs` would write it: all but what `workloads` says.

    `refusal` is the engine's, or what the API server said when the plan was written down;
    `unheeded` says what it would like and nobody heeds, and `overdue` for how long it should have
    waited at the most.
    """
    reason, message = _reason(view, step, refusal)
    if unheeded and isinstance(refusal, NoFit) and reason != names.REASON_BOUND:
        message += f"; {unheeded}"
    scheduled = "True" if reason == names.REASON_BOUND else "False"
    reservation = view.reservation
    return PodGangStatus(
        phase=_phase(view),
        placement_score=reservation.spec.score if reservation and reservation.size else None,
        conditions=[
            _condition(view, names.SCHEDULED, (scheduled, reason, message), now),
            *_late(view, now, reason, overdue),
            *_placed(view, now, unheeded),
            *_health(view, now),
            *_disrupted(view, now),
        ],
    )


def switched_off(gang: Gang, now: datetime) -> PodGangStatus:
    """Give the status of a gang that is nobody's business while gang scheduling is switched off.

    Whether it was ready once is kept, since that counts for its pods later on.
    """
    old = gang.status.conditions
    condition = Condition(
        type=names.SCHEDULED,
        status="Unknown",
        reason=names.REASON_GANGS_OFF,
        message="gang scheduling is switched off: kube-scheduler binds its pods one by one",
        last_transition_time=timestamp(now),
        observed_generation=gang.metadata.generation,
    )
    kept = (condition_of(old, kind) for kind in (names.READY, names.UNHEALTHY))
    said = [settled(old, condition), *(each for each in kept if each is not None)]
    return PodGangStatus(phase=gang.status.phase, conditions=said)


def same(there: PodGangStatus, wanted: PodGangStatus) -> bool:
    """Whether the status says all that is wanted; whoever else writes there is left alone."""
    said = {c.type: (c.status, c.reason, c.message) for c in there.conditions}
    return all(said.get(c.type) == (c.status, c.reason, c.message) for c in wanted.conditions) and (
        there.phase,
        there.placement_score,
    ) == (wanted.phase, wanted.placement_score)


def _condition(view: GangView, kind: str, said: tuple[str, str, str], now: datetime) -> Condition:
    status, reason, message = said
    condition = Condition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=timestamp(now),
        observed_generation=view.gang.metadata.generation,
    )
    return settled(view.gang.status.conditions, condition)


def _late(view: GangView, now: datetime, reason: str, overdue: str) -> Iterator[Condition]:
    """Tell whether it has waited for too long; of one that never has, nothing."""
    bound = reason == names.REASON_BOUND
    if overdue and not bound:
        yield _condition(view, names.TIMED_OUT, ("True", names.REASON_TIMED_OUT, overdue), now)
    elif condition_of(view.gang.status.conditions, names.TIMED_OUT):
        why = names.REASON_BOUND if bound else names.REASON_MAY_WAIT_LONGER
        yield _condition(view, names.TIMED_OUT, ("False", why, ""), now)


def _placed(view: GangView, now: datetime, unheeded: str) -> Iterator[Condition]:
    """Tell where the gang's room is, how good a place that is, and what was broken for it."""
    spec = view.reservation.spec if view.reservation and view.reservation.size else None
    if spec is None or spec.score is None:
        return
    message = f"in {spec.domain or 'no one domain'}: score {spec.score:.2f}"
    if spec.fragmentation is not None:
        message += f", fragmentation {spec.fragmentation:.2f}"
    if unheeded:
        message += f"; {unheeded}"
    yield _condition(view, names.PLACED, ("True", names.REASON_PLACED, message), now)


def _health(view: GangView, now: datetime) -> Iterator[Condition]:
    """Tell whether the gang has its minimum ready, and of one that had it, whether it lost it."""
    behind = _behind(view)
    old = view.gang.status.conditions
    before, lost = condition_of(old, names.READY), condition_of(old, names.UNHEALTHY)
    if behind:
        # Which cliques they are changes while a gang starts, and each change would be a write.
        said = "False", names.REASON_NOT_READY, "not every clique has its minimum up"
        yield _condition(view, names.READY, said, now)
        if lost is not None or (before is not None and before.status == "True"):
            yield _condition(view, names.UNHEALTHY, ("True", names.REASON_LOST, behind), now)
        return
    yield _condition(view, names.READY, ("True", names.REASON_READY, ""), now)
    if lost is not None:
        yield _condition(view, names.UNHEALTHY, ("False", names.REASON_BACK, ""), now)


def _disrupted(view: GangView, now: datetime) -> Iterator[Condition]:
    """Tell of a gang that was rolled back, until it has room again."""
    reservation = view.reservation
    if reservation is not None and reservation.state is State.ROLLED_BACK:
        said = "True", names.REASON_ROLLED_BACK, reservation.status.message
        yield _condition(view, names.DISRUPTION_TARGET, said, now)
    elif condition_of(view.gang.status.conditions, names.DISRUPTION_TARGET):
        said = "False", names.REASON_PLACED, ""
        yield _condition(view, names.DISRUPTION_TARGET, said, now)


def _behind(view: GangView) -> str:
    """Name the cliques that have less than their minimum up; "" if there are none."""
    behind = [
        group.name
        for group in view.gang.spec.pod_groups
        if sum(m.up for m in view.of_clique(group.name)) < group.min_replicas
    ]
    more = f" and {len(behind) - _FEW} more" if len(behind) > _FEW else ""
    return f"below the minimum: {', '.join(behind[:_FEW])}{more}" if behind else ""


def _reason(view: GangView, step: Wait | Place, refusal: NoFit | str | None) -> tuple[str, str]:
    if isinstance(step, Wait):
        # Without its pods, it may have been told what becomes of it once these are there.
        return _refused(refusal) if isinstance(refusal, NoFit) else (step.reason, step.message)
    bound = view.reservation is not None and view.reservation.state is State.BOUND
    if bound and not step.minimum:
        # The gang itself is bound without its extras.
        return names.REASON_BOUND, f"{len(step.extras)} further pods wait for room"
    if isinstance(refusal, str):
        return names.REASON_NOT_RESERVED, refusal
    return _refused(refusal) if refusal else (names.REASON_INSUFFICIENT, "")


def _refused(refusal: NoFit) -> tuple[str, str]:
    reason = names.REASON_NEVER_FITS if refusal.never else names.REASON_INSUFFICIENT
    return reason, explain.sentence(refusal)


def _phase(view: GangView) -> Phase:
    reservation = view.reservation
    if reservation is None or reservation.state in (State.HELD, State.ROLLED_BACK):
        return Phase.RUNNING if _runs(view) else Phase.PENDING
    return Phase.RUNNING if _runs(view) else Phase.STARTING


def _runs(view: GangView) -> bool:
    """Whether every clique has its minimum running. One scaled to nothing lacks nothing."""
    asked = [group for group in view.gang.spec.pod_groups if group.pod_references]
    # Before all is made, that a gang refers to nothing says nothing.
    return bool(asked or view.gang.initialized) and all(
        sum(m.pod.status.phase in ("Running", "Succeeded") for m in view.of_clique(group.name))
        >= max(1, group.min_replicas)
        for group in asked
    )

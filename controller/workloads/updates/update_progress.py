"""How far an update has come, in the words of statuses. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from api import names
from api.models import Instant
from api.objects import condition_of, timestamp
from api.podclique import PodCliqueUpdate, PodsToUpdate
from api.podcliqueset import ReplicaUpdate, SetUpdate
from api.scalinggroup import CopiesToUpdate, ScalingGroupUpdate
from controller.workloads.updates import rolling
from controller.workloads.updates.rolling import Copies, Following, Replica
from controller.workloads.views import SetView


@dataclass(frozen=True)
class Course:
    """Whether an update is under way, and which replica's turn it is."""

    changed: bool  # the templates are others than those the status speaks of
    active: bool
    by_hand: bool  # people delete old pods themselves
    paused: bool
    turn: Replica | None


@dataclass(frozen=True)
class Said:
    """What statuses say of an update, and when to look again because they might say more."""

    progress: SetUpdate | None = None
    progressing: tuple[str, str, str] | None = None
    again: datetime | None = None
    cliques: Mapping[str, PodCliqueUpdate] = field(default_factory=dict)
    groups: Mapping[str, ScalingGroupUpdate] = field(default_factory=dict)


def said(
    view: SetView, generation: str, found: Sequence[Replica], course: Course, now: datetime
) -> Said:
    """Word how far an update has come."""
    progress = _of_set(view, found, course, now)
    if progress is None:
        return Said()
    if course.by_hand:
        # Nobody waits for it: pods follow when people delete them.
        return Said(progress)
    progressing, again = _progressing(view, found, course, progress, now)
    return Said(
        progress,
        progressing,
        again,
        dict(_of_cliques(found, course, generation, now)),
        dict(_of_groups(view, found, course, generation, now)),
    )


def _of_set(
    view: SetView, found: Sequence[Replica], course: Course, now: datetime
) -> SetUpdate | None:
    before = view.status.update_progress
    begins = course.changed or (course.active and (before is None or before.update_ended_at))
    if begins:
        started: Instant | None = timestamp(now)
        ended: Instant | None = None
    elif before is None:
        return None
    else:
        started, ended = before.update_started_at, before.update_ended_at
    if course.by_hand:
        # What a pause keeps back has not begun: another strategy may come to carry it out.
        kept_back = course.paused and any(not each.given for r in found for each in r.cliques)
        ended = ended if kept_back else ended or started
    elif course.active and course.turn is None and not any(each.behind for each in found):
        ended = timestamp(now)
    alone = [clique for replica in found for clique in replica.alone]
    groups = [group for replica in found for group in replica.groups]
    return SetUpdate.model_construct(
        update_started_at=started,
        update_ended_at=ended,
        updated_pod_cliques_count=sum(not clique.behind for clique in alone),
        total_pod_cliques_count=len(alone),
        updated_pod_clique_scaling_groups_count=sum(not group.behind for group in groups),
        total_pod_clique_scaling_groups_count=len(groups),
        currently_updating=_turns(before, course, now) if ended is None else [],
    )


def _turns(before: SetUpdate | None, course: Course, now: datetime) -> list[ReplicaUpdate]:
    kept = before.currently_updating if before and not course.changed else []
    if course.paused:
        return list(kept)
    if course.turn is None:
        return []
    index = course.turn.index
    same = (each for each in kept if each.replica_index == index)
    new = ReplicaUpdate.model_construct(
        replica_index=index, update_started_at=timestamp(now), update_ended_at=None
    )
    return [next(same, new)]


def _progressing(
    view: SetView,
    found: Sequence[Replica],
    course: Course,
    progress: SetUpdate,
    now: datetime,
) -> tuple[tuple[str, str, str], datetime | None]:
    if progress.update_ended_at is not None:
        return ("True", names.REASON_UPDATED, "all pods follow the newest templates"), None
    done = f"{sum(not each.behind for each in found)} of {len(found)} replicas are updated"
    if course.paused:
        return ("Unknown", names.REASON_PAUSED, f"the update is paused; {done}"), None
    if course.turn is not None:
        done = f"replica {course.turn.index} is being updated; {done}"
    elif any(each.behind for each in found):
        done = f"an updated replica must recover before the next one's turn; {done}"
    strategy = view.spec.update_strategy
    rolling_update = strategy.rolling_update if strategy else None
    seconds = rolling_update.progress_deadline_seconds if rolling_update else None
    if seconds is not None:
        due = _last_progress(view, found, course, progress, now) + timedelta(seconds=seconds)
        if due <= now:
            message = f"no progress for more than {seconds} s: {done}"
            return ("False", names.REASON_OVERDUE, message), None
        return ("True", names.REASON_UPDATING, done), due
    return ("True", names.REASON_UPDATING, done), None


def _last_progress(
    view: SetView,
    found: Sequence[Replica],
    course: Course,
    progress: SetUpdate,
    now: datetime,
) -> datetime:
    """Tell when an update last got on: it or a replica began, went on, or a new pod got ready."""
    written = [progress.update_started_at]
    written += [each.update_started_at for each in progress.currently_updating]
    told = condition_of(view.status.conditions, names.PROGRESSING)
    # One that was paused begins to count when it goes on; the words may follow later.
    if told is not None and told.status == "Unknown":
        return now
    if told is not None and told.status == "True" and not course.changed:
        written.append(told.last_transition_time)
    times = [datetime.fromisoformat(each) for each in written if each]
    times += [
        each.last_transition_time
        for replica in found
        for clique in replica.cliques
        for pod in clique.new
        for each in pod.status.conditions
        if each.type == "ContainersReady" and each.status == "True" and each.last_transition_time
    ]
    return max(times, default=datetime.min.replace(tzinfo=UTC))


def _of_cliques(
    found: Sequence[Replica], course: Course, generation: str, now: datetime
) -> Iterator[tuple[str, PodCliqueUpdate]]:
    for replica in found:
        is_turn = course.turn is not None and replica.index == course.turn.index
        for clique in replica.alone:
            before = clique.there.status.update_progress if clique.there else None
            ours = before if before and _is_of(before, clique, generation) else None
            ends = ours and not ours.update_ended_at and not clique.behind
            if ends or (is_turn and (clique.behind or ours)):
                end = _end(clique, ours, now, waited_for=is_turn or course.paused)
                yield clique.want.name, _of_clique(clique, ours, generation, now, end)
            elif course.paused and before and not before.update_ended_at:
                yield clique.want.name, before


def _is_of(before: PodCliqueUpdate, clique: Following, generation: str) -> bool:
    same = before.pod_clique_set_generation_hash == generation
    return same and before.pod_template_hash == clique.want.template_hash


def _of_clique(
    clique: Following,
    before: PodCliqueUpdate | None,
    generation: str,
    now: datetime,
    end: Instant | None,
) -> PodCliqueUpdate:
    return PodCliqueUpdate.model_construct(
        update_started_at=(before and before.update_started_at) or timestamp(now),
        update_ended_at=end,
        pod_clique_set_generation_hash=generation,
        pod_template_hash=clique.want.template_hash,
        ready_pods_selected_to_update=None if end else _pods(clique),
    )


def _end(
    part: Following | Copies,
    before: PodCliqueUpdate | ScalingGroupUpdate | None,
    now: datetime,
    *,
    waited_for: bool,
) -> Instant | None:
    """Tell when the update of a part ended; who has no room is not waited for."""
    if part.behind or (waited_for and not part.settled):
        return None
    return (before and before.update_ended_at) or timestamp(now)


def _pods(clique: Following) -> PodsToUpdate | None:
    new = sorted(clique.new, key=lambda pod: (pod.containers_ready, pod.metadata.name))
    starting = [pod.metadata.name for pod in new if not pod.containers_ready]
    done = [pod.metadata.name for pod in new if pod.containers_ready]
    following = starting[:1] or [pod.metadata.name for pod in rolling.in_order(clique.old)[:1]]
    if not following:
        return None
    return PodsToUpdate.model_construct(current=following[0], completed=done)


def _of_groups(
    view: SetView, found: Sequence[Replica], course: Course, generation: str, now: datetime
) -> Iterator[tuple[str, ScalingGroupUpdate]]:
    for replica in found:
        is_turn = course.turn is not None and replica.index == course.turn.index
        for group in replica.groups:
            there = view.groups.get(group.want.name)
            before = there.status.update_progress if there else None
            same = before is not None and before.pod_clique_set_generation_hash == generation
            ours = before if same else None
            ends = ours and not ours.update_ended_at and not group.behind
            if ends or (is_turn and (group.behind or ours)):
                end = _end(group, ours, now, waited_for=is_turn or course.paused)
                yield group.want.name, _of_group(group, ours, generation, now, end)
            elif course.paused and before and not before.update_ended_at:
                yield group.want.name, before


def _of_group(
    group: Copies,
    before: ScalingGroupUpdate | None,
    generation: str,
    now: datetime,
    end: Instant | None,
) -> ScalingGroupUpdate:
    members = [member for copy in group.copies for member in copy.members]
    return ScalingGroupUpdate.model_construct(
        update_started_at=before.update_started_at if before else timestamp(now),
        update_ended_at=end,
        pod_clique_set_generation_hash=generation,
        updated_pod_cliques_count=sum(not member.behind for member in members),
        total_pod_cliques_count=len(members),
        ready_replica_indices_selected_to_update=None if end else _copies(group),
    )


def _copies(group: Copies) -> CopiesToUpdate | None:
    new = [copy for copy in group.copies if not copy.behind]
    starting = [copy.index for copy in new if not copy.settled]
    following = starting[:1] or [
        copy.index for copy in rolling.copies_in_order(group.copies) if copy.behind
    ]
    if not following:
        return None
    done = [copy.index for copy in new if copy.settled]
    return CopiesToUpdate.model_construct(current=following[0], completed=done)

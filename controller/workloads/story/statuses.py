"""The statuses of a set, its groups and its cliques, each said when it says something new. Pure.

While things are in flux a status is written at most every two seconds, since it would be out of
date in a moment anyway; when they have settled it is written at once. What makes people or other
programs act is never held up.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from api import names
from api.models import Condition, OperationState, Status
from api.objects import condition_of, settled, timestamp
from api.podclique import PodCliqueUpdate
from api.podcliqueset import GangPhase, PodCliqueSetStatus, SetUpdate
from api.scalinggroup import ScalingGroupUpdate
from api.streams import Meta
from controller.voicing import Tell
from controller.workloads import ordering
from controller.workloads.stepping import Again, Say, Step
from controller.workloads.story import (
    clique_status,
    group_status,
    observing,
    set_status,
    standing,
    waits,
)
from controller.workloads.story.clique_status import Told
from controller.workloads.story.observing import errors, operation, own
from controller.workloads.story.waits import Wait
from controller.workloads.termination import terminating
from controller.workloads.updates import updating
from controller.workloads.views import SetView, Trouble
from controller.workloads.wants import Wanted
from kube.resources import PODCLIQUES, PODCLIQUESETS, SCALING_GROUPS, Resource

LEFT_ALONE: Final = "ReconcileFailed"
_FLUX: Final = timedelta(seconds=2)
_URGENT: Final = frozenset(
    {names.GANG_TERMINATION, names.STARTUP_IMPOSSIBLE, names.TOPOLOGY_UNAVAILABLE}
)


def steps(view: SetView, wanted: Wanted, now: datetime) -> Iterator[Step]:
    """Say what has changed since it was last said."""
    speaker = _Speaker(view, wanted, now)
    later: list[datetime] = []
    for said in speaker.said():
        if isinstance(said, Again):
            later.append(said.at)
        else:
            yield said
    if later:
        yield Again(min(later))


def loses_minimum(view: SetView) -> bool:
    """Tell whether a clique lacks its minimum and still says that it has it.

    Since when it says so is what gang termination counts from, so that this is said at once.
    """
    for name, clique in view.cliques.items():
        said = condition_of(clique.status.conditions, names.MIN_AVAILABLE_BREACHED)
        if said is None or said.status != "False" or clique.metadata.deletion_timestamp is not None:
            continue
        if clique_status.breached(clique, clique_status.count(view.pods_of(name), "")):
            return True
    return False


def left_alone(
    meta: Meta, before: PodCliqueSetStatus, trouble: Trouble, now: datetime
) -> Iterator[Step]:
    """Say of a set why nothing is done for it; what was said before of its parts stays."""
    found = errors(before.last_errors, [trouble], now)
    wait = waits.failed(found)
    how = operation(before.last_operation, wait.state, wait.sentence, now)
    said = {"last_errors": found, "last_operation": how, "conditions": own(before.conditions)}
    yield from news(PODCLIQUESETS, meta, before, observing.status(before, said), now)
    yield Tell(PODCLIQUESETS, meta.name, meta.uid, LEFT_ALONE, trouble.description, warning=True)


class _Speaker:
    """Words the statuses of one set at one instant."""

    def __init__(self, view: SetView, wanted: Wanted, now: datetime) -> None:
        self._view = view
        self._wanted = wanted
        self._now = now
        self._rollout = updating.rollout(view, wanted, now)
        self._stand = standing.stand(view, wanted, self._rollout.newest)
        self._terminations = terminating.conditions(view, wanted)

    def said(self) -> Iterator[Say | Again]:
        """Give what is to be written, the narrowest objects first."""
        yield from self._cliques()
        yield from self._groups()
        yield from self._set()

    def _cliques(self) -> Iterator[Say | Again]:
        for name, want in self._wanted.cliques.items():
            there = self._view.cliques.get(name)
            if there is None or there.metadata.deletion_timestamp is not None:
                continue
            wait = waits.of_clique(there, want, self._view, self._stand)
            told = self._told(there.status, wait, _concerning(name, self._view.troubles))
            around = self._rollout.groups.get(want.place.group_name)
            updates = around is not None and around.update_ended_at is None
            told = replace(told, group_updates=updates)
            status = clique_status.status(
                there,
                self._stand.counts[name],
                self._rollout.cliques.get(name) or _ended(there.status.update_progress),
                self._termination(name, there.status.conditions),
                told,
                self._now,
            )
            yield from news(PODCLIQUES, there.metadata, there.status, status, self._now)

    def _groups(self) -> Iterator[Say | Again]:
        for want in self._wanted.groups:
            there = self._view.groups.get(want.name)
            if there is None or there.metadata.deletion_timestamp is not None:
                continue
            wait = waits.of_group(there, self._view, self._wanted, self._stand)
            told = self._told(there.status, wait, _concerning(want.name, self._view.troubles))
            status = group_status.status(
                there,
                self._stand.groups[want.name],
                self._rollout.groups.get(want.name) or _ended(there.status.update_progress),
                self._termination(want.name, there.status.conditions),
                told,
                self._now,
            )
            yield from news(SCALING_GROUPS, there.metadata, there.status, status, self._now)

    def _set(self) -> Iterator[Say | Again]:
        view = self._view
        trouble = ordering.order_trouble(view, self._wanted)
        wait = waits.of_set(view, self._wanted, self._stand, trouble)
        status = set_status.status(
            view,
            self._wanted,
            self._stand,
            self._rollout.progress or _ended(view.status.update_progress),
            set_status.conditions(view, self._rollout.progressing, trouble, self._now),
            self._told(view.status, wait, view.troubles),
        )
        yield from news(PODCLIQUESETS, view.metadata, view.status, status, self._now)

    def _told(self, before: Status, wait: Wait, troubles: Iterable[Trouble]) -> Told:
        found = errors(before.last_errors, troubles, self._now)
        if found:
            wait = waits.failed(found)
        how = operation(before.last_operation, wait.state, wait.sentence, self._now)
        return Told(found, how, self._rollout.generation_hash)

    def _termination(self, name: str, before: Iterable[Condition]) -> list[Condition]:
        found = self._terminations.get(name)
        return [settled(list(before), found)] if found else []


S = TypeVar("S", bound=Status)
U = TypeVar("U", PodCliqueUpdate, ScalingGroupUpdate, SetUpdate)


def _ended(update: U | None) -> U | None:
    """Leave the last update in the status, if it has come to its end."""
    return update if update is not None and update.update_ended_at is not None else None


def news(
    resource: Resource, meta: Meta, before: S, status: S, now: datetime
) -> Iterator[Say | Again]:
    """Say the status if it is news, or say when to look again if that can wait."""
    if status is before:
        return
    due = _written(meta, before) + _FLUX
    if now < due <= now + _FLUX and not _pressing(before, status):
        yield Again(due)
        return
    body = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    last = body.get("lastOperation")
    if isinstance(last, dict):
        last["lastUpdateTime"] = timestamp(now)
    yield Say(resource, meta.name, meta.uid, body)


def _written(meta: Meta, before: Status) -> datetime:
    """When the status was last written; an object without one was made then."""
    if before.last_operation is not None:
        try:
            return datetime.fromisoformat(before.last_operation.last_update_time)
        except ValueError:
            return datetime.min.replace(tzinfo=UTC)
    return meta.creation_timestamp or datetime.min.replace(tzinfo=UTC)


def _pressing(before: Status, status: Status) -> bool:
    """Whether what a status says cannot wait: it will stay so, or somebody is to act on it."""
    last = status.last_operation
    if last is not None and last.state is OperationState.SUCCEEDED and _gangs_run(status):
        return True
    return any(
        (condition_of(before.conditions, kind) is None)
        != (condition_of(status.conditions, kind) is None)
        for kind in _URGENT
    )


def _gangs_run(status: Status) -> bool:
    """Whether gangs say so too, if it is a set's: they are told of a moment after their pods."""
    return not isinstance(status, PodCliqueSetStatus) or all(
        gang.phase is GangPhase.RUNNING and all(c.status == "True" for c in gang.conditions)
        for gang in status.pod_gang_statuses
    )


def _concerning(name: str, troubles: Iterable[Trouble]) -> list[Trouble]:
    """Pick the troubles of an object, or of a pod of it."""
    return [t for t in troubles if name in {t.name, t.name.rpartition("-")[0]}]

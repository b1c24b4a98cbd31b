"""The statuses of a set, its groups and its cliques, each said when it says something new. Pure.

How long each may wait while it still changes is said with it: what has come to its end, or makes
people or other programs act, is never held up.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final, TypeVar

from api import names
from api.models import Condition, OperationState, Status
from api.objects import condition_of, settled, timestamp
from api.podclique import PodCliqueUpdate
from api.podcliqueset import GangPhase, PodCliqueSetStatus, SetUpdate
from api.scalinggroup import ScalingGroupUpdate
from api.streams import Meta, Pod
from controller.voicing import Tell
from controller.workloads import ordering
from controller.workloads.stepping import Say, Step
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
# Seconds for which a status may wait while it still changes: it is out of date in a moment.
_PASSING: Final = 20.0
_UPDATING: Final = 2.0  # an update is followed by people, and its deadline counts from what is said
_URGENT: Final = frozenset(
    {names.GANG_TERMINATION, names.STARTUP_IMPOSSIBLE, names.TOPOLOGY_UNAVAILABLE}
)


def steps(view: SetView, wanted: Wanted, now: datetime) -> Iterator[Step]:
    """Say what has changed since it was last said."""
    return _Speaker(view, wanted, now).said()


def is_pressing(view: SetView) -> bool:
    """Tell whether what there is to say must not wait: it would be too late, or never be known."""
    return loses_minimum(view) or updating.is_to_be_told(view)


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


def is_moving(view: SetView) -> bool:
    """Tell whether pods were let go and have no node yet: what is said of them is soon untrue."""
    return any(not pod.spec.scheduling_gates for pod in without_node(view))


def without_node(view: SetView) -> Iterator[Pod]:
    """List the pods that are still to be given a node."""
    for pods in view.pods.values():
        for pod in pods:
            if not (pod.spec.node_name or pod.finished) and pod.metadata.deletion_timestamp is None:
                yield pod


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

    def said(self) -> Iterator[Say]:
        """Give what is to be written, the narrowest objects first."""
        yield from self._cliques()
        yield from self._groups()
        yield from self._set()

    def _cliques(self) -> Iterator[Say]:
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

    def _groups(self) -> Iterator[Say]:
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

    def _set(self) -> Iterator[Say]:
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


def news(resource: Resource, meta: Meta, before: S, status: S, now: datetime) -> Iterator[Say]:
    """Say the status if it is news."""
    if status is before:
        return
    body = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    last = body.get("lastOperation")
    if isinstance(last, dict):
        last["lastUpdateTime"] = timestamp(now)
    yield Say(resource, meta.name, meta.uid, body, _words(status), _patience(before, status))


def _words(status: Status) -> Mapping[str, object]:
    """Give what a status says, whenever it began to."""
    last = status.last_operation
    return {
        **vars(status),
        "conditions": [(c.type, c.status, c.reason, c.message) for c in status.conditions],
        "last_errors": [(e.code, e.description) for e in status.last_errors],
        "last_operation": last and (last.type, last.state, last.description),
    }


def _patience(before: S, status: S) -> float:
    if _pressing(before, status):
        return 0.0
    known, new = vars(before), vars(status)
    return _PASSING if known["update_progress"] == new["update_progress"] else _UPDATING


def _pressing(before: Status, status: Status) -> bool:
    """Whether what a status says cannot wait: it will stay so, or somebody is to act on it."""
    last = status.last_operation
    if last is not None and last.state is OperationState.SUCCEEDED and _gangs_run(status):
        return True
    seen, sees = before.observed_generation or 0, status.observed_generation or 0
    if sees != seen and max(seen, sees) > 1:
        return True  # what somebody asked for since it was made is there
    if isinstance(status, PodCliqueSetStatus) and _update_begins(before, status):
        return True
    if {error.code for error in before.last_errors} != {error.code for error in status.last_errors}:
        return True
    breach = names.MIN_AVAILABLE_BREACHED
    had, has = (condition_of(each.conditions, breach) for each in (before, status))
    if had and has and (had.status, has.status) == ("False", "True"):
        return True
    return any(
        (condition_of(before.conditions, kind) is None)
        != (condition_of(status.conditions, kind) is None)
        for kind in _URGENT
    )


def _update_begins(before: Status, status: PodCliqueSetStatus) -> bool:
    known = before.current_generation_hash if isinstance(before, PodCliqueSetStatus) else ""
    return status.update_progress is not None and known != status.current_generation_hash


def _gangs_run(status: Status) -> bool:
    """Whether gangs say so too, if it is a set's: they are told of a moment after their pods."""
    return not isinstance(status, PodCliqueSetStatus) or all(
        gang.phase is GangPhase.RUNNING and all(c.status == "True" for c in gang.conditions)
        for gang in status.pod_gang_statuses
    )


def _concerning(name: str, troubles: Iterable[Trouble]) -> list[Trouble]:
    """Pick the troubles of an object, or of a pod of it."""
    return [t for t in troubles if name in {t.name, t.name.rpartition("-")[0]}]

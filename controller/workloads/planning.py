"""What is to be done for a set now: each planner's part, in an order that is right at every prefix.

Pure. What there has to be first is made first; what cannot be made yet, since its owner is not
there, a planner leaves for the next look, which follows at once.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final, TypeAlias

from controller.voicing import Tell
from controller.workloads import leaving
from controller.workloads.expansion import expand
from controller.workloads.making import (
    autoscalers,
    claims,
    cliques,
    computedomains,
    gang_bodies,
    groups,
    pods,
    rights,
    services,
)
from controller.workloads.quota import withdrawing
from controller.workloads.stepping import Again, Change, Create, Remove, Say, Step
from controller.workloads.story import statuses, telling
from controller.workloads.termination import terminating
from controller.workloads.updates import adopting, updating
from controller.workloads.views import SetView
from controller.workloads.wants import Wanted

Planner: TypeAlias = Callable[[SetView, Wanted, datetime], Iterator[Step]]

PLANNERS: Final[tuple[Planner, ...]] = (
    groups.steps,
    cliques.steps,
    gang_bodies.steps,
    services.steps,
    rights.steps,
    claims.steps,
    computedomains.steps,
    pods.steps,
    autoscalers.steps,
    leaving.steps,
    adopting.steps,
    updating.steps,
    terminating.steps,
    withdrawing.steps,
    statuses.steps,
    telling.steps,
)

_ORDER: Final = {Create: 0, Change: 1, Remove: 2, Say: 3, Tell: 4, Again: 5}


def plan(view: SetView, now: datetime, *, silent: bool = False) -> list[Step]:
    """List what is to be done: creations before all else, and nothing twice.

    To be `silent` leaves out statuses of the set and its parts, which are much of the work, and of
    its gangs what nobody acts on.
    """
    if view.metadata.deletion_timestamp is not None:
        found = leaving.departure(view)
    else:
        wanted = expand(view)
        if blind := (*rights.troubles(view, wanted, now),):
            view = replace(view, troubles=(*view.troubles, *blind))
        planners = (each for each in PLANNERS if not (silent and each is statuses.steps))
        every = (step for planner in planners for step in planner(view, wanted, now))
        found = (step for step in every if not (silent and _can_wait(step)))
    return sorted(_each_once(found), key=lambda step: _ORDER[type(step)])


def is_idle(view: SetView, steps: Iterable[Step]) -> bool:
    """Tell whether all there is to do is to wait until the pods of a set that starts have nodes.

    One that leaves or was updated may have to go on with each pod, and soon.
    """
    return (
        all(isinstance(step, Again) for step in steps)
        and view.metadata.deletion_timestamp is None
        and view.status.update_progress is None
        and any(True for _ in statuses.without_node(view))
    )


def _can_wait(step: Step) -> bool:
    return isinstance(step, Say) and not step.acts_on


def _each_once(steps: Iterator[Step]) -> Iterator[Step]:
    """Leave out what another planner asked for as well."""
    removed: set[str] = set()
    for step in steps:
        if isinstance(step, Remove):
            if step.uid and step.uid in removed:
                continue
            removed.add(step.uid)
        yield step

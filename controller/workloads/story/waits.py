"""What a set, a group or a clique waits for, in one sentence for people. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from api import names
from api.models import LastError, OperationState
from api.objects import condition_of
from controller.podgang import Gang
from controller.workloads.story.clique_status import Counts
from controller.workloads.story.standing import Stand
from controller.workloads.views import Clique, Group, SetView
from controller.workloads.wants import Wanted, WantedClique

_NOTHING: Final = "it is scaled to nothing"
_FEW: Final = 2  # gangs and cliques that are named; of the others their number is told


@dataclass(frozen=True)
class Wait:
    """How far an object has come, and the sentence on it."""

    state: OperationState
    sentence: str


def of_clique(clique: Clique, want: WantedClique, view: SetView, stand: Stand) -> Wait:
    """Say what a clique waits for."""
    asked = clique.spec.replicas
    counts = stand.counts[want.name]
    if counts.working < asked:
        failed = counts.there - counts.working
        told = f", {failed} failed and are made anew" if failed else ""
        return _going_on(f"{counts.working} of {asked} pods are made{told}")
    if counts.there > asked:
        return _going_on(f"{counts.there - asked} pods beyond {asked} are to go")
    if counts.gated:
        return _going_on(_gated(want, view, stand))
    if min(counts.scheduled, counts.ready + counts.completed, counts.updated) < asked:
        return _going_on(_behind(counts, asked))
    if counts.completed:
        return _done(f"{counts.ready} pods are ready, {counts.completed} are done")
    return _done(f"{asked} pods are ready" if asked else _NOTHING)


def of_group(group: Group, view: SetView, wanted: Wanted, stand: Stand) -> Wait:
    """Say what a scaling group waits for."""
    asked = group.spec.replicas
    copies = stand.groups[group.metadata.name]
    if copies.whole < asked:
        return _going_on(f"{copies.whole} of {asked} copies are made")
    if copies.available < asked:
        first = next(_unavailable(group, view, wanted, stand), "")
        told = f"{copies.available} of {asked} copies are available"
        return _going_on(f"{told}; {first}" if first else told)
    if copies.updated < asked:
        return _going_on(f"{copies.updated} of {asked} copies follow the newest templates")
    return _done(f"{asked} copies are available" if asked else _NOTHING)


def of_set(view: SetView, wanted: Wanted, stand: Stand, order_trouble: str) -> Wait:
    """Say what a set waits for: all that is not as it should be, the first causes first."""
    if order_trouble:
        return Wait(OperationState.ERROR, f"its startup order never completes: {order_trouble}")
    parts = list(_unmade(view, wanted, stand))
    parts += _short_list(list(_waiting_gangs(view, wanted)), "gangs wait")
    if not parts:
        parts += _short_list(list(_held_back(view, wanted, stand)), "cliques wait")
        parts += _short_list(list(_failing(view, wanted, stand)), "cliques have such pods")
        parts += _unready(view, wanted, stand)
    if parts:
        return _going_on("; ".join(parts))
    return _done(f"{view.spec.replicas} replicas are available" if wanted.gangs else _NOTHING)


def failed(errors: list[LastError]) -> Wait:
    """Say what went wrong."""
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return Wait(OperationState.ERROR, f"{errors[0].code}: {errors[0].description}{more}")


def _behind(counts: Counts, asked: int) -> str:
    if counts.scheduled < asked:
        return f"{asked - counts.scheduled} pods are not bound yet"
    if counts.ready + counts.completed < asked:
        bad = f", {counts.failing} crashed or started without getting ready"
        return f"{counts.ready} of {asked} pods are ready{bad if counts.failing else ''}"
    return f"{counts.updated} of {asked} pods follow the newest template"


def _unmade(view: SetView, wanted: Wanted, stand: Stand) -> Iterator[str]:
    cliques = len(wanted.cliques)
    made = sum(name in view.cliques for name in wanted.cliques)
    if made < cliques:
        yield f"{made} of {cliques} PodCliques are made"
    pods = _asked(view, wanted)
    working = sum(counts.working for counts in stand.counts.values())
    if working < pods:
        yield f"{working} of {pods} pods are made"
    leaving = view.cliques.keys() - wanted.cliques.keys()
    if leaving:
        yield f"{len(leaving)} PodCliques are to go"


def _waiting_gangs(view: SetView, wanted: Wanted) -> Iterator[str]:
    for gang in wanted.gangs:
        there = view.gangs.get(gang.name)
        if there is not None and (why := _obstacle(there)):
            yield f"gang {gang.name} waits: {why}"


def _held_back(view: SetView, wanted: Wanted, stand: Stand) -> Iterator[str]:
    for want in wanted.cliques.values():
        if stand.counts[want.name].gated:
            yield f"{want.name}: {_gated(want, view, stand)}"


def _failing(view: SetView, wanted: Wanted, stand: Stand) -> Iterator[str]:
    for want in wanted.cliques.values():
        counts, there = stand.counts[want.name], view.cliques.get(want.name)
        at_ease = counts.ready + counts.completed
        if there is not None and counts.failing and at_ease < there.spec.replicas:
            yield f"{want.name}: {_behind(counts, there.spec.replicas)}"


def _unready(view: SetView, wanted: Wanted, stand: Stand) -> Iterator[str]:
    pods = _asked(view, wanted)
    ready = sum(counts.ready + counts.completed for counts in stand.counts.values())
    if ready < pods:
        yield f"{ready} of {pods} pods are ready"
    updated = sum(counts.updated for counts in stand.counts.values())
    if updated < pods:
        yield f"{updated} of {pods} pods follow the newest templates"


def _unavailable(group: Group, view: SetView, wanted: Wanted, stand: Stand) -> Iterator[str]:
    for want in wanted.cliques.values():
        if want.place.group_name != group.metadata.name or stand.cliques[want.name].available:
            continue
        there = view.cliques.get(want.name)
        if there is not None:
            yield f"{want.name}: {of_clique(there, want, view, stand).sentence}"


def _gated(want: WantedClique, view: SetView, stand: Stand) -> str:
    """Say what holds a clique's gated pods back."""
    gated = f"{stand.counts[want.name].gated} pods wait"
    gang = view.gangs.get(want.place.gang)
    if gang is not None and (why := _obstacle(gang)):
        return f"{gated} with their gang {want.place.gang}: {why}"
    behind = [
        f"{parent.clique} to have {parent.minimum} pods up"
        for parent in want.waits_for
        if parent.clique not in stand.counts or stand.counts[parent.clique].up < parent.minimum
    ]
    if behind:
        return f"{gated} for {', '.join(behind)}"
    return f"{gated} to be placed"


def _obstacle(gang: Gang) -> str:
    """Say what keeps a gang's pods from their nodes; a gang without its extras says that too."""
    said = condition_of(gang.status.conditions, names.SCHEDULED)
    if said is None or (said.status == "True" and not said.message):
        return ""
    if said.reason == names.REASON_WAITING_FOR_PARENTS:
        return ""  # which of its cliques wait for which, their own sentences say
    return f"{said.reason}: {said.message}" if said.message else said.reason


def _asked(view: SetView, wanted: Wanted) -> int:
    return sum(
        view.cliques[name].spec.replicas if name in view.cliques else want.replicas
        for name, want in wanted.cliques.items()
    )


def _short_list(told: list[str], others: str) -> list[str]:
    if len(told) <= _FEW:
        return told
    return [*told[:_FEW], f"{len(told) - _FEW} more {others}"]


def _going_on(sentence: str) -> Wait:
    return Wait(OperationState.PROCESSING, sentence)


def _done(sentence: str) -> Wait:
    return Wait(OperationState.SUCCEEDED, sentence)

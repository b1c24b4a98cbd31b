"""Gang termination: what has lacked its minimum for too long is made anew as a whole. Pure.

The narrowest scope that restores the minimum is taken: one copy of a scaling group, if the group
has its minimum without it, else the replica of the set. Its pods go, and with them the PodGangs
that hold nothing else, so that their room comes free and they are placed whole again. PodCliques
and groups stay, and pods come back under their names.

That is done once in an episode, and after a longer wait each time the minimum is soon lost again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from api import durations, names
from api.jsons import JsonObject
from api.models import Condition
from api.objects import condition_of, timestamp
from api.podcliqueset import PodCliqueSetSpec
from api.streams import Meta
from controller.voicing import Tell
from controller.workloads.stepping import Again, Change, Remove, Step
from controller.workloads.termination import episodes, scopes
from controller.workloads.termination.episodes import Episode
from controller.workloads.termination.scopes import Scope
from controller.workloads.views import SetView
from controller.workloads.wants import Wanted
from kube.resources import PODCLIQUES, PODCLIQUESETS, PODGANGS, PODS, Resource
from policies.podcliqueset_defaults import TERMINATION_DELAY


@dataclass(frozen=True)
class Well:
    """Nothing is to be done."""


@dataclass(frozen=True)
class Watched:
    """Something is due at an instant, unless things change before."""

    until: datetime


@dataclass(frozen=True)
class Due:
    """The scope has lacked its minimum for too long; this is the episode that begins."""

    episode: Episode


@dataclass(frozen=True)
class Underway:
    """The scope was told to go, and does not have its minimum again."""

    episode: Episode


@dataclass(frozen=True)
class Over:
    """The scope has been well for so long that its last termination does not count any more."""


Verdict: TypeAlias = Well | Watched | Due | Underway | Over


def steps(view: SetView, wanted: Wanted, now: datetime) -> Iterator[Step]:
    """Give what is to be done about scopes that lack their minimum, or have it again."""
    # Without gangs a part of one may well run, and nothing that runs is to be touched.
    if not _concerned(view) or not view.choices.gates:
        return
    for replica in scopes.replicas(wanted):
        verdict = judge(view, replica, now)
        yield from _steps(view, replica, verdict)
        if not isinstance(verdict, Due | Underway):
            outer = _remembered(view, replica)
            for copy in scopes.copies(replica):
                yield from _steps(view, copy, judge(view, copy, now, outer))


def judge(view: SetView, scope: Scope, now: datetime, outer: Episode | None = None) -> Verdict:
    """Tell how a scope stands; `outer` is the last episode of the replica around a copy."""
    lost, last = scopes.losses(view, scope), _remembered(view, scope)
    if last is not None and _goes_on(lost, last):
        return Underway(last)
    if outer is not None and _goes_on(lost, outer):
        return Well()
    delay = delay_of(view.spec)
    if lost:
        if not (scopes.spares(view, scope) and scopes.stands(view, scope)):
            return Well()
        until = min(lost) + (last.patience(delay) if last else delay)
        return Watched(until) if now < until else Due(_beginning(view, scope, last, now))
    healthy = scopes.healthy_since(view, scope) if last else None
    if last is None or healthy is None:
        return Well()
    until = max(healthy, last.begun) + delay
    return Watched(until) if now < until else Over()


def conditions(view: SetView, wanted: Wanted) -> Mapping[str, Condition]:
    """Give the condition GangTerminationInProgress of those that have it now, by full name.

    Groups bear it; in a set without groups, the PodCliques that lack their minimum.
    """
    found: dict[str, Condition] = {}
    if any(_remembers(clique.metadata) for clique in view.cliques.values()):
        for replica in scopes.replicas(wanted):
            for scope in (replica, *scopes.copies(replica)):
                episode = _remembered(view, scope)
                if episode is not None and _goes_on(scopes.losses(view, scope), episode):
                    for meta in _bearers(view, scope):
                        found.setdefault(meta.name, _condition(scope, episode, meta))
    return found


def delay_of(spec: PodCliqueSetSpec) -> timedelta:
    """Read how long a gang may lack its minimum."""
    text = spec.template.termination_delay or TERMINATION_DELAY
    return timedelta(seconds=durations.seconds(text))


def _steps(view: SetView, scope: Scope, verdict: Verdict) -> Iterator[Step]:
    match verdict:
        case Watched(until):
            yield Again(until)
        case Due(episode):
            # Remembered first; the next look takes the pods away.
            yield _note(view, scope, episodes.remember(scope.memory, episode))
        case Underway(episode):
            yield from _removals(view, scope, episode)
        case Over():
            yield _note(view, scope, episodes.forget(scope.memory))
        case Well():
            pass


def _note(view: SetView, scope: Scope, patch: JsonObject) -> Change:
    return Change(PODCLIQUES, scope.keeper, view.cliques[scope.keeper].metadata.uid, patch)


def _concerned(view: SetView) -> bool:
    """Whether any part lacks its minimum or did not long ago; else there is nothing to work out."""
    return any(
        _remembers(clique.metadata) or _lacks(clique.status.conditions)
        for clique in view.cliques.values()
    )


def _lacks(conditions: Iterable[Condition]) -> bool:
    breach = condition_of(conditions, names.MIN_AVAILABLE_BREACHED)
    return breach is not None and breach.status == "True"


def _remembers(meta: Meta) -> bool:
    return any(key in meta.annotations for key in names.TERMINATIONS)


def _remembered(view: SetView, scope: Scope) -> Episode | None:
    keeper = view.cliques.get(scope.keeper)
    return episodes.read(keeper.metadata.annotations, scope.memory) if keeper else None


def _goes_on(lost: Iterable[datetime], episode: Episode) -> bool:
    return any(since <= episode.begun for since in lost)


def _beginning(view: SetView, scope: Scope, last: Episode | None, now: datetime) -> Episode:
    made = [meta.creation_timestamp for _, meta in _contents(view, scope)]
    return Episode(
        begun=now.replace(microsecond=0),
        through=max((each for each in made if each is not None), default=now),
        count=last.count + 1 if last else 1,
    )


def _contents(view: SetView, scope: Scope) -> Iterator[tuple[Resource, Meta]]:
    """List what goes with the scope: pods first, since a gang that goes sooner is made again."""
    for clique in scope.cliques:
        for pod in view.pods_of(clique.name):
            yield PODS, pod.metadata
    for name in scope.gangs:
        if name in view.gangs:
            yield PODGANGS, view.gangs[name].metadata


def _removals(view: SetView, scope: Scope, episode: Episode) -> Iterator[Step]:
    left = [
        (resource, meta)
        for resource, meta in _contents(view, scope)
        if meta.deletion_timestamp is None
        and meta.creation_timestamp is not None
        and meta.creation_timestamp <= episode.through
    ]
    if left:
        yield _told(view, scope, episode)
    for resource, meta in left:
        yield Remove(resource, meta.name, meta.uid)


def _told(view: SetView, scope: Scope, episode: Episode) -> Tell:
    what = "PodCliqueScalingGroupReplica" if scope.group else "PodCliqueSetReplica"
    since = timestamp(min(scopes.losses(view, scope)))
    note = f"{scope.title} has lacked its minimum since {since} and is made anew"
    if episode.count > 1:
        note += f", for the {episode.count}. time in a row"
    meta = view.metadata
    return Tell(PODCLIQUESETS, meta.name, meta.uid, f"{what}DeleteSuccessful", note)


def _bearers(view: SetView, scope: Scope) -> Iterator[Meta]:
    groups = (scope.group,) if scope.group else scope.groups()
    if groups:
        yield from (view.groups[name].metadata for name in groups if name in view.groups)
        return
    for clique in scope.cliques:
        there = view.cliques.get(clique.name)
        if there is not None and _lacks(there.status.conditions):
            yield there.metadata


def _condition(scope: Scope, episode: Episode, meta: Meta) -> Condition:
    return Condition(
        type=names.GANG_TERMINATION,
        status="True",
        reason=names.TERMINATION_ACTIVE,
        message=f"{scope.title} lacked its minimum and is made anew",
        last_transition_time=timestamp(episode.begun),
        observed_generation=meta.generation,
    )

"""What becomes of gangs whose pods a ResourceQuota refuses. Pure.

Gated pods count in a quota, so two half-made gangs could wait for each other's room for ever. Of
those in a namespace only the first in line keeps its pods and goes on trying; the others take
theirs back. One that does not succeed within its patience gives up its turn, which comes again
after a wait that grows. First is who has given up least often, and of those the oldest.

Pods of a gang of which anything was lifted are never taken back, nor those of one that was whole.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from api import names
from api.jsons import JsonObject
from api.objects import timestamp
from api.streams import Meta, Pod
from controller.podgang import Gang
from controller.workloads.quota import shortage
from controller.workloads.quota.shortage import Refused, Shortage, Trying, Withdrawn
from controller.workloads.stepping import Again, Change, Remove, Step
from controller.workloads.views import Rank, SetView
from controller.workloads.wants import Wanted, WantedGang
from kube.resources import PODGANGS, PODS

PATIENCE: Final = timedelta(seconds=30)
_FIRST_WAIT: Final = timedelta(seconds=2)
_LONGEST_WAIT: Final = timedelta(minutes=5)
# A rival's turn is believed in for so long; nobody may be held up by one that is never looked at.
_BELIEVED: Final = 2 * PATIENCE
_LOOK: Final = timedelta(seconds=2)
_MAKES_WAY: Final = "a quota refuses pods of a gang that goes first"


@dataclass(frozen=True)
class _Line:
    """Who stands where in the line for the namespace's quota.

    `turns` are the ranks of those who keep what they have and go on trying, in all sets.
    `refusals` are this set's of the last pass, by the full name of the clique. It pauses while
    one of its gangs leaves the room to others, the longer the more `tries` there were.
    """

    turns: tuple[Rank, ...]
    refusals: Mapping[str, str]
    pauses: bool
    tries: int

    def is_first(self, rank: Rank) -> bool:
        """Tell whether nobody before this one is trying."""
        return all(rank <= other for other in self.turns)

    def refusal(self, gang: WantedGang) -> str:
        """Give the words that refused one of the gang's pods, or ""."""
        return next((self.refusals[c.name] for c in gang.cliques if c.name in self.refusals), "")

    def end_of_pause(self, now: datetime) -> datetime:
        """Tell until when to leave the room to others, beginning now."""
        return now + min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(self.tries, 16))


def steps(view: SetView, wanted: Wanted, now: datetime) -> Iterator[Step]:
    """Note who is refused, take pods back, and let their gangs try again."""
    if not _concerned(view):
        return
    line = _line(view, wanted, now)
    for gang in wanted.gangs:
        there = view.gangs.get(gang.name)
        if there is None or there.metadata.deletion_timestamp is not None:
            continue
        if not (there.initialized or _is_begun(view, gang) or is_enough(view, gang)):
            yield from _of_gang(view, gang, there, line, now)
        elif _read(there) is not None:
            yield _change(there, shortage.forget())
    if any(_is_held(view, gang, line) for gang in wanted.gangs):
        yield Again(now + _LOOK)


def held(view: SetView, wanted: Wanted, now: datetime) -> frozenset[str]:
    """Name the gangs of which no pods are to be made now."""
    if not _concerned(view):
        return frozenset()
    line = _line(view, wanted, now)
    return frozenset(gang.name for gang in wanted.gangs if _is_held(view, gang, line))


def told(view: SetView, gang: WantedGang) -> str:
    """Say which quota keeps a gang from being made; empty where none does."""
    there = view.gangs.get(gang.name)
    match _read(there):
        case Withdrawn(until, words):
            return f"{words}; its pods are taken back, the next try is at {timestamp(until)}"
        case Refused(_, words):
            return words
    refusals = _refusals(view)
    return next((refusals[c.name] for c in gang.cliques if c.name in refusals), "")


def is_enough(view: SetView, gang: WantedGang) -> bool:
    """Tell whether a gang has its whole minimum, so that it can start without what is refused."""
    return all(
        len([pod for pod in view.pods_of(clique.name) if _is_there(pod)])
        >= min(clique.minimum, clique.replicas)
        for clique in gang.cliques
    )


def _of_gang(
    view: SetView, gang: WantedGang, there: Gang, line: _Line, now: datetime
) -> Iterator[Step]:
    state = _read(there)
    first = line.is_first(_rank(gang, there))
    match state:
        case Refused(since, words, times):
            if not first or now >= since + PATIENCE:
                # Who makes way for another has not given up.
                times = times + first
                yield _note(there, Withdrawn(line.end_of_pause(now), words, times))
            else:
                yield Again(min(since + PATIENCE, now + _LOOK))
        case Withdrawn(until, _, times):
            yield from _withdrawal(view, gang)
            if now < until:
                yield Again(until)
            elif first:
                yield _note(there, Trying(times))
        case _:
            words, times = line.refusal(gang), state.times if state else 0
            if first and words:
                yield _note(there, Refused(now, words, times))
            elif not first and _made(view, gang):
                words = words or _MAKES_WAY
                yield _note(there, Withdrawn(line.end_of_pause(now), words, times))


def _concerned(view: SetView) -> bool:
    """Whether a quota refuses anybody's pods; else there is nothing to work out."""
    return (
        bool(view.rivals)
        or any(trouble.over_quota for trouble in view.troubles)
        or any(names.QUOTA_ANNOTATION in g.metadata.annotations for g in view.gangs.values())
    )


def _line(view: SetView, wanted: Wanted, now: datetime) -> _Line:
    refusals = _refusals(view)
    turns = [rival.rank for rival in view.rivals if now < rival.since + _BELIEVED]
    pauses, tries = False, 0
    for gang in wanted.gangs:
        there = view.gangs.get(gang.name)
        if there is None or there.initialized:
            continue
        state = _read(there)
        tries += state.times if state else 0
        match state:
            case Withdrawn(until):
                pauses = pauses or now < until
            case Refused():
                turns.append(_rank(gang, there))
            case _ if any(clique.name in refusals for clique in gang.cliques):
                turns.append(_rank(gang, there))
    return _Line(tuple(turns), refusals, pauses, tries)


def _is_held(view: SetView, gang: WantedGang, line: _Line) -> bool:
    there = view.gangs.get(gang.name)
    if (there is not None and there.initialized) or _is_begun(view, gang):
        return False
    match _read(there):
        case Withdrawn():
            return True
        case None if line.pauses and not _made(view, gang):
            return True
    return not line.is_first(_rank(gang, there))


def _refusals(view: SetView) -> Mapping[str, str]:
    # A pod is called like its clique, with a suffix.
    return {
        trouble.name.rpartition("-")[0]: shortage.brief(trouble.description)
        for trouble in reversed(view.troubles)
        if trouble.over_quota
    }


def _read(there: Gang | None) -> Shortage | None:
    return shortage.read(there.metadata.annotations) if there else None


def _rank(gang: WantedGang, there: Gang | None) -> Rank:
    if there is None:
        return shortage.rank(Meta(name=gang.name))
    state = _read(there)
    return shortage.rank(there.metadata, state.times if state else 0)


def _note(there: Gang, state: Shortage) -> Change:
    return _change(there, shortage.remember(state))


def _change(there: Gang, patch: JsonObject) -> Change:
    return Change(PODGANGS, there.metadata.name, there.metadata.uid, patch)


def _pods(view: SetView, gang: WantedGang) -> Iterator[Pod]:
    return (pod for clique in gang.cliques for pod in view.pods_of(clique.name) if _is_there(pod))


def _is_there(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None


def _made(view: SetView, gang: WantedGang) -> bool:
    return any(True for _ in _pods(view, gang))


def _is_begun(view: SetView, gang: WantedGang) -> bool:
    return any(not pod.gates for pod in _pods(view, gang))


def _withdrawal(view: SetView, gang: WantedGang) -> Iterator[Step]:
    for pod in _pods(view, gang):
        yield Remove(PODS, pod.metadata.name, pod.metadata.uid)

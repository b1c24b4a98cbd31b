"""What becomes of a plain gang's PodGang next. Pure: equal views give equal steps.

The PodGang is made when the first pod that names the gang waits, follows its pods as they come and
go, and is taken away when they are gone:

    Make ─► Amend, as pods come ─► Confirm, once the minimum is there ─► Amend … ─► Unmake

Everything is read from the objects, so a leader that died after any write is replaced by one that
goes on from there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from api import names
from api.objects import condition_of
from api.streams import Meta, Pod
from controller.gangs import plain_pods, plain_slots
from controller.gangs.plain_bodies import Closeness, Wanted, closeness_of
from controller.gangs.plain_pods import Wishes
from controller.gangs.plain_slots import Ledger
from controller.gangs.views import pinned_node
from controller.podgang import Gang
from kube.objects import Key

# How long a slot waits for its next pod: where one is gone, and where one has failed, since a Job
# takes its time to try again.
KEPT_SECONDS: Final = 10.0
RETRIED_SECONDS: Final = 60.0

Levels: TypeAlias = Mapping[str, str]  # node label keys, by what a topology calls its levels


@dataclass(frozen=True)
class PlainView:
    """One plain gang at one instant.

    `pods` are all that claim it, and `there` is the PodGang of its name, whoever made it. `tired`
    names slots whose next pod has been waited for long enough, and `forsaken` says the same of a
    gang all of whose pods are gone.
    """

    key: Key
    pods: tuple[Pod, ...]
    there: Gang | None
    ledger: Ledger
    topologies: Mapping[str, Levels]
    tired: frozenset[int] = frozenset()
    forsaken: bool = False

    @property
    def before(self) -> Mapping[str, int]:
        """The index of each pod that the PodGang refers to, whether it is there or gone."""
        slots = plain_slots.slots_of(self.there) if self.there else {}
        return {name: index for (_, name), index in slots.items()}


@dataclass(frozen=True)
class Rest:
    """There is nothing to write."""


@dataclass(frozen=True)
class Make:
    """Write the PodGang."""

    wanted: Wanted


@dataclass(frozen=True)
class Amend:
    """Have the PodGang say what its pods say by now: at once, or together with what follows."""

    gang: Meta
    wanted: Wanted
    at_once: bool


@dataclass(frozen=True)
class Confirm:
    """Say whether the pods that must start together were all there, and what is odd about them."""

    gang: Gang
    whole: bool
    message: str


@dataclass(frozen=True)
class Unmake:
    """Take the PodGang away: the pods that it was made for are gone."""

    gang: Meta


@dataclass(frozen=True)
class Taken:
    """Tell the pod that somebody else's PodGang has the gang's name."""

    holder: Meta
    pod: Pod


PlainStep: TypeAlias = Rest | Make | Amend | Confirm | Unmake | Taken


def decide(view: PlainView) -> PlainStep:
    """Decide what is to be written now."""
    gang, members = view.there, _members(view)
    waiting = [pod for pod in members if _waits(pod)]
    if gang is None:
        # Pods that run already need no PodGang.
        return Make(_wanted(view, members)) if waiting else Rest()
    if not plain_slots.is_plain(gang.metadata):
        return Taken(gang.metadata, waiting[0]) if waiting else Rest()
    over = _is_over(view, members)
    if gang.metadata.deletion_timestamp is not None or not (members or over):
        return Rest()
    if over:
        # Those that come after all others are gone begin anew, as a whole.
        return Unmake(gang.metadata)
    wanted = _wanted(view, members)
    if not wanted.is_said_by(gang):
        return Amend(gang.metadata, wanted, _presses(view, gang, wanted, members))
    return _confirmed(view, gang, members)


def vacant(view: PlainView) -> Mapping[int, float]:
    """Say for how many seconds each slot is kept whose pod is gone or has failed."""
    failed = {pod.metadata.name: pod.finished for pod in view.pods}
    return {
        index: RETRIED_SECONDS if name in failed else KEPT_SECONDS
        for name, index in view.before.items()
        if index in view.ledger.rooms and failed.get(name, True)
    }


def is_remembered(view: PlainView) -> bool:
    """Whether the PodGang is kept for a while though its pods are gone.

    They were rolled back: with the PodGang, it would be forgotten how often, and those that come in
    their place would be tried again at once, and for ever.
    """
    return view.ledger.tried and not view.ledger.committed and not _members(view)


def _members(view: PlainView) -> list[Pod]:
    """Find the gang's pods, the oldest first: those that we start, have started, or know already.

    A pod that runs without ever having stood behind our gate is none of them.
    """
    before = view.before
    return plain_pods.by_age(
        [
            pod
            for pod in view.pods
            if plain_pods.lives(pod)
            and (_waits(pod) or pinned_node(pod) or pod.metadata.name in before)
        ]
    )


def _waits(pod: Pod) -> bool:
    return names.GATE in pod.gates


def _is_over(view: PlainView, members: list[Pod]) -> bool:
    """Whether nobody is left of those that the PodGang was made for.

    While none was started it serves whoever waits. Afterwards, namesakes of pods that ran, as a
    StatefulSet makes them, are none of those.
    """
    if not view.ledger.committed:
        return not members and (view.forsaken or not is_remembered(view))
    before, rooms = view.before, view.ledger.rooms
    known = [pod for pod in members if pod.metadata.name in before]
    return not any(not _waits(pod) or before[pod.metadata.name] in rooms for pod in known)


def _wanted(view: PlainView, members: list[Pod]) -> Wanted:
    found = plain_slots.assigned(members, view.before, view.ledger)
    used = set(found.values())
    # What has done its work is followed by nobody.
    done = {pod.metadata.name for pod in view.pods if pod.status.phase == "Succeeded"}
    free = view.ledger.rooms.keys() - used - view.tired
    kept = {
        name: index
        for name, index in view.before.items()
        if index in free and name not in found and name not in done
    }
    wishes = plain_pods.wishes(members, found)
    slots = sorted((index, name) for name, index in {**kept, **found}.items())
    asked = _closeness(view, wishes)
    if isinstance(asked, str):
        asked = closeness_of(view.there) if view.there else Closeness()
    return Wanted(
        view.key, tuple(slots), wishes.minimum, wishes.priority_class, asked, wishes.whereabouts,
        wishes.timeout,
    )  # fmt: skip


def _closeness(view: PlainView, wishes: Wishes) -> Closeness | str:
    """Put the level that is asked for into a node label's key, or say why that cannot be done."""
    if not wishes.level:
        return Closeness()
    levels = view.topologies.get(wishes.topology)
    if levels is None:
        return f"there is no ClusterTopologyBinding {wishes.topology!r}"
    if wishes.level not in levels:
        return f"{wishes.level!r} is no level of {wishes.topology}"
    return Closeness(wishes.topology, levels[wishes.level])


def _presses(view: PlainView, gang: Gang, wanted: Wanted, members: list[Pod]) -> bool:
    """Whether a pod could start by this: the gang is whole now, or a slot has a new pod."""
    before = view.before
    succeeds = any(
        index in view.ledger.rooms and before.get(name) != index for index, name in wanted.slots
    )
    return succeeds or (not gang.initialized and len(members) >= wanted.minimum)


def _confirmed(view: PlainView, gang: Gang, members: list[Pod]) -> PlainStep:
    wishes = plain_pods.wishes(members, view.before)
    asked = _closeness(view, wishes)
    unknown = (asked,) if isinstance(asked, str) else ()
    enough = len(members) >= wishes.minimum and not unknown
    # What was whole once stays so: its pods come and go one by one. But none is started at first
    # without the closeness that it asks for.
    whole = enough or (gang.initialized and (view.ledger.committed or not unknown))
    message = "; ".join((*unknown, *wishes.disagreements))
    said = condition_of(gang.status.conditions, names.INITIALIZED)
    before = (said.status == "True", said.message) if said else (False, "")
    return Confirm(gang, whole, message) if before != (whole, message) else Rest()

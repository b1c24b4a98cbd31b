"""What the claims of a gang's pods take, where several pods use the same claim. Pure.

Devices of such a claim are taken once. If only one node has them, all who use it must be there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from api import names
from api.quantities import Amounts
from controller.gangs.deciding import Place
from controller.gangs.views import GangView, Member, SlotKey
from scheduler.filters.claims import Claims
from scheduler.filters.constraints import Claimed
from scheduler.filters.counted import merged
from scheduler.requests import Closeness, Group


@dataclass(frozen=True)
class Claiming:
    """What is known of each pod's claims, what they take of its node, and who must be together."""

    claimed: Mapping[SlotKey, Claimed]
    takes: Mapping[SlotKey, Amounts]
    together: tuple[Group, ...] = ()


def of(view: GangView, place: Place, claims: Claims, groups: Sequence[Group] = ()) -> Claiming:
    """Look up the claims of pods that are asked for; `groups` are those of the gang itself."""
    asked = (*place.minimum, *place.extras)
    claimed = {member.slot: claims.of(member.pod) for member in asked}
    if not any(each.common for each in claimed.values()):
        return Claiming(claimed, {slot: each.takes for slot, each in claimed.items()})
    there = view.homes().keys() - claimed.keys()
    every = {m.slot: claims.of(m.pod) for m in view.members if m.slot in there} | claimed
    # Of what a pod shares with one that has its place, room is kept there.
    counted = {each.name for slot in there & every.keys() for each in every[slot].common}
    takes = {slot: _once(each, counted) for slot, each in claimed.items()}
    return Claiming(claimed, takes, tuple(_together(view.members, every, groups)))


def _once(claimed: Claimed, counted: set[str]) -> Amounts:
    """Tell what a pod takes beside what was counted, and count that."""
    takes = claimed.takes
    for each in claimed.common:
        if each.name not in counted:
            takes = merged(takes, each.takes)
    counted.update(each.name for each in claimed.common)
    return takes


def _together(
    members: Iterable[Member], claimed: Mapping[SlotKey, Claimed], groups: Sequence[Group]
) -> Iterator[Group]:
    """List the cliques whose pods all use one claim, where only one node can have its devices.

    What would cross other groups, or is not used by whole cliques, is left to kube-scheduler.
    """
    users: dict[str, list[SlotKey]] = {}
    sizes: dict[str, int] = {}
    for member in members:
        found = claimed.get(member.slot)
        sizes[member.slot[0]] = sizes.get(member.slot[0], 0) + (found is not None)
        for each in found.common if found else ():
            if each.local:
                users.setdefault(each.name, []).append(member.slot)
    kept = [frozenset(group.cliques) for group in groups]
    for name, slots in sorted(users.items()):
        cliques = frozenset(clique for clique, _ in slots)
        whole = len(slots) == sum(sizes[clique] for clique in cliques)
        nested = all(
            each <= cliques or cliques <= each or each.isdisjoint(cliques) for each in kept
        )
        if len(slots) > 1 and whole and nested:
            kept.append(cliques)
            yield Group(name, tuple(sorted(cliques)), Closeness(names.HOSTNAME_KEY))

"""What a gang lacks: pods still to come, slots that serve, gates that others keep. Pure."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from api import names
from controller.gangs.views import GangView, Member

# How long pods that lost their place wait for others of their gang's minimum that are made anew:
# room for all of them together can be where there is none for one after the other.
TOGETHER: Final = timedelta(seconds=5)
# How long room is kept for a pod that somebody else holds back too.
FOR_OTHERS: Final = timedelta(seconds=60)


def short(view: GangView) -> str:
    """Say which cliques have fewer pods than their minimum; "" if there are none."""
    said = []
    for group in view.gang.spec.pod_groups:
        there = len(view.of_clique(group.name))
        if there < group.min_replicas:
            said.append(f"{group.name} has {there} of {group.min_replicas} pods")
    return "; ".join(said)


def is_bound(view: GangView) -> bool:
    """Whether every clique has its minimum of bound pods."""
    groups = view.gang.spec.pod_groups
    return all(sum(m.bound for m in view.of_clique(g.name)) >= g.min_replicas for g in groups)


def due(view: GangView) -> list[tuple[Member, str]]:
    """List the members that only our gate holds back and that have a slot, with its node."""
    nodes = view.nodes_by_slot()
    return [(m, nodes[m.slot]) for m in view.members if _ours(m) and m.slot in nodes]


def homeless(
    view: GangView, without: Callable[[Member], bool] = lambda _: False
) -> tuple[tuple[Member, ...], tuple[Member, ...]]:
    """List gated members without a slot that serves: what the minimum lacks, and the others."""
    nodes, unfit = view.nodes_by_slot(), view.unfit
    minimum: list[Member] = []
    extras: list[Member] = []
    for group in view.gang.spec.pod_groups:
        members = view.of_clique(group.name)
        found = [m for m in members if _ours(m) and (m.slot not in nodes or m.slot in unfit)]
        lacking = max(0, group.min_replicas - (len(members) - len(found)))
        minimum += [m for m in found[:lacking] if not without(m)]
        extras += [m for m in found[lacking:] if not without(m)]
    return tuple(minimum), tuple(extras)


def to_come(view: GangView) -> str:
    """Say which pods are to be made yet, or anew as their nodes are gone; "" if there are none."""
    # Kubernetes deletes bound ones once it is sure that their nodes stay away.
    doomed = sum(m.bound and m.slot in view.stranded for m in view.members)
    return short(view) or (f"the nodes of some pods are gone: {doomed}" if doomed else "")


def together_at(view: GangView) -> datetime | None:
    """Say until when those that lost their place wait for others that are to come."""
    if not to_come(view):
        return None
    minimum, _ = homeless(view)
    born = [at for m in minimum if (at := m.pod.metadata.creation_timestamp) is not None]
    if not born:
        return None
    # Pods of nodes that are gone are deleted one by one: the newest tells that this goes on.
    return max(born) + TOGETHER


def gathers(view: GangView, now: datetime) -> bool:
    """Whether they wait now; a clock that is far behind the API server's keeps nobody waiting."""
    until = together_at(view)
    return until is not None and until - TOGETHER <= now < until


def held_back(view: GangView) -> list[Member]:
    """List the members that somebody else's gate keeps from being scheduled."""
    return [m for m in view.members if not m.bound and set(m.pod.gates) - {names.GATE}]


def gates(members: Iterable[Member]) -> str:
    """Name the gates of others on these pods."""
    foreign = sorted({gate for m in members for gate in m.pod.gates} - {names.GATE})
    return f"other gates are on its pods: {', '.join(foreign)}"


def overdue(view: GangView, now: datetime) -> list[Member]:
    """List those held back for whom no room is kept any longer."""
    return [m for m in held_back(view) if (at := _until(m)) is not None and at <= now]


def overdue_at(view: GangView) -> list[datetime]:
    """Say when room that is kept for somebody held back will be kept no longer."""
    return [at for m in held_back(view) if (at := _until(m)) is not None]


def can_spare(view: GangView, members: Iterable[Member]) -> bool:
    """Whether every clique has its minimum of pods without these."""
    gone = {m.slot for m in members}
    return all(
        sum(m.slot not in gone for m in view.of_clique(g.name)) >= g.min_replicas
        for g in view.gang.spec.pod_groups
    )


def _ours(member: Member) -> bool:
    return member.pod.gates == (names.GATE,)


def _until(member: Member) -> datetime | None:
    born = member.pod.metadata.creation_timestamp
    return born + FOR_OTHERS if born is not None else None

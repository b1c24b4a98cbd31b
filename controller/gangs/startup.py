"""Which of a gang's cliques must wait for others to be up, and what their pods say of it. Pure.

A clique is up when as many of its pods as its minAvailable have all containers ready, whatever
their readiness gates say. It is asked again for each pod that is to start: one that is replaced
waits once more if its parents are down, as it would in an init container, while those that have
started are left alone.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from api import names
from api.jsons import JsonObject
from api.objects import timestamp
from api.reservation import State
from api.streams import Condition, Pod
from controller.gangs.views import GangView, Member

SHOWN = 3  # of many cliques that wait, so many are named


@dataclass(frozen=True)
class Parent:
    """A clique that is waited for: how many of its pods are ready, how many there are to be.

    `size` is None for one that the gang does not have.
    """

    name: str
    ready: int
    needed: int
    size: int | None

    @property
    def shortfall(self) -> str:
        """Say what is missing, so that one can see whether it can ever come about."""
        if self.size is None:
            return f"{self.name}: it is not in the gang"
        counted = f"{self.name}: {self.ready} of {self.needed} pods ready"
        return counted if self.size >= self.needed else f"{counted}, and it has only {self.size}"


@dataclass(frozen=True)
class Notice:
    """What a pod is to say: whom it waits for, or, with `blocked` false, that this is over."""

    pod: Pod
    clique: str
    blocked: bool
    message: str

    @property
    def again(self) -> bool:
        """Whether the pod says already that it waits, only in other words."""
        return self.blocked and _says_blocked(self.pod)


def unmet(view: GangView) -> dict[str, tuple[Parent, ...]]:
    """Give the cliques whose pods may not start yet, each with the parents that are not up."""
    waiting = {name: c.spec.starts_after for name, c in view.cliques.items() if c.spec.starts_after}
    if not waiting:
        return {}
    ready = Counter(m.slot[0] for m in view.members if m.pod.containers_ready)
    sizes = {group.name: len(group.pod_references) for group in view.gang.spec.pod_groups}
    found: dict[str, tuple[Parent, ...]] = {}
    for name, parents in waiting.items():
        down = [
            Parent(parent, ready[parent], _needed(view, parent), sizes.get(parent))
            for parent in parents
        ]
        missing = tuple(p for p in down if p.size is None or p.ready < p.needed)
        if missing:
            found[name] = missing
    return found


def has_waiter(pod: Pod) -> bool:
    """Whether the pod waits in an init container of its own once it is on its node.

    The pod tells, and not the set: the way of a set may change while pods wait, and those that were
    made before keep their shape.
    """
    return any(container.name == names.WAITER for container in pod.spec.init_containers)


def is_held(member: Member, waiting: Mapping[str, tuple[Parent, ...]]) -> bool:
    """Whether a pod may not be lifted now, as its clique is one of those that wait."""
    return member.slot[0] in waiting and not has_waiter(member.pod)


def sentence(waiting: Mapping[str, tuple[Parent, ...]]) -> str:
    """Say for a whole gang who waits for whom."""
    said = [f"{name} waits for {_joined(parents)}" for name, parents in sorted(waiting.items())]
    more = [f"and {len(said) - SHOWN} more cliques wait"] if len(said) > SHOWN else []
    return "; ".join(said[:SHOWN] + more)


def notices(view: GangView) -> list[Notice]:
    """List the pods that do not say of their waiting what is the case."""
    return list(_notices(view))


def condition(notice: Notice, now: str) -> JsonObject:
    """Write the condition. The time is that of its last change between true and false."""
    before = _said(notice.pod)
    status = "True" if notice.blocked else "False"
    kept = before.last_transition_time if before and before.status == status else None
    return {
        "type": names.STARTUP_BLOCKED,
        "status": status,
        "reason": names.REASON_WAITING_FOR_PARENTS if notice.blocked else names.PARENTS_READY,
        "message": notice.message,
        "lastTransitionTime": timestamp(kept) if kept else now,
    }


def _needed(view: GangView, parent: str) -> int:
    clique = view.cliques.get(parent)
    if clique is not None:
        return clique.spec.minimum
    return next((g.min_replicas for g in view.gang.spec.pod_groups if g.name == parent), 1)


def _notices(view: GangView) -> Iterator[Notice]:
    waiting = unmet(view)
    reservation = view.reservation
    # Before that, a pod waits for room, and nobody can say yet what it would wait for then.
    slots = view.nodes_by_slot() if reservation and reservation.state is not State.HELD else {}
    for member in view.members:
        clique = member.slot[0]
        blocked = clique in waiting and (
            _in_init(member) if has_waiter(member.pod) else member.gated and member.slot in slots
        )
        if blocked:
            message = f"waits for {_joined(waiting[clique])}"
            said = _said(member.pod)
            if said is None or (said.status, said.message) != ("True", message):
                yield Notice(member.pod, clique, blocked=True, message=message)
        elif _says_blocked(member.pod):
            yield Notice(member.pod, clique, blocked=False, message="")


def _in_init(member: Member) -> bool:
    conditions = member.pod.status.conditions
    return member.bound and not any(
        c.type == "Initialized" and c.status == "True" for c in conditions
    )


def _joined(parents: tuple[Parent, ...]) -> str:
    more = f", and for {len(parents) - SHOWN} more" if len(parents) > SHOWN else ""
    return " and ".join(parent.shortfall for parent in parents[:SHOWN]) + more


def _says_blocked(pod: Pod) -> bool:
    said = _said(pod)
    return said is not None and said.status == "True"


def _said(pod: Pod) -> Condition | None:
    conditions = pod.status.conditions
    return next((c for c in conditions if c.type == names.STARTUP_BLOCKED), None)

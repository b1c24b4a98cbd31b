"""What must hold at every instant, judged from writes in their order.

Each rule is told every change after it was taken in, and yields what is wrong with it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from api import quantities
from api.quantities import Amounts
from tests.chaos.audit_things import NO_SLOT, LedgerSeen, PodSeen
from tests.chaos.audit_world import GANGS, Change, Key, World

LAG: Final = 5.0
"""Seconds. Who was bound more recently may not have been known to whoever chose the node."""
ROLL_BACK_SECONDS: Final = 60.0
"""Half a minute to find another place, as long again to delete what was bound."""
BIND_SECONDS: Final = 45.0
CONVERGED_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Finding:
    """Something that must not be."""

    rule: str
    at: float
    what: str
    why: str


@dataclass(frozen=True)
class Times:
    """When the API server was started anew, and when faults began and were healed."""

    starts: Sequence[float] = ()
    faults: Sequence[tuple[float, float]] = ()

    def hidden(self, since: float, until: float) -> bool:
        """Whether writes between two instants may be missing in the log."""
        return any(since <= at <= until for at in self.starts)

    def excuse(self, at: float) -> float:
        """Until when nothing that takes time is overdue, at an instant."""
        return max((healed for begun, healed in self.faults if begun <= at), default=0.0)


class Rule(Protocol):
    """Judges changes one by one, and what is left in the end."""

    def see(self, change: Change, world: World, /) -> Iterator[Finding]:
        """Judge a change; the world has it already."""
        ...

    def end(self, world: World, at: float, /) -> Iterator[Finding]:
        """Judge what is overdue in the end."""
        ...


@dataclass
class Gates:
    """Our gate goes by nobody's hand but that of `gangs`, onto the slot that the ledger says."""

    times: Times

    def see(self, change: Change, world: World) -> Iterator[Finding]:
        lift = change.lift
        if lift is None:
            return
        write, (_, after) = change.write, lift
        what = f"pod {after.namespace}/{after.name}"
        if not _asks_for_lift(change):
            unsure = (after.namespace, after.name) in world.unsure
            if not unsure and not self.times.hidden(change.since, write.at):
                yield Finding("gates", write.at, what, f"its gate went unseen by {write.user}")
        elif write.user != GANGS:
            yield Finding("gates", write.at, what, f"its gate was taken off by {write.user}")
        if after.slot == NO_SLOT:
            return
        wrong = _differs(world, after)
        told = world.seen.get(("reservations", after.namespace, after.gang), 0.0)
        if wrong and not self.times.hidden(told, write.at):
            yield Finding(_blame(change, world), write.at, what, f"lifted, though {wrong}")

    def end(self, _world: World, _at: float) -> Iterator[Finding]:
        return iter(())


def _asks_for_lift(change: Change) -> bool:
    write = change.write
    if write.subresource:
        return False
    return write.verb == "update" or b"schedulingGates" in write.asked


def _differs(world: World, pod: PodSeen) -> str:
    """Say how a lifted pod differs from its slot; empty if it does not."""
    ledger = world.ledger_of(pod.slot)
    if ledger is None:
        return "no Reservation has its slot"
    node, _ = ledger.slots[pod.slot]
    if pod.pinned != node:
        return f"its slot is on {node} and not on {pod.pinned or 'any node'}"
    if ledger.state not in ("Lifting", "Bound"):
        return f"its Reservation is {ledger.state}"
    return ""


def _blame(change: Change, world: World) -> str:
    """Name the rule: writes of a leader that has another by now are worse than others."""
    instance = change.write.instance
    deposed = instance and world.holder and instance != world.holder
    return "deposed" if deposed else "ledger"


@dataclass
class Deletions:
    """`gangs` deletes no pod whose slot is in the ledger, unless all of its gang is rolled back."""

    times: Times

    def see(self, change: Change, world: World) -> Iterator[Finding]:
        write, pod = change.write, change.before
        if write.verb != "delete" or write.user != GANGS or not isinstance(pod, PodSeen):
            return
        ledger = world.ledger_of(pod.slot)
        if pod.deleting or ledger is None or ledger.state == "RolledBack":
            return
        told = world.seen.get(("reservations", ledger.namespace, ledger.name), 0.0)
        if self.times.hidden(told, write.at):
            return
        what = f"pod {pod.namespace}/{pod.name}"
        why = f"deleted, though its slot is in a Reservation that is {ledger.state}"
        yield Finding(_blame(change, world), write.at, what, why)

    def end(self, _world: World, _at: float) -> Iterator[Finding]:
        return iter(())


@dataclass
class RoomKept:
    """Bound, lifted and held pods never exceed what a node has.

    Pods of strangers come by leave of kube-scheduler, which knows nothing of what is held: room
    that one of them takes is `stolen` and counted, and wrong only if we go on to use it.
    """

    stolen: int = 0
    _over: dict[tuple[str, str], bool] = field(default_factory=dict)

    def see(self, change: Change, world: World) -> Iterator[Finding]:
        for node in sorted(change.nodes):
            have = world.nodes.get(node)
            if have is not None:
                yield from self._judge(node, have, change, world)

    def _judge(self, node: str, have: Amounts, change: Change, world: World) -> Iterator[Finding]:
        slots, pods = world.room(node)
        ours, strangers, bound = _added(slots, pods)
        at, what = change.write.at, f"node {node}"
        if self._begins(("overbooked", node), more := _beyond(ours, have)):
            yield Finding("room", at, what, f"bound, lifted and held together: {more}")
        if self._begins(("overfull", node), more := _beyond(bound, have)):
            yield Finding("room", at, what, f"bound alone: {more}")
        more = _beyond(quantities.plus(ours, strangers), have)
        if self._begins(("stolen", node), more):
            self.stolen += 1
        since = [world.bound_at.get((p.namespace, p.name), 0.0) for p in pods if not p.gang]
        if not more or change.write.user != GANGS or not _takes_more(change, node):
            return
        newest = max(since, default=at)
        if at - newest > LAG:
            why = f"used by {change.write.name} with strangers there since {at - newest:.0f} s"
            yield Finding("room", at, what, f"{why}: {more}")

    def _begins(self, key: tuple[str, str], more: str) -> bool:
        was, self._over[key] = self._over.get(key, False), bool(more)
        return bool(more) and not was

    def end(self, _world: World, _at: float) -> Iterator[Finding]:
        return iter(())


def _added(
    slots: dict[tuple[str, str, int], Amounts], pods: Sequence[PodSeen]
) -> tuple[Amounts, Amounts, Amounts]:
    """Add up what is ours, strangers' and bound; a slot and its pods count as the larger."""
    mine: dict[tuple[str, str, int], Amounts] = {}
    ours: Amounts = {}
    strangers: Amounts = {}
    bound: Amounts = {}
    for pod in pods:
        if pod.node:
            bound = quantities.plus(bound, pod.takes)
        if not pod.gang:
            strangers = quantities.plus(strangers, pod.takes)
        else:
            mine[pod.slot] = quantities.plus(mine.get(pod.slot, {}), pod.takes)
    for slot in slots.keys() | mine.keys():
        taken = quantities.larger(slots.get(slot, {}), mine.get(slot, {}))
        ours = quantities.plus(ours, taken)
    return ours, strangers, bound


def _beyond(taken: Amounts, have: Amounts) -> str:
    over = {name: n for name, n in taken.items() if n > have.get(name, 0)}
    return ", ".join(f"{name} {n} of {have.get(name, 0)}" for name, n in sorted(over.items()))


def _takes_more(change: Change, node: str) -> bool:
    """Whether a write gave one of our pods the node, or a slot on it."""
    before, after = change.before, change.after
    if isinstance(after, PodSeen):
        return change.lift is not None
    if not isinstance(after, LedgerSeen):
        return False
    had = before.slots if isinstance(before, LedgerSeen) else {}
    return any(
        at == node and had.get(key, ("",))[0] != node for key, (at, _) in after.slots.items()
    )


@dataclass
class Whole:
    """No gang is partly bound when it should have been rolled back long since."""

    times: Times
    _since: dict[Key, float] = field(default_factory=dict)
    _told: set[Key] = field(default_factory=set)
    _rolled_back: dict[Key, float] = field(default_factory=dict)

    def see(self, change: Change, world: World) -> Iterator[Finding]:
        seen = change.after or change.before
        if seen is None:
            return
        key = (seen.namespace, seen.gang if isinstance(seen, PodSeen) else seen.name)
        at = change.write.at
        yield from self._overdue(key, world, at)
        if isinstance(seen, LedgerSeen):
            was = isinstance(change.before, LedgerSeen) and change.before.state == "RolledBack"
            if seen.state == "RolledBack" and not was:
                self._rolled_back[key] = at
        self._look(key, world, at)

    def end(self, world: World, at: float) -> Iterator[Finding]:
        for key in sorted(self._since):
            yield from self._overdue(key, world, at)

    def _look(self, key: Key, world: World, at: float) -> None:
        bound, whole, waits = _standing(key, world)
        if not bound:
            self._since.pop(key, None)
            self._told.discard(key)
        elif whole:
            # From here on it is whoever terminates gangs to judge what it loses.
            self._since[key] = float("inf")
        elif waits:
            self._since.pop(key, None)
        else:
            self._since.setdefault(key, at)

    def _overdue(self, key: Key, world: World, at: float) -> Iterator[Finding]:
        since = self._since.get(key)
        if since is None or since == float("inf") or key in self._told or key not in world.gangs:
            return
        ledger = world.ledgers.get(key)
        due = since + BIND_SECONDS
        if ledger is not None and ledger.state == "RolledBack":
            due = self._rolled_back.get(key, since)
        elif ledger is not None:
            due = max(due, ledger.bind_by)
        due = max(due, self.times.excuse(at)) + ROLL_BACK_SECONDS
        if at > due:
            self._told.add(key)
            what = f"gang {key[0]}/{key[1]}"
            why = f"partly bound for {at - since:.0f} s, {at - due:.0f} s too long"
            yield Finding("whole", at, what, why)


def _standing(key: Key, world: World) -> tuple[int, bool, bool]:
    """Count a gang's bound pods, and tell whether it has its minimum and whether others wait."""
    gang = world.gangs.get(key)
    pods = [world.pods[each] for each in world.of_gang.get(key, ()) if each in world.pods]
    bound = [pod for pod in pods if pod.bound]
    if gang is None:
        return 0, False, False
    counts: dict[str, int] = {}
    for pod in bound:
        counts[pod.slot[1]] = counts.get(pod.slot[1], 0) + 1
    whole = all(counts.get(name, 0) >= least for name, least in gang.minima.items())
    return len(bound), whole, any(pod.gated and pod.waits for pod in pods)

"""The cluster as it was after each write, rebuilt from an audit log."""

from collections import defaultdict
from collections.abc import Iterator, Set
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from api import names
from api.jsons import JsonObject
from api.quantities import Amounts
from tests.chaos import audit_things as things
from tests.chaos.audit_log import Log, Write, part
from tests.chaos.audit_things import GangSeen, LedgerSeen, PodSeen, SlotKey

Key: TypeAlias = tuple[str, str]  # namespace and name
Room: TypeAlias = tuple[dict[SlotKey, Amounts], list[PodSeen]]

GANGS: Final = f"system:serviceaccount:{names.NAMESPACE}:{names.GANGS_ACCOUNT}"


@dataclass(frozen=True)
class Change:
    """What a write did to one object; None is an object that is not there."""

    write: Write
    before: PodSeen | LedgerSeen | None
    after: PodSeen | LedgerSeen | None
    since: float = 0.0  # when the object was last told of before

    @property
    def lift(self) -> tuple[PodSeen, PodSeen] | None:
        """The pod before and after, if our gate went."""
        before, after = self.before, self.after
        if not isinstance(before, PodSeen) or not isinstance(after, PodSeen):
            return None
        same = before.uid == after.uid
        return (before, after) if same and before.gated and not after.gated else None

    @property
    def nodes(self) -> set[str]:
        """Nodes on which more or less may be taken now."""
        found: set[str] = set()
        for each in (self.before, self.after):
            if isinstance(each, PodSeen):
                found.add(each.at)
            elif isinstance(each, LedgerSeen):
                found |= {node for node, _ in each.slots.values()}
        return found - {""}


@dataclass
class World:
    """What there is at an instant."""

    pods: dict[Key, PodSeen] = field(default_factory=dict)
    ledgers: dict[Key, LedgerSeen] = field(default_factory=dict)
    gangs: dict[Key, GangSeen] = field(default_factory=dict)
    nodes: dict[str, Amounts] = field(default_factory=dict)
    holder: str = ""  # who leads `gangs`, by its lease
    seen: dict[tuple[str, str, str], float] = field(default_factory=dict)
    """When each object was last told of."""
    bound_at: dict[Key, float] = field(default_factory=dict)
    unsure: set[Key] = field(default_factory=set)
    """Pods of which nobody can tell whether a lift of theirs happened."""
    of_gang: dict[Key, set[Key]] = field(default_factory=lambda: defaultdict(set))
    _gone: set[str] = field(default_factory=set)  # UIDs
    _on: dict[str, set[Key]] = field(default_factory=lambda: defaultdict(set))
    _kept: dict[str, set[SlotKey]] = field(default_factory=lambda: defaultdict(set))
    _ledger_of: dict[SlotKey, Key] = field(default_factory=dict)

    def apply(self, write: Write) -> Change | None:
        """Take a write in; None if it is about nothing that is judged."""
        key = write.namespace, write.name
        if not write.known:
            if write.resource == "pods" and b"schedulingGates" in write.asked:
                self.unsure.add(key)
            return None
        uid = str(part(write.body, "metadata").get("uid") or "")
        if uid in self._gone and not write.gone:
            return None  # an answer to a deletion may carry an older revision than what came before
        change = None
        if write.resource == "pods":
            change = self._pod(key, write)
        elif write.resource == "reservations":
            before = self.ledgers.get(key)
            after = None if write.gone else things.ledger(write.body)
            self._book(key, before, after)
            change = Change(write, before, after)
        else:
            self._other(key, write)
        if write.gone:
            self._gone |= {uid, change.before.uid if change and change.before else ""} - {""}
        since = self.seen.get(write.key, 0.0)
        if write.subresource != "binding":  # which says nothing of the pod itself
            self.seen[write.key] = write.at
        return replace(change, since=since) if change else None

    def _other(self, key: Key, write: Write) -> None:
        match write.resource:
            case "podgangs" if write.gone:
                self.gangs.pop(key, None)
            case "podgangs":
                self.gangs[key] = things.gang(write.body)
            case "nodes" if write.gone:
                self.nodes.pop(write.name, None)
            case "nodes":
                self.nodes[write.name] = things.allocatable(write.body)
            case "leases" if key == (names.NAMESPACE, names.GANGS_LEASE):
                self.holder = str(part(write.body, "spec").get("holderIdentity") or "")

    def ledger_of(self, slot: SlotKey) -> LedgerSeen | None:
        """Give the Reservation that a slot is in."""
        key = self._ledger_of.get(slot)
        return self.ledgers.get(key) if key else None

    def room(self, node: str) -> Room:
        """Give the slots on a node, and the pods that take room there or will."""
        slots = {}
        for key in self._kept[node]:
            found = self.ledger_of(key)
            if found is not None:
                slots[key] = found.slots[key][1]
        return slots, [self.pods[key] for key in self._on[node]]

    def _pod(self, key: Key, write: Write) -> Change:
        before = self.pods.get(key)
        if write.gone:
            after = None
        elif write.subresource == "binding":
            after = _bound(before, write.body)
        else:
            after = things.pod(write.body)
            if before is not None and before.uid == after.uid and not after.node:
                # An answer that was written down before the binding it does not know of.
                after = replace(after, node=before.node)
        if before is not None:
            self._on[before.at].discard(key)
            self.of_gang[before.namespace, before.gang].discard(key)
        if after is None:
            self.pods.pop(key, None)
        else:
            self.pods[key] = after
            self._on[after.at].add(key)
            self.of_gang[after.namespace, after.gang].add(key)
            if after.node and (before is None or not before.node):
                self.bound_at[key] = write.at
        return Change(write, before, after)

    def _book(self, key: Key, before: LedgerSeen | None, after: LedgerSeen | None) -> None:
        for slot, (node, _) in (before.slots if before else {}).items():
            self._kept[node].discard(slot)
            self._ledger_of.pop(slot, None)
        for slot, (node, _) in (after.slots if after else {}).items():
            self._kept[node].add(slot)
            self._ledger_of[slot] = key
        if after is None:
            self.ledgers.pop(key, None)
        else:
            self.ledgers[key] = after


def _bound(before: PodSeen | None, binding: JsonObject) -> PodSeen | None:
    target = part(binding, "target").get("name")
    uid = part(binding, "metadata").get("uid")
    if before is None or before.node or (uid and uid != before.uid):
        return before
    return replace(before, node=str(target or ""))


def with_lost_ends(log: Log, there: Set[tuple[str, str, str, str]]) -> Iterator[Write]:
    """Give a log's writes, with those ends added that a killed API server did not write down.

    `there` names what there is in the end, with UIDs. What else the log told of before a start of
    the API server, and never of its end, may have gone right after that.
    """
    last: dict[tuple[str, str, str], Write] = {}
    uids: dict[tuple[str, str, str], str] = {}
    for write in log.writes:
        if write.known and write.resource in ("pods", "reservations", "podgangs"):
            last[write.key] = write
            uids[write.key] = str(part(write.body, "metadata").get("uid")) or uids.get(
                write.key, ""
            )
    for write in log.writes:
        yield write
        if last.get(write.key) is not write or write.gone:
            continue
        restarted = any(at >= write.at for at in log.starts)
        if restarted and (*write.key, uids[write.key]) not in there:
            yield replace(write, gone=True, subresource="", user="", verb="delete", instance="")

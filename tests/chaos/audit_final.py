"""What must hold in the end, and how long it took to come about."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from api import names
from api.jsons import Json, JsonObject
from tests.chaos import audit_things as things
from tests.chaos.audit_log import Write, part
from tests.chaos.audit_rules import CONVERGED_SECONDS, Finding, Times
from tests.chaos.audit_things import PodSeen, dicts
from tests.chaos.audit_world import Change, World

State: TypeAlias = Mapping[str, Sequence[JsonObject]]
"""All objects there are in the end, by the plural of their kind."""


def there(state: State) -> set[tuple[str, str, str, str]]:
    """Name every object: kind, namespace, name and UID."""
    found = set()
    for kind, objects in state.items():
        for each in objects:
            meta = part(each, "metadata")
            name = str(meta.get("namespace") or ""), str(meta.get("name"))
            found.add((kind, *name, str(meta.get("uid"))))
    return found


def within(state: State, spaces: Collection[str]) -> State:
    """Leave out what is in other namespaces."""
    return {
        kind: [each for each in objects if _name(each)[0] in (*spaces, "")]
        for kind, objects in state.items()
    }


def settled(state: State, at: float) -> Iterator[Finding]:
    """Every gang is whole and at rest, and holds nothing it does not use."""
    pods = [things.pod(each) for each in state.get("pods", ())]
    ledgers = {
        (each.namespace, each.name): each
        for each in map(things.ledger, state.get("reservations", ()))
    }
    gangs = {
        (each.namespace, each.name): each for each in map(things.gang, state.get("podgangs", ()))
    }
    for pod in pods:
        if pod.gang and not pod.bound:
            what = f"pod {pod.namespace}/{pod.name}"
            yield Finding("settled", at, what, f"is not bound in the end: {_how(pod)}")
    for key, gang in sorted(gangs.items()):
        what = f"gang {gang.namespace}/{gang.name}"
        counts = [pod.slot[1] for pod in pods if (pod.namespace, pod.gang) == key and pod.bound]
        for clique, least in gang.minima.items():
            if counts.count(clique) < least:
                why = f"has {counts.count(clique)} of {least} pods of {clique} in the end"
                yield Finding("settled", at, what, why)
        ledger = ledgers.get(key)
        if ledger is None or ledger.state != "Bound":
            why = f"its Reservation is {ledger.state if ledger else 'not there'} in the end"
            yield Finding("settled", at, what, why)
    taken = {pod.slot for pod in pods if pod.bound}
    for key, ledger in sorted(ledgers.items()):
        what = f"reservation {ledger.namespace}/{ledger.name}"
        if key not in gangs:
            yield Finding("settled", at, what, "is there in the end without its gang")
        elif left := sorted(ledger.slots.keys() - taken):
            yield Finding("settled", at, what, f"keeps room for nobody in the end: {left[0][1:]}")


def _how(pod: PodSeen) -> str:
    if pod.deleting:
        return "on its way out"
    return "gated" if pod.gated else f"lifted to {pod.pinned or 'nowhere'}"


def complete(state: State, at: float) -> Iterator[Finding]:
    """Every set has all the pods that it asks for, and no others."""
    wanted: dict[tuple[str, str], int] = {}
    copies = {
        (_name(each)): int(str(part(each, "spec").get("replicas", 1)))
        for each in state.get("podcliquescalinggroups", ())
    }
    sizes = {
        (_name(each)): int(str(part(each, "spec").get("replicas", 1)))
        for each in state.get("podcliques", ())
    }
    for each in state.get("podcliquesets", ()):
        if part(each, "metadata").get("deletionTimestamp"):
            space, name = _name(each)
            yield Finding("settled", at, f"set {space}/{name}", "is still to go in the end")
        for clique in _cliques(each, copies):
            if clique not in sizes:
                what = f"clique {clique[0]}/{clique[1]}"
                yield Finding("settled", at, what, "is not there in the end")
            wanted[clique] = sizes.get(clique, 0)
    counts: dict[tuple[str, str], int] = {}
    for pod in map(things.pod, state.get("pods", ())):
        if pod.gang:
            clique = pod.slot[:2]
            counts[clique] = counts.get(clique, 0) + 1
    for clique in sorted(wanted.keys() | counts.keys()):
        have, want = counts.get(clique, 0), wanted.get(clique, 0)
        if have != want:
            what = f"clique {clique[0]}/{clique[1]}"
            yield Finding("settled", at, what, f"has {have} pods in the end, not {want}")


def packed(state: State, at: float) -> Iterator[Finding]:
    """All pods of a gang that must be in one domain are in one."""
    seen = state.get("nodes", ())
    nodes = {_name(each)[1]: part(part(each, "metadata"), "labels") for each in seen}
    pods = [things.pod(each) for each in state.get("pods", ())]
    for each in state.get("podgangs", ()):
        space, name = _name(each)
        pack = part(part(part(each, "spec"), "topologyConstraint"), "packConstraint")
        if key := str(pack.get("required") or ""):
            # A rack's name may occur in several blocks.
            path = LEVELS[: LEVELS.index(key) + 1] if key in LEVELS else (key,)
            there = [p.node for p in pods if (p.namespace, p.gang) == (space, name) and p.bound]
            domains = {
                "/".join(str(nodes[node].get(level)) for level in path)
                for node in there
                if node in nodes
            }
            if len(domains) > 1:
                why = f"must be in one domain, and is in {', '.join(sorted(domains))}"
                yield Finding("packed", at, f"gang {space}/{name}", why)


def _cliques(body: JsonObject, copies: Mapping[tuple[str, str], int]) -> Iterator[tuple[str, str]]:
    """Name the cliques that a set is to have."""
    space, name = _name(body)
    spec = part(body, "spec")
    template = part(spec, "template")
    groups = dicts(template.get("podCliqueScalingGroups"))
    grouped = {str(each): group for group in groups for each in _texts(group.get("cliqueNames"))}
    for replica in range(int(str(spec.get("replicas", 1)))):
        for clique in dicts(template.get("cliques")):
            group = grouped.get(str(clique.get("name")))
            if group is None:
                yield space, f"{name}-{replica}-{clique.get('name')}"
                continue
            full = f"{name}-{replica}-{group.get('name')}"
            for copy in range(copies.get((space, full), 0)):
                yield space, f"{full}-{copy}-{clique.get('name')}"


def _texts(value: Json | None) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


def _name(body: JsonObject) -> tuple[str, str]:
    meta = part(body, "metadata")
    return str(meta.get("namespace") or ""), str(meta.get("name"))


def replayed(state: State, world: World, at: float) -> Iterator[Finding]:
    """What was rebuilt from the log is what there is: else the log was not understood."""
    real = {(p.namespace, p.name): p for p in map(things.pod, state.get("pods", ()))}
    for key in sorted(real.keys() | world.pods.keys()):
        have, thought = real.get(key), world.pods.get(key)
        if _essence(have) != _essence(thought):
            why = f"is {_essence(have)}, and by the log {_essence(thought)}"
            yield Finding("replay", at, f"pod {key[0]}/{key[1]}", why)
    booked = {(r.namespace, r.name): r for r in map(things.ledger, state.get("reservations", ()))}
    for key in sorted(booked.keys() | world.ledgers.keys()):
        if booked.get(key) != world.ledgers.get(key):
            yield Finding("replay", at, f"reservation {key[0]}/{key[1]}", "differs from the log's")


def _essence(pod: PodSeen | None) -> tuple[str, bool, str] | None:
    return (pod.uid, pod.gated, pod.node) if pod else None


class Pace:
    """How long after the last fault something of a gang still had to be done."""

    def __init__(self, times: Times) -> None:
        self._healed = max((healed for _, healed in times.faults), default=0.0)
        self.seconds = 0.0

    def see(self, change: Change, _world: World) -> Iterator[Finding]:
        """Take note of what is done to gangs; nothing is wrong until the end."""
        if self._healed and _is_work(change):
            self.seconds = max(self.seconds, change.write.at - self._healed)
        return iter(())

    def end(self, _world: World, at: float) -> Iterator[Finding]:
        """Judge how long it took."""
        if self.seconds > CONVERGED_SECONDS:
            why = f"took {self.seconds:.0f} s after the last fault was healed"
            yield Finding("converged", at, "the cluster", why)


def _is_work(change: Change) -> bool:
    before, after = change.before, change.after
    if not isinstance(before or after, PodSeen):
        return True
    one = before if isinstance(before, PodSeen) else None
    other = after if isinstance(after, PodSeen) else None
    if not any(each.gang for each in (one, other) if each):
        return False
    return _essence(one) != _essence(other)


def faults(writes: Sequence[Write], end: float) -> tuple[tuple[float, float], ...]:
    """Read when faults began and were healed from the marks left in the log."""
    begun: dict[str, float] = {}
    found = []
    for write in writes:
        if write.resource != "configmaps" or write.verb != "create":
            continue
        kind, _, number = write.name.rpartition("-")
        if kind == MARK_FAULT:
            begun[number] = write.at
        elif kind == MARK_HEALED and number in begun:
            found.append((begun.pop(number), write.at))
    return tuple(sorted([*found, *((at, end) for at in begun.values())]))


LEVELS = (names.ZONE_KEY, names.BLOCK_KEY, names.RACK_KEY)
MARK_FAULT = f"{names.GROUP}-chaos-fault"
MARK_HEALED = f"{names.GROUP}-chaos-healed"

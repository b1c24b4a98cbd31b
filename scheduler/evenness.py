"""Whether gangs of a plan keep apart as they must, judged node by node, apart from the search.

In the order of a plan, a gang that goes to a domain where its replica is not yet may leave it with
no more replicas than `skew` above the domain that had fewest. It must be in domains at all.
"""

from collections.abc import Hashable, Iterator
from typing import TypeAlias

from api import names
from api.streams import Node
from scheduler.answers import Placement
from scheduler.eligible import chosen
from scheduler.filters.selecting import bars, tolerated
from scheduler.requests import GangRequest, Spread, Want
from scheduler.snapshot import Snapshot
from scheduler.topology import Topology, path

Domain: TypeAlias = tuple[str, ...]


class Evenness:
    """Follows a plan, placement by placement."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._before: list[tuple[GangRequest, frozenset[str]]] = []
        self._domains: dict[tuple[str, str], dict[str, Domain]] = {}
        self._could: dict[Hashable, set[Domain]] = {}

    def broken_by(self, placement: Placement) -> str:
        """Name a level over which the placement is not even enough, or give ""."""
        gang = placement.gang
        nodes = frozenset(placed.node for placed in placement.placed)
        hard = (each for each in gang.spread if each.hard)
        found = next((each.level for each in hard if self._breaks(each, gang, nodes)), "")
        self._before.append((gang, nodes))
        return found

    def _breaks(self, spread: Spread, gang: GangRequest, nodes: frozenset[str]) -> bool:
        at, ours = self._named(gang, spread.level), gang.kin.replica
        there: dict[Domain, set[str]] = {}
        for replica, node in self._siblings(spread, gang):
            if node in at:
                there.setdefault(at[node], set()).add(replica)
        itself = spread.concerns(gang, gang.namespace, gang.kin)
        known = {at[anchor.node] for anchor in gang.anchors if anchor.node in at}
        for domain in known if itself else ():
            there.setdefault(domain, set()).add(ours)
        fewest = self._fewest(spread, gang, there)
        for node in nodes:
            if node not in at:
                return True
            who = there.get(at[node], set())
            fresh = at[node] not in known and ours not in who
            if fresh and len(who) + itself - fewest > spread.skew:
                return True
        return False

    def _siblings(self, spread: Spread, gang: GangRequest) -> Iterator[tuple[str, str]]:
        """Give who was there, and those of the plan so far, each with each of its nodes."""
        for sibling in spread.taken:
            yield from ((sibling.replica, node) for node in sibling.nodes)
        for other, nodes in self._before:
            if spread.concerns(gang, other.namespace, other.kin):
                yield from ((other.kin.replica, node) for node in nodes)

    def _fewest(self, spread: Spread, gang: GangRequest, there: dict[Domain, set[str]]) -> int:
        """Count who is in the emptiest of the domains that the gang's largest pod could use."""
        could = self._could_take(spread, gang, _largest(gang))
        if len(could) < max(1, spread.min_domains):
            return 0
        return min(len(there.get(domain, ())) for domain in could)

    def _could_take(self, spread: Spread, gang: GangRequest, want: Want) -> set[Domain]:
        need = tuple(sorted(want.need.items()))
        policies = spread.by_affinity, spread.by_taints
        key = gang.topology, spread.level, policies, need, want.constraints
        if key not in self._could:
            at = self._named(gang, spread.level)
            self._could[key] = {
                at[node.metadata.name]
                for row, node in enumerate(self._snapshot.nodes)
                if node.metadata.name in at and self._counts(spread, want, row)
            }
        return self._could[key]

    def _counts(self, spread: Spread, want: Want, row: int) -> bool:
        node, constraints = self._snapshot.nodes[row], want.constraints
        if spread.by_affinity and not chosen(node, constraints):
            return False
        taints = node.spec.taints if spread.by_taints else ()
        if not all(tolerated(t, constraints.tolerations) for t in taints if bars(t)):
            return False
        has = dict(zip(self._snapshot.resources, self._snapshot.capacity[row], strict=True))
        return all(amount <= has.get(name, 0) for name, amount in want.need.items())

    def _named(self, gang: GangRequest, level: str) -> dict[str, Domain]:
        """Name the domain of each node that is in one of the level."""
        key = gang.topology, level
        if key not in self._domains:
            network = self._snapshot.topology(gang.topology)
            nodes = self._snapshot.nodes if network is not None else ()
            each = ((node, network and domain_of(node, network, level)) for node in nodes)
            self._domains[key] = {node.metadata.name: found for node, found in each if found}
        return self._domains[key]


def domain_of(node: Node, network: Topology, level: str) -> Domain | None:
    """Name the domain of a level that a node is in, by its labels."""
    depth = network.depth_of(level)
    if depth is not None:
        found = path(node, network.keys[:depth])
        return found if found[-1] else None
    return (node.metadata.name,) if level == names.HOSTNAME_KEY else None


def _largest(gang: GangRequest) -> Want:
    devices = [
        sum(amount for name, amount in want.need.items() if "/" in name)
        for want in gang.minimum or gang.extras
    ]
    return (gang.minimum or gang.extras)[devices.index(max(devices))]

"""What the largest node and the largest domains hold, kept up as nodes come, change and go. Pure.

A change of a node costs as much as there are levels, however many nodes there are: they are counted
by what they offer, and amounts are multiplied and added only when somebody asks.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from api.capacity import Capacity
from api.quantities import Amounts, BadQuantityError, amounts, larger
from api.streams import Node

Levels = tuple[str, ...]
"""Node label keys, widest first."""

_Path = tuple[str, ...]
_Offer = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class _Counted:
    """A node as it was counted, so that it can be taken out again whatever it is by then."""

    offer: _Offer
    labels: Mapping[str, str]


class Tally:
    """Counts nodes by what they offer, and sums by domain, for each of some topologies."""

    def __init__(self, topologies: Iterable[Levels]) -> None:
        self._levels = tuple(
            dict.fromkeys(
                topology[: depth + 1] for topology in topologies for depth in range(len(topology))
            )
        )
        self._keys = frozenset(key for levels in self._levels for key in levels)
        self._nodes: dict[str, _Counted] = {}
        self._offers: Counter[_Offer] = Counter()
        self._domains: dict[Levels, dict[_Path, Counter[_Offer]]] = {
            levels: {} for levels in self._levels
        }

    def retold(self, topologies: Iterable[Levels]) -> "Tally":
        """Count the same nodes by other topologies."""
        fresh = Tally(topologies)
        for name, counted in self._nodes.items():
            fresh._add(name, counted)
        return fresh

    def put(self, node: Node) -> bool:
        """Count a node as it is now; tell whether that changed anything."""
        before = self._nodes.get(node.metadata.name)
        labels = node.metadata.labels
        # All labels are kept, since topologies may change.
        counted = _Counted(_offer(frozenset(node.status.allocatable.items())), labels)
        if before is not None:
            same = all(before.labels.get(key) == labels.get(key) for key in self._keys)
            if same and before.offer == counted.offer:
                self._nodes[node.metadata.name] = counted
                return False
            self.drop(node.metadata.name)
        self._add(node.metadata.name, counted)
        return True

    def drop(self, name: str) -> bool:
        """Count a node no more; tell whether it was counted."""
        counted = self._nodes.pop(name, None)
        if counted is None:
            return False
        _less(self._offers, counted.offer)
        for domains, path in self._places(counted.labels):
            _less(domains[path], counted.offer)
            if not domains[path]:
                del domains[path]
        return True

    def capacity(self) -> Capacity:
        """Give the largest of everything. Resources that nobody has are left out."""
        node: Amounts = {}
        for offer in self._offers:
            node = larger(node, dict(offer))
        levels: dict[str, dict[str, int]] = {}
        for depth, domains in self._domains.items():
            most = levels.setdefault(depth[-1], {})
            for offers in domains.values():
                for resource, amount in _total(offers).items():
                    if amount > most.get(resource, 0):
                        most[resource] = amount
        found = {key: _sorted(most) for key, most in sorted(levels.items()) if most}
        return Capacity(_sorted(node), found)

    def _add(self, name: str, counted: _Counted) -> None:
        self._nodes[name] = counted
        self._offers[counted.offer] += 1
        for domains, path in self._places(counted.labels):
            offers = domains.get(path)
            if offers is None:
                offers = domains[path] = Counter()
            offers[counted.offer] += 1

    def _places(
        self, labels: Mapping[str, str]
    ) -> Iterator[tuple[dict[_Path, Counter[_Offer]], _Path]]:
        """Name the domains that a node with these labels is in, one a level, wider levels first."""
        for levels, domains in self._domains.items():
            path = tuple([labels.get(key, "") for key in levels])
            if path[-1]:  # a node without the label is in no domain of that level
                yield domains, path


def _less(offers: Counter[_Offer], offer: _Offer) -> None:
    offers[offer] -= 1
    if not offers[offer]:
        del offers[offer]


def _total(offers: Counter[_Offer]) -> dict[str, int]:
    total: dict[str, int] = {}
    for offer, nodes in offers.items():
        for resource, amount in offer:
            total[resource] = total.get(resource, 0) + amount * nodes
    return total


@lru_cache(maxsize=1024)
def _offer(allocatable: frozenset[tuple[str, str]]) -> _Offer:
    """Read what a node has to give; most nodes of a cluster are of a few kinds."""
    try:
        return tuple(sorted(amounts(dict(allocatable)).items()))
    except BadQuantityError:
        return ()


def _sorted(found: Amounts) -> dict[str, int]:
    return {resource: found[resource] for resource in sorted(found) if found[resource]}

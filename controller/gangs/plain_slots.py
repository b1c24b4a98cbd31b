"""Which slot each pod of a plain gang has. Pure.

The gang's PodGang remembers it: an annotation gives the index of each pod it refers to, in order.
Only `gangs` may write that annotation, so it also tells our PodGangs from anybody else's.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

from api import names
from api.cliques import MAX_REPLICAS
from api.quantities import Amounts
from api.streams import Meta, Node, Pod
from controller.gangs import plain_pods
from controller.podgang import Gang
from kube.objects import Key
from scheduler import needs
from scheduler.eligible import Constraints, obstacle

_RANGE: Final = re.compile("([0-9]{1,5})(?:-([0-9]{1,5}))?")


@dataclass(frozen=True)
class Room:
    """What the reservation keeps for one slot."""

    node: str
    amounts: Amounts

    def holds(self, pod: Pod) -> bool:
        """Whether it is enough for the pod: a larger one must be placed anew."""
        return all(most <= self.amounts.get(name, 0) for name, most in needs.of_pod(pod).items())


@dataclass(frozen=True)
class Shape:
    """All that tells which slots a pod could take; most pods of a gang are alike."""

    waits: bool
    amounts: tuple[tuple[str, int], ...]
    constraints: Constraints

    @classmethod
    def of(cls, pod: Pod) -> "Shape":
        """Read a pod's. Room is not kept for one that others hold back as well."""
        amounts = tuple(sorted(needs.of_pod(pod).items()))
        return cls(pod.gates == (names.GATE,), amounts, Constraints.of(pod))


def is_plain(gang: Meta) -> bool:
    """Whether the PodGang is one that `gangs` made for labelled pods."""
    return names.SLOTS_ANNOTATION in gang.annotations


def spelled(indices: Iterable[int]) -> str:
    """Write indices, smallest first, as `0-3,5`."""
    runs: list[tuple[int, int]] = []
    for index in indices:
        if runs and runs[-1][1] == index - 1:
            runs[-1] = (runs[-1][0], index)
        else:
            runs.append((index, index))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def slots_of(gang: Gang) -> dict[Key, int]:
    """Give the index of each pod that a plain gang refers to; none if that cannot be read."""
    indices = _read(gang.metadata.annotations.get(names.SLOTS_ANNOTATION, ""))
    pods = [pod for _, pod in gang.references()]
    return dict(zip(pods, indices, strict=True)) if len(pods) == len(indices) else {}


@dataclass(frozen=True)
class Ledger:
    """What is reserved for the gang, by index, and the nodes that this is on.

    Once committed, pods have been lifted onto it, or are about to be. One that was `tried` has been
    rolled back since the gang was made.
    """

    rooms: Mapping[int, Room]
    nodes: Mapping[str, Node]
    committed: bool = False
    tried: bool = False

    def offers(self, vacant: Sequence[int], shape: Shape) -> Iterator[int]:
        """Name the slots onto which such a pod could be lifted just as it is."""
        for index in vacant if shape.waits else ():
            room = self.rooms[index]
            node = self.nodes.get(room.node)
            measured = room.amounts == dict(shape.amounts)
            if measured and node is not None and not obstacle(node, shape.constraints):
                yield index


def assigned(members: Sequence[Pod], before: Mapping[str, int], ledger: Ledger) -> dict[str, int]:
    """Give each pod its index; pods come in the order in which they may choose.

    A pod stays where it is. One that waits for room takes a slot that another has left, if that
    was measured for such a pod; a slot that has become too small for its pod is left.
    """
    settled = _settled(members, before, ledger)
    found = {pod.metadata.name: before[pod.metadata.name] for pod in settled}
    used = set(found.values())
    vacant = [index for index in sorted(ledger.rooms) if index not in used]
    offers: dict[Shape, Iterator[int]] = {}  # what one pod was not offered, none like it is
    given: set[int] = set()
    used |= ledger.rooms.keys()
    unused = (index for index in count() if index not in used)
    others = [pod for pod in members if pod.metadata.name not in found]
    # Those that have an index already go first, so that nobody else is given it.
    for pod in sorted(others, key=lambda pod: pod.metadata.name not in before):
        index = None
        if len(given) < len(vacant):
            shape = Shape.of(pod)
            offered = offers.setdefault(shape, ledger.offers(vacant, shape))
            index = next((each for each in offered if each not in given), None)
        if index is not None:
            given.add(index)
        else:
            wanted = (before.get(pod.metadata.name), plain_pods.ordinal(pod))
            own = (each for each in wanted if each is not None and each not in used)
            index = next(own, None)
            index = next(unused) if index is None else index
        if index < MAX_REPLICAS:
            found[pod.metadata.name] = index
            used.add(index)
    return found


def _settled(members: Sequence[Pod], before: Mapping[str, int], ledger: Ledger) -> Iterator[Pod]:
    """Find the pods that are not to move: they run, or their own slot waits for them."""
    for pod in members:
        index = before.get(pod.metadata.name)
        if index is None:
            continue
        room = ledger.rooms.get(index)
        if names.GATE not in pod.gates or (room is not None and room.holds(pod)):
            yield pod


def _read(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split(",") if text else ():
        match = _RANGE.fullmatch(part)
        if match is None:
            return []
        first = int(match[1])
        last = int(match[2] or first)
        # Ascending and bounded, so that a few characters cannot mean millions.
        if last < first or last > MAX_REPLICAS or (found and first <= found[-1]):
            return []
        found += range(first, last + 1)
    return found

"""A reservation by a person as it is decided on: what it keeps, and what gangs have drawn of it.

What is drawn is never written here: it is in the ledger, in each gang's own reservation, so that
one write both takes room for a gang and takes it from what is kept. Pure.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
from pydantic import ValidationError

from api import durations, quantities
from api.keep import ENDED, LASTS, KeepSpec, KeepStatus, KeptSlot
from api.quantities import Amounts
from api.streams import Custom, Meta
from controller.gangs.views import Reservation
from kube.objects import Key

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Keep:
    """A reservation by a person."""

    metadata: Meta
    spec: KeepSpec
    status: KeepStatus

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.metadata.namespace, self.metadata.name

    @property
    def ended(self) -> bool:
        """Whether it keeps nothing any more, for good."""
        return self.status.state in ENDED or self.metadata.deletion_timestamp is not None

    @property
    def expires(self) -> datetime | None:
        """Until when it keeps its room; None as long as the API server has not said its birth."""
        if self.spec.expires:
            return datetime.fromisoformat(self.spec.expires.upper())
        born = self.metadata.creation_timestamp
        lasts = durations.seconds(self.spec.ttl or LASTS)
        return born + timedelta(seconds=lasts) if born else None

    def shares(self) -> dict[str, dict[str, int]]:
        """Add up what it keeps, by node."""
        found: dict[str, dict[str, int]] = {}
        if self.ended:
            return found
        need = quantities.amounts(self.status.requests)
        for slot in self.status.slots:
            found[slot.node] = quantities.plus(found.get(slot.node, {}), need)
        return found


@dataclass(frozen=True)
class KeepView:
    """A keep at one instant.

    `users` are the ledger's entries that draw on it. `lost` names nodes that have its room no more.
    `refusal` is what the engine said when it last looked for room, and `orphaned` whether nobody is
    left whom its rules could mean.
    """

    keep: Keep
    users: tuple[Reservation, ...] = ()
    lost: frozenset[str] = frozenset()
    refusal: str = ""
    orphaned: bool = False

    def slots(self) -> list[KeptSlot]:
        """List the slots whose node still has their room, and those that somebody uses."""
        used = {node for user in self.users for node in drawn_by(user)}
        gone = self.lost - used
        return [slot for slot in self.keep.status.slots if slot.node not in gone]

    def missing(self) -> tuple[int, ...]:
        """Number the slots that are still to be found."""
        there = {slot.index for slot in self.slots()}
        return tuple(i for i in range(self.keep.spec.replicas) if i not in there)


def age(keep: Keep) -> tuple[str, Key]:
    """Sort the oldest first."""
    born = keep.metadata.creation_timestamp
    return born.isoformat() if born else "", keep.key


class _Sort(msgspec.Struct):
    owners: msgspec.Raw = msgspec.Raw()
    gang: msgspec.Raw = msgspec.Raw()


def is_by_a_person(found: Custom) -> bool:
    """Whether a reservation is no entry of the ledger: it names no gang, which a guard sees to."""
    try:
        sort = msgspec.json.decode(found.spec, type=_Sort)
    except msgspec.DecodeError:
        return False
    return not bytes(sort.gang) and bool(bytes(sort.owners))


def read(found: Custom) -> Keep | None:
    """Read it, or say in the log why it cannot be read; None for an entry of the ledger too."""
    if not is_by_a_person(found):
        return None
    meta = found.metadata
    try:
        keep = Keep(
            meta,
            KeepSpec.model_validate_json(bytes(found.spec)),
            KeepStatus.model_validate_json(bytes(found.status)),
        )
        if keep.expires is None or keep.expires.tzinfo is not None:
            return keep
        error: Exception = ValueError(f"{keep.spec.expires!r} is no instant")
    except (ValidationError, ValueError) as wrong:
        error = wrong
    _log.error("Reservation %s/%s cannot be read: %s", meta.namespace, meta.name, error)
    return None


def drawn_by(user: Reservation) -> dict[str, Amounts]:
    """Tell what a gang draws, by node: as much as it said, while its slots there still take it."""
    if user.spec.uses is None:
        return {}
    takes: dict[str, dict[str, int]] = {}
    for _, slot, requests in user.slots():
        takes[slot.node] = quantities.plus(takes.get(slot.node, {}), quantities.amounts(requests))
    found: dict[str, Amounts] = {}
    for share in user.spec.uses.shares:
        there = takes.get(share.node, {})
        said = quantities.amounts(share.requests)
        drawn = {name: min(amount, there.get(name, 0)) for name, amount in said.items()}
        if any(drawn.values()):
            found[share.node] = quantities.plus(found.get(share.node, {}), drawn)
    return found


def pods_of(user: Reservation) -> int:
    """How many of a gang's slots are on nodes where it draws."""
    nodes = drawn_by(user).keys()
    return sum(slot.node in nodes for _, slot, _ in user.slots())


def rest(keep: Keep, users: Iterable[Reservation]) -> dict[str, Amounts]:
    """Tell what is left of the room for others to draw, by node; nodes with nothing left out."""
    left: dict[str, Amounts] = {}
    drawn = list(_drawn(users))
    for node, amounts in keep.shares().items():
        taken: Mapping[str, int] = {}
        for where, part in drawn:
            if where == node:
                taken = quantities.plus(taken, part)
        there = {name: max(0, amount - taken.get(name, 0)) for name, amount in amounts.items()}
        if any(there.values()):
            left[node] = there
    return left


def _drawn(users: Iterable[Reservation]) -> Iterator[tuple[str, Amounts]]:
    for user in users:
        yield from drawn_by(user).items()

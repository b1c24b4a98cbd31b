"""What reservations cost: for how long devices are kept for pods that do not run yet. Pure.

Of a reservation that comes to nothing, all of that was wasted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from api import quantities
from api.quantities import Amounts
from api.reservation import State
from controller.gangs.views import Reservation
from kube.objects import Key


@dataclass(frozen=True)
class Spent:
    """Device seconds by resource: held in all, and of them for nothing."""

    held: Mapping[str, float] = field(default_factory=dict)
    wasted: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Bound:
    """A gang whose whole minimum is on its nodes, and how long that took since it was reserved."""

    key: Key
    seconds: float
    score: float | None


@dataclass(frozen=True)
class RolledBack:
    """A gang that was taken back."""

    key: Key
    message: str


@dataclass(frozen=True)
class _Entry:
    uid: str
    attempt: int
    state: State
    devices: Amounts
    begun: float
    since: float  # from here on nothing is counted yet
    held: Mapping[str, float]


class Ledger:
    """Follows reservations. Instants are given to it, on a clock that only goes forward."""

    def __init__(self) -> None:
        self._open: dict[Key, _Entry] = {}

    def see(
        self, key: Key, there: Reservation | None, now: float
    ) -> tuple[Spent, Bound | RolledBack | None]:
        """Take a reservation as it is now, or None for one that is gone."""
        before = self._open.pop(key, None)
        spent = Spent() if before is None else _spent(before, now)
        held = _sum(before.held, spent.held) if before else {}
        same = before and there and _is_same(before, there)
        if before is None or there is None or not same:
            self._opened(key, there, now)
            # Deleted, or made anew; one that was bound had come to something.
            kept = before is not None and before.state in (State.HELD, State.LIFTING)
            return Spent(spent.held, held if kept else {}), None
        entry = replace(before, state=there.state, devices=devices_of(there), since=now, held=held)
        news: Bound | RolledBack | None = None
        wasted: Mapping[str, float] = {}
        if there.state is State.ROLLED_BACK and before.state is not State.ROLLED_BACK:
            news, wasted = RolledBack(key, there.status.message), held
            entry = replace(entry, held={})
        elif there.state is State.BOUND and before.state in (State.HELD, State.LIFTING):
            news = Bound(key, now - before.begun, there.spec.score)
            entry = replace(entry, held={})
        self._open[key] = entry
        return Spent(spent.held, wasted), news

    def settle(self, now: float) -> Iterator[Spent]:
        """Count what was held until now, of all that are open."""
        for key, entry in self._open.items():
            spent = _spent(entry, now)
            self._open[key] = replace(entry, since=now, held=_sum(entry.held, spent.held))
            yield spent

    def _opened(self, key: Key, there: Reservation | None, now: float) -> None:
        if there is not None:
            uid, attempt = there.metadata.uid, there.spec.attempt
            self._open[key] = _Entry(uid, attempt, there.state, devices_of(there), now, now, {})


def devices_of(reservation: Reservation) -> Amounts:
    """Sum what is scarce of what its slots take: resources that somebody's driver offers."""
    found: dict[str, int] = {}
    for group in reservation.spec.groups:
        for name, amount in quantities.amounts(group.requests).items():
            if "/" in name and amount:
                found[name] = found.get(name, 0) + amount * len(group.slots)
    return found


def _is_same(entry: _Entry, there: Reservation) -> bool:
    return (entry.uid, entry.attempt) == (there.metadata.uid, there.spec.attempt)


def _spent(entry: _Entry, now: float) -> Spent:
    if entry.state not in (State.HELD, State.LIFTING):
        return Spent()
    return Spent({name: amount * (now - entry.since) for name, amount in entry.devices.items()})


def _sum(one: Mapping[str, float], other: Mapping[str, float]) -> Mapping[str, float]:
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in one.keys() | other.keys()}

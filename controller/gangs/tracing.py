"""Tells of each gang how it was decided on, reserved, lifted and bound, as spans of its trace."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from typing_extensions import override

from api import names
from api.reservation import State
from api.streams import Custom, Pod
from controller.gangs.metering import Known, Unmetered
from kube.cache import Change, Deleted, Modified
from kube.clock import Clock
from kube.objects import Key
from kube.tracing import Record, Span, Step


@dataclass
class _Way:
    """How far a gang is, and since when; a leader before us took what is not known."""

    asked: datetime | None = None
    refusals: int = 0
    placed: datetime | None = None
    held: datetime | None = None
    lifting: datetime | None = None
    lifted: datetime | None = None


class Tracing(Unmetered):
    """Listens to the placer, to reservations and to pods, and passes on what the placer tells."""

    def __init__(
        self,
        clock: Clock,
        leads: Callable[[], bool],
        known: Known,
        record: Record,
        beside: Unmetered,
    ) -> None:
        self._clock = clock
        self._leads = leads
        self._known = known
        self._record = record
        self._beside = beside
        self._ways: dict[Key, _Way] = {}

    @override
    def asked(self, key: Key) -> None:
        """A gang asks for room; that counts from the first time."""
        self._beside.asked(key)
        way = self._ways.setdefault(key, _Way())
        way.asked = way.asked or self._clock.now()

    @override
    def decided(self, key: Key, answer: str) -> None:
        """The engine has answered: `placed` or `refused`."""
        self._beside.decided(key, answer)
        way = self._ways.setdefault(key, _Way())
        if answer != "placed":
            way.refusals += 1
            return
        way.placed = self._clock.now()
        self._tell(key, Step.DECIDE, way.asked, way.placed, refusals=way.refusals)

    @override
    def planned(self, seconds: float) -> None:
        """The engine has worked for so long on one plan."""
        self._beside.planned(seconds)

    @override
    def forget(self, key: Key) -> None:
        """A gang asks for nothing any more."""
        self._beside.forget(key)
        way = self._ways.get(key)
        if way is not None and way.placed is None:
            del self._ways[key]

    def on_reservation(self, change: Change[Custom]) -> None:
        """A reservation has changed; it is called like its gang."""
        meta = (change.old if isinstance(change, Deleted) else change.new).metadata
        key = meta.namespace, meta.name
        way = self._ways.get(key)
        there = self._known.reservation(key)
        if way is None or (there is not None and not there.ours):
            return
        if there is None:
            del self._ways[key]
            return
        now = self._clock.now()
        state = there.status.state
        if way.held is None and state in (State.HELD, State.LIFTING):
            way.held = now
            self._tell(key, Step.RESERVE, way.placed, now)
        if way.lifting is None and state is State.LIFTING:
            way.lifting = now
        if state is State.BOUND:
            lifted = way.lifted or now
            self._tell(key, Step.LIFT, way.lifting or way.held, lifted)
            self._tell(key, Step.BOUND, lifted, now)
            self._ways[key] = _Way()
        elif state is State.ROLLED_BACK:
            self._tell(key, Step.LIFT, way.lifting or way.held, now, failure="it was rolled back")
            self._ways[key] = _Way()

    def on_pod(self, change: Change[Pod]) -> None:
        """A pod has changed: one that has lost our gate was lifted."""
        if not isinstance(change, Modified):
            return
        if names.GATE not in change.old.gates or names.GATE in change.new.gates:
            return
        meta = change.new.metadata
        gang = meta.labels.get(names.PODGANG_LABEL) or meta.labels.get(names.GANG_LABEL, "")
        way = self._ways.get((meta.namespace, gang))
        if way is not None:
            way.lifted = self._clock.now()

    def _tell(
        self,
        key: Key,
        step: Step,
        begun: datetime | None,
        ended: datetime,
        *,
        refusals: int = 0,
        failure: str = "",
    ) -> None:
        gang = self._known.gang(key)
        if begun is None or gang is None or not self._leads():
            return
        about: dict[str, str | int] = {"namespace": key[0], "gang": key[1]}
        if refusals:
            about["refusals"] = refusals
        self._record(Span(gang.origin, step, key[1], begun, ended, about, failure))

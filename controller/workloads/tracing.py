"""Tells of each gang of a set how long it took from when the set was seen until all was made."""

from collections.abc import Callable
from datetime import datetime

from api.streams import Custom
from controller.podgang import read_gang
from kube.cache import Added, Cache, Change, Deleted
from kube.clock import Clock
from kube.tracing import Record, Span, Step


class Tracing:
    """Listens to sets and gangs. What was there before this process did is told by nobody."""

    def __init__(self, clock: Clock, leads: Callable[[], bool], record: Record) -> None:
        self._clock = clock
        self._leads = leads
        self._record = record
        self._seen: dict[str, datetime] = {}  # sets by their UID
        self._told: set[str] = set()  # gangs by theirs

    def follow(self, sets: Cache[Custom], gangs: Cache[Custom]) -> None:
        """Listen from now on."""
        sets.subscribe(self.on_set)
        gangs.subscribe(self.on_gang)

    def on_set(self, change: Change[Custom]) -> None:
        """A set has come or gone, or has changed."""
        match change:
            case Added(new):
                self._seen.setdefault(new.metadata.uid, self._clock.now())
            case Deleted(old):
                self._seen.pop(old.metadata.uid, None)

    def on_gang(self, change: Change[Custom]) -> None:
        """A gang has come or gone, or has changed."""
        if isinstance(change, Deleted):
            self._told.discard(change.old.metadata.uid)
            return
        meta = change.new.metadata
        begun = self._seen.get(meta.controller_uid)
        if begun is None or meta.uid in self._told:
            return
        gang = read_gang(change.new)
        if gang is None or not gang.initialized:
            return
        self._told.add(meta.uid)
        # One that was initialized before we came has been told of, or never will be.
        born = meta.creation_timestamp
        if not self._leads() or born is None or born.replace(microsecond=999_999) < begun:
            return
        about = {"namespace": meta.namespace, "gang": meta.name}
        ended = self._clock.now()
        self._record(Span(meta.controller_uid, Step.EXPAND, meta.name, begun, ended, about))

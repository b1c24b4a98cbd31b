"""Events for people who ask why a gang waits: what is told of it, and when it is told again.

What a gang waits for is in its condition all the time, in words that change with every pod that
comes or goes. An Event is told when it waits for something else, and in other words for the same
only when some time has passed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from api import names
from api.objects import condition_of
from api.podgang import PodGangStatus
from controller.gangs.views import GangView
from controller.voicing import Tell
from kube.clock import Clock
from kube.objects import Key
from kube.resources import PODGANGS
from scheduler.answers import NoFit

RETOLD_SECONDS: Final = 300.0

# What somebody may have to see to. A gang that waits for what is on its way needs nobody.
TOLD: Final = frozenset(
    {
        names.REASON_INSUFFICIENT,
        names.REASON_NEVER_FITS,
        names.REASON_NOT_RESERVED,
        names.REASON_FOREIGN_GATES,
        names.REASON_ROLLED_BACK,
        names.REASON_REFUSED,
    }
)

_REFUSED: Final = frozenset({names.REASON_INSUFFICIENT, names.REASON_NEVER_FITS})


def of(view: GangView, status: PodGangStatus, refusal: NoFit | str | None) -> Tell | None:
    """Give the Event about what keeps a gang from being placed, or None if that is not news."""
    said = condition_of(status.conditions, names.SCHEDULED)
    if said is None or said.reason not in TOLD:
        return None
    meta = view.gang.metadata
    topic = "/".join([said.reason, *_cause(view, said.reason, refusal)])
    return Tell(PODGANGS, meta.name, meta.uid, said.reason, said.message, warning=True, topic=topic)


def _cause(view: GangView, reason: str, refusal: NoFit | str | None) -> tuple[str, ...]:
    """Tell one thing to wait for from another, whatever words it is put in."""
    if isinstance(refusal, NoFit) and reason in (
        names.REASON_INSUFFICIENT,
        names.REASON_NEVER_FITS,
    ):
        return refusal.cause.value, refusal.part, refusal.level, refusal.subject
    if reason == names.REASON_ROLLED_BACK and view.reservation is not None:
        return (str(view.reservation.spec.attempt),)
    return ()


def of_timeout(view: GangView, status: PodGangStatus) -> Tell | None:
    """Give the Event about a gang that waits for longer than it may, and what it waits for."""
    late = condition_of(status.conditions, names.TIMED_OUT)
    if late is None or late.status != "True":
        return None
    said = condition_of(status.conditions, names.SCHEDULED)
    why = f": {said.message or said.reason}" if said else ""
    meta, note = view.gang.metadata, f"{late.message}{why}"
    since = f"{late.reason}/{late.last_transition_time}"  # it may come to that again, another time
    return Tell(PODGANGS, meta.name, meta.uid, late.reason, note, warning=True, topic=since)


@dataclass(frozen=True)
class _Said:
    topic: str
    note: str
    at: float


class Storyteller:
    """Has Events told by `tell`, and remembers what it told last of each gang."""

    def __init__(self, clock: Clock, tell: Callable[[Tell, str], None]) -> None:
        self._clock = clock
        self._tell = tell
        self._last: dict[Key, _Said] = {}

    def tell(self, view: GangView, status: PodGangStatus, refusal: NoFit | str | None) -> None:
        """Tell what a gang waits for, if that is news."""
        late = of_timeout(view, status)
        if late is not None:
            self._tell(late, view.gang.metadata.namespace)
        news = of(view, status, refusal)
        if news is None:
            return
        key, now = view.gang.key, self._clock.monotonic()
        before = self._last.get(key)
        if before is not None and before.topic == news.topic:
            if before.note == news.note or now < before.at + RETOLD_SECONDS:
                return
            self._tell(_in_other_words(news), key[0])
        else:
            self._tell(news, key[0])
        self._last[key] = _Said(news.topic, news.note, now)

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a gang that is gone."""
        self._last.pop(key, None)


def _in_other_words(news: Tell) -> Tell:
    topic = f"{news.topic}/{news.note}"
    return Tell(news.resource, news.name, news.uid, news.reason, news.note, news.warning, topic)

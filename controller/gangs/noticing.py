"""Writes on pods whom they wait for: once when that lasts, and once when it is over."""

from collections.abc import Callable
from functools import partial
from typing import Final

from api import names
from api.objects import timestamp
from api.streams import Pod
from controller import pace
from controller.gangs import pod_conditions, startup
from controller.gangs.startup import Notice
from controller.gangs.views import GangView
from kube.cache import Cache
from kube.client import Client
from kube.clock import Clock
from kube.errors import Conflict, NotFound
from kube.objects import Key

LASTS_SECONDS: Final = 1.0  # what passes by sooner is not worth a write
REWORDED_SECONDS: Final = 30.0  # how many are ready by now is told anew no more often
AT_ONE_LOOK: Final = 64  # lifting must not wait until a thousand pods have been told
AT_ONCE: Final = 8


class Noticeboard:
    """Keeps the condition PodStartupBlocked of each gang's pods true.

    `later` has a gang looked at again after so many seconds. What is on the pods already is read
    from them, so a successor writes nothing twice.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        pods: Cache[Pod],
        later: Callable[[Key, float], None],
        fenced: Callable[[], int | None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._pods = pods
        self._later = later
        self._fenced = fenced
        self._since: dict[Key, dict[str, float]] = {}  # of each gang's waiting cliques
        self._told: dict[Key, dict[str, float]] = {}  # when a clique's pods were last told

    async def post(self, view: GangView) -> None:
        """Write what the gang's pods do not say yet; raises the first refusal, after all others."""
        due = self._due(view)
        if len(due) > AT_ONE_LOOK:
            self._later(view.gang.key, 0.0)
        writes = [partial(self._write, notice) for notice in due[:AT_ONE_LOOK]]
        failures = await pace.all_of(writes, AT_ONCE)
        # A pod that is gone, or another by now, has nothing to say.
        for error in failures:
            if not isinstance(error, NotFound | Conflict):
                raise error

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a gang."""
        self._since.pop(key, None)
        self._told.pop(key, None)

    def _due(self, view: GangView) -> list[Notice]:
        key, now = view.gang.key, self._clock.monotonic()
        waiting = startup.unmet(view)
        if not waiting:
            self.forget(key)
        else:
            before = self._since.get(key, {})
            self._since[key] = {clique: before.get(clique, now) for clique in waiting}
        due: list[Notice] = []
        for notice in startup.notices(view):
            left = self._left(key, notice, now)
            if left <= 0:
                due.append(notice)
            else:
                self._later(key, left)
        told = {notice.clique: now for notice in due if notice.blocked}
        if told:
            self._told[key] = self._told.get(key, {}) | told
        return due

    def _left(self, key: Key, notice: Notice, now: float) -> float:
        """Give how many seconds are left until it is to be written."""
        if not notice.blocked:
            return 0.0
        if notice.again:
            told = self._told.get(key, {}).get(notice.clique)
            return 0.0 if told is None else told + REWORDED_SECONDS - now
        return self._since[key][notice.clique] + LASTS_SECONDS - now

    async def _write(self, notice: Notice) -> None:
        if self._fenced() is None:
            return
        condition = startup.condition(notice, timestamp(self._clock.now()))
        answer = await pod_conditions.say(self._client, notice.pod, condition, names.GANGS_MANAGER)
        self._pods.observe(answer)

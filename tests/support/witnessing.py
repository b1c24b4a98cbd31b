"""A witness who sees every state that the pods of a namespace pass through."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from api import names
from api.streams import Pod
from kube.cache import Cache, Change
from kube.client import Client, Scope
from kube.resources import PODS
from tests.support.chance import dice


@dataclass
class Witness:
    """What was seen of pods, by clique, since the last `forget`."""

    cache: Cache[Pod]
    least_ready: dict[str, int] = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=dict)
    born: list[str] = field(default_factory=list)  # in order, by clique
    _uids: set[str] = field(default_factory=set)

    def forget(self) -> None:
        """Begin anew with what there is now."""
        self.least_ready, self.most, self.born = {}, {}, []
        self._uids = {pod.metadata.uid for _, pod in self.cache.items()}
        self.look()

    def look(self) -> None:
        """Take note of what there is."""
        found: dict[str, list[Pod]] = defaultdict(list)
        for _, pod in self.cache.items():  # noqa: PERF102 - it is no dict
            found[clique_of(pod)].append(pod)
        for clique in {*found, *self.least_ready}:
            ready = sum(pod.containers_ready for pod in found[clique])
            self.least_ready[clique] = min(ready, self.least_ready.get(clique, ready))
            self.most[clique] = max(len(found[clique]), self.most.get(clique, 0))

    def on_change(self, change: Change[Pod]) -> None:
        """Look at each change."""
        new = getattr(change, "new", None)
        if isinstance(new, Pod) and new.metadata.uid not in self._uids:
            self._uids.add(new.metadata.uid)
            self.born.append(clique_of(new))
        self.look()


def clique_of(pod: Pod) -> str:
    """The full name of a pod's clique."""
    return pod.metadata.labels.get(names.PODCLIQUE_LABEL, "")


@asynccontextmanager
async def witness(client: Client, namespace: str) -> AsyncIterator[Witness]:
    """Watch the pods of a namespace."""
    cache = Cache(client, PODS, Pod, dice(), Scope(namespace=namespace))
    seeing = Witness(cache)
    cache.subscribe(seeing.on_change)
    task = asyncio.create_task(cache.run())
    try:
        await cache.synced()
        yield seeing
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

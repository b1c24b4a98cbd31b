"""A steady stream of creations at a real API server, each of which our webhooks are asked about.

All are dry runs: admission is called as for any other creation, and the cluster stays empty.
"""

import itertools
import re
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from api import names
from api.jsons import JsonObject
from kube.resources import PODCLIQUESETS, PODS, Resource
from tests.support.asking import DRY_RUN, Asker, asking, connected
from tests.support.living import engine_set, tls_of

WORKERS: Final = 8
_CALLS: Final = re.compile(
    r"^apiserver_admission_webhook_admission_duration_seconds_count\{(.*)\} (\S+)$", re.MULTILINE
)
_OURS: Final = re.compile(rf'name="[\w.-]+\.{re.escape(names.GROUP)}"')


@dataclass(frozen=True)
class Creation:
    """What is created, and what our webhook must have made of it."""

    resource: Resource
    body: JsonObject

    def ask(self, asker: Asker, space: str) -> str:
        """Try it; returns what went wrong, empty if nothing did."""
        seen = asker.ask("POST", self.resource.path(space) + DRY_RUN, self.body)
        return "" if seen.done else f"{seen.code} {seen.message}"


def a_set() -> Creation:
    return Creation(PODCLIQUESETS, engine_set("rolled", pods=2, gpus=1))


def a_gang_pod() -> Creation:
    """A pod that is refused unless our webhook has given it the gate."""
    labels = {"penstock.dev/gang": "rolled", "penstock.dev/gang-size": "2"}
    spec: JsonObject = {"containers": [{"name": "main", "image": "none"}]}
    metadata: JsonObject = {"name": "rolled", "labels": {**labels}}
    return Creation(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


CREATIONS: Final = (a_set(), a_gang_pod())


@dataclass
class Tally:
    """What came of the creations so far."""

    latencies: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def asked(self) -> int:
        return len(self.latencies)

    def quantile(self, share: float) -> float:
        """Seconds from when a creation was due until it was answered."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


@dataclass
class _Stream:
    """Who asks next, and when."""

    space: str
    rate: float
    creations: Sequence[Creation]
    tally: Tally = field(default_factory=Tally)
    ending: threading.Event = field(default_factory=threading.Event)
    begun: float = field(default_factory=time.perf_counter)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def work(self, server: str, context: ssl.SSLContext) -> None:
        with connected(server, context) as connection:
            asker = Asker(connection)
            # Handing out the next number is one step, so threads need no lock for it.
            for number in self.numbers:
                due = self.begun + number / self.rate
                if self.ending.wait(max(0.0, due - time.perf_counter())):
                    return
                self._one(self.creations[number % len(self.creations)], asker, due)

    def _one(self, creation: Creation, asker: Asker, due: float) -> None:
        try:
            failure = creation.ask(asker, self.space)
        except OSError as error:
            asker.connection.close()
            failure = f"the API server itself: {error!r}"
        self.tally.latencies.append(time.perf_counter() - due)
        if failure:
            self.tally.failures.append(failure)


@contextmanager
def creating(
    kubeconfig: Path, space: str, rate: float, creations: Sequence[Creation] = CREATIONS
) -> Iterator[Tally]:
    """Create so many objects a second for as long as the context lasts; the tally grows."""
    server, context = tls_of(kubeconfig)
    stream = _Stream(space, rate, creations)
    with ThreadPoolExecutor(WORKERS) as pool:
        work = [pool.submit(stream.work, server, context) for _ in range(WORKERS)]
        try:
            yield stream.tally
        finally:
            stream.ending.set()
        for each in work:
            each.result()


def calls(kubeconfig: Path) -> int:
    """How often the API server has called webhooks of ours."""
    with asking(kubeconfig) as asker:
        metrics = asker.ask("GET", "/metrics").body.decode()
    return sum(
        int(float(count)) for labels, count in _CALLS.findall(metrics) if _OURS.search(labels)
    )

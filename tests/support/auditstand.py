"""A webhook's answering with an audit log that a test can read."""

import threading
from pathlib import Path
from typing import Final

import msgspec
import orjson
from typing_extensions import override

from api.jsons import Json, JsonObject
from certs import seals
from certs.seals import Signer
from kube.clock import Clock, SystemClock
from policies.audit_bounds import Bounds, Sort
from policies.audit_records import Line, Record
from policies.known import NOTHING
from policies.policy import BUILT_IN, Policy
from webhook.answering import Answering, Span
from webhook.audit_files import Files, Room
from webhook.audit_ledger import Ledger, Scribe, Write
from webhook.audit_metrics import AuditMetrics
from webhook.journal import Choices, Journal, Told
from webhook.metrics import Metrics
from webhook.routes import PATHS

SECRET: Final = b"0123456789abcdef" * 2
KEY: Final = Signer.of(SECRET)
ALICE: Final[JsonObject] = {
    "username": "alice", "uid": "u-7", "groups": ["ml"], "extra": {"tenant": ["x"]},
}  # fmt: skip
KINDS: Final = {
    "podcliquesets": ("grove.io", "v1alpha1", "PodCliqueSet"),
    "clustertopologybindings": ("grove.io", "v1alpha1", "ClusterTopologyBinding"),
    "pods": ("", "v1", "Pod"),
    "managed": ("grove.io", "v1alpha1", "PodClique"),
}


def scribe(clock: Clock, pod: str = "webhook-0") -> Scribe:
    """Who writes in tests."""
    return Scribe(pod, "c0ffee", KEY, clock.now)


def ledger(
    folder: Path | None, out: Write | None = None, room: Room | None = None, pod: str = "webhook-0"
) -> Ledger:
    """A ledger in a folder, or only to `out`."""
    files = None if folder is None else Files(folder, room or Room.of(10))
    return Ledger(scribe(SystemClock(), pod), files, out)


def review(path: str, raw: Json, **more: Json) -> bytes:
    """A review of a creation at one of our paths."""
    group, version, kind = KINDS[path.rpartition("/")[2]]
    named: JsonObject = {"group": group, "version": version, "kind": kind}
    request: JsonObject = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "operation": "CREATE",
        "kind": named,
        "namespace": "team-a",
        "name": "",
        "userInfo": ALICE,
        "object": raw,
        **more,
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return orjson.dumps(body)


class Stand:
    """Answers reviews and keeps the log; nothing is written before `finish`, or `flush`."""

    def __init__(
        self,
        ledger: Ledger,
        policy: Policy = BUILT_IN,
        clock: Clock | None = None,
        told: Told | None = None,
        *,
        admitted: bool = False,
    ) -> None:
        self.clock = clock or SystemClock()
        self.metrics = Metrics(PATHS)
        self.counts = AuditMetrics(self.metrics.registry)
        choices = Choices("webhook-0", seals.tag_key(SECRET), admitted=admitted)
        self.journal = Journal(ledger, choices, self.counts, self.clock, told)
        self.policy = policy
        self.answering = Answering(
            lambda: self.policy, NOTHING, self.metrics, self.clock.monotonic, self.clock.now
        )
        self.answering.tell(self.journal.note)

    def unbounded(self) -> None:
        """Let everything have a record."""
        self.journal._bounds = Unbounded()

    def ask(self, path: str, body: bytes, seconds: float = 60.0) -> JsonObject:
        """Have a review answered; gives the response."""
        now = self.clock.monotonic()
        span = Span(now, now + seconds)
        reply = self.answering.answer(PATHS[path], body, span)
        assert reply.status == 200, reply.body
        response: JsonObject = orjson.loads(reply.body)["response"]
        return response

    def flush(self) -> None:
        """Write what waits now, without rests."""
        self.journal._ending.set()
        self.journal._write_all(sum_up=False)
        self.journal._ending.clear()

    def finish(self) -> None:
        """Write all that waits, as at the end of a process."""
        self.journal.start()
        self.journal.stop(60.0)
        assert not self.journal._thread.is_alive()

    def count(self, series: str) -> float:
        """Read a metric, by its name and labels as Prometheus is told."""
        for line in self.metrics.written().decode().splitlines():
            name, _, value = line.rpartition(" ")
            if name == f"penstock_webhook_{series}":
                return float(value)
        return 0.0


class Unbounded(Bounds):
    """No bounds at all."""

    @override
    def take(self, _sort: Sort, _now: float) -> int | None:
        return 0


class Out:
    """Standard output that a test can read."""

    def __init__(self) -> None:
        self.text = b""
        self.lock = threading.Lock()

    def __call__(self, text: bytes) -> None:
        with self.lock:
            self.text += text

    def lines(self) -> list[Line]:
        """What was written, without the chain."""
        return lines_of(self.text)

    def records(self) -> list[Record]:
        """Only the records."""
        return [each for each in self.lines() if isinstance(each, Record)]


def lines_of(text: bytes) -> list[Line]:
    """Read lines of a log without looking at their chain."""
    decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)
    return [decoder.decode(line) for line in text.splitlines()]

"""Refused specs out of a log that grows, goes, or was never there."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from api.jsons import JsonObject
from kube.clock import SystemClock
from kube.errors import ApiError, Forbidden, NotFound, Unreachable
from penstock.dashboard import refusals
from penstock.dashboard.refusals import Folder, LogFile, NoLogError, Refusals, Served
from penstock.dashboard.view import RefusalRow
from tests.support.auditstand import Stand, ledger, review
from tests.support.living import engine_set
from webhook import audit_files
from webhook.audit_api import AuditLog, AuditLogs, File, Meta

VALIDATE = "/validate/podcliquesets"


@dataclass
class Shelf:
    """A log in memory."""

    every: float = 1.0
    texts: dict[str, bytes] = field(default_factory=dict)
    reads: int = 0

    async def files(self) -> Sequence[LogFile]:
        if not self.texts:
            raise NoLogError("there is no log")
        return [LogFile("webhook-0", name, len(text)) for name, text in self.texts.items()]

    async def text(self, file: LogFile) -> bytes:
        self.reads += 1
        return self.texts[file.name]


@pytest.fixture
def log(tmp_path: Path) -> bytes:
    """The lines of a webhook that refused two sets, let another in, and was tried with one more."""
    stand = Stand(ledger(tmp_path))
    for uid, replicas in (("u-1", -1), ("u-2", 1), ("u-3", -2), ("u-4", -1)):
        body = with_replicas(engine_set("chat", pods=1, gpus=8), replicas)
        more: JsonObject = {"uid": uid, "name": "chat", "dryRun": uid == "u-4"}
        stand.ask(VALIDATE, review(VALIDATE, body, **more))
    stand.finish()
    (name,) = audit_files.names_in(tmp_path)
    return (tmp_path / name).read_bytes()


async def look(follower: Refusals) -> list[RefusalRow]:
    await follower.look()
    return [row for _, row in sorted(follower.rows.items())]


def follower_of(shelf: refusals.Source, news: list[str] | None = None) -> Refusals:
    told: list[str] = [] if news is None else news
    return Refusals(shelf, SystemClock(), lambda: told.append("news"))


async def test_what_was_refused_is_told_with_rule_and_place(log: bytes) -> None:
    assert b"u-4" in log, "a dry run is in the log, and is shown as no refusal"
    rows = await look(follower_of(Shelf(texts={"audit.jsonl": log})))
    assert [(row.what, row.operation, row.user) for row in rows] == [
        ("PodCliqueSet team-a/chat", "CREATE", "alice"),
        ("PodCliqueSet team-a/chat", "CREATE", "alice"),
    ]
    assert rows[0].violations[0].path == "spec.replicas"
    assert rows[0].violations[0].message


async def test_a_log_that_grows_is_read_on_from_where_it_ended(log: bytes) -> None:
    first = log.index(b"u-3")
    shelf = Shelf(texts={"audit.jsonl": log[:first]})
    news: list[str] = []
    follower = follower_of(shelf, news)
    assert len(await look(follower)) == 1, "a line that is half written is not looked at yet"
    shelf.texts["audit.jsonl"] = log
    assert len(await look(follower)) == 2
    reads = shelf.reads
    assert len(await look(follower)) == 2
    assert shelf.reads == reads, "a log that has not grown is not read"
    assert news == ["news", "news"]


async def test_only_the_newest_are_kept() -> None:
    rows = {f"{i:03}": RefusalRow(str(i), "x", "CREATE") for i in range(9)}
    assert list(refusals.newest(rows, 3)) == ["006", "007", "008"]


async def test_why_there_is_no_log_is_told_once_and_taken_back_when_there_is_one(
    log: bytes,
) -> None:
    shelf = Shelf()
    news: list[str] = []
    follower = follower_of(shelf, news)
    assert await look(follower) == []
    assert await look(follower) == []
    assert (follower.note, news) == ("there is no log", ["news"])
    shelf.texts["audit.jsonl"] = log
    assert len(await look(follower)) == 2
    assert follower.note == ""


async def test_folders_of_replicas_are_read_and_one_that_is_not_there_is_named(
    log: bytes, tmp_path: Path
) -> None:
    for replica in ("webhook-0", "webhook-1"):
        (tmp_path / "logs" / replica).mkdir(parents=True)
        (name,) = audit_files.names_in(tmp_path)
        (tmp_path / "logs" / replica / name).write_bytes(log)
    found = await look(follower_of(Folder(tmp_path / "logs")))
    assert len(found) == 4
    follower = follower_of(Folder(tmp_path / "nowhere"))
    await follower.look()
    assert "--audit-dir" in follower.note


@dataclass
class Api:
    """An API server that serves the logs of two replicas, or refuses."""

    text: bytes = b""
    refusal: ApiError | None = None
    asked: list[str] = field(default_factory=list)

    async def raw_get(self, path: str) -> bytes:
        self.asked.append(path)
        if self.refusal is not None:
            raise self.refusal
        if "?file=" in path:
            return self.text
        files = [File("audit-1.jsonl", 10), File("audit-2.jsonl", len(self.text))]
        logs = [AuditLog(Meta(name), files) for name in ("webhook-0", "webhook-1")]
        return msgspec.json.encode(AuditLogs(logs))


async def test_the_logs_of_all_replicas_are_read_through_the_api_server(log: bytes) -> None:
    api = Api(log)
    follower = follower_of(Served(api))
    assert len(await look(follower)) == 4, "two refusals of each replica"
    asked = len(api.asked)
    await look(follower)
    assert len(api.asked) == asked + 1, "of files that have not grown nothing is asked"


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (NotFound(404, "NotFound", "no"), "serves no audit log"),
        (Forbidden(403, "Forbidden", "no"), "penstock-audit-reader"),
    ],
)
async def test_why_the_cluster_gives_no_log_is_told(refusal: ApiError, told: str) -> None:
    follower = follower_of(Served(Api(refusal=refusal)))
    assert await look(follower) == []
    assert told in follower.note


async def test_a_cluster_that_does_not_answer_for_a_while_is_asked_again(log: bytes) -> None:
    api = Api(log, Unreachable("cut"))
    follower = follower_of(Served(api))
    assert await look(follower) == []
    assert follower.note == ""
    api.refusal = None
    assert await look(follower)


def with_replicas(body: JsonObject, replicas: int) -> JsonObject:
    spec = body["spec"]
    assert isinstance(spec, dict)
    return {**body, "spec": {**spec, "replicas": replicas}}

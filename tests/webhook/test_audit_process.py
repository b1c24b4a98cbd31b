"""The audit log of a webhook as a process: kept over its ends, whichever they are."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import orjson
import pytest

from api import exits
from api.jsons import JsonObject
from certs import seals
from certs.seals import Signer
from policies import audit_chain
from policies.audit_records import Record, Sealed, Summary
from policies.audit_verifying import Report, Segment, Trust, verify
from tests.support.auditstand import SECRET, lines_of, review
from tests.webhook.running import JSON, VALIDATE, Files, Running, files_in, serving, started, until
from webhook import audit_files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = files_in(tmp_path / "tls")
    made.issue()
    return made


def flags(tmp_path: Path, *more: str) -> list[str]:
    (tmp_path / "key").write_bytes(SECRET)
    log = ["--audit-dir", str(tmp_path / "audit"), "--audit-key", str(tmp_path / "key")]
    return [*log, "--audit-replica", "webhook-7", "--drain-seconds", "0.1", *more]


def refuse(running: Running, number: int) -> None:
    connection = running.connect()
    try:
        connection.request("POST", VALIDATE, review(VALIDATE, [], uid=f"u-{number}"), JSON)
        assert not orjson.loads(connection.getresponse().read())["response"]["allowed"]
    finally:
        connection.close()


def log_in(folder: Path) -> list[Segment]:
    names = audit_files.names_in(folder)
    return [Segment(name, (folder / name).read_bytes()) for name in names]


def checked(folder: Path) -> Report:
    head = audit_chain.read_head((folder / audit_files.HEAD).read_bytes())
    trust = Trust(seals.is_signed, frozenset((Signer.of(SECRET).public,)))
    return verify(log_in(folder), head, trust)


def ids_in(folder: Path) -> list[str]:
    lines = lines_of(b"".join(segment.text for segment in log_in(folder)))
    return [line.audit_id for line in lines if isinstance(line, Record)]


def test_the_log_goes_on_over_orderly_ends_and_kills(files: Files, tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    with serving(files, tmp_path / "log-1", *flags(tmp_path)) as running:
        refuse(running, 1)
        running.terminate()
        assert running.ended() == exits.OK
    assert ids_in(folder) == ["u-1"]  # what was said last is there
    assert isinstance(lines_of(log_in(folder)[-1].text)[-1], Sealed)
    with serving(files, tmp_path / "log-2", *flags(tmp_path)) as running:
        refuse(running, 2)
        until(lambda: ids_in(folder) == ["u-1", "u-2"], "the second record")
        os.killpg(running.process.pid, signal.SIGKILL)
        running.ended()
    with serving(files, tmp_path / "log-3", *flags(tmp_path, "--audit-stdout")) as running:
        refuse(running, 3)
        running.terminate()
        running.ended()
        assert '"audit_id":"u-3"' in running.written()
    report = checked(folder)
    assert [str(fault) for fault in report.faults] == []
    assert (ids_in(folder), report.first) == (["u-1", "u-2", "u-3"], 1)


MANY: Final = 10_000
CALLERS: Final = 8


@pytest.mark.long
def test_of_ten_thousand_refusals_each_has_one_record_or_is_counted(
    files: Files, tmp_path: Path
) -> None:
    """As they come over the network, by people of forty namespaces."""

    def refuse_all(part: int) -> None:
        connection = running.connect()
        for i in range(part, MANY, CALLERS):
            user: JsonObject = {"username": f"user-{i % 7}"}
            who: JsonObject = {"userInfo": user, "namespace": f"team-{i % 40}"}
            connection.request("POST", VALIDATE, review(VALIDATE, [], uid=f"u-{i}", **who), JSON)
            assert not orjson.loads(connection.getresponse().read())["response"]["allowed"]
        connection.close()

    with serving(files, tmp_path / "log", *flags(tmp_path)) as running:
        with ThreadPoolExecutor(CALLERS) as callers:
            assert len([*callers.map(refuse_all, range(CALLERS))]) == CALLERS
        running.terminate()
        assert running.ended(60.0) == exits.OK
    folder = tmp_path / "audit"
    lines = lines_of(b"".join(segment.text for segment in log_in(folder)))
    ids = [line.audit_id for line in lines if isinstance(line, Record)]
    assert len(ids) == len({*ids}) > 100
    suppressed = sum(line.suppressed for line in lines if isinstance(line, Record | Summary))
    dropped = sum(line.dropped for line in lines if isinstance(line, Summary))
    assert len(ids) + suppressed + dropped == MANY
    assert checked(folder).faults == []


@pytest.mark.parametrize(("key", "named"), [(b"short", "too short"), (None, "cannot be read")])
def test_a_key_that_is_none_ends_the_start(
    files: Files, tmp_path: Path, key: bytes | None, named: str
) -> None:
    if key is not None:
        (tmp_path / "bad").write_bytes(key)
    bad = ("--audit-dir", str(tmp_path / "audit"), "--audit-key", str(tmp_path / "bad"))
    with started(files, tmp_path / "log", "--port", "0", *bad) as running:
        assert running.ended() == exits.BAD_SETTINGS
        assert named in running.written()

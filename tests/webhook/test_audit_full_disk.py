"""A disk that takes no more: reviews are answered all the same, and the log tells what it lacks."""

import resource
from http.client import HTTPSConnection
from pathlib import Path
from typing import Final

import orjson
import psutil

from api.jsons import JsonObject
from policies import audit_chain
from tests.support.auditstand import review
from tests.webhook.running import JSON, VALIDATE, Running, files_in, serving, until
from tests.webhook.test_audit_process import checked, flags
from webhook import audit_files

ROOM: Final = 48 * 1024
REFUSALS: Final = 80


def refuse(connection: HTTPSConnection, number: int) -> None:
    # Each by somebody else, so that all may have records.
    user: JsonObject = {"username": f"user-{number}", "groups": ["x" * 1000]}
    body = review(VALIDATE, [], uid=f"u-{number}", userInfo=user)
    connection.request("POST", VALIDATE, body, JSON)
    reply = connection.getresponse()
    assert reply.status == 200
    assert not orjson.loads(reply.read())["response"]["allowed"]


def metric(running: Running, name: str) -> float:
    connection = running.connect()
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


def last_line(folder: Path) -> int:
    head = audit_chain.read_head((folder / audit_files.HEAD).read_bytes())
    return head.seq if head else 0


def test_a_full_disk_holds_up_no_review_and_is_told_of(tmp_path: Path) -> None:
    files, folder = files_in(tmp_path / "tls"), tmp_path / "audit"
    files.issue()
    with serving(files, tmp_path / "log", *flags(tmp_path)) as running:
        (worker,) = psutil.Process(running.process.pid).children()
        before = resource.prlimit(worker.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, (ROOM, before[1]))
        connection = running.connect()
        for number in range(REFUSALS):
            refuse(connection, number)
        until(lambda: metric(running, "penstock_webhook_audit_failing") == 1, "it cannot write")
        assert running.get("/readyz") == 200
        resource.prlimit(worker.pid, resource.RLIMIT_FSIZE, before)
        full = last_line(folder)
        refuse(connection, REFUSALS)
        until(lambda: last_line(folder) > full, "it writes again")
        assert metric(running, "penstock_webhook_audit_failing") == 0
        missed = metric(running, "penstock_webhook_audit_missed_lines_total")
        connection.close()
        running.terminate()
        running.ended()
    report = checked(folder)
    assert [str(fault) for fault in report.faults] == []
    assert 0 < report.missed <= missed
    assert report.records + report.missed >= REFUSALS + 1

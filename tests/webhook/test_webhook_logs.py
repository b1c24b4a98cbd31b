"""The webhook's log for machines: every line of it, gunicorn's and the last one too."""

import json
from pathlib import Path

import pytest

from api import exits
from kube import logs
from tests.webhook.running import JSON, REVIEW, VALIDATE, Files, files_in, serving, started

FLAGS = (logs.FLAG, "json")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = files_in(tmp_path / "tls")
    made.issue()
    return made


def lines(log: Path) -> list[dict[str, str]]:
    found: list[dict[str, str]] = [json.loads(line) for line in log.read_text().splitlines()]
    return found


def test_all_lines_are_objects_of_known_keys(files: Files, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serving(files, log, *FLAGS, "--log-level", "debug") as running:
        connection = running.connect()
        connection.request("POST", VALIDATE, REVIEW, JSON)
        assert connection.getresponse().status == 200
        connection.close()
    read = lines(log)
    assert {"gunicorn.error"} < {line["logger"] for line in read}
    assert all(set(line) <= set(logs.KEYS) for line in read)
    assert all(list(line)[:5] == list(logs.KEYS)[:5] for line in read)
    assert {line["process"] for line in read} == {"webhook"}


def test_the_last_words_are_a_line_too(files: Files, tmp_path: Path) -> None:
    log = tmp_path / "log"
    policy = ("--policy-file", str(tmp_path / "none"))
    with started(files, log, "--port", "0", *FLAGS, *policy) as running:
        assert running.ended() == exits.BAD_POLICY
    (line,) = lines(log)
    assert (line["level"], "none: cannot be read" in line["msg"]) == ("critical", True)

"""A log for machines: known keys only, one line an event, each with the object it is about."""

import asyncio
import json
import logging
import re

import pytest
from typing_extensions import override

from kube import logs
from kube.objects import Key
from tests.repo import checkout, prose

UID = "0f8fad5b-d9cb-469f-a165-70867728950e"


class Kept(logging.Handler):
    """Keeps lines as a process would write them."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logs.JsonLines("gangs"))
        self.lines: list[str] = []

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))

    def read(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in self.lines]


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def log(kept: Kept) -> logging.Logger:
    made = logging.Logger("controller.gangs.placing")  # noqa: LOG001 - one that nobody else has
    made.addHandler(kept)
    return made


def test_an_event_is_one_line_with_stable_keys(log: logging.Logger, kept: Kept) -> None:
    log.warning("no %s\nfor it", "room")
    assert "\n" not in kept.lines[0]
    (line,) = kept.read()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("ts"))
    assert line == {
        "level": "warning", "logger": "controller.gangs.placing", "msg": "no room\nfor it",
        "process": "gangs",
    }  # fmt: skip


def test_a_traceback_is_in_the_same_line(log: logging.Logger, kept: Kept) -> None:
    try:
        int("a fault")
    except ValueError:
        log.exception("it failed")
    (line,) = kept.read()
    assert line["msg"] == "it failed"
    assert line["stack"].endswith("'a fault'")


def test_what_else_is_handed_to_a_logger_is_not_written(log: logging.Logger, kept: Kept) -> None:
    log.info("asked", extra={"token": "secret", "headers": {"Authorization": "Bearer secret"}})
    assert "secret" not in kept.lines[0]


async def test_each_key_is_logged_under_its_own_name(log: logging.Logger, kept: Kept) -> None:
    async def work(key: Key) -> None:
        logs.part_of(UID if key[1] == "a" else "no-uid")
        await asyncio.sleep(0)
        log.info("worked on")

    named = logs.of("PodGang", work)
    await asyncio.gather(named(("chat", "a")), named(("other", "b")))
    log.info("beside")
    first, second, beside = kept.read()
    assert {key: first[key] for key in ("kind", "namespace", "name", "trace_id")} == {
        "kind": "PodGang", "namespace": "chat", "name": "a", "trace_id": UID.replace("-", ""),
    }  # fmt: skip
    assert (second["namespace"], second["name"], "trace_id" in second) == ("other", "b", False)
    assert "name" not in beside


def test_the_page_has_all_keys() -> None:
    rows = prose.rows(prose.read(checkout.ROOT / "docs" / "logs.md"))
    assert re.findall(r"`(\w+)`", " ".join(row[0] for row in rows)) == list(logs.KEYS)


@pytest.mark.parametrize("uid", ["", "a-b", f"{UID}0", "g" * 32])
def test_what_is_no_uid_has_no_trace(uid: str) -> None:
    assert logs.trace_id(uid) == ""

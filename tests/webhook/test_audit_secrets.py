"""No secret that somebody wrote into an object gets into the log, an Event, a metric or our log.

Who is refused is told their own words, as names and images, but not what stands where secrets do.
"""

import logging
import re
from dataclasses import replace
from random import Random

import orjson
import pytest

from api.jsons import JsonObject
from policies import policy_source
from policies.admission import Request
from policies.answers import Answer
from policies.audit_records import Record
from policies.known import Known
from policies.policy import Policy
from tests.repo import checkout
from tests.support.auditstand import Out, Stand, ledger, review
from tests.support.secretly import Planting, drawn, hushed
from webhook.answering import Span
from webhook.routes import PATHS
from webhook.telling import event

FEW = 150
MANY = 100_000
BATCH = 1_000
PARTS = 10  # so that each ends in good time
LENGTH = 10
RUN = re.compile(rf"[0-9A-Za-z]{{{LENGTH},}}")
HEX = re.compile("[0-9a-f]+")


def policy() -> Policy:
    """All that the examples ask, so that as many rules as possible have something to say."""
    text = (checkout.ROOT / "examples" / "policies" / "queues.yaml").read_text()
    queues = policy_source.read("test", text).policy
    images = policy_source.read(
        "test",
        "rules:\n- {id: ours, images: {allow: ['registry.example/*'], requireDigest: true}}\n"
        "- {id: safe, podSecurity: restricted}\n",
    ).policy
    return queues.model_copy(update={"rules": images.rules, "unmatched_namespaces": "deny"})


class Events:
    def __init__(self) -> None:
        self.text = b""
        self.count = 0

    def __call__(self, record: Record) -> None:
        self.count += 1
        self.text += orjson.dumps(event(record))


def leaks(seed: int, count: int, caplog: pytest.LogCaptureFixture) -> tuple[list[str], int, int]:
    planting = Planting(Random(seed))  # noqa: S311 - nobody guards anything by these
    out, events = Out(), Events()
    stand = Stand(ledger(None, out), policy(), told=events, admitted=True)
    stand.unbounded()
    refused, said_back = 0, []
    for _ in range(count):
        before = len(planting.planted)
        path, raw = drawn(planting)
        answer = stand.ask(path, review(path, raw))
        refused += not answer["allowed"]
        kept = "\n".join(hushed(raw))
        ours = [each for each in planting.planted[before:] if each in kept]
        said_back += found_in(told_to_the_author(answer), ours)
        if len(stand.journal._waiting) >= 500:
            stand.flush()
    stand.finish()
    told = out.text + events.text + stand.metrics.written() + caplog.text.encode()
    assert stand.count('audit_dropped_total{reason="queue"}') == 0
    assert stand.count('audit_dropped_total{reason="fault"}') == 0
    found = found_in(told.decode(), planting.planted)
    return found + said_back, refused, len(planting.planted)


def told_to_the_author(answer: JsonObject) -> str:
    return orjson.dumps([answer.get("status"), answer.get("warnings")]).decode()


def found_in(told: str, planted: list[str]) -> list[str]:
    """Give the secrets of which as much as their first or last ten characters is in a text."""
    pieces = {
        run[i : i + LENGTH]
        for run in RUN.findall(told)
        if not HEX.fullmatch(run)
        for i in range(len(run) - LENGTH + 1)
    }
    return [each for each in planted if {each[:LENGTH], each[-LENGTH:]} & pieces]


def test_a_secret_would_be_found() -> None:
    planting = Planting(Random(1))  # noqa: S311 - nobody guards anything by these
    planting.secret()
    one = planting.planted[0]
    for told in (one, f"image '{one}:1'", one[: LENGTH + 1], f"x{one[-LENGTH:]}y"):
        assert found_in(told, planting.planted) == [one]
    assert found_in(one[:5] + " " + one[5:9], planting.planted) == []


def test_no_secret_leaves_by_the_log_by_events_metrics_or_errors(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        found, refused, planted = leaks(1, FEW, caplog)
    assert found == []
    assert refused > FEW / 2
    assert planted > FEW


def test_a_fault_of_ours_is_logged_without_the_words_of_the_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(_policy: Policy, _known: Known, request: Request) -> Answer:
        raise ValueError(str(request.object))

    stand = Stand(ledger(None, Out()))
    route = replace(PATHS["/mutate/pods"], judge=broken)
    body = review("/mutate/pods", {"spec": {"password": "QhunterhunterhunterZ"}})
    now = stand.clock.monotonic()
    with caplog.at_level(logging.DEBUG):
        stand.answering.answer(route, body, Span(now, now + 60.0))
    assert "ValueError" in caplog.text
    assert "in broken" in caplog.text
    assert "hunter" not in caplog.text


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_no_secret_of_a_hundred_thousand_objects_leaves(
    caplog: pytest.LogCaptureFixture, part: int
) -> None:
    with caplog.at_level(logging.DEBUG):
        for batch in range(part, MANY // BATCH, PARTS):
            found, _, _ = leaks(1000 + batch, BATCH, caplog)
            assert found == [], f"seed {1000 + batch}"
            caplog.clear()

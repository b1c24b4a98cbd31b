"""A candidate is tried beside the policy, and nobody who asks ever learns of it."""

import logging
import threading
from typing import Final

import orjson
import pytest

from api.jsons import JsonObject
from policies import podcliqueset_admission
from policies.admission import Operation, Request, User
from policies.answers import Allow, Answer
from policies.known import NOTHING, Known
from policies.policy import BUILT_IN, Policy
from policies.verdicts import Difference
from tests.policies.drafts import draft
from webhook.answering import Answering, Span
from webhook.metrics import Metrics
from webhook.routes import PATHS
from webhook.shadowing import MOST_WAITING, Shadow

WRITTEN: Final = "written-by-its-author"
STRICT: Final = """
queues:
- {name: q, namespaces: ['*'], default: true, submitters: {users: [anna]}, limits: {gangs: 0}}
rules:
- {id: digests, images: {requireDigest: true}, mode: warn}
"""


class Stand:
    """A shadow whose clock the test moves, and what it counts."""

    def __init__(self) -> None:
        self.now = 100.0
        self.metrics = Metrics(PATHS)
        self.shadow = Shadow(NOTHING, "ours", self.metrics, lambda: self.now)
        self.raw: JsonObject = {**draft(name=WRITTEN), "kind": "PodCliqueSet"}
        user = User(WRITTEN, (WRITTEN,))
        self.request = Request(
            Operation.CREATE, "PodCliqueSet", self.raw, namespace="team", user=user
        )

    def answer(self, by: Policy = BUILT_IN) -> Answer:
        return podcliqueset_admission.judge(by, NOTHING, self.request)

    def try_it(self) -> None:
        self.shadow.try_one(podcliqueset_admission.judge, self.request, self.answer())

    def body(self) -> bytes:
        request: JsonObject = {"uid": "u", "operation": "CREATE", "object": self.raw}
        request["kind"] = {"kind": "PodCliqueSet"}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return orjson.dumps({**review, "request": request})

    def count(self, series: str) -> float:
        for line in self.metrics.written().decode().splitlines():
            name, _, value = line.rpartition(" ")
            if name == f"penstock_webhook_candidate_{series}":
                return float(value)
        return 0.0

    def differs(self, rule: str, was: str, now: str) -> float:
        return self.count(f'differences_total{{from="{was}",rule="{rule}",to="{now}"}}')


def test_what_it_would_do_otherwise_is_counted_by_rule() -> None:
    stand = Stand()
    stand.shadow.take(STRICT)
    stand.try_it()
    stand.try_it()
    assert stand.count("compared_total") == 2
    assert stand.differs("queue-gangs-are-few", "none", "enforce") == 2
    assert stand.differs("queue-submitter", "none", "enforce") == 2
    assert stand.differs("digests", "none", "warn") == 2


def test_a_candidate_that_does_the_same_counts_no_difference() -> None:
    stand = Stand()
    stand.shadow.take("mode: enforce")
    stand.try_it()
    assert stand.count("compared_total") == 1
    assert "candidate_differences_total{" not in stand.metrics.written().decode()


def test_a_sample_is_logged_once_a_minute_without_a_word_of_the_author_s(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stand = Stand()
    stand.shadow.take(STRICT)
    with caplog.at_level(logging.INFO):
        for _ in range(300):
            stand.try_it()
            stand.now += 0.1
    lines = [record.message for record in caplog.records if "rule" in record.message]
    assert len(lines) == 3, "each of three differences, and none of them twice"
    assert "for a PodCliqueSet in namespace team" in lines[0]
    assert WRITTEN not in caplog.text
    stand.now += 60
    with caplog.at_level(logging.INFO):
        stand.try_it()
    assert len([1 for record in caplog.records if "rule" in record.message]) == 4


@pytest.mark.parametrize("text", ["mode: strict", "- list", "a: &b 1"])
def test_a_bad_candidate_is_told_and_not_tried(text: str, caplog: pytest.LogCaptureFixture) -> None:
    stand = Stand()
    stand.shadow.take(STRICT)
    stand.shadow.take(text)
    stand.try_it()
    assert stand.count("valid") == 0
    assert stand.count("compared_total") == 0
    assert "ConfigMap ours/penstock-policy key candidate.yaml: line 1" in caplog.text
    assert "candidate_info{" not in stand.metrics.written().decode()
    stand.shadow.take(None)
    assert stand.count("valid") == 1


def test_a_new_candidate_is_counted_for_from_nothing() -> None:
    stand = Stand()
    stand.shadow.take(STRICT)
    stand.try_it()
    stand.shadow.take(STRICT)
    assert stand.differs("digests", "none", "warn") == 1
    stand.shadow.take(STRICT.replace("mode: warn", "mode: audit"))
    assert stand.differs("digests", "none", "warn") == 0
    assert stand.metrics.written().count(b"candidate_info{") == 1


def test_a_candidate_that_fails_is_skipped_and_its_words_stay_out_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(_policy: Policy, _known: Known, _request: Request) -> Answer:
        raise ValueError(WRITTEN)

    stand = Stand()
    stand.shadow.take(STRICT)
    stand.shadow.try_one(broken, stand.request, Allow())
    assert stand.count("skipped_total") == 1
    assert "ValueError" in caplog.text
    assert WRITTEN not in caplog.text


def test_names_of_rules_without_end_make_no_series_without_end() -> None:
    stand = Stand()
    stand.shadow.take(STRICT)
    for i in range(2000):
        stand.shadow._count(Difference(f"rule-{i}", "none", "warn"))
    written = stand.metrics.written().decode()
    assert written.count("candidate_differences_total{") <= 520
    assert stand.differs("others", "none", "warn") > 1000


def test_who_asks_never_waits_for_it_and_is_answered_alike_with_and_without() -> None:
    held, begun = threading.Event(), threading.Event()

    def judge(policy: Policy, known: Known, request: Request) -> Answer:
        if policy is not BUILT_IN:
            begun.set()
            held.wait(10)
            raise ZeroDivisionError
        return podcliqueset_admission.judge(policy, known, request)

    stand = Stand()
    body = stand.body()
    plain = answering(stand, None)
    route = PATHS["/default/podcliquesets"]
    expected = plain.answer(route, body, Span(0, 1e9)).body
    shadowed = answering(stand, stand.shadow)
    slow = type(route)(route.path, judge, route.concerns, route.crowded, patches=True)
    stand.shadow.take(STRICT)
    stand.shadow.start()
    try:
        assert shadowed.answer(slow, body, Span(0, 1e9)).body == expected
        assert begun.wait(10)
        for _ in range(MOST_WAITING + 5):
            assert shadowed.answer(slow, body, Span(0, 1e9)).body == expected
        assert stand.count("skipped_total") == 5
    finally:
        held.set()
        stand.shadow.stop()


def answering(stand: Stand, shadow: Shadow | None) -> Answering:
    made = Answering(lambda: BUILT_IN, NOTHING, stand.metrics, lambda: 0.0)
    if shadow is not None:
        made.try_beside(shadow)
    return made


def test_of_the_two_calls_about_a_set_one_is_tried() -> None:
    stand = Stand()
    stand.shadow.take(STRICT)
    shadowed = answering(stand, stand.shadow)
    body = stand.body()
    for path in ("/default/podcliquesets", "/validate/podcliquesets"):
        shadowed.answer(PATHS[path], body, Span(0, 1e9))
    assert stand.shadow._waiting.qsize() == 1

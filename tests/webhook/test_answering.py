import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, cast

import orjson
import pytest

from api import names
from api.jsons import Json, JsonObject
from policies.admission import Judge, Request
from policies.answers import Allow, Answer, Code, Refuse
from policies.known import NOTHING, Known
from policies.policy import BUILT_IN, Policy
from webhook.answering import Answering, Span
from webhook.metrics import Metrics
from webhook.routes import PATHS, Route
from webhook.turnstile import SMALL

POD: Final[JsonObject] = {"metadata": {"labels": {names.GANG_LABEL: "g"}}, "spec": {}}
FAR: Final = 1e9


class Clock:
    """A clock whose hands only the test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def asked(**request: Json) -> bytes:
    full: JsonObject = {"uid": "u-1", "operation": "CREATE", "kind": {"kind": "Pod"}}
    full |= {"object": POD, **request}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": full}
    return orjson.dumps(review)


def large() -> bytes:
    """Ask about something that is not judged in a moment."""
    return asked(object={**POD, "padding": "x" * SMALL})


def route(judge: Judge, path: str = "/mutate/pods") -> Route:
    return replace(PATHS[path], judge=judge)


def giving(answer: Answer) -> Judge:
    return lambda _policy, _known, _request: answer


class Stand:
    """An Answering and what it counts."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.metrics = Metrics(PATHS)
        self.answering = Answering(lambda: BUILT_IN, NOTHING, self.metrics, clock)

    def ask(self, route: Route, body: bytes, until: float = FAR) -> JsonObject:
        reply = self.answering.answer(route, body, Span(self.clock(), until))
        assert (reply.status, reply.content_type) == (200, "application/json")
        return cast("JsonObject", orjson.loads(reply.body)["response"])

    def count(self, series: str) -> float:
        for line in self.metrics.written().decode().splitlines():
            name, _, value = line.rpartition(" ")
            if name == f"penstock_webhook_{series}":
                return float(value)
        return 0.0

    def requests(self, decision: str, *, path: str = "/mutate/pods", dry: str = "false") -> float:
        labels = f'decision="{decision}",dry_run="{dry}",operation="CREATE",path="{path}"'
        return self.count(f"requests_total{{{labels}}}")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def stand(clock: Clock) -> Stand:
    return Stand(clock)


def test_answers_are_counted_by_what_became_of_the_review(stand: Stand) -> None:
    stand.ask(route(giving(Allow())), asked())
    stand.ask(route(giving(Allow())), asked(dryRun=True))
    stand.ask(route(giving(Refuse(Code.FORBIDDEN, "no"))), asked())
    stand.ask(route(giving(Allow())), asked(object=[]))
    assert stand.requests("allow") == 1
    assert stand.requests("allow", dry="true") == 1
    assert stand.requests("refuse") == 2
    assert stand.count('duration_seconds_count{path="/mutate/pods"}') == 4
    assert stand.count('in_flight{path="/mutate/pods"}') == 0


def test_what_cannot_be_answered_is_counted_and_a_bad_request(stand: Stand) -> None:
    reply = stand.answering.answer(route(giving(Allow())), b"{}", Span(0.0, FAR))
    assert reply.status == 400
    labels = 'decision="malformed",dry_run="false",operation="",path="/mutate/pods"'
    assert stand.count(f"requests_total{{{labels}}}") == 1


def test_patches_go_out_only_where_they_count(stand: Stand) -> None:
    patching = giving(Allow(({"op": "add", "path": "/a", "value": 1},), ("a warning",)))
    for path, counts in (
        ("/mutate/pods", True),
        ("/default/podcliquesets", True),
        ("/validate/podcliquesets", False),
        ("/validate/clustertopologybindings", False),
        ("/authorize/managed", False),
        ("/validate/policy", False),
    ):
        answer = stand.ask(route(patching, path), asked())
        assert ("patch" in answer) == ("patchType" in answer) == counts, path
        assert answer["warnings"] == ["a warning"]


def test_a_fault_in_a_rule_is_a_refusal_and_a_traceback_in_the_log(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_policy: Policy, _known: Known, _request: Request) -> Answer:
        raise ZeroDivisionError

    with caplog.at_level(logging.ERROR):
        response = stand.ask(route(broken), asked())
    status = response["status"]
    assert isinstance(status, dict)
    assert (status["code"], response["allowed"], response["uid"]) == (500, False, "u-1")
    assert "ZeroDivisionError" in caplog.text
    assert stand.count('faults_total{path="/mutate/pods"}') == 1
    assert stand.requests("fault") == 1
    # Its place is free again.
    for _ in range(5):
        assert stand.ask(route(giving(Allow())), asked())["allowed"]


@pytest.mark.parametrize(
    ("path", "request_", "strays"),
    [
        ("/mutate/pods", {}, 0),
        ("/mutate/pods", {"object": {"metadata": {}, "spec": {}}}, 1),
        ("/mutate/pods", {"operation": "DELETE", "object": None}, 1),
        ("/mutate/pods", {"kind": {"kind": "Secret"}}, 1),
        ("/validate/podcliquesets", {}, 1),
        ("/validate/podcliquesets", {"kind": {"kind": "PodCliqueSet"}}, 0),
        ("/validate/podcliquesets", {"kind": {"kind": "Scale"}, "subResource": "scale"}, 0),
        ("/authorize/managed", {}, 1),
        (
            "/validate/policy",
            {"kind": {"kind": "ConfigMap"}, "object": {"metadata": {"name": "penstock-policy"}}},
            0,
        ),
        (
            "/validate/policy",
            {"kind": {"kind": "ConfigMap"}, "object": {"metadata": {"name": "another"}}},
            1,
        ),
        (
            "/authorize/managed",
            {"object": {"metadata": {"labels": {names.MANAGED_BY_LABEL: names.MANAGED_BY}}}},
            0,
        ),
        (
            "/authorize/managed",
            {"oldObject": {"metadata": {"labels": {names.MANAGED_BY_LABEL: names.MANAGED_BY}}}},
            0,
        ),
    ],
)
def test_what_has_no_business_at_a_path_is_counted(
    stand: Stand, path: str, request_: JsonObject, strays: int
) -> None:
    stand.ask(route(giving(Allow()), path), asked(**request_))
    assert stand.count(f'stray_reviews_total{{path="{path}"}}') == strays


@contextmanager
def occupied(stand: Stand) -> Iterator[None]:
    """Keep both places busy until the context ends."""
    busy, free = threading.Barrier(3), threading.Event()

    def slow(_policy: Policy, _known: Known, _request: Request) -> Answer:
        busy.wait(10)
        free.wait(10)
        return Allow()

    threads = [threading.Thread(target=stand.ask, args=(route(slow), large())) for _ in range(2)]
    for thread in threads:
        thread.start()
    busy.wait(10)
    try:
        yield
    finally:
        free.set()
        for thread in threads:
            thread.join()


def test_who_cannot_be_judged_in_time_is_told_to_come_again(stand: Stand) -> None:
    with occupied(stand):
        for path in PATHS:
            answer = stand.ask(route(giving(Allow()), path), large(), until=stand.clock() + 0.01)
            assert stand.count(f'shed_total{{path="{path}"}}') == 1
            assert stand.requests("shed", path=path) == 1
            if path in ("/mutate/pods", "/validate/policy"):
                # A guard refuses a pod without its gate; with one it need not wait for us.
                assert answer["allowed"]
                assert "more to do than it can answer" in str(answer["warnings"])
                assert "patch" not in answer
            else:
                assert not answer["allowed"]
                status = answer["status"]
                assert isinstance(status, dict)
                assert (status["code"], status["reason"]) == (503, "ServiceUnavailable")
                assert "try again" in str(status["message"])
    assert stand.ask(route(giving(Allow())), large())["allowed"]


def test_a_small_review_does_not_wait_for_large_ones(stand: Stand) -> None:
    with occupied(stand):
        for path in PATHS:
            stand.ask(route(giving(Allow()), path), asked(), until=stand.clock() + 1)
            assert stand.requests("allow", path=path) == 1


def test_a_review_that_waited_past_its_deadline_is_not_begun(stand: Stand) -> None:
    def never(_policy: Policy, _known: Known, _request: Request) -> Answer:
        raise AssertionError

    answer = stand.ask(route(never), asked(), until=stand.clock())
    assert answer["allowed"]
    assert stand.requests("shed") == 1


def test_an_answer_past_the_deadline_goes_out_and_is_counted(stand: Stand, clock: Clock) -> None:
    def late(_policy: Policy, _known: Known, _request: Request) -> Answer:
        clock.now += 5
        return Refuse(Code.INVALID, "it is wrong")

    answer = stand.ask(route(late), asked(), until=clock() + 4)
    assert "it is wrong" in str(answer["status"])
    assert stand.count('deadline_exceeded_total{path="/mutate/pods"}') == 1
    assert stand.count('duration_seconds_sum{path="/mutate/pods"}') == 5

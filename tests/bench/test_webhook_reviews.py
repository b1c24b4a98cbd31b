"""The webhook's benchmark asks what it says it asks: each review is let in by our own judges."""

import itertools

import orjson
import pytest

from api.jsons import Json
from policies.known import NOTHING
from policies.policy import BUILT_IN
from tests.bench import webhook_policy
from tests.bench.webhook_reviews import BY_ROUTE, SET_OF_TWENTY, UID, mix
from webhook.answering import Answering, Span
from webhook.metrics import Metrics
from webhook.routes import PATHS

ASKED = [*BY_ROUTE.items(), ("/default/podcliquesets", SET_OF_TWENTY)]


@pytest.mark.parametrize(("path", "body"), ASKED, ids=[f"{p} {len(b)}" for p, b in ASKED])
def test_a_review_is_let_in(path: str, body: bytes) -> None:
    answering = Answering(lambda: BUILT_IN, NOTHING, Metrics(PATHS), lambda: 0.0)
    reply = answering.answer(PATHS[path], body, Span(0.0, 1.0))
    response = orjson.loads(reply.body)["response"]
    assert (response["uid"], response["allowed"]) == (UID, True), response


def test_every_route_is_measured() -> None:
    assert BY_ROUTE.keys() == PATHS.keys()


def test_of_the_mix_four_fifths_are_pods() -> None:
    paths = [path for path, _ in mix()]
    counted = {path: len([*group]) for path, group in itertools.groupby(sorted(paths))}
    assert counted == {
        "/mutate/pods": 8, "/default/podcliquesets": 1, "/validate/podcliquesets": 1,
    }  # fmt: skip


def test_one_pod_in_four_of_the_mix_is_given_its_gate() -> None:
    answering = Answering(lambda: BUILT_IN, NOTHING, Metrics(PATHS), lambda: 0.0)
    pods = [body for path, body in mix() if path == "/mutate/pods"]
    replies = [answering.answer(PATHS["/mutate/pods"], body, Span(0.0, 1.0)) for body in pods]
    patched = ["patch" in orjson.loads(reply.body)["response"] for reply in replies]
    assert (patched.count(True), len(patched)) == (2, 8)


def test_the_policy_that_is_measured_finds_nothing_in_its_set_and_each_rule_could() -> None:
    assert len(webhook_policy.RULES) == 20
    assert webhook_policy.bench().findings() == []
    broken: list[Json] = [
        {"id": "a", "cel": "pod.allContainers.all(c, c.privileged)"},
        {"id": "b", "cel": "set.podsPerGang < 2"},
        {"id": "c", "images": {"deny": ["registry.example/*"]}},
    ]
    found = webhook_policy.bench(broken).findings()
    assert {each.rule for each in found} == {"a", "b", "c"}


@pytest.mark.no_cover
def test_the_policys_row_is_bounded_by_a_millisecond() -> None:
    (row,) = webhook_policy.evaluated()
    assert (row.unit, row.budget, row.value > 0) == ("ms", webhook_policy.MILLISECOND, True)

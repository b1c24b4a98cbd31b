"""Pods that the webhook would let in as they are say so, and no other pod does."""

import pytest

from api import names
from api.jsons import JsonObject
from controller.workloads.making.judging import GoesBy
from controller.workloads.policy_following import Config, Following
from controller.workloads.views import Choices
from kube.objects import ObjectMeta
from kube.resources import PODS
from policies import policy_source
from policies.policy_source import BUILT_IN_SOURCE
from tests.support.sets import clique, set_spec
from tests.support.worlds import World

BUILT_IN = GoesBy(BUILT_IN_SOURCE.policy, BUILT_IN_SOURCE.revision)
EMPTY_TERMS: JsonObject = {
    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}
}


def by(text: str) -> GoesBy:
    found = policy_source.read("test", text)
    return GoesBy(found.policy, found.revision)


def notes(
    goes_by: GoesBy | None, more: JsonObject | None = None, annotations: JsonObject | None = None
) -> set[object]:
    """What the pods of a set say of the policy they were held against."""
    spec: JsonObject = {"containers": [{"name": "main", "image": "model"}], **(more or {})}
    role: JsonObject = {**clique("worker", 2, podSpec=spec), "annotations": annotations or {}}
    world = World(set_spec(role), choices=Choices(goes_by=goes_by))
    world.settle()
    found: set[object] = set()
    for body in world.of(PODS).values():
        metadata = body["metadata"]
        assert isinstance(metadata, dict)
        written = metadata["annotations"]
        assert isinstance(written, dict)
        assert set(annotations or {}) - {*FORGED} <= {*written}
        found.add(written.get(names.JUDGED_ANNOTATION))
    return found


def test_a_pod_that_would_be_let_in_as_it_is_says_by_which_policy() -> None:
    assert notes(BUILT_IN) == {BUILT_IN.revision}


def test_as_long_as_the_policy_is_not_known_no_pod_says_so() -> None:
    assert notes(None) == {None}


@pytest.mark.parametrize(
    "text",
    ["pods: {queue: research}", "pods: {readinessGate: true}", "schedulers: [other-scheduler]"],
)
def test_a_pod_that_would_be_changed_does_not_say_so(text: str) -> None:
    assert notes(by(text)) == {None}


@pytest.mark.parametrize("more", [{"affinity": EMPTY_TERMS}, {"schedulerName": "kai-scheduler"}])
def test_nor_does_one_that_would_be_refused_or_renamed(more: JsonObject) -> None:
    assert notes(by("schedulerNames: {kai-scheduler: default-scheduler}"), more) == {None}


FORGED: JsonObject = {names.JUDGED_ANNOTATION: BUILT_IN.revision}


@pytest.mark.parametrize("goes_by", [None, by("pods: {queue: research}")])
def test_a_note_in_a_template_does_not_keep_pods_from_the_webhook(goes_by: GoesBy | None) -> None:
    assert notes(goes_by, None, {**FORGED, "team.example/owner": "me"}) == {None}
    assert notes(BUILT_IN, None, FORGED) == {BUILT_IN.revision}


GOOD, BETTER, BAD = "pods: {queue: a}", "pods: {queue: b}", "pods: {queeu: a}"


def config(text: str | None, **more: str) -> Config:
    data = {**({names.POLICY_KEY: text} if text is not None else {}), **more}
    return Config(ObjectMeta("any", resource_version="1"), data)


class Told:
    """Follows a policy, and remembers what is gone by."""

    def __init__(self) -> None:
        self.last: GoesBy | None = None
        self.following = Following(self._take)

    def _take(self, goes_by: GoesBy | None) -> None:
        self.last = goes_by

    def take(self, written: Config | None, kept: Config | None) -> GoesBy | None:
        self.following.take(written, kept)
        return self.last


def test_before_there_was_any_policy_the_built_in_one_counts() -> None:
    assert Told().take(None, None) == BUILT_IN
    assert Told().take(None, config(None)) == BUILT_IN


def test_a_good_policy_counts_from_when_it_is_written() -> None:
    told = Told()
    assert told.take(config(GOOD), config(None)) == by(GOOD)
    assert told.take(config(BETTER), config(GOOD)) == by(BETTER)


@pytest.mark.parametrize("gone", [None, config(BAD), config(None)])
def test_in_place_of_one_that_is_bad_or_gone_the_last_good_one_counts(gone: Config | None) -> None:
    told = Told()
    assert told.take(gone, config(GOOD)) == by(GOOD)
    assert told.take(config(BETTER), config(GOOD)) == by(BETTER)
    assert told.take(gone, config(BETTER)) == by(BETTER)


def test_where_webhooks_may_go_by_two_policies_neither_counts() -> None:
    told = Told()
    told.take(config(BETTER), config(GOOD))
    assert told.take(None, config(GOOD)) is None, "one that runs holds the better one"
    assert told.take(None, config(BETTER)) == by(BETTER)


def test_what_cannot_be_told_is_not_guessed() -> None:
    assert Told().take(None, config("words of an older version: 1")) is None


def test_while_a_candidate_is_tried_the_webhook_sees_every_pod() -> None:
    told = Told()
    assert told.take(config(GOOD, **{names.CANDIDATE_KEY: BETTER}), None) is None
    assert told.take(config(GOOD), None) == by(GOOD)

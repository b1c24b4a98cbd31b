"""Edits of the policy, judged as they are written."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import pytest

from api import names
from api.jsons import JsonObject
from policies import policy_admission
from policies.admission import Operation, Request
from policies.answers import Allow, Answer, Code, Refuse
from policies.known import NOTHING
from policies.policy import BUILT_IN

GOOD: Final = "queues: [{name: a, namespaces: ['*']}]"
BAD: Final = "queues:\n- name: a\n  namespace: x\nmode: strict\n"
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)


def config(name: str = names.POLICY_CONFIG, **data: str) -> JsonObject:
    return {"metadata": {"name": name}, "data": {f"{key}.yaml": text for key, text in data.items()}}


def edited(new: JsonObject, old: JsonObject | None = None) -> Answer:
    operation = Operation.CREATE if old is None else Operation.UPDATE
    request = Request(operation, "ConfigMap", new, old, now=NOW)
    return policy_admission.judge(BUILT_IN, NOTHING, request)


def test_a_policy_that_can_be_gone_by_is_let_in() -> None:
    assert edited(config(policy=GOOD, candidate="")) == Allow()


@pytest.mark.parametrize("key", ["policy", "candidate"])
def test_one_that_cannot_is_refused_with_every_line_and_field(key: str) -> None:
    answer = edited(config(**{key: BAD}), config(**{key: GOOD}))
    assert isinstance(answer, Refuse)
    assert answer.code is Code.INVALID
    for told in (
        f"{key}.yaml: line 2: queues[0].namespaces: field required",
        f"{key}.yaml: line 3: queues[0].namespace: there is no such key",
        f"{key}.yaml: line 4: mode: should be",
    ):
        assert told in answer.message


def test_what_was_bad_before_keeps_no_other_edit_out() -> None:
    old = config(policy=BAD, candidate=GOOD)
    assert edited(config(policy=BAD, candidate=""), old) == Allow()
    assert isinstance(edited(config(policy=BAD + "\n", candidate=GOOD), old), Refuse)


def test_whose_key_goes_is_told_that_the_last_policy_holds() -> None:
    answer = edited(config(), config(policy=GOOD))
    assert answer == Allow(warnings=(policy_admission.NONE_LEFT,))
    assert edited(config(policy=GOOD), config(policy=GOOD, candidate=GOOD)) == Allow()


def test_what_is_only_doubtful_is_a_warning() -> None:
    answer = edited(config(policy="queues: [{name: a, namespaces: [x], schedulers: [y]}]"))
    assert isinstance(answer, Allow)
    (warning,) = answer.warnings
    assert warning.startswith("policy.yaml: line 1: queues[0].schedulers[0]: 'y' is not among")


@pytest.mark.parametrize("name", ["another", names.KEPT_POLICY_CONFIG, ""])
def test_another_config_map_may_say_what_it_likes(name: str) -> None:
    assert edited(config(name, policy=BAD)) == Allow()


def test_one_that_is_deleted_is_let_go() -> None:
    going = config(policy=BAD)
    going["metadata"] = {"name": names.POLICY_CONFIG, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert edited(going, config()) == Allow()
    deleted = Request(Operation.DELETE, "ConfigMap", None, config(policy=GOOD))
    assert policy_admission.judge(BUILT_IN, NOTHING, deleted) == Allow()


def test_another_kind_is_astray() -> None:
    request = replace(Request(Operation.CREATE, "Secret", config(policy=GOOD)), now=NOW)
    answer = policy_admission.judge(BUILT_IN, NOTHING, request)
    assert isinstance(answer, Refuse)
    assert answer.code is Code.BAD_REQUEST


@pytest.mark.parametrize("data", [None, [], {"policy.yaml": 7}, {"policy.yaml": None}])
def test_data_of_an_odd_shape_is_the_api_server_s_to_refuse(data: None) -> None:
    assert edited({"metadata": {"name": names.POLICY_CONFIG}, "data": data}) == Allow()

"""A policy with a rule of each kind in each mode, held against what breaks it."""

import pytest

from api.jsons import JsonObject
from policies import pod_admission, podcliqueset_admission, policy_source
from policies.admission import Operation, Request, User
from policies.answers import Allow, Answer, Refuse
from policies.known import NOTHING
from tests.support import ruled
from tests.support.ruled import MODES, OF_PODS, OF_SETS, SUBMITTERS, Breaks

POLICY = policy_source.read("ruled", ruled.policy("here")).policy


def asked(kind: str, body: JsonObject, group: str = SUBMITTERS) -> Answer:
    judge = pod_admission.judge if kind == "Pod" else podcliqueset_admission.judge
    user = User("anna", (group,))
    return judge(
        POLICY, NOTHING, Request(Operation.CREATE, kind, body, namespace="here", user=user)
    )


def comes_of(answer: Answer, rule: str, mode: str) -> None:
    assert isinstance(answer, Refuse if mode == "enforce" else Allow)
    assert (rule in [each.rule for each in answer.findings]) == (mode != "off")
    told = isinstance(answer, Allow) and any(f"rule {rule})" in each for each in answer.warnings)
    assert told == (mode == "warn")


@pytest.mark.parametrize("mode", MODES)
def test_who_keeps_to_all_rules_breaks_none(mode: str) -> None:
    assert asked("PodCliqueSet", ruled.plain(mode)).findings == ()
    assert asked("Pod", ruled.gang_pod(mode)).findings == ()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("rule", "breaks"), OF_SETS, ids=[f"{rule}-{each.__name__}" for rule, each in OF_SETS]
)
def test_each_rule_for_sets_in_each_mode(rule: str, breaks: Breaks, mode: str) -> None:
    body = ruled.plain(mode)
    breaks(body)
    name = rule if rule.startswith("queue-") else f"{rule}-{mode}"
    comes_of(asked("PodCliqueSet", body), name, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("rule", "breaks"), OF_PODS, ids=[f"{rule}-{each.__name__}" for rule, each in OF_PODS]
)
def test_each_rule_for_pods_in_each_mode(rule: str, breaks: Breaks, mode: str) -> None:
    body = ruled.gang_pod(mode)
    breaks(body)
    comes_of(asked("Pod", body), f"{rule}-{mode}", mode)


@pytest.mark.parametrize("mode", MODES)
def test_strangers_in_each_mode(mode: str) -> None:
    comes_of(asked("PodCliqueSet", ruled.plain(mode), "others"), "queue-submitter", mode)
    comes_of(asked("Pod", ruled.gang_pod(mode), "others"), "queue-submitter", mode)

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from api.jsons import JsonObject
from policies import pod_admission
from policies.admission import Operation, Request
from policies.answers import Allow, Code, Refuse
from policies.known import NOTHING
from policies.policy import BUILT_IN, PodPolicy, Policy
from tests.support.gangpods import GROVES, PLAIN, admitted, judged, pod


def test_a_new_gang_pod_is_marked_and_an_old_one_is_not() -> None:
    answer = judged(pod(GROVES))
    assert isinstance(answer, Allow)
    assert [op["path"] for op in answer.patch] == ["/spec/schedulerName", "/spec/schedulingGates"]
    old = Request(Operation.UPDATE, "Pod", pod(GROVES))
    assert pod_admission.judge(BUILT_IN, NOTHING, old) == Allow()


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT"])
def test_a_pod_may_always_go(operation: str) -> None:
    request = Request(Operation(operation), "Pod", None)
    assert pod_admission.judge(BUILT_IN, NOTHING, request) == Allow()


def test_what_is_done_to_a_part_of_a_pod_is_not_looked_at() -> None:
    binding = Request(Operation.CREATE, "Binding", {}, subresource="binding")
    assert pod_admission.judge(BUILT_IN, NOTHING, binding) == Allow()


def test_what_is_no_pod_is_refused_naming_the_configuration() -> None:
    answer = pod_admission.judge(BUILT_IN, NOTHING, Request(Operation.CREATE, "Job", {}))
    assert isinstance(answer, Refuse)
    assert answer.code is Code.BAD_REQUEST
    assert "webhook configuration" in answer.message


ANY: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.sampled_from(["3", "g"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(*GROVES, *PLAIN, names.GANG_MINIMUM_LABEL, names.TOPOLOGY_LEVEL_LABEL),
                    *("name", "conditionType", "nodeAffinity", "nodeSelectorTerms"),
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
SHAPES: Final = st.fixed_dictionaries(
    {},
    optional={
        "metadata": ANY
        | st.fixed_dictionaries(
            {}, optional={"labels": ANY | st.just({**PLAIN}), "annotations": ANY}
        ),
        "spec": ANY
        | st.fixed_dictionaries(
            {},
            optional={
                "schedulingGates": ANY,
                "readinessGates": ANY,
                "schedulerName": ANY,
                "affinity": ANY,
                "initContainers": ANY,
                "nodeName": ANY,
            },
        ),
    },
)


@given(SHAPES)
def test_whatever_is_sent_is_answered_and_what_is_let_in_needs_nothing_more(of: JsonObject) -> None:
    policy = Policy(pods=PodPolicy(readiness_gate=True, queue="research"))
    answer = judged(of, policy)
    if isinstance(answer, Allow):
        again = judged(admitted(of, policy), policy)
        assert isinstance(again, Allow)
        assert again.patch == ()

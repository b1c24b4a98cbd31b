"""What is switched off is admitted as it is, and in companion mode nobody waits in a circle."""

import pytest

from api import names
from api.features import Features
from api.jsons import Json, JsonObject
from policies import managed_admission, pod_admission, podcliqueset_admission
from policies.admission import Operation, Request
from policies.answers import Allow, Answer, Refuse
from policies.known import NOTHING, Snapshot
from policies.policy import BUILT_IN, PodPolicy
from policies.switching import ALL_ON, Switches, judge_of

NO_GANGS = Switches(Features(gang_scheduling=False))
NO_SETS = Switches(Features(grove_integration=False))
COMPANION = Switches(companion=True)
EAGER = BUILT_IN.model_copy(update={"pods": PodPolicy(readiness_gate=True)})
PLAIN = {names.GANG_LABEL: "train", names.GANG_SIZE_LABEL: "2"}
OF_A_SET = {names.PODGANG_LABEL: "chat-0"}


def judged(labels: dict[str, str], switches: Switches, asked: str = "") -> Answer:
    annotations: JsonObject = {names.READINESS_GATE_ANNOTATION: asked} if asked else {}
    pod: JsonObject = {
        "metadata": {"name": "p", "labels": {**labels}, "annotations": annotations},
        "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "main"}]},
    }
    request = Request(Operation.CREATE, "Pod", pod, namespace="default", name="p")
    return judge_of(pod_admission.judge, switches)(EAGER, NOTHING, request)


def paths(answer: Answer) -> list[Json]:
    assert isinstance(answer, Allow), answer
    return [operation["path"] for operation in answer.patch]


GATE, READINESS = "/spec/schedulingGates", "/spec/readinessGates"


@pytest.mark.parametrize(
    ("labels", "switches", "expected"),
    [
        (PLAIN, ALL_ON, [GATE, READINESS]),
        (OF_A_SET, ALL_ON, [GATE, READINESS]),
        (PLAIN, NO_GANGS, []),
        (OF_A_SET, NO_GANGS, []),
        (PLAIN, NO_SETS, [GATE, READINESS]),
        (OF_A_SET, NO_SETS, []),
        (PLAIN, COMPANION, [GATE, READINESS]),
        (OF_A_SET, COMPANION, [GATE]),
    ],
)
def test_pods_are_marked_as_things_are_switched(
    labels: dict[str, str], switches: Switches, expected: list[str]
) -> None:
    assert paths(judged(labels, switches)) == expected


def test_who_asks_for_the_readiness_gate_in_companion_mode_is_told_why_not() -> None:
    answer = judged(OF_A_SET, COMPANION, "true")
    assert paths(answer) == [GATE]
    assert isinstance(answer, Allow)
    assert any("grove-initc waits for ready pods" in line for line in answer.warnings)


def test_while_gangs_are_off_not_even_a_hopeless_claim_is_refused() -> None:
    assert isinstance(judged({names.GANG_LABEL: "No_Name"}, ALL_ON), Refuse)
    assert judged({names.GANG_LABEL: "No_Name"}, NO_GANGS) == Allow()


def a_set(operation: Operation) -> Request:
    return Request(operation, "PodCliqueSet", {"metadata": {"name": "chat"}}, {"metadata": {}})


def test_while_sets_are_off_new_ones_are_refused_and_the_others_left_alone() -> None:
    judge = judge_of(podcliqueset_admission.judge, NO_SETS)
    refused = judge(BUILT_IN, NOTHING, a_set(Operation.CREATE))
    assert isinstance(refused, Refuse)
    assert "--feature-gates GroveIntegration=false" in refused.message
    assert judge(BUILT_IN, NOTHING, a_set(Operation.UPDATE)) == Allow()
    assert judge_of(podcliqueset_admission.judge, NO_GANGS) is podcliqueset_admission.judge


def test_while_sets_are_off_what_was_made_for_them_is_anybodys() -> None:
    assert judge_of(managed_admission.judge, ALL_ON) is managed_admission.judge
    made: JsonObject = {
        "metadata": {
            "name": "x",
            "labels": {names.MANAGED_BY_LABEL: names.MANAGED_BY, names.PART_OF_LABEL: "chat"},
        }
    }
    request = Request(Operation.DELETE, "Service", None, made, namespace="default", name="x")
    known = Snapshot(sets={("default", "chat"): {}})
    assert isinstance(managed_admission.judge(BUILT_IN, known, request), Refuse)
    assert judge_of(managed_admission.judge, NO_SETS)(BUILT_IN, known, request) == Allow()

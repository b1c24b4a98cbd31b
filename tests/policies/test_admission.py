from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.jsons import Json, JsonObject
from policies import answers, pod_admission, podcliqueset_admission
from policies.admission import Judge, Operation, Request
from policies.answers import Allow, Answer, Code, Refuse
from policies.findings import Finding
from policies.known import NOTHING
from policies.podcliqueset_warnings import LONGEST_WARNING
from policies.policy import BUILT_IN
from policies.policy_queues import Mode
from policies.problems import LONGEST_MESSAGE, Problem, shortened

POD: Final[JsonObject] = {"containers": [{"name": "main"}]}


def a_set(*after: Json, name: str = "llm", **metadata: Json) -> JsonObject:
    clique: JsonObject = {"name": "a", "spec": {"podSpec": POD, "startsAfter": [*after]}}
    return {"metadata": {"name": name, **metadata}, "spec": {"template": {"cliques": [clique]}}}


def judged(operation: str, raw: JsonObject | None, kind: str = "PodCliqueSet") -> Answer:
    return podcliqueset_admission.judge(BUILT_IN, NOTHING, Request(Operation(operation), kind, raw))


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_a_good_set_is_let_in(operation: str) -> None:
    answer = judged(operation, a_set())
    assert isinstance(answer, Allow)
    assert answer.warnings == ()


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_a_bad_set_is_refused_as_invalid_with_every_problem(operation: str) -> None:
    answer = judged(operation, a_set("a", name="Llm"))
    assert isinstance(answer, Refuse)
    assert answer.code is Code.INVALID
    assert answer.message.startswith(
        "PodCliqueSet 'Llm' cannot be accepted: spec.template.cliques[0]."
    )
    assert "; metadata.name: " in answer.message


def test_a_set_of_another_shape_is_refused_by_path() -> None:
    answer = judged("CREATE", {"spec": {"template": 4}})
    assert isinstance(answer, Refuse)
    assert answer.code is Code.INVALID
    assert "spec.template: " in answer.message


def test_a_set_being_deleted_may_lose_its_finalizers_whatever_its_shape() -> None:
    leaving = a_set("a", deletionTimestamp="2031-01-01T00:00:00Z")
    assert judged("UPDATE", leaving) == Allow()
    # Nobody is born leaving: the field is the API server's to set.
    assert isinstance(judged("CREATE", leaving), Refuse)


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT"])
def test_deleting_is_always_allowed(operation: str) -> None:
    assert judged(operation, None) == Allow()
    gone = Request(Operation(operation), "Pod", None)
    assert pod_admission.judge(BUILT_IN, NOTHING, gone) == Allow()


@pytest.mark.parametrize("judge", [podcliqueset_admission.judge, pod_admission.judge])
@pytest.mark.parametrize(
    "request_of",
    [
        pytest.param(("Scale", a_set()), id="a subresource's kind"),
        pytest.param(("PodCliqueSet", None), id="no set"),
        pytest.param(("Pod", None), id="no pod"),
        pytest.param(("", {}), id="no kind"),
    ],
)
def test_objects_led_astray_are_refused_naming_the_configuration(
    judge: Judge, request_of: tuple[str, JsonObject | None]
) -> None:
    answer = judge(BUILT_IN, NOTHING, Request(Operation.CREATE, *request_of))
    assert isinstance(answer, Refuse)
    assert answer.code is Code.BAD_REQUEST
    assert "webhook configuration" in answer.message


def test_a_long_list_of_problems_is_cut_and_counted() -> None:
    found = [Problem(f"spec.f{i}", "is wrong") for i in range(25)]
    message = answers.invalid("PodCliqueSet", found).message
    assert message.startswith("PodCliqueSet cannot be accepted: spec.f0: is wrong; spec.f1: ")
    assert message.endswith("spec.f19: is wrong; +5 more")
    assert not answers.invalid("X", found[:20]).message.endswith("more")


@given(st.text(), st.text())
def test_a_problem_is_one_short_line_whatever_is_in_it(path: str, message: str) -> None:
    line = str(Problem(path, message * 50))
    assert line.isprintable()
    assert len(line) <= LONGEST_MESSAGE


@given(st.text(min_size=400), st.text("abc-", min_size=1, max_size=63))
def test_a_long_problem_still_names_the_policys_rule(message: str, rule: str) -> None:
    told = Finding(rule, Mode.WARN, Problem("spec", message)).told
    for line in (str(told), shortened(str(told), LONGEST_WARNING)):
        assert line.endswith(f"… (policy rule {rule})")
    assert len(line) <= LONGEST_WARNING


def test_what_somebody_wrote_is_cut_though_it_looks_like_a_rule() -> None:
    line = shortened("x (policy rule " + "y" * 500, LONGEST_WARNING)
    assert (len(line), line[-2:]) == (LONGEST_WARNING, "y…")


def test_a_problem_of_the_whole_object_has_no_path() -> None:
    assert str(Problem("", "is empty")) == "is empty"

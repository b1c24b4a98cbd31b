import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.jsons import Json, JsonObject
from policies import binding_admission
from policies.admission import Operation, Request
from policies.answers import Allow, Answer, Code, Refuse
from policies.known import NOTHING
from policies.policy import BUILT_IN, Policy
from tests.policies.chaos import JSONS

KIND = "ClusterTopologyBinding"


def level(domain: Json, key: Json) -> JsonObject:
    return {"domain": domain, "key": key}


LEVELS = (level("zone", "example.com/zone"), level("rack", "example.com/rack"))


def binding(*levels: Json, backends: Json = None, **metadata: Json) -> JsonObject:
    spec: JsonObject = {"levels": [*levels] or [*LEVELS]}
    if backends is not None:
        spec["schedulerTopologyBindings"] = backends
    return {"metadata": {"name": "net", **metadata}, "spec": spec}


def backend(name: Json) -> JsonObject:
    return {"schedulerName": name, "topologyReference": "network"}


def judged(
    raw: JsonObject | None,
    old: JsonObject | None = None,
    policy: Policy = BUILT_IN,
    operation: Operation | None = None,
) -> Answer:
    operation = operation or (Operation.CREATE if old is None else Operation.UPDATE)
    return binding_admission.judge(policy, NOTHING, Request(operation, KIND, raw, old))


def paths(raw: JsonObject, old: JsonObject | None = None) -> list[str]:
    answer = judged(raw, old)
    return [problem.path for problem in answer.problems] if isinstance(answer, Refuse) else []


def test_a_good_binding_is_let_in_as_it_is() -> None:
    assert judged(binding()) == Allow()
    assert judged(binding(backends=[backend("kai-scheduler")]), binding()) == Allow()


def test_levels_have_names_and_keys_of_their_own() -> None:
    again = (*LEVELS, level("zone", "example.com/rack"), level("rack", "other"))
    assert paths(binding(*again)) == [
        "spec.levels[2].domain",
        "spec.levels[3].domain",
        "spec.levels[2].key",
    ]


def test_a_network_has_a_level() -> None:
    assert paths({"metadata": {"name": "net"}, "spec": {"levels": []}}) == ["spec.levels"]


@pytest.mark.parametrize("scheduler", ["default-scheduler", "kai-scheduler", "grove-scheduler"])
def test_schedulers_that_gangs_are_placed_for_may_have_an_object(scheduler: str) -> None:
    assert judged(binding(backends=[backend(scheduler)])) == Allow()


def test_schedulers_are_named_once_and_known() -> None:
    backends: list[Json] = [backend("kai-scheduler"), backend("volcano"), backend("kai-scheduler")]
    assert paths(binding(backends=backends)) == [
        "spec.schedulerTopologyReferences[2].schedulerName",
        "spec.schedulerTopologyReferences[1].schedulerName",
    ]
    volcano = Policy(scheduler_names={"": "volcano"})
    assert judged(binding(backends=[backend("volcano")]), policy=volcano) == Allow()


def test_wrong_types_and_broken_rules_are_told_together() -> None:
    raw = binding(level("zone", 4), level("Zone", "k"), level("x", "k"), backends=[backend([])])
    answer = judged(raw)
    assert isinstance(answer, Refuse)
    assert answer.code is Code.INVALID
    assert answer.message.startswith(f"{KIND} 'net' cannot be accepted: spec.levels[0].key: ")
    assert [problem.path for problem in answer.problems] == [
        "spec.levels[0].key",
        "spec.levels[1].domain",
        "spec.schedulerTopologyBindings[0].schedulerName",
        "spec.levels[2].key",
    ]


def test_an_old_fault_is_let_be_and_a_new_one_is_not() -> None:
    old = binding(*LEVELS, level("zone", "other"))
    answer = judged(old, old)
    assert isinstance(answer, Allow)
    (warning,) = answer.warnings
    assert warning.startswith("let be as it was before: spec.levels[2].domain: ")
    worse = binding(*LEVELS, level("zone", "other"), level("x", "other"))
    assert paths(worse, old) == ["spec.levels[3].key"]


def test_a_binding_that_is_leaving_may_lose_its_finalizers() -> None:
    leaving = binding(LEVELS[0], LEVELS[0], deletionTimestamp="2031-01-01T00:00:00Z")
    assert judged(leaving, binding()) == Allow()
    assert isinstance(judged(leaving), Refuse)


@pytest.mark.parametrize("operation", [Operation.DELETE, Operation.CONNECT])
def test_deleting_is_always_allowed(operation: Operation) -> None:
    assert judged(None, operation=operation) == Allow()


def test_another_kind_is_led_astray() -> None:
    request = Request(Operation.CREATE, "PodCliqueSet", binding())
    answer = binding_admission.judge(BUILT_IN, NOTHING, request)
    assert isinstance(answer, Refuse)
    assert answer.code is Code.BAD_REQUEST


@given(st.dictionaries(st.sampled_from(["levels", "schedulerTopologyBindings", "x"]), JSONS))
def test_any_spec_is_answered(spec: JsonObject) -> None:
    raw: JsonObject = {"metadata": {"name": "net"}, "spec": spec}
    judged(raw)
    assert isinstance(judged(raw, raw), Allow)


@given(st.lists(JSONS | st.builds(level, JSONS, JSONS), max_size=4), JSONS)
def test_any_levels_are_answered(levels: list[Json], backends: Json) -> None:
    raw: JsonObject = {
        "metadata": {"name": "net"},
        "spec": {"levels": levels, "schedulerTopologyBindings": [backends]},
    }
    judged(raw)

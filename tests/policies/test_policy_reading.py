import pytest
from pydantic import ValidationError

from api.jsons import Json
from policies import policy_reading
from policies.policy import BUILT_IN, Policy


@pytest.mark.parametrize("document", [None, {}])
def test_a_file_that_says_nothing_is_the_built_in_policy(document: Json) -> None:
    assert policy_reading.read(document) == BUILT_IN


def test_what_is_said_replaces_what_is_built_in_and_nothing_else() -> None:
    found = policy_reading.read({"pods": {"queue": "batch"}, "mnnvl": {"enabled": True}})
    assert isinstance(found, Policy)
    assert (found.pods.queue, found.mnnvl.enabled) == ("batch", True)
    assert (found.schedulers, found.topology) == (BUILT_IN.schedulers, BUILT_IN.topology)


def test_what_a_policy_writes_of_itself_is_read_as_the_same_policy() -> None:
    written: Json = BUILT_IN.model_dump(mode="json", by_alias=True)
    assert policy_reading.read(written) == BUILT_IN


@pytest.mark.parametrize(
    ("document", "steps", "told"),
    [
        ([], (), "a policy is a mapping"),
        ("x", (), "a policy is a mapping"),
        ({"queue": 1}, ("queue",), "queue: there is no such key"),
        ({"pods": {"queu": ""}}, ("pods", "queu"), "pods.queu: there is no such key"),
        ({"pods": 1}, ("pods",), "pods: should be an object"),
        ({"topology": {"enabled": "no"}}, ("topology", "enabled"), "should be a valid boolean"),
        ({"schedulers": []}, ("schedulers",), "at least 1 item"),
        ({"schedulers": ["a", 7]}, ("schedulers", 1), "schedulers[1]: should be a valid string"),
        ({"apiVersion": "v2"}, ("apiVersion",), "apiVersion: should be 'policy.penstock.dev/v1'"),
        ({"schedulerNames": {"a": "b", "b": "c"}}, ("schedulerNames",), "'a' stands for"),
        ({"schedulerNames": {"x" * 300: "a"}}, ("schedulerNames", "x" * 300), "at most 253"),
        ({"pods": {"queue": 2**70}}, (), "cannot be read"),
        ({"pods": {"queue": "a b"}}, ("pods", "queue"), "'a b' cannot be a label's value"),
    ],
)
def test_what_is_wrong_is_named_with_the_way_to_it(
    document: Json, steps: tuple[str | int, ...], told: str
) -> None:
    found = policy_reading.read(document)
    assert isinstance(found, tuple)
    assert found[0].steps == steps
    assert told in str(found[0].problem)
    assert "input" not in str(found[0].problem)


def test_all_that_is_wrong_is_told() -> None:
    found = policy_reading.read({"a": 1, "pods": {"b": 2}, "mnnvl": 3})
    assert isinstance(found, tuple)
    assert {fault.steps for fault in found} == {("a",), ("pods", "b"), ("mnnvl",)}


def test_a_revision_follows_what_a_policy_says_and_not_how() -> None:
    one, same = (
        policy_reading.read({"pods": {"queue": "a"}}),
        Policy.model_validate(
            {"kind": "GangPolicy", "pods": {"readinessGate": False, "queue": "a"}}
        ),
    )
    assert isinstance(one, Policy)
    assert policy_reading.revision(one) == policy_reading.revision(same)
    assert policy_reading.revision(one) != policy_reading.revision(BUILT_IN)


def test_a_policy_is_never_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        setattr(BUILT_IN, "kind", "GangPolicy")  # noqa: B010 - the type checker sees it too

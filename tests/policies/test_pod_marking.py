import copy
from typing import Final, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from api import names
from api.jsons import Json, JsonObject
from policies.answers import Allow
from policies.known import NOTHING, Snapshot
from policies.policy import BUILT_IN, PodPolicy, Policy
from tests.support.gangpods import GROVES, NETWORK, PLAIN, admitted, judged, part, pod

GATE: Final[JsonObject] = {"name": names.GATE}
READY: Final[JsonObject] = {"conditionType": names.READINESS_GATE}
QUOTA: Final[JsonObject] = {"name": "example.com/quota"}
WARM: Final[JsonObject] = {"conditionType": "example.com/warm"}
WAITER: Final[JsonObject] = {"initContainers": [{"name": "grove-initc"}]}
ALL_READY: Final = Policy(pods=PodPolicy(readiness_gate=True))
QUEUED: Final = Policy(pods=PodPolicy(queue="research"))


@pytest.mark.parametrize("labels", [PLAIN, GROVES])
@pytest.mark.parametrize(
    ("gates", "then"),
    [
        pytest.param(None, [GATE], id="no list"),
        pytest.param([], [GATE], id="empty list"),
        pytest.param([{"name": "quota"}], [{"name": "quota"}, GATE], id="after a foreign gate"),
        pytest.param([GATE, {"name": "quota"}], [GATE, {"name": "quota"}], id="ours is there"),
    ],
)
def test_a_gang_pod_gets_the_gate_after_those_it_has(
    labels: dict[str, str], gates: Json, then: Json
) -> None:
    assert (
        part(admitted(pod(labels, {"schedulingGates": gates})), "spec", "schedulingGates") == then
    )


def test_a_pod_of_grove_gets_the_gate_and_nothing_else() -> None:
    before = pod(GROVES, {"schedulerName": "default-scheduler"})
    expected = copy.deepcopy(before)
    cast("JsonObject", expected["spec"])["schedulingGates"] = [GATE]
    assert admitted(before) == expected


@pytest.mark.parametrize(
    ("policy", "asked", "then"),
    [
        (BUILT_IN, None, None),
        (BUILT_IN, "true", [READY]),
        (BUILT_IN, "false", None),
        (BUILT_IN, "yes", None),
        (ALL_READY, None, [READY]),
        (ALL_READY, "false", None),
        (ALL_READY, "", [READY]),
    ],
)
def test_the_readiness_gate_is_given_where_it_is_asked_for(
    policy: Policy, asked: str | None, then: Json
) -> None:
    found = part(admitted(pod(GROVES, readiness_gate=asked), policy), "spec", "readinessGates")
    assert found == then


def test_the_readiness_gate_comes_after_the_authors_own() -> None:
    theirs: JsonObject = {"conditionType": "example.com/warm"}
    before = pod(PLAIN, {"readinessGates": [theirs]}, readiness_gate="true")
    once = admitted(before)
    assert part(once, "spec", "readinessGates") == [theirs, READY]
    assert admitted(once) == once


def test_a_pod_that_waits_for_ready_pods_gets_no_readiness_gate_and_is_told() -> None:
    before = pod(GROVES, WAITER, readiness_gate="true")
    assert part(admitted(before), "spec", "readinessGates") is None
    answer = judged(before)
    assert isinstance(answer, Allow)
    (warning,) = answer.warnings
    assert warning.startswith("no readiness gate: grove-initc")
    assert part(admitted(pod(GROVES, WAITER), ALL_READY), "spec", "readinessGates") is None
    other: JsonObject = {"initContainers": [{"name": "fetch"}]}
    assert part(admitted(pod(GROVES, other), ALL_READY), "spec", "readinessGates") == [READY]


def test_the_policys_queue_is_for_pods_that_name_none() -> None:
    labels = part(admitted(pod(GROVES), QUEUED), "metadata", "labels")
    assert labels == {**GROVES, names.QUEUE_LABEL: "research"}
    theirs = {**GROVES, names.QUEUE_LABEL: "prod"}
    assert part(admitted(pod(theirs), QUEUED), "metadata", "labels") == theirs
    assert part(admitted(pod(GROVES)), "metadata", "labels") == GROVES


@pytest.mark.parametrize(
    ("there", "named"),
    [({}, None), ({"dc": NETWORK}, "dc")],
    ids=["none", "one"],
)
def test_the_only_topology_is_named_where_a_plain_gang_says_just_a_level(
    there: dict[str, object], named: str | None
) -> None:
    known = Snapshot(topologies={"dc": NETWORK} if there else {})
    level = {names.TOPOLOGY_LEVEL_LABEL: "rack"} if named else {}
    once = admitted(pod({**PLAIN, **level}), known=known)
    assert part(once, "metadata", "labels", names.TOPOLOGY_LABEL) == named
    # Who asks for no closeness gets none; and a PodGang says its own.
    assert part(admitted(pod(PLAIN), known=known), "metadata", "labels") == PLAIN
    grove = {**GROVES, **level}
    assert part(admitted(pod(grove), known=known), "metadata", "labels") == grove


@pytest.mark.parametrize("written", ["kai-scheduler", "grove-scheduler", "", None])
def test_scheduler_names_of_grove_manifests_become_the_default_one(written: str | None) -> None:
    spec: JsonObject = {} if written is None else {"schedulerName": written}
    once = admitted(pod(PLAIN, spec))
    assert part(once, "spec", "schedulerName") == "default-scheduler"
    assert part(once, "spec", "schedulingGates") == [GATE]


@pytest.mark.parametrize("labels", [PLAIN, GROVES])
def test_another_schedulers_gang_is_left_alone_and_told_so(labels: dict[str, str]) -> None:
    policy = Policy(pods=PodPolicy(queue="research", readiness_gate=True))
    before = pod(labels, {"schedulerName": "volcano"}, readiness_gate="true")
    assert admitted(before, policy) == before
    answer = judged(before, policy)
    assert isinstance(answer, Allow)
    assert len(answer.warnings) == (labels is PLAIN)
    assert all("scheduler volcano" in warning for warning in answer.warnings)


def test_a_policy_may_give_a_name_to_another_scheduler() -> None:
    policy = Policy(scheduler_names={"kai-scheduler": "volcano"})
    before = pod(GROVES, {"schedulerName": "kai-scheduler"})
    once = admitted(before, policy)
    assert part(once, "spec", "schedulerName") == "volcano"
    assert part(once, "spec", "schedulingGates") is None


@pytest.mark.parametrize(
    ("gates", "then"), [([GATE], []), ([QUOTA, GATE], [QUOTA]), ([GATE, QUOTA], [QUOTA]), ([], [])]
)
def test_our_gate_is_taken_off_another_schedulers_gang(gates: list[Json], then: Json) -> None:
    once = admitted(pod(GROVES, {"schedulerName": "volcano", "schedulingGates": gates}))
    assert part(once, "spec", "schedulingGates") == then
    assert admitted(once) == once


def test_names_that_stand_for_each_other_in_turn_are_no_policy() -> None:
    with pytest.raises(ValidationError, match="write 'c' at once"):
        Policy(scheduler_names={"a": "b", "b": "c"})
    assert Policy(scheduler_names={"a": "a", "b": "a"}).scheduler_of("b") == "a"


def test_an_annotation_that_is_no_answer_is_told() -> None:
    answer = judged(pod(GROVES, readiness_gate="yes"))
    assert isinstance(answer, Allow)
    assert answer.warnings == (
        f"annotation {names.READINESS_GATE_ANNOTATION} is neither true nor false: ignored",
    )


def test_a_topology_without_a_level_is_told() -> None:
    known = Snapshot(topologies={"dc": NETWORK})
    answer = judged(pod({**PLAIN, names.TOPOLOGY_LABEL: "dc"}), known=known)
    assert isinstance(answer, Allow)
    (warning,) = answer.warnings
    assert "means nothing without" in warning


WORDS: Final = st.sampled_from(["a", "b/c", "example.com/x~y"])
LABELS: Final = st.sampled_from([PLAIN, GROVES, {**GROVES, names.GANG_LABEL: "llm-0"}]).flatmap(
    lambda base: st.dictionaries(WORDS, st.text(max_size=3), max_size=2).map(
        lambda more: {**more, **base}
    )
)
SPECS: Final = st.fixed_dictionaries(
    {},
    optional={
        "schedulingGates": st.none() | st.lists(st.sampled_from([QUOTA, GATE]), max_size=3),
        "readinessGates": st.none() | st.lists(st.sampled_from([WARM, READY]), max_size=3),
        "schedulerName": st.sampled_from(
            ["", "default-scheduler", "kai-scheduler", "grove-scheduler"]
        ),
        "initContainers": st.none() | st.just(WAITER["initContainers"]) | st.just([]),
    },
)
ANNOTATIONS: Final = st.sampled_from([None, "true", "false", "x"])
POLICIES: Final = st.builds(
    Policy,
    pods=st.builds(
        PodPolicy, readiness_gate=st.booleans(), queue=st.sampled_from(["", "research"])
    ),
)
KNOWN: Final = st.sampled_from([NOTHING, Snapshot(topologies={"dc": NETWORK})])


def is_within(before: Json, after: Json) -> bool:
    """Whether everything that was there still is, and lists only grew at their ends."""
    match before, after:
        case dict(), dict():
            return all(k in after and is_within(v, after[k]) for k, v in before.items() if v)
        case list(), list():
            return after[: len(before)] == before
        case _:
            return before == after


@given(labels=LABELS, spec=SPECS, asked=ANNOTATIONS, policy=POLICIES, known=KNOWN)
def test_marking_twice_is_marking_once_and_keeps_all_that_was_there(
    labels: dict[str, str],
    spec: JsonObject,
    asked: str | None,
    policy: Policy,
    known: Snapshot,
) -> None:
    before = pod(labels, spec, readiness_gate=asked)
    once = admitted(before, policy, known)
    again = judged(once, policy, known)
    assert isinstance(again, Allow)
    assert again.patch == ()
    kept = copy.deepcopy(before)
    cast("JsonObject", kept["spec"])["schedulerName"] = "default-scheduler"
    assert is_within(kept, once)
    assert part(once, "spec", "schedulerName") == "default-scheduler"


@given(labels=LABELS, spec=SPECS, asked=ANNOTATIONS, policy=POLICIES, known=KNOWN)
def test_what_authors_are_told_fits_where_it_is_shown(
    labels: dict[str, str],
    spec: JsonObject,
    asked: str | None,
    policy: Policy,
    known: Snapshot,
) -> None:
    answer = judged(pod(labels, spec, readiness_gate=asked), policy, known)
    assert isinstance(answer, Allow)
    assert all(0 < len(warning) <= 120 for warning in answer.warnings)


def test_a_gate_that_is_there_twice_is_left_for_the_api_server_to_refuse() -> None:
    answer = judged(pod(GROVES, {"schedulerName": "volcano", "schedulingGates": [GATE, GATE]}))
    assert isinstance(answer, Allow)
    assert answer.patch == ()


def test_a_topology_that_no_label_can_name_is_not_named() -> None:
    known = Snapshot(topologies={"n" * 64: NETWORK})
    labels = {**PLAIN, names.TOPOLOGY_LEVEL_LABEL: "rack"}
    assert part(admitted(pod(labels), known=known), "metadata", "labels") == labels

from hypothesis import given, settings
from hypothesis import strategies as st

from api.jsons import Json, JsonObject
from policies.answers import Allow, Refuse
from policies.known import NOTHING, Snapshot
from policies.policy import Policy, TopologyPolicy
from policies.problems import Problem
from policies.ratchet import answered
from policies.rules import MOST_FOUND
from tests.policies import drafts
from tests.policies.chaos import EVERYTHING, broken_sets
from tests.policies.drafts import CLIQUES, POD, clique, cluster, constraint, draft, edited, group

PROBLEMS = st.lists(st.builds(Problem, st.sampled_from("abc"), st.sampled_from("xy")), max_size=6)
NAMED: JsonObject = {"metadata": {"name": "n"}}


@given(PROBLEMS, PROBLEMS)
def test_what_is_new_is_refused_and_what_is_old_is_not(
    found: list[Problem], before: list[Problem]
) -> None:
    answer = answered("Kind", NAMED, found, lambda: before, lambda: Allow(warnings=("w",)))
    new = [problem for problem in set(found) if found.count(problem) > before.count(problem)]
    if new:
        assert isinstance(answer, Refuse)
        assert set(answer.problems) == set(new)
        assert answer.message.startswith("Kind 'n' cannot be accepted: ")
    else:
        assert isinstance(answer, Allow)
        assert len(answer.warnings) == len(found) + 1


def test_nobody_asks_what_was_wrong_if_nothing_is() -> None:
    assert answered("Kind", NAMED, [], lambda: 1 / 0, Allow) == Allow()  # type: ignore[arg-type, return-value]


def test_a_refusal_is_short_whatever_the_name() -> None:
    found = [Problem("metadata.name", f"{'x' * 5_000!r} is not a DNS label")]
    for name in ("x" * 5_000, "", 4):
        named: JsonObject = {"metadata": {"name": name}}
        answer = answered("Kind", named, found, list, Allow)
        assert isinstance(answer, Refuse)
        assert answer.message.startswith("Kind cannot be accepted: metadata.name: ")
        assert len(answer.message) < 400


def test_more_faults_than_are_counted_could_hide_one_and_are_refused() -> None:
    many = [Problem("a", str(i)) for i in range(MOST_FOUND)]
    assert isinstance(answered("Kind", NAMED, many[1:], lambda: many, Allow), Allow)
    assert isinstance(answered("Kind", NAMED, many, lambda: many, Allow), Refuse)


def test_an_old_fault_left_as_it_was_earns_a_warning() -> None:
    old = draft(clique("a", pod={**POD, "nodeName": "n1"}))
    (warning,) = drafts.warnings(edited(old, "spec/replicas", 2), old)
    assert warning.startswith(
        f"let be as it was before: {CLIQUES}[0].spec.podSpec.nodeName: a pod that waits"
    )


def test_an_old_fault_made_another_is_refused() -> None:
    old = draft(clique("a", "b", startup="AnyOrder"), terminationDelay="never")
    new = edited(old, "spec/template/terminationDelay", "always")
    assert drafts.only(drafts.problems(new, old), "spec.template.terminationDelay")


def test_an_old_fault_hides_no_new_one() -> None:
    old = draft(clique("a", counts={"replicas": 4, "minAvailable": 0}), clique("b", "b"))
    new = edited(old, "spec/template/cliques/0/spec/autoScalingConfig", {"maxReplicas": 2})
    found = drafts.problems(new, old)
    assert [problem.path for problem in found] == [
        f"{CLIQUES}[0].spec.autoScalingConfig.maxReplicas"
    ] * len(found)
    assert found


def test_a_second_cycle_beside_an_old_one_is_refused() -> None:
    old = draft(clique("a", "b"), clique("b", "a"), clique("c"))
    assert drafts.warnings(edited(old, "spec/replicas", 2), old)
    new = edited(old, "spec/template/cliques/2/spec/startsAfter", ["a"])
    new = edited(new, "spec/template/cliques/0/spec/startsAfter", ["b", "c"])
    assert {problem.path for problem in drafts.problems(new, old)} == {
        f"{CLIQUES}[0].spec.startsAfter",
        f"{CLIQUES}[2].spec.startsAfter",
    }


def test_what_changed_around_a_set_does_not_freeze_it() -> None:
    old = draft(clique("a", topologyConstraint=constraint("rack", name="net")))
    new = edited(old, "spec/replicas", 2)
    off = Policy(topology=TopologyPolicy(enabled=False))
    assert not drafts.problems(new, old, known=cluster("net"))
    assert len(drafts.warnings(new, old, policy=off)) == 1
    assert len(drafts.warnings(new, old, known=NOTHING)) == 1
    assert drafts.problems(new, known=NOTHING)


@settings(max_examples=50)
@given(broken_sets(), broken_sets())
def test_leaving_a_set_as_it_is_is_always_allowed(raw: JsonObject, other: JsonObject) -> None:
    known: Snapshot = cluster("net", node={"cpu": 1})
    assert isinstance(drafts.judged(raw, raw, known=known), Allow)
    # Whatever both are, there is an answer.
    drafts.judged(raw, other, known=known)
    drafts.judged(EVERYTHING, raw, known=known)


def test_an_old_fault_may_move_with_its_clique() -> None:
    old = draft(
        clique("a", pod={**POD, "nodeName": "n1"}),
        clique("b"),
        clique("c", counts={"roleName": "a"}),
        groups=(group("g", "b"), group("h")),
        startup="AnyOrder",
    )
    new = edited(old, "spec/template/cliques", [*reversed(template_of(old, "cliques"))])
    new = edited(
        new,
        "spec/template/podCliqueScalingGroups",
        [*reversed(template_of(old, "podCliqueScalingGroups"))],
    )
    assert not drafts.problems(new, old)
    new = edited(new, "spec/template/cliques/1/spec/podSpec/nodeName", "n1")
    assert drafts.only(drafts.problems(new, old), f"{CLIQUES}[1].spec.podSpec.nodeName")


def template_of(raw: JsonObject, field: str) -> list[Json]:
    found: Json = raw
    for step in ("spec", "template", field):
        assert isinstance(found, dict)
        found = found[step]
    assert isinstance(found, list)
    return found


def test_two_groups_of_one_name_left_as_they_are_earn_a_warning() -> None:
    minima = (group("g", "a", counts={"minAvailable": 1}), group("g", counts={"minAvailable": 2}))
    old = draft(clique("a"), groups=minima)
    assert not drafts.problems(edited(old, "spec/replicas", 2), old)
    new = edited(old, "spec/template/podCliqueScalingGroups/1/minAvailable", 1)
    assert drafts.problems(new, old)

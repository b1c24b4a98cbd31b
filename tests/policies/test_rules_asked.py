"""A rule that is not asked of a set would find nothing in it."""

import pytest
from hypothesis import given

from api.cliques import MAX_CLIQUES
from api.jsons import Json, JsonObject
from policies import (
    podcliqueset_defaults,
    podcliqueset_startup_rules,
    podcliqueset_view,
    podspec_rules,
    rulebook,
    rules,
)
from policies.podcliqueset_case import Case
from policies.policy import BUILT_IN
from policies.problems import Problem
from policies.rules import Rule
from tests.policies.chaos import EVERYTHING, broken_sets, sets
from tests.policies.drafts import clique, cluster, draft

RULES = (*rulebook.SET_FIRST_RULES, *rulebook.SET_RULES, *rulebook.SET_WARNINGS)


def case(raw: JsonObject, *, is_new: bool = True) -> Case:
    filled = podcliqueset_defaults.defaulted(raw).object
    return Case(podcliqueset_view.view(filled), BUILT_IN, cluster(), is_new)


def unasked(of: Case) -> list[Rule[Case]]:
    return [rule for rule in RULES if rule.about is not None and not rule.about(of)]


@given(broken_sets() | sets())
def test_what_is_not_asked_would_find_nothing(raw: JsonObject) -> None:
    for is_new in (True, False):
        of = case(raw, is_new=is_new)
        assert [problem for rule in unasked(of) for problem in rule.check(of)] == []


def test_of_a_set_of_everything_only_rules_about_pods_and_order_are_not_asked() -> None:
    of = case(EVERYTHING)
    assert of.set.doubtful == ()
    about_order = {rule for rule in RULES if rule.about is podcliqueset_startup_rules.TANGLED}
    about_pods = {*podspec_rules.RULES, *podcliqueset_startup_rules.RULES}
    assert {*unasked(of)} <= about_pods | about_order
    assert len(unasked(case(draft()))) > len(unasked(of))


@pytest.mark.parametrize(
    ("cliques", "is_tangled"),
    [
        pytest.param([("a",), ("b", "a"), ("c", "a", "b")], False, id="each after those before"),
        pytest.param([("a",), ("b",)], False, id="nothing waits"),
        pytest.param([("b", "a"), ("a",)], True, id="after one that comes later"),
        pytest.param([("a", "a")], True, id="after itself"),
        pytest.param([("a",), ("b", "a", "a")], True, id="after one twice"),
        pytest.param([("a",), ("b", "x")], True, id="after none there is"),
        pytest.param([("a",), ("b", "a"), ("a", "b")], True, id="two of one name"),
        pytest.param([("",), ("b", "")], True, id="no name"),
        pytest.param([(7,), ("b",)], True, id="a name that cannot be read"),
    ],
)
def test_an_order_is_tangled_unless_each_waits_for_cliques_before_it(
    cliques: list[tuple[Json, ...]],
    is_tangled: bool,  # noqa: FBT001
) -> None:
    assert case(draft(*(clique(*each) for each in cliques))).set.tangled is is_tangled


def test_cliques_beyond_those_looked_at_may_be_tangled() -> None:
    many = [clique(f"c{i}") for i in range(MAX_CLIQUES)]
    assert not case(draft(*many)).set.tangled
    assert case(draft(*many, clique("x"))).set.tangled


def test_what_rules_side_by_side_are_about_is_looked_for_once() -> None:
    looked: list[str] = []

    def about(subject: str) -> str:
        looked.append(subject)
        return subject

    def finds(_subject: str) -> list[Problem]:
        return [Problem("", "found")]

    asked = (
        Rule(finds, about=about),
        Rule(finds, about=about),
        Rule(finds),
        Rule(finds, about=len),
    )
    assert len(rules.found(asked, "x")) == 4
    assert len(rules.found(asked, "")) == 1
    assert looked == ["x", ""]


def test_a_rule_about_nothing_is_not_asked() -> None:
    def finds(_subject: str) -> list[Problem]:
        return [Problem("", "found")]

    asked = (Rule(finds), Rule(finds, about=len))
    assert len(rules.found(asked, "x")) == 2
    assert len(rules.found(asked, "")) == 1

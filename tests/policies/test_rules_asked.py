"""A rule that is not asked of a set would find nothing in it."""

from hypothesis import given

from api.jsons import JsonObject
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
from tests.policies.drafts import cluster, draft

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


def test_of_a_set_of_everything_only_rules_about_pods_are_not_asked() -> None:
    of = case(EVERYTHING)
    assert of.set.doubtful == ()
    assert {*unasked(of)} <= {*podspec_rules.RULES, *podcliqueset_startup_rules.RULES}
    assert len(unasked(case(draft()))) > len(unasked(of))


def test_a_rule_about_nothing_is_not_asked() -> None:
    def finds(_subject: str) -> list[Problem]:
        return [Problem("", "found")]

    asked = (Rule(finds), Rule(finds, about=len))
    assert len(rules.found(asked, "x")) == 2
    assert len(rules.found(asked, "")) == 1

"""Answers told apart by rule."""

from dataclasses import replace
from typing import Final

from policies.answers import Allow, Code, Refuse, invalid
from policies.findings import Finding
from policies.policy_queues import Mode
from policies.problems import Problem
from policies.verdicts import Decision, Difference, differences, verdict

OF_RULE: Final = Problem("spec.a", "is too much")
OF_OURS: Final = Problem("spec.b", "is no number")


def finding(mode: Mode, rule: str = "few") -> Finding:
    return Finding(rule, mode, OF_RULE)


ENFORCED: Final = replace(
    invalid("Pod", [finding(Mode.ENFORCE).told, OF_OURS]), findings=(finding(Mode.ENFORCE),)
)


def test_what_a_built_in_rule_found_is_told_apart_from_the_policy_s() -> None:
    found = verdict(ENFORCED)
    assert (found.decision, found.problems) == (Decision.REFUSE, (OF_OURS,))
    assert found.rules == ("few", "built-in")


def test_a_warning_is_a_decision_of_its_own() -> None:
    assert verdict(Allow(warnings=("w",))).decision is Decision.WARN
    assert verdict(Allow(findings=(finding(Mode.AUDIT),))).decision is Decision.ALLOW


def test_answers_that_come_to_the_same_do_not_differ() -> None:
    assert differences(ENFORCED, ENFORCED) == ()
    assert differences(Allow(), Allow(warnings=("of something else",))) == ()


def test_a_rule_that_does_otherwise_is_told_once_by_its_gravest_finding() -> None:
    before = Allow(findings=(finding(Mode.AUDIT),))
    after = replace(ENFORCED, findings=(finding(Mode.WARN), finding(Mode.ENFORCE)))
    assert differences(before, after) == (
        Difference("built-in", "none", "refuse"),
        Difference("few", "audit", "enforce"),
    )
    assert differences(after, before) == (
        Difference("built-in", "refuse", "none"),
        Difference("few", "enforce", "audit"),
    )


def test_what_an_object_is_given_counts_where_both_let_it_in() -> None:
    given = Allow(({"op": "add"},))
    assert [each.rule for each in differences(Allow(), given)] == ["patch"]
    assert differences(given, given) == ()


def test_a_refusal_without_a_rule_is_one_of_ours() -> None:
    refused = Refuse(Code.FORBIDDEN, "no", (OF_OURS,))
    assert differences(Allow(), refused) == (Difference("built-in", "none", "refuse"),)

"""What became of an object, told apart by rule; and how two answers to one question differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from policies.answers import Allow, Answer
from policies.findings import Finding
from policies.policy_queues import Mode
from policies.problems import Problem

BUILT_IN: Final = "built-in"
"""Stands for the rules that hold whatever a policy says."""

PATCH: Final = "patch"
"""Stands for what an object is given on its way in."""

NONE: Final = "none"


class Decision(StrEnum):
    """What its author sees of it."""

    ALLOW = "allow"
    WARN = "warn"
    REFUSE = "refuse"


@dataclass(frozen=True)
class Verdict:
    """An answer, with the rules of the policy and the built-in ones told apart."""

    decision: Decision
    message: str
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    """What built-in rules found."""
    warnings: tuple[str, ...]

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules that are broken, each once."""
        built_in = (BUILT_IN,) if self.problems else ()
        return tuple(dict.fromkeys((*(each.rule for each in self.findings), *built_in)))


def verdict(answer: Answer) -> Verdict:
    """Read an answer."""
    if isinstance(answer, Allow):
        decision = Decision.WARN if answer.warnings else Decision.ALLOW
        return Verdict(decision, "", answer.findings, (), answer.warnings)
    return Verdict(Decision.REFUSE, answer.message, answer.findings, _built_in(answer), ())


def _built_in(answer: Answer) -> tuple[Problem, ...]:
    if isinstance(answer, Allow):
        return ()
    of_policy = {each.told for each in answer.findings}
    return tuple(each for each in answer.problems if each not in of_policy)


@dataclass(frozen=True, order=True)
class Difference:
    """One rule that does otherwise. No text out of an object is in it, so that it may be told."""

    rule: str
    was: str
    now: str
    """A mode, `refuse` of what is no rule of a policy, or `none`."""


def differences(before: Answer, after: Answer) -> tuple[Difference, ...]:
    """Tell how the answers to one request differ by rule; none if they come to the same."""
    was, now = _by_rule(before), _by_rule(after)
    found = {
        Difference(rule, was.get(rule, NONE), now.get(rule, NONE))
        for rule in was.keys() | now.keys()
        if was.get(rule) != now.get(rule)
    }
    if isinstance(before, Allow) and isinstance(after, Allow) and before.patch != after.patch:
        found.add(Difference(PATCH, "as before", "other"))
    return tuple(sorted(found))


_SEVERITY: Final = (Mode.OFF, Mode.AUDIT, Mode.WARN, Mode.ENFORCE)


def _by_rule(answer: Answer) -> Mapping[str, str]:
    """Give what each rule does with an object, the gravest of its findings counting."""
    found: dict[str, Mode] = {}
    for each in answer.findings:
        found[each.rule] = max(found.get(each.rule, Mode.OFF), each.mode, key=_SEVERITY.index)
    modes = {rule: mode.value for rule, mode in found.items()}
    return {**modes, BUILT_IN: Decision.REFUSE.value} if _built_in(answer) else modes

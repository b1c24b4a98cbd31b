"""What a rule is: a small pure function over what it looks at, and which facts it stands for."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from policies.problems import Problem

# Far more than anybody is shown; it only bounds what a hostile manifest can cost.
MOST_FOUND: Final = 1_000

Subject = TypeVar("Subject")


@dataclass(frozen=True)
class Rule(Generic[Subject]):
    """One rule. `refs` number what it upholds, for tests that must miss none.

    The numbers are those of sections and rows in the description of Grove's admission that this
    project keeps to; a rule of our own has none. `about` gives what in the subject it looks at:
    where that is nothing, as is most of what a set may have, the rule is not asked.
    """

    check: Callable[[Subject], Iterable[Problem]]
    refs: tuple[str, ...] = ()
    about: Callable[[Subject], object] | None = None

    @property
    def name(self) -> str:
        """What the rule says, in a word."""
        return getattr(self.check, "__name__", "")

    def named(self, problem: Problem) -> Problem:
        """Have what it found bear its name."""
        return replace(problem, rule=self.name.replace("_", "-"))


def found(rules: Sequence[Rule[Subject]], subject: Subject) -> list[Problem]:
    """Hold the subject against every rule, so that its author sees all problems at once."""
    problems: list[Problem] = []
    about, is_asked = None, True
    for rule in rules:
        if rule.about is not about:
            # Rules about one thing stand side by side, so that it is looked for once.
            about = rule.about
            is_asked = about is None or bool(about(subject))
        if not is_asked:
            continue
        for problem in rule.check(subject):
            if len(problems) == MOST_FOUND:
                return problems
            problems.append(rule.named(problem))
    return problems

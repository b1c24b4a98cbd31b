"""What a rule is: a small pure function over what it looks at, and which facts it stands for."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Final, Generic, TypeVar

from policies.problems import Problem

# Far more than anybody is shown; it only bounds what a hostile manifest can cost.
MOST_FOUND: Final = 1_000

Subject = TypeVar("Subject")


@dataclass(frozen=True)
class Rule(Generic[Subject]):
    """One rule. `refs` number what it upholds, for tests that must miss none.

    The numbers are those of sections and rows in the description of Grove's admission that this
    project keeps to; a rule of our own has none.
    """

    check: Callable[[Subject], Iterable[Problem]]
    refs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What the rule says, in a word."""
        return getattr(self.check, "__name__", "")

    def told(self, subject: Subject) -> Iterator[Problem]:
        """Hold a subject against it; what it finds bears its name."""
        for problem in self.check(subject):
            yield replace(problem, rule=self.name.replace("_", "-"))


def found(rules: Sequence[Rule[Subject]], subject: Subject) -> list[Problem]:
    """Hold the subject against every rule, so that its author sees all problems at once."""
    return list(islice(chain.from_iterable(rule.told(subject) for rule in rules), MOST_FOUND))

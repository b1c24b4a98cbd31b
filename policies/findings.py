"""What a policy's rule found in an object, and what is to come of it."""

from dataclasses import dataclass

from policies.policy_queues import Mode
from policies.problems import Problem, by_rule


@dataclass(frozen=True)
class Finding:
    """A broken rule: which one, what it found, and whether that keeps the object out."""

    rule: str
    mode: Mode
    problem: Problem

    @property
    def told(self) -> Problem:
        """The problem as its author reads it, with the rule that they can ask about."""
        message = by_rule(self.problem.message, self.rule)
        return Problem(self.problem.path, message, self.rule)

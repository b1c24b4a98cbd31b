"""What a case of the rule suite is: a manifest, written as edits of a plain one, and its answer."""

from dataclasses import dataclass, field
from typing import TypeAlias

from api.jsons import JsonObject
from policies.policy import BUILT_IN, Policy
from tests.support.edits import Edits


@dataclass(frozen=True)
class Stored:
    """The API server would store what was sent, nothing lost.

    `values` says what is found at a path afterwards, where that is not what was sent; `warnings`
    the words that some warning has; without any there is no warning at all.
    """

    values: Edits = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fault:
    """One thing that a refusal must say: the field's path, and words that come after it."""

    path: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refused:
    """The API server would refuse it, saying all of this in one reply."""

    faults: tuple[Fault, ...]


Outcome: TypeAlias = Stored | Refused


@dataclass(frozen=True)
class Case:
    """One manifest and what is to become of it.

    `rule` is the rule's number, as in policies/rulebook.py. `before` is the
    object as it is stored, for an update; None for a creation. `storable` is false where no API
    server of today would store it: it is stored while nobody minds, as one from before an upgrade.
    """

    rule: str
    what: str
    sent: JsonObject
    then: Outcome
    before: JsonObject | None = None
    policy: Policy = BUILT_IN
    storable: bool = True

    @property
    def id(self) -> str:
        """What the case is called in the test's report."""
        verdict = "refused" if isinstance(self.then, Refused) else "stored"
        return f"{self.rule}-{verdict}-{self.what.replace(' ', '-')}"


def refused(path: str, *words: str) -> Refused:
    """A refusal with one fault that is looked for."""
    return Refused((Fault(path, words),))

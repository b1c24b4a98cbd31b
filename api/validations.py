"""Rules the API server itself checks, written in CEL beside the schema they belong to.

They hold while no webhook answers, and for writers that no webhook is asked about, such as
`/scale`.
"""

from dataclasses import dataclass
from typing import Final

from api.jsons import JsonObject

_KEY: Final = "x-kubernetes-validations"


@dataclass(frozen=True)
class Validation:
    """One rule: what must be true, what is said when it is not, and of which field it is said."""

    rule: str
    message: str
    path: str = ""
    reason: str = ""
    message_expression: str = ""  # takes the place of the message when it can be computed
    on_create: bool = False  # also asked when there is no old object to compare with

    def written(self) -> JsonObject:
        """Give the rule as a definition carries it."""
        body: JsonObject = {"rule": self.rule, "message": self.message}
        optional = {
            "messageExpression": self.message_expression,
            "fieldPath": self.path,
            "reason": self.reason,
        }
        body |= {key: value for key, value in optional.items() if value}
        return body | {"optionalOldSelf": True} if self.on_create else body


def extension(*rules: Validation) -> JsonObject:
    """Give rules in the form a schema node carries them in."""
    return {_KEY: [rule.written() for rule in rules]} if rules else {}


def unchanging(name: str, *, optional: bool) -> Validation:
    """Refuse every change of a field, also its coming and going."""
    same = f"self.{name} == oldSelf.{name}"
    if optional:
        same = f"has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || {same})"
    return Validation(same, "field is immutable", path=f".{name}")


# Grove leaves /scale unchecked; a gang below its minimum would only be torn down.
SCALED_WHOLE: Final = Validation(
    "self.replicas == 0 || !has(self.minAvailable) || self.replicas >= self.minAvailable",
    "replicas must be 0, or at least minAvailable",
    path=".replicas",
    message_expression=(
        '"replicas is %d, below minAvailable %d: scale to 0, or to minAvailable and more"'
        ".format([self.replicas, self.minAvailable])"
    ),
)

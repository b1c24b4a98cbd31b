"""What the policy says of pods in gangs whatever their queue is, and whom it lets off."""

from datetime import datetime
from functools import lru_cache
from typing import Annotated, Final, Literal, Self

from pydantic import AwareDatetime, Field, field_validator, model_validator

from policies import expression_view
from policies.cel import expression, tokens
from policies.cel.expression import Expression
from policies.cel.tokens import BadExpressionError
from policies.policy_queues import MOST_NAMED, Glob, Mode, PolicyModel, Submitters

MOST_CHECKS: Final = 128
# Each may take as long as `running.MOST_STEPS` allows.
MOST_EXPRESSIONS: Final = 32
ID_PATTERN: Final = "^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"

Id = Annotated[str, Field(min_length=1, max_length=63, pattern=ID_PATTERN)]


class ImageCheck(PolicyModel):
    """Which images containers may run. Patterns see full names: docker.io/library/nginx:latest."""

    allow: Annotated[
        list[Glob], Field(max_length=MOST_NAMED, description="One of these; none named for any.")
    ] = []
    deny: Annotated[list[Glob], Field(max_length=MOST_NAMED, description="None of these.")] = []
    require_digest: bool = False


@lru_cache(maxsize=8 * MOST_CHECKS)
def read_expression(text: str) -> Expression:
    """Read an expression; raises BadExpressionError."""
    return expression.read(text, expression_view.VARIABLES)


class PodCheck(PolicyModel):
    """One rule over every pod of every clique."""

    id: Id
    mode: Mode | None = None
    queues: Annotated[list[Glob], Field(min_length=1, max_length=MOST_NAMED)] = ["*"]
    images: ImageCheck | None = None
    pod_security: Literal["baseline", "restricted"] | None = None

    cel: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=tokens.LONGEST,
            description="An expression over `pod`, `set` and `queue` that must be true.",
        ),
    ] = None
    message: Annotated[
        str, Field(max_length=256, description="What is said when `cel` is not true.")
    ] = ""

    @field_validator("cel")
    @classmethod
    def _can_be_evaluated(cls, value: str | None) -> str | None:
        try:
            if value is not None:
                read_expression(value)
        except BadExpressionError as error:
            raise ValueError(f"character {error.at + 1}: {error}") from error
        return value

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Self:
        if [self.images, self.pod_security, self.cel].count(None) != 2:
            raise ValueError("must ask one thing: images, podSecurity or cel")
        if self.message and self.cel is None:
            raise ValueError("a message goes with cel; the others say what is wrong themselves")
        return self


class Exemption(PolicyModel):
    """Who is let off what, why, and until when."""

    id: Id
    reason: Annotated[str, Field(min_length=1, max_length=512)]
    expires: AwareDatetime
    rules: Annotated[list[Glob], Field(min_length=1, max_length=MOST_NAMED)]
    namespaces: Annotated[list[Glob], Field(min_length=1, max_length=MOST_NAMED)]
    names: Annotated[list[Glob], Field(min_length=1, max_length=MOST_NAMED)] = ["*"]
    submitters: Submitters = Submitters()

    def holds(self, now: datetime) -> bool:
        """Whether it is in force still."""
        return now < self.expires

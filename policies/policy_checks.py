"""What the policy says of pods in gangs whatever their queue is, and whom it lets off."""

from datetime import datetime
from typing import Annotated, Final, Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from policies.policy_queues import MOST_NAMED, Glob, Mode, PolicyModel, Submitters

MOST_CHECKS: Final = 128
ID_PATTERN: Final = "^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"

Id = Annotated[str, Field(min_length=1, max_length=63, pattern=ID_PATTERN)]


class ImageCheck(PolicyModel):
    """Which images containers may run. Patterns see full names: docker.io/library/nginx:latest."""

    allow: Annotated[
        list[Glob], Field(max_length=MOST_NAMED, description="One of these; none named for any.")
    ] = []
    deny: Annotated[list[Glob], Field(max_length=MOST_NAMED, description="None of these.")] = []
    require_digest: bool = False


class PodCheck(PolicyModel):
    """One rule over every pod of every clique."""

    id: Id
    mode: Mode | None = None
    queues: Annotated[list[Glob], Field(min_length=1, max_length=MOST_NAMED)] = ["*"]
    images: ImageCheck | None = None
    pod_security: Literal["baseline", "restricted"] | None = None

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Self:
        if (self.images is None) == (self.pod_security is None):
            raise ValueError("must ask one thing: images or podSecurity")
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

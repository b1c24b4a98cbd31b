"""What a dashboard reads beside the cluster where there is none of it."""

from collections.abc import Sequence

from penstock.dashboard.refusals import LogFile, NoLogError
from policies.policy import BUILT_IN, Policy


class NoLog:
    """An audit log that nobody writes."""

    every = 60.0

    async def files(self) -> Sequence[LogFile]:
        raise NoLogError("there is no log")

    async def text(self, file: LogFile) -> bytes:
        raise NoLogError(f"there is no {file.name}")


async def built_in() -> Policy:
    """Read the policy where nobody has written one."""
    return BUILT_IN

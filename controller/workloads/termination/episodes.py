"""What is remembered of a gang termination, on the first PodClique of what was made anew. Pure.

An episode begins when pods are told to go and lasts until what lacked its minimum has it again.
It is written before the first pod goes, so that a process that dies meanwhile is followed by one
that knows which pods were meant.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec

from api.jsons import JsonObject

# A gang that fails as often as it is made anew is left alone longer each time, up to this often.
_LONGEST: Final = 8


@dataclass(frozen=True)
class Episode:
    """One gang termination.

    All that was made up to `through` was to go. That is an instant of the API server's clock, so
    that no other clock has to agree with it. `count` tells how many there were, this one included,
    without lasting health in between.
    """

    begun: datetime
    through: datetime
    count: int = 1

    def patience(self, delay: timedelta) -> timedelta:
        """How long to watch the next breach before it, too, ends in a termination."""
        return delay * min(_LONGEST, 2.0 ** min(self.count, _LONGEST))


def read(annotations: Mapping[str, str], key: str) -> Episode | None:
    """Read what is remembered; what cannot be read was never written by us."""
    text = annotations.get(key)
    if text is None:
        return None
    try:
        found = msgspec.json.decode(text, type=Episode)
    except msgspec.DecodeError:
        return None
    return found if found.begun.tzinfo and found.through.tzinfo else None


def remember(key: str, episode: Episode) -> JsonObject:
    """Write the patch that remembers an episode."""
    return {"metadata": {"annotations": {key: msgspec.json.encode(episode).decode()}}}


def forget(key: str) -> JsonObject:
    """Write the patch that forgets."""
    return {"metadata": {"annotations": {key: None}}}

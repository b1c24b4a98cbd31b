"""What a gang remembers of a quota that refuses its pods, and who goes first. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, TypeAlias

import msgspec

from api import names
from api.jsons import JsonObject
from api.streams import Meta
from controller.workloads.views import Rank

_LONGEST: Final = 400  # characters of a refusal that are worth keeping
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


class Refused(msgspec.Struct, frozen=True, tag=True):
    """A quota has refused pods since then; those that were made are kept, and more are tried.

    `times` counts how often the gang has given up before.
    """

    since: datetime
    words: str
    times: int = 0


class Withdrawn(msgspec.Struct, frozen=True, tag=True):
    """The gang's pods are taken back, and none are made until then at least."""

    until: datetime
    words: str
    times: int = 0


class Trying(msgspec.Struct, frozen=True, tag=True):
    """Pods are made again after they were withdrawn."""

    times: int = 0


Shortage: TypeAlias = Refused | Withdrawn | Trying


def read(annotations: Mapping[str, str]) -> Shortage | None:
    """Read what is remembered; what cannot be read was never written by us."""
    text = annotations.get(names.QUOTA_ANNOTATION)
    if text is None:
        return None
    try:
        found: Shortage = msgspec.json.decode(text, type=Refused | Withdrawn | Trying)
    except msgspec.DecodeError:
        return None
    match found:
        case Refused(instant) | Withdrawn(instant):
            return found if instant.tzinfo else None
    return found


def remember(shortage: Shortage) -> JsonObject:
    """Write the patch that remembers."""
    return _patch(msgspec.json.encode(shortage).decode())


def forget() -> JsonObject:
    """Write the patch that forgets."""
    return _patch(None)


def brief(words: str) -> str:
    """Shorten a refusal."""
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"


def rank(meta: Meta, times: int = 0) -> Rank:
    """Give a gang's place in the line: who has given up least often, and of those the oldest."""
    return times, meta.creation_timestamp or _NEVER, meta.name


def _patch(text: str | None) -> JsonObject:
    return {"metadata": {"annotations": {names.QUOTA_ANNOTATION: text}}}

"""Tells of the review that let a set in, as the first span of its trace."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from kube.tracing import Record, Span, Step
from webhook.heard import Hear, Heard
from webhook.metrics import Decision

# Of the two reviews of a set this is the last one; what is let in here is stored.
PATH: Final = "/validate/podcliquesets"


class _Meta(msgspec.Struct):
    uid: str = ""


def hearing(record: Record, now: Callable[[], datetime], beside: Hear | None) -> Hear:
    """Make a span of what lets a set in, and pass on whatever is heard."""

    def hear(heard: Heard) -> None:
        if beside is not None:
            beside(heard)
        asked = heard.asked
        if heard.path != PATH or asked.asked.operation != "CREATE" or asked.dry_run:
            return
        if heard.decision is not Decision.ALLOW:
            return
        try:
            written = asked.metadata()
            if written is None:
                return
            meta = msgspec.json.decode(written, type=_Meta)
        except msgspec.MsgspecError:
            return
        ended = now()
        begun = ended - timedelta(seconds=heard.seconds)
        about = {"namespace": asked.asked.namespace or "", "set": asked.asked.name or ""}
        record(Span(meta.uid, Step.REVIEW, "", begun, ended, about))

    return hear

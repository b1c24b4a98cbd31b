"""Which policy answers at which path; bytes in, bytes and an HTTP status out."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from policies import known, pod_admission, podcliqueset_admission, policy
from policies.admission import Judge, Request
from policies.answers import Answer, Code, Refuse
from webhook import review
from webhook.review import Review, Unanswerable, Unfit

LOG: Final = logging.getLogger(__name__)

PATHS: Final[Mapping[str, Judge]] = {
    "/validate/podcliquesets": podcliqueset_admission.judge,
    "/mutate/pods": pod_admission.judge,
}


@dataclass(frozen=True)
class Reply:
    """An HTTP reply."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


def answer(judge: Judge, body: bytes) -> Reply:
    """Answer the review in `body`: a well-formed review, or 400 where none can be answered.

    A fault of ours is answered as a refusal, never as an HTTP error: what a failed call means is
    up to the webhook configuration, and a pod that slipped through unseen may start half a gang.
    """
    asked = review.read(body)
    match asked:
        case Unanswerable(message):
            return Reply(400, message.encode(errors="replace"))
        case Unfit(uid, message):
            return _reply(uid, Refuse(Code.INVALID, message))
        case Review(uid, request):
            return _reply(uid, _judged(judge, request))


def _judged(judge: Judge, request: Request) -> Answer:
    try:
        return judge(policy.BUILT_IN, known.NOTHING, request)
    except Exception:  # the edge: whatever a rule does, the API server gets an answer
        LOG.exception("judging a %s of kind %s failed", request.operation, request.kind)
        return Refuse(
            Code.INTERNAL,
            f"Penstock failed to judge this {request.kind or 'object'}: a fault of its own, "
            "written to the webhook's log",
        )


def _reply(uid: str, answer: Answer) -> Reply:
    return Reply(200, review.write(uid, answer), "application/json")

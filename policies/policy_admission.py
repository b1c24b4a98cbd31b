"""An edit of the policy itself: refused while it cannot be gone by, so that its author knows."""

from typing import Final

from api import names
from api.jsons import JsonObject
from policies import policy_doubts, policy_source, reading
from policies.admission import Operation, Request, astray, is_leaving
from policies.answers import Allow, Answer, invalid
from policies.known import Known
from policies.policy import Policy
from policies.policy_source import BadPolicyError, Place
from policies.problems import Problem

KIND: Final = "ConfigMap"
KEYS: Final = (names.POLICY_KEY, names.CANDIDATE_KEY)
NONE_LEFT: Final = (
    f"there is no {names.POLICY_KEY} any more, and the last good one holds: "
    "write an empty one to go back to the built-in policy"
)


def is_ours(raw: JsonObject | None) -> bool:
    """Tell whether this ConfigMap is the one that the policy is in, going by its name."""
    metadata = reading.mapping(raw.get("metadata")) if raw else {}
    return metadata.get("name") == names.POLICY_CONFIG


def judge(_policy: Policy, _known: Known, request: Request) -> Answer:
    """Refuse a text that is new and cannot be gone by; what was there before is let be."""
    if request.operation not in (Operation.CREATE, Operation.UPDATE):
        return Allow()
    if request.kind != KIND or request.object is None:
        return astray(request, KIND)
    if not is_ours(request.object) or is_leaving(request.object):
        return Allow()
    new, old = (reading.mapping(each.get("data")) for each in _both(request))
    bad: list[Problem] = []
    warnings: list[str] = []
    for key in KEYS:
        text = reading.text(new.get(key))
        if text is None or text == old.get(key):
            continue
        faults, doubts = _looked_through(key, text, request)
        bad += faults
        warnings += map(str, doubts)
    if bad:
        return invalid(f"{KIND} {names.POLICY_CONFIG}", bad)
    if names.POLICY_KEY in old and names.POLICY_KEY not in new:
        warnings.append(NONE_LEFT)
    return Allow(warnings=tuple(warnings))


def _both(request: Request) -> tuple[JsonObject, JsonObject]:
    return request.object or {}, request.old_object or {}


def _looked_through(key: str, text: str, request: Request) -> tuple[list[Problem], list[Problem]]:
    try:
        policy = policy_source.read(key, text).policy
    except BadPolicyError as error:
        return [_told(key, place) for place in error.places], []
    if request.now is None:
        return [], []
    doubts = policy_source.placed(text, policy_doubts.doubts(policy, request.now))
    return [], [_told(key, place) for place in doubts]


def _told(key: str, place: Place) -> Problem:
    return Problem(key, str(place))

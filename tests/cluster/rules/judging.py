"""What an answer is held against, and what the webhook alone would lead to."""

import re
from typing import Final, cast

import jsonpatch
import orjson

from api.jsons import JsonObject
from api.topology import ClusterTopologyBindingSpec
from policies import binding_admission, podcliqueset_admission
from policies.admission import Operation, Request, User
from policies.answers import Allow
from policies.answers import Answer as Judged
from policies.known import Snapshot
from policies.policy import BUILT_IN, Policy
from tests.cluster.rules.asking import Answer
from tests.cluster.rules.cases import Case, Fault, Refused, Stored
from tests.cluster.rules.manifests import BROAD, OTHER, SPACE, binding
from tests.support.edits import GONE, at, edited, lost

# The bindings that the suite makes in its lab, as the rules in this process know them.
BINDINGS: Final = (binding(BROAD), binding(OTHER))
KNOWN: Final = Snapshot(
    topologies={
        name: ClusterTopologyBindingSpec.model_validate(binding(name)["spec"])
        for name in (BROAD, OTHER)
    }
)
ADMIN: Final = User("kubernetes-admin", ("system:masters", "system:authenticated"))

_JUDGES: Final = {
    "PodCliqueSet": podcliqueset_admission.judge,
    "ClusterTopologyBinding": binding_admission.judge,
}
# Where the next problem of a message begins.
_NEXT: Final = re.compile(r"[;,] (?:spec|metadata)[.:\[]")


def wrong(case: Case, answer: Answer) -> list[str]:
    """Everything in which the answer is not what the case says; empty if it is."""
    match case.then:
        case Refused(faults):
            return _wrongly_stored(faults, answer)
        case Stored(values, warnings):
            if not answer.stored:
                return [f"refused with {answer.status}: {answer.message}"]
            wanted = edited(case.sent, {k: v for k, v in values.items() if v is not GONE})
            if case.before is not None:
                # It is asked of a stored object, which has a name of its own.
                wanted = edited(wanted, {"metadata.name": GONE})
            missed = [
                f"{path} is {at(answer.body, path)!r}, not {at(wanted, path)!r}"
                for path in lost(wanted, answer.body)
            ]
            missed += [
                f"{path} is {at(answer.body, path)!r}, and should not be"
                for path, value in values.items()
                if value is GONE and at(answer.body, path) is not GONE
            ]
            return missed + _wrongly_warned(warnings, answer.warnings)


def judged(
    sent: JsonObject,
    operation: Operation = Operation.CREATE,
    *,
    before: JsonObject | None = None,
    policy: Policy = BUILT_IN,
) -> Answer:
    """Give the answer that the webhook leads to, as far as it alone decides."""
    found = _judge(sent, operation, before, policy)
    if isinstance(found, Allow):
        return Answer(200, patched(sent, found), found.warnings)
    return Answer(int(found.code), {"message": found.message})


def patched(sent: JsonObject, allow: Allow) -> JsonObject:
    """The object after the patch of its admission."""
    sent = edited(sent, {})
    return cast("JsonObject", jsonpatch.apply_patch(sent, [*allow.patch])) if allow.patch else sent


def loaded(text: bytes) -> JsonObject:
    """The manifest in a JSON text."""
    found = cast("JsonObject", orjson.loads(text))
    assert isinstance(found, dict)
    return found


def _judge(
    sent: JsonObject, operation: Operation, before: JsonObject | None, policy: Policy
) -> Judged:
    kind = str(sent["kind"])
    request = Request(
        operation,
        kind,
        edited(sent, {"metadata.namespace": SPACE}),
        before,
        resource=f"{kind.lower()}s",
        namespace=SPACE,
        name=str(at(sent, "metadata.name")),
        user=ADMIN,
    )
    return _JUDGES[kind](policy, KNOWN, request)


def _wrongly_stored(faults: tuple[Fault, ...], answer: Answer) -> list[str]:
    if answer.stored:
        return [f"taken, and should say: {fault}" for fault in faults]
    if not 400 <= answer.status < 500:
        return [f"answered with {answer.status}: {answer.message}"]
    return [
        f"does not say {fault}: {answer.message}"
        for fault in faults
        if not _said(fault, answer.message)
    ]


def _said(fault: Fault, message: str) -> bool:
    """Whether some problem in the message begins with the path, or below it, and has the words."""
    here = re.compile(rf"(?<![\w.\]]){re.escape(fault.path)}(?!\w)")
    for found in here.finditer(message):
        end = _NEXT.search(message, found.end())
        problem = message[found.start() : end.start() if end else len(message)]
        rest = problem[len(fault.path) :]
        if all(word in rest for word in fault.words):
            return True
    return False


def _wrongly_warned(wanted: tuple[str, ...], found: tuple[str, ...]) -> list[str]:
    missing = [word for word in wanted if not any(word in warning for warning in found)]
    if missing:
        return [f"no warning has {word!r}: {found}" for word in missing]
    return [] if wanted else [f"warns: {warning}" for warning in found]

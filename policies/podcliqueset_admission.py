"""A PodCliqueSet that is created or changed: held against the rules."""

from policies import parsing, podcliqueset_rules
from policies.admission import Operation, Request, astray, is_leaving
from policies.answers import Allow, Answer, invalid
from policies.known import Known
from policies.parsing import Unreadable
from policies.policy import Policy


def judge(_policy: Policy, _known: Known, request: Request) -> Answer:
    """Refuse a PodCliqueSet that breaks a rule."""
    if request.operation not in (Operation.CREATE, Operation.UPDATE):
        return Allow()
    if request.kind != "PodCliqueSet" or request.object is None:
        return astray(request, "PodCliqueSet")
    if request.operation is Operation.UPDATE and is_leaving(request.object):
        # Its finalizers must be able to go, whatever is wrong with it.
        return Allow()
    parsed = parsing.podcliqueset(request.object)
    if isinstance(parsed, Unreadable):
        return invalid("PodCliqueSet", parsed.problems)
    problems = podcliqueset_rules.check(parsed.name, parsed.spec)
    return invalid(f"PodCliqueSet {parsed.name!r}", problems) if problems else Allow()

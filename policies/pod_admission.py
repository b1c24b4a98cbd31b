"""A pod that is created: marked, if it belongs to a gang."""

from policies import gating
from policies.admission import Operation, Request, astray
from policies.answers import Allow, Answer, invalid
from policies.known import Known
from policies.policy import Policy
from policies.problems import Problem


def judge(_policy: Policy, _known: Known, request: Request) -> Answer:
    """Add our gate to a new pod of a gang."""
    if request.operation is not Operation.CREATE:
        # Gates can only be given at creation.
        return Allow()
    if request.kind != "Pod" or request.object is None:
        return astray(request, "Pod")
    patch = gating.gate_pod(request.object)
    if isinstance(patch, Problem):
        return invalid("Pod", [patch])
    return Allow(tuple(patch))

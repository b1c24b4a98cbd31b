"""A pod that is created: marked, if it belongs to a gang; refused, if its gang could never run."""

from policies import marking, pod_claims, pod_rules
from policies.admission import Operation, Request, astray
from policies.answers import Allow, Answer, invalid
from policies.known import Known
from policies.pod_claims import Bystander
from policies.pod_rules import Case
from policies.policy import Policy
from policies.problems import Problem


def judge(policy: Policy, known: Known, request: Request) -> Answer:
    """Mark a new pod of a gang."""
    if request.operation is not Operation.CREATE or request.subresource:
        # Gates can only be given at creation, and the schedulerName never changes again.
        return Allow()
    if request.kind != "Pod" or request.object is None:
        return astray(request, "Pod")
    claim = pod_claims.read(request.object)
    if isinstance(claim, Bystander):
        return Allow()
    if isinstance(claim, Problem):
        return invalid("Pod", [claim])
    case = Case(claim, policy, known)
    found = pod_rules.check(case)
    if found:
        return invalid("Pod", found)
    return Allow(marking.patch(case), marking.warnings(case))

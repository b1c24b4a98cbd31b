"""How webhooks answer when something of Penstock is switched off, or another makes the gangs. Pure.

What is switched off is admitted as it is: nobody would ever lift a gate that is put on then.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Final

from api.features import FLAG, Features
from policies import managed_admission, pod_admission, pod_claims, podcliqueset_admission
from policies.admission import Judge, Operation, Request
from policies.answers import Allow, Answer, Code, Refuse
from policies.known import Known
from policies.policy import Policy

NO_SETS: Final = (
    f"sets are switched off here ({FLAG} GroveIntegration=false), and nobody would make this one's "
    "pods: have whoever runs Penstock switch them on again"
)


@dataclass(frozen=True)
class Switches:
    """What is on; with `companion` somebody else makes the gangs of sets."""

    features: Features = field(default_factory=Features)
    companion: bool = False


ALL_ON: Final = Switches()


def judge_of(judge: Judge, switches: Switches) -> Judge:
    """Give what judges in place of this one as things are switched."""
    if judge is pod_admission.judge:
        return partial(_pod, switches)
    of_sets = (podcliqueset_admission.judge, managed_admission.judge)
    if judge in of_sets and not switches.features.grove_integration:
        return _left_alone
    return judge


def _pod(switches: Switches, policy: Policy, known: Known, request: Request) -> Answer:
    features = switches.features
    if not features.gang_scheduling:
        return Allow()
    of_a_set = request.object is not None and pod_claims.is_of_a_set(request.object)
    if of_a_set and not features.grove_integration:
        return Allow()
    # Grove's waiter waits for pods to be Ready, and not only for their containers. Which pods are
    # waited for cannot be told from one of them.
    return pod_admission.judge(policy, known, request, awaited=of_a_set and switches.companion)


def _left_alone(_policy: Policy, _known: Known, request: Request) -> Answer:
    """Let all pass but new sets, for which nobody would do anything."""
    new = request.operation is Operation.CREATE and not request.subresource
    if new and request.kind == "PodCliqueSet":
        return Refuse(Code.FORBIDDEN, NO_SETS)
    return Allow()

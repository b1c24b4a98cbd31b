"""A pod that is created: marked, if it belongs to a gang; refused, if its gang could never run."""

from dataclasses import replace

from api.jsons import JsonObject
from policies import (
    evaluating,
    marking,
    mutating,
    pod_claims,
    pod_rules,
    reading,
    standing,
)
from policies.admission import Operation, Request, astray
from policies.answers import Allow, Answer, invalid
from policies.evaluating import Subject
from policies.findings import Finding
from policies.known import Known
from policies.pod_claims import Bystander, Claim
from policies.pod_rules import Case
from policies.policy import Policy
from policies.problems import Problem


def judge(policy: Policy, known: Known, request: Request, *, awaited: bool = False) -> Answer:
    """Mark a new pod of a gang; `awaited` says that others may wait for it to be Ready."""
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
    queue = standing.of(policy, namespace_of(request), {**claim.labels}).name or policy.pods.queue
    case = Case(claim, policy, known, awaited, queue)
    given: tuple[JsonObject, ...] = ()
    if claim.is_plain and case.is_ours:
        # What a set's pods are given, its template was.
        filled = mutating.to_plain_pod(policy, queue, request.object)
        request, given = replace(request, object=filled.object), filled.patch
        case = replace(case, claim=_read_again(claim, filled.object))
    findings = _findings(case, request)
    found = [*pod_rules.check(case), *evaluating.enforced(findings)]
    if found:
        return replace(invalid("Pod", found), findings=findings)
    warnings = (*evaluating.warned(findings), *marking.warnings(case))
    return Allow(given + marking.patch(case), warnings, findings)


def _read_again(claim: Claim, filled: JsonObject) -> Claim:
    again = pod_claims.read(filled)
    return again if isinstance(again, Claim) else claim


def namespace_of(request: Request) -> str:
    """Give where the pod is to be."""
    metadata = reading.mapping(reading.mapping(request.object).get("metadata"))
    return request.namespace or reading.text(metadata.get("namespace")) or ""


def _findings(case: Case, request: Request) -> tuple[Finding, ...]:
    """Hold a plain gang's pod against the policy; a set's was, when its set was."""
    if not case.claim.is_plain or not case.is_ours:
        return ()
    metadata = reading.mapping(reading.mapping(request.object).get("metadata"))
    subject = Subject(
        namespace_of(request),
        request.name or reading.text(metadata.get("name")) or "",
        reading.mapping(metadata.get("labels")),
        (("spec", case.claim.spec),),
        user=request.user if request.user.name else None,
        now=request.now,
    )
    return tuple(evaluating.evaluate(case.policy, case.known, subject))

"""A PodCliqueSet that is created or changed: its defaults filled in, and held against the rules."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from api.jsons import JsonObject
from api.podcliqueset import PodCliqueSetSpec
from policies import (
    evaluating,
    mutating,
    parsing,
    podcliqueset_defaults,
    podcliqueset_view,
    ratchet,
    reading,
    rulebook,
    rules,
)
from policies.admission import Operation, Request, User, astray, is_leaving
from policies.answers import Allow, Answer
from policies.evaluating import Subject
from policies.filling import Filled
from policies.findings import Finding
from policies.known import Known
from policies.podcliqueset_case import Case
from policies.podcliqueset_changes import Change
from policies.policy import Policy
from policies.problems import Problem

KIND: Final = "PodCliqueSet"
OVERFULL: Final = "pods-can-be-judged"


def judge(policy: Policy, known: Known, request: Request) -> Answer:
    """Fill in a set's defaults; refuse it if it breaks a rule that it did not break before."""
    if request.operation not in (Operation.CREATE, Operation.UPDATE):
        return Allow()
    if request.kind != KIND or request.object is None:
        return astray(request, KIND)
    if request.operation is Operation.UPDATE and is_leaving(request.object):
        # Its finalizers must be able to go, whatever is wrong with it.
        return Allow()
    is_new = request.operation is Operation.CREATE
    filled = _filled(policy, request, is_new=is_new)
    patch = filled.patch + (podcliqueset_defaults.holding(request.object) if is_new else ())
    case = Case(podcliqueset_view.view(filled.object), policy, known, is_new)
    old, before = None, request.old_object
    if before is not None and not is_new:
        before = podcliqueset_defaults.defaulted(before).object
        old = podcliqueset_view.view(before)
    changed = [] if old is None else rules.found(rulebook.SET_CHANGE_RULES, Change(old, case.set))

    def problems_before() -> list[Problem]:
        if before is None:
            return []
        # In the places of the new set, so that what only moved is found where it is now.
        moved = podcliqueset_view.in_order_of(before, filled.object)
        its = Case(podcliqueset_view.view(moved), policy, known, is_new=False)
        # Who may not submit may not change what another submitted either, only let it be.
        same = moved.get("spec") == filled.object.get("spec")
        asking = request if same else replace(request, user=User())
        broken = evaluating.enforced(findings_of(moved, its, asking))
        return [*_still_there(_problems(moved, its, request), its, case), *broken]

    findings = findings_of(filled.object, case, request)
    answer = ratchet.answered(
        KIND,
        filled.object,
        [*changed, *_problems(filled.object, case, request), *evaluating.enforced(findings)],
        problems_before,
        lambda: Allow(patch, (*evaluating.warned(findings), *_warnings(case))),
    )
    return replace(answer, findings=tuple(findings)) if findings else answer


def _filled(policy: Policy, request: Request, *, is_new: bool) -> Filled:
    """Fill in what Kubernetes and Grove have for everybody, and then what the policy gives."""
    done = podcliqueset_defaults.defaulted(request.object or {})
    old = None if is_new else podcliqueset_defaults.defaulted(request.old_object or {}).object
    given = mutating.to_set(policy, namespace_of(request, done.object), done.object, old)
    return Filled(given.object, done.patch + given.patch)


def namespace_of(request: Request, raw: JsonObject) -> str:
    """Give where the object is, or is to be."""
    metadata = reading.mapping(raw.get("metadata"))
    return request.namespace or reading.text(metadata.get("namespace")) or ""


def findings_of(raw: JsonObject, case: Case, request: Request) -> list[Finding]:
    """Hold a set against what the cluster's owners ask of sets."""
    if not evaluating.asks(case.policy):
        return []
    metadata = reading.mapping(raw.get("metadata"))
    subject = Subject(
        namespace_of(request, raw),
        case.set.name or "",
        reading.mapping(metadata.get("labels")),
        tuple((clique.pod_path, clique.pod) for clique in case.set.cliques),
        case.set,
        request.user if request.user.name else None,
        request.now,
    )
    return evaluating.evaluate(case.policy, case.known, subject)


def _problems(raw: JsonObject, case: Case, request: Request) -> list[Problem]:
    return parsing.told_once(
        rules.found(rulebook.SET_FIRST_RULES, case),
        parsing.misfits(raw, PodCliqueSetSpec, is_from_json=request.is_from_json),
        rules.found(rulebook.SET_RULES, case),
    )


def _still_there(found: Sequence[Problem], old: Case, new: Case) -> list[Problem]:
    """Leave out what old pods held too much of, unless they are as they were.

    Of a pod that is changed nobody could tell whether it is in what no rule looks at.
    """
    cliques = zip(old.set.cliques, new.set.cliques, strict=False)
    same = tuple(f"{was.pod_path}." for was, now in cliques if was.pod == now.pod)
    return [each for each in found if each.rule != OVERFULL or each.path.startswith(same)]


def _warnings(case: Case) -> tuple[str, ...]:
    return tuple(str(problem) for problem in rules.found(rulebook.SET_WARNINGS, case))

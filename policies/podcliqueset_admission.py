"""A PodCliqueSet that is created or changed: its defaults filled in, and held against the rules."""

from typing import Final

from api.jsons import JsonObject
from api.podcliqueset import PodCliqueSetSpec
from policies import parsing, podcliqueset_defaults, podcliqueset_view, ratchet, rulebook, rules
from policies.admission import Operation, Request, astray, is_leaving
from policies.answers import Allow, Answer
from policies.known import Known
from policies.podcliqueset_changes import Change
from policies.podcliqueset_view import Case
from policies.policy import Policy
from policies.problems import Problem

KIND: Final = "PodCliqueSet"


def judge(policy: Policy, known: Known, request: Request) -> Answer:
    """Fill in a set's defaults; refuse it if it breaks a rule that it did not break before."""
    if request.operation not in (Operation.CREATE, Operation.UPDATE):
        return Allow()
    if request.kind != KIND or request.object is None:
        return astray(request, KIND)
    if request.operation is Operation.UPDATE and is_leaving(request.object):
        # Its finalizers must be able to go, whatever is wrong with it.
        return Allow()
    filled = podcliqueset_defaults.defaulted(request.object)
    is_new = request.operation is Operation.CREATE
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
        return _problems(moved, Case(podcliqueset_view.view(moved), policy, known, is_new=False))

    return ratchet.answered(
        KIND,
        filled.object,
        [*changed, *_problems(filled.object, case)],
        problems_before,
        lambda: Allow(patch, _warnings(case)),
    )


def _problems(raw: JsonObject, case: Case) -> list[Problem]:
    return parsing.told_once(
        rules.found(rulebook.SET_FIRST_RULES, case),
        parsing.misfits(raw, PodCliqueSetSpec),
        rules.found(rulebook.SET_RULES, case),
    )


def _warnings(case: Case) -> tuple[str, ...]:
    return tuple(str(problem) for problem in rules.found(rulebook.SET_WARNINGS, case))

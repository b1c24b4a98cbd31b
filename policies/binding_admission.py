"""A ClusterTopologyBinding that is created or changed: held against the rules."""

from typing import Final

from api.jsons import JsonObject
from api.topology import ClusterTopologyBindingSpec
from policies import binding_rules, parsing, reading, rules
from policies.admission import Operation, Request, astray, is_leaving
from policies.answers import Allow, Answer
from policies.binding_rules import BindingCase
from policies.known import Known
from policies.policy import Policy
from policies.problems import Problem
from policies.ratchet import answered

KIND: Final = "ClusterTopologyBinding"


def judge(policy: Policy, _known: Known, request: Request) -> Answer:
    """Refuse a binding that breaks a rule, unless it broke it in the same way before."""
    if request.operation not in (Operation.CREATE, Operation.UPDATE):
        return Allow()
    if request.kind != KIND or request.object is None:
        return astray(request, KIND)
    if request.operation is Operation.UPDATE and is_leaving(request.object):
        return Allow()
    old = request.old_object
    return answered(
        KIND,
        request.object,
        _problems(policy, request.object),
        lambda: [] if old is None else _problems(policy, old),
        Allow,
    )


def _problems(policy: Policy, raw: JsonObject) -> list[Problem]:
    misfits = parsing.misfits(raw, ClusterTopologyBindingSpec)
    case = BindingCase(reading.mapping(raw.get("spec")), policy)
    return parsing.told_once([], misfits, rules.found(binding_rules.RULES, case))

"""What a gang's pod is given at its creation. Each mark adds one thing, once, and replaces nothing.

What is added are words of ours and of the policy, never values out of another object, so that
nobody gets anything through us. Only the schedulerName is written over, where the policy says that
it stands for another, and our own gate is taken off again where no gang of ours is concerned.
"""

from collections.abc import Callable, Iterator
from typing import Final

from api import names
from api.jsons import Json, JsonObject
from policies import gating, mutating, syntax
from policies.pod_claims import Claim
from policies.pod_rules import Case

SWITCH: Final = ("true", "false")

Mark = Callable[[Case], Iterator[JsonObject]]
Remark = Callable[[Case], Iterator[str]]


def patch(case: Case) -> tuple[JsonObject, ...]:
    """Give the JSON Patch that marks the pod; empty for one that needs nothing."""
    marks = MARKS if case.is_ours else ABROAD
    return tuple(operation for mark in marks for operation in mark(case))


def warnings(case: Case) -> tuple[str, ...]:
    """Give what its author should know although the pod is let in."""
    return tuple(line for remark in REMARKS for line in remark(case))


def scheduler_name(case: Case) -> Iterator[JsonObject]:
    """Write the name that the written one stands for; it can never be changed later."""
    written = case.claim.scheduler
    meant = case.policy.scheduler_of(written)
    if meant != written:
        yield {"op": "add", "path": "/spec/schedulerName", "value": meant}


def gate(case: Case) -> Iterator[JsonObject]:
    """Have the pod wait until its gang has room. Gates can only be given at creation."""
    if not gating.is_gated(case.claim.spec.get("schedulingGates")):
        yield _append(case.claim, "schedulingGates", gating.our_gate())


def no_gate(case: Case) -> Iterator[JsonObject]:
    """Take our gate off another scheduler's pod: nobody would ever lift it there."""
    gates = case.claim.spec.get("schedulingGates")
    listed = gates if isinstance(gates, list) else []
    ours = [i for i, each in enumerate(listed) if gating.is_ours(each)]
    # The API server refuses a gate that is there twice.
    if len(ours) == 1:
        yield {"op": "remove", "path": f"/spec/schedulingGates/{ours[0]}"}


def readiness_gate(case: Case) -> Iterator[JsonObject]:
    """Have the pod become Ready with its gang only, where that is asked for and can be."""
    if not _wants_readiness_gate(case) or _waits_for_others(case):
        return
    listed = case.claim.spec.get("readinessGates")
    there = listed if isinstance(listed, list) else []
    if all(not _is_ours(gate) for gate in there):
        yield _append(case.claim, "readinessGates", {"conditionType": names.READINESS_GATE})


def queue(case: Case) -> Iterator[JsonObject]:
    """Name the queue that is meant where the pod names none, in whichever word."""
    named = any(case.claim.labels.get(key) for key in names.QUEUE_LABELS)
    if case.queue and not named:
        yield _label(names.QUEUE_LABEL, case.queue)


def topology(case: Case) -> Iterator[JsonObject]:
    """Name the only topology there is where a gang without a PodGang names just a level of it."""
    claim = case.claim
    if not claim.is_plain or claim.labels.get(names.TOPOLOGY_LABEL):
        return
    bindings = case.known.bindings()
    # A binding may have a name that no label can hold.
    named = len(bindings) == 1 and syntax.is_value(bindings[0])
    if claim.labels.get(names.TOPOLOGY_LEVEL_LABEL) and named:
        yield _label(names.TOPOLOGY_LABEL, bindings[0])


MARKS: Final[tuple[Mark, ...]] = (scheduler_name, gate, readiness_gate, queue, topology)
# Another scheduler's gangs are its own: nothing of ours may hold them or mean anything on them.
ABROAD: Final[tuple[Mark, ...]] = (scheduler_name, no_gate)


def another_schedulers_gang(case: Case) -> Iterator[str]:
    """Tell whoever writes our label that nobody reads it."""
    if not case.is_ours and names.GANG_LABEL in case.claim.labels:
        name = case.policy.scheduler_of(case.claim.scheduler)
        yield f"no gang: label {names.GANG_LABEL} has no meaning for pods of scheduler {name}"


def readiness_gate_left_out(case: Case) -> Iterator[str]:
    """Tell whoever asks for the readiness gate why it is not given."""
    asked = case.claim.annotations.get(names.READINESS_GATE_ANNOTATION)
    if not case.is_ours or asked is None:
        return
    if asked not in SWITCH:
        yield f"annotation {names.READINESS_GATE_ANNOTATION} is neither true nor false: ignored"
    elif _wants_readiness_gate(case) and _waits_for_others(case):
        waiter = names.WAITER
        yield f"no readiness gate: {waiter} waits for ready pods, which would wait for this one"


def topology_without_a_level(case: Case) -> Iterator[str]:
    """Tell whoever names a topology that this asks for nothing yet."""
    labels = case.claim.labels
    if not case.is_ours or not case.claim.is_plain or names.TOPOLOGY_LABEL not in labels:
        return
    if not labels.get(names.TOPOLOGY_LEVEL_LABEL):
        yield f"label {names.TOPOLOGY_LABEL} means nothing without {names.TOPOLOGY_LEVEL_LABEL}"


REMARKS: Final[tuple[Remark, ...]] = (
    another_schedulers_gang,
    readiness_gate_left_out,
    topology_without_a_level,
)


def _wants_readiness_gate(case: Case) -> bool:
    asked = case.claim.annotations.get(names.READINESS_GATE_ANNOTATION)
    if asked in SWITCH:
        return asked == "true"
    given = mutating.of_queue(case.policy, case.queue)
    return case.policy.pods.readiness_gate or any(each.readiness_gate for each in given)


def _waits_for_others(case: Case) -> bool:
    # Pods that wait for a clique to be ready would hold back its readiness: neither ever starts.
    first = case.claim.spec.get("initContainers")
    listed = first if isinstance(first, list) else []
    return case.awaited or any(
        isinstance(each, dict) and each.get("name") == names.WAITER for each in listed
    )


def _is_ours(gate: Json) -> bool:
    return isinstance(gate, dict) and gate.get("conditionType") == names.READINESS_GATE


def _append(claim: Claim, field: str, entry: JsonObject) -> JsonObject:
    if claim.spec.get(field) is None:
        return {"op": "add", "path": f"/spec/{field}", "value": [entry]}
    return {"op": "add", "path": f"/spec/{field}/-", "value": entry}


def _label(key: str, value: str) -> JsonObject:
    # A claim is made by a label, so there are labels to add to.
    pointer = key.replace("~", "~0").replace("/", "~1")
    return {"op": "add", "path": f"/metadata/labels/{pointer}", "value": value}

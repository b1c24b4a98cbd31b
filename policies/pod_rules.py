"""The rules for a gang's pod: what it must say of its gang, and what keeps it from waiting."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from api import names
from api.cliques import MAX_REPLICAS
from policies import bounds, node_terms, syntax
from policies.known import Known
from policies.once import Once
from policies.pod_claims import Claim
from policies.policy import Policy
from policies.problems import Problem
from policies.rules import Rule, found

COUNT: Final = re.compile("[1-9][0-9]{0,8}")


@dataclass(frozen=True)
class Case:
    """A gang's pod, and what it is held against.

    `awaited` is one whose readiness another pod may wait for, whatever this one says of itself.
    """

    claim: Claim
    policy: Policy
    known: Known
    awaited: bool = False
    queue: str = ""
    """The queue that is meant, if one is."""

    @Once
    def is_ours(self) -> bool:
        """Whether the pod is bound by a scheduler whose gangs are ours."""
        return self.policy.ours(self.claim.scheduler)


def check(case: Case) -> list[Problem]:
    """Apply every rule, so that all problems are seen at once.

    Another scheduler's gangs are held against nothing of ours.
    """
    return found(RULES, case) if case.is_ours else []


def gang_is_named(case: Case) -> Iterator[Problem]:
    """Refuse a gang without a name, and two names for one gang."""
    labels = case.claim.labels
    told = {key: labels[key] for key in (names.PODGANG_LABEL, names.GANG_LABEL) if key in labels}
    for key, name in told.items():
        if not name:
            yield Problem(_label(key), "must name the pod's gang")
    if len(set(told.values())) > 1:
        yield Problem(
            _label(names.GANG_LABEL),
            f"names another gang than {names.PODGANG_LABEL}, and a pod belongs to one only; "
            "leave one of them out",
        )


def plain_gang_has_a_name_for_objects(case: Case) -> Iterator[Problem]:
    """Refuse a name that the gang's PodGang could not have: labels may say more than names."""
    name = case.claim.labels.get(names.GANG_LABEL, "")
    if case.claim.is_plain and name and not syntax.is_subdomain(name):
        yield Problem(
            _label(names.GANG_LABEL),
            f"{name!r} cannot be the name of the gang's PodGang: {syntax.SUBDOMAIN_RULE}",
        )


def plain_gang_has_a_size(case: Case) -> Iterator[Problem]:
    """Refuse a claim that nobody can honour: a gang of which nothing tells when it is whole."""
    claim = case.claim
    told = (names.GANG_SIZE_LABEL, names.GANG_MINIMUM_LABEL)
    if not claim.is_plain or any(key in claim.labels for key in told):
        return
    yield Problem(
        _label(names.GANG_LABEL),
        "names a gang whose size nobody knows, so it would wait for ever; add the label "
        f"{names.GANG_SIZE_LABEL} (all its pods) or {names.GANG_MINIMUM_LABEL} (how many must "
        "start together)",
    )


def counts_are_positive(case: Case) -> Iterator[Problem]:
    """Refuse sizes that are none, and a minimum that the gang can never reach."""
    claim = case.claim
    if not claim.is_plain:
        return
    counts: dict[str, int] = {}
    for key in (names.GANG_SIZE_LABEL, names.GANG_MINIMUM_LABEL):
        written = claim.labels.get(key)
        if written is None:
            continue
        if COUNT.fullmatch(written) and int(written) <= MAX_REPLICAS:
            counts[key] = int(written)
        else:
            yield Problem(
                _label(key), f"must be a whole number from 1 to {MAX_REPLICAS}, got {written!r}"
            )
    size, minimum = counts.get(names.GANG_SIZE_LABEL), counts.get(names.GANG_MINIMUM_LABEL)
    if size is not None and minimum is not None and minimum > size:
        yield Problem(
            _label(names.GANG_MINIMUM_LABEL),
            f"must not exceed {names.GANG_SIZE_LABEL} ({size}), got {minimum}",
        )


def waits_for_its_node(case: Case) -> Iterator[Problem]:
    """Refuse a pod that is on a node already: the API server forbids gates there."""
    if case.claim.spec.get("nodeName"):
        yield Problem(
            "spec.nodeName",
            f"a pod of a gang waits behind the gate {names.GATE}, which a pod with a node cannot "
            "carry; leave nodeName out, or the label that names the gang",
        )


def can_be_pinned(case: Case) -> Iterator[Problem]:
    """Refuse required node affinity of empty terms only.

    Each matches no node and must stay empty, so that nothing can pin the pod to one.
    """
    terms = bounds.terms(case.claim.spec)
    if terms and node_terms.say_nothing(terms):
        yield Problem(
            f"spec.{bounds.TERMS_PATH}",
            "every term is empty, and an empty term matches no node; say in one which nodes are "
            "meant, or leave the affinity out",
        )


def can_be_judged(case: Case) -> Iterator[Problem]:
    """Refuse pods that hold more than the policy's rules look at.

    A set's pods were judged with their set, and what makes them may have put something in.
    """
    if case.claim.is_plain:
        yield from bounds.overfull("spec", case.claim.spec)


def gates_are_a_list(case: Case) -> Iterator[Problem]:
    """Refuse lists of gates that are none."""
    for field in ("schedulingGates", "readinessGates"):
        if not isinstance(case.claim.spec.get(field), list | None):
            yield Problem(f"spec.{field}", "must be a list")


def topology_is_known(case: Case) -> Iterator[Problem]:
    """Refuse closeness that nobody can give. A set's gangs say theirs in their PodGang instead."""
    claim, known = case.claim, case.known
    binding, level = (claim.labels.get(key, "") for key in TOPOLOGY_LABELS)
    if not claim.is_plain or not (binding or level):
        return
    if not case.policy.topology.enabled:
        yield Problem(
            _label(TOPOLOGY_LABELS[0 if binding else 1]),
            "asks for closeness, which the policy of this cluster has switched off (topology)",
        )
        return
    there = ", ".join(known.bindings()) or "none"
    if not binding and len(known.bindings()) != 1:
        yield Problem(
            _label(names.TOPOLOGY_LEVEL_LABEL),
            f"says a level but not of which topology; add the label {names.TOPOLOGY_LABEL} with "
            f"one of: {there}",
        )
        return
    chosen = binding or known.bindings()[0]
    levels = known.binding(chosen)
    if levels is None:
        yield Problem(
            _label(names.TOPOLOGY_LABEL),
            f"there is no ClusterTopologyBinding {chosen!r}; there are: {there}",
        )
    elif level and level not in {each.domain for each in levels.levels}:
        yield Problem(
            _label(names.TOPOLOGY_LEVEL_LABEL),
            f"{level!r} is no level of {chosen}; its levels are: "
            + ", ".join(each.domain for each in levels.levels),
        )


TOPOLOGY_LABELS: Final = (names.TOPOLOGY_LABEL, names.TOPOLOGY_LEVEL_LABEL)

RULES: Final[tuple[Rule[Case], ...]] = (
    Rule(gang_is_named),
    Rule(plain_gang_has_a_name_for_objects),
    Rule(plain_gang_has_a_size),
    Rule(counts_are_positive),
    Rule(waits_for_its_node),
    Rule(can_be_pinned),
    Rule(can_be_judged),
    Rule(gates_are_a_list),
    Rule(topology_is_known),
)


def _label(key: str) -> str:
    return f"metadata.labels[{key}]"

"""All that the policy asks of a gang, in one place: for admission, for looking back, offline."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from api.jsons import JsonObject
from policies import (
    expression_checks,
    gang_sizes,
    globs,
    pod_checks,
    queue_rules,
    reading,
    standing,
)
from policies.admission import User
from policies.expression_checks import Gang
from policies.expression_view import PodSeen, SetSeen
from policies.findings import Finding
from policies.known import Known
from policies.podcliqueset_view import SetView
from policies.policy import Policy
from policies.policy_checks import Exemption, PodCheck
from policies.policy_queues import Mode
from policies.problems import Problem
from policies.queue_rules import Stood
from policies.standing import Standing

QUEUE_OPEN: Final = "queue-open"
QUEUE_SUBMITTER: Final = "queue-submitter"
QUEUE_PREFIX: Final = "queue-"

Found = tuple[str, Mode, Problem]


@dataclass(frozen=True)
class Subject:
    """A gang in the making: a set, or a pod that is one of a plain gang."""

    namespace: str
    name: str
    labels: JsonObject
    pods: tuple[tuple[str, JsonObject], ...]
    """The specs of its pods, each with its path."""
    set: SetView | None = None
    user: User | None = None
    """None where nobody asks, as in a look at what is there already."""
    now: datetime | None = None
    """None where it is not known: then no exemption is in force."""


def evaluate(policy: Policy, known: Known, subject: Subject) -> list[Finding]:
    """Hold a gang against the policy; what is off, and what is let off, is not among it."""
    if not (policy.queues or policy.rules):
        return []
    there = standing.of(policy, subject.namespace, subject.labels)
    exempt = [each for each in policy.exemptions if _is_for(each, subject)]
    return [
        Finding(rule, mode, problem)
        for rule, mode, problem in _found(policy, known, subject, there)
        if mode is not Mode.OFF and not any(globs.any_matches(each.rules, rule) for each in exempt)
    ]


def _found(policy: Policy, known: Known, subject: Subject, there: Standing) -> Iterator[Found]:
    of_queue = (there.queue.mode if there.queue else None) or policy.mode
    for rule, problem in _of_queue(policy, known, subject, there):
        yield rule, of_queue, problem
    gang = _seen(subject, there)
    for check in policy.rules:
        if globs.any_matches(check.queues, there.name):
            for problem in _of_rule(check, subject, gang):
                yield check.id, check.mode or policy.mode, problem


def _of_rule(check: PodCheck, subject: Subject, gang: Gang) -> Iterator[Problem]:
    if check.cel is not None:
        yield from expression_checks.check(check, gang)
        return
    for path, pod in subject.pods:
        yield from pod_checks.check(check, path, pod)


def _seen(subject: Subject, there: Standing) -> Gang:
    pods = tuple((path, PodSeen(subject.namespace, pod)) for path, pod in subject.pods)
    view = subject.set
    whole = SetSeen(subject.namespace, subject.labels, view) if view is not None else None
    return Gang(there.name, pods, whole)


def _of_queue(
    policy: Policy, known: Known, subject: Subject, there: Standing
) -> Iterator[tuple[str, Problem]]:
    for problem in standing.queue_is_open(policy, subject.namespace, there):
        yield QUEUE_OPEN, problem
    for problem in standing.queue_is_one(there, _labels(subject)) if policy.queues else ():
        yield QUEUE_OPEN, problem
    if subject.user is not None:
        for problem in standing.submitter_may(there, subject.user):
            yield QUEUE_SUBMITTER, problem
    if there.queue is not None and subject.set is not None:
        sizes = gang_sizes.of_set(subject.set)
        stood = Stood(subject.set, sizes, there.queue, policy, known)
        for rule in queue_rules.RULES:
            for problem in rule.check(stood):
                yield QUEUE_PREFIX + rule.name.replace("_", "-"), problem


def _labels(subject: Subject) -> Iterator[tuple[str, JsonObject]]:
    yield "metadata.labels", subject.labels
    for clique in subject.set.cliques if subject.set is not None else ():
        yield f"{clique.path}.labels", reading.mapping(clique.raw.get("labels"))


def _is_for(exemption: Exemption, subject: Subject) -> bool:
    return (
        subject.now is not None
        and exemption.holds(subject.now)
        and globs.any_matches(exemption.namespaces, subject.namespace)
        and globs.any_matches(exemption.names, subject.name)
        and (subject.user is None or standing.is_among(exemption.submitters, subject.user))
    )


def enforced(findings: Sequence[Finding]) -> list[Problem]:
    """Give what keeps the object out."""
    return [each.told for each in findings if each.mode is Mode.ENFORCE]


def warned(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Give what its author is told although it is let in."""
    return tuple(str(each.told) for each in findings if each.mode is Mode.WARN)

"""All that the policy asks of a gang, in one place: for admission, for looking back, offline."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from api import names
from api.jsons import JsonObject
from policies import (
    expression_checks,
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
from policies.pod_checks import Pods
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

_QUEUE_LABELS: Final = frozenset(names.QUEUE_LABELS)

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


def asks(policy: Policy) -> bool:
    """Tell whether the policy asks anything of gangs."""
    return bool(policy.queues or policy.rules)


def evaluate(policy: Policy, known: Known, subject: Subject) -> list[Finding]:
    """Hold a gang against the policy; what is off, and what is let off, is not among it."""
    if not asks(policy):
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
    gang = _seen(subject, there)
    for rule, problem in _of_queue(policy, known, subject, Place(there, gang.set)):
        yield rule, of_queue, problem
    if not policy.rules:
        return
    pods = pod_checks.look(subject.pods)
    for check in policy.rules:
        mode = check.mode or policy.mode
        if mode is not Mode.OFF and globs.any_matches(check.queues, there.name):
            for problem in _of_rule(check, gang, pods):
                yield check.id, mode, problem


def _of_rule(check: PodCheck, gang: Gang, pods: Pods) -> Iterator[Problem]:
    if check.cel is not None:
        return expression_checks.check(check, gang)
    return pod_checks.check(check, pods)


def _seen(subject: Subject, there: Standing) -> Gang:
    pods = tuple((path, PodSeen(subject.namespace, pod)) for path, pod in subject.pods)
    view = subject.set
    if view is None:
        return Gang(there.name, pods, None)
    own = [pod for _, pod in pods]
    return Gang(there.name, pods, SetSeen(subject.namespace, subject.labels, view, own))


@dataclass(frozen=True)
class Place:
    """Where a gang stands, and the set that does, if it is one."""

    standing: Standing
    set: SetSeen | None


def _of_queue(
    policy: Policy, known: Known, subject: Subject, place: Place
) -> Iterator[tuple[str, Problem]]:
    there = place.standing
    for problem in standing.queue_is_open(policy, subject.namespace, there):
        yield QUEUE_OPEN, problem
    for problem in standing.queue_is_one(there, _labels(subject)) if policy.queues else ():
        yield QUEUE_OPEN, problem
    if subject.user is not None:
        for problem in standing.submitter_may(there, subject.user):
            yield QUEUE_SUBMITTER, problem
    if there.queue is not None and place.set is not None:
        stood = Stood(place.set.view, place.set.sizes, there.queue, policy, known)
        for rule in queue_rules.RULES:
            for problem in rule.check(stood):
                yield QUEUE_PREFIX + rule.name.replace("_", "-"), problem


def _labels(subject: Subject) -> Iterator[tuple[str, JsonObject]]:
    yield "metadata.labels", subject.labels
    for clique in subject.set.cliques if subject.set is not None else ():
        labels = reading.mapping(clique.raw.get("labels"))
        if not _QUEUE_LABELS.isdisjoint(labels):
            yield f"{clique.path}.labels", labels


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

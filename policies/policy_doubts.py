"""What can be gone by, but surely is not meant: told by `penstock policy lint`."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from policies import evaluating, globs, queue_rules
from policies.policy import Policy
from policies.policy_reading import Fault, fault

LONGEST_EXEMPTION = timedelta(days=90)


def doubts(policy: Policy, now: datetime) -> list[Fault]:
    """Find what has no effect, or one for longer than exemptions should have."""
    return [
        *_exemptions(policy, now),
        *_rules(policy),
        *_queues(policy),
    ]


def _exemptions(policy: Policy, now: datetime) -> Iterator[Fault]:
    named = [
        evaluating.QUEUE_OPEN,
        evaluating.QUEUE_SUBMITTER,
        *(evaluating.QUEUE_PREFIX + rule.name.replace("_", "-") for rule in queue_rules.RULES),
        *(rule.id for rule in policy.rules),
    ]
    for i, exemption in enumerate(policy.exemptions):
        expires = ("exemptions", i, "expires")
        if not exemption.holds(now):
            yield fault(expires, "is over: nobody is let off any more")
        elif exemption.expires - now > LONGEST_EXEMPTION:
            yield fault(expires, f"is more than {LONGEST_EXEMPTION.days} days away")
        for j, pattern in enumerate(exemption.rules):
            if not any(globs.any_matches([pattern], name) for name in named):
                yield fault(("exemptions", i, "rules", j), f"no rule is called {pattern!r}")


def _rules(policy: Policy) -> Iterator[Fault]:
    # Without queues the label stands for itself.
    queues = [queue.name for queue in policy.queues]
    narrowed: dict[str, list[list[str]]] = {
        "rules": [rule.queues for rule in policy.rules],
        "mutations": [mutation.queues for mutation in policy.mutations],
    }
    for what, lists in narrowed.items() if queues else ():
        for i, patterns in enumerate(lists):
            for j, pattern in enumerate(patterns):
                if not any(globs.any_matches([pattern], name) for name in ("", *queues)):
                    yield fault((what, i, "queues", j), f"no queue is called {pattern!r}")


def _queues(policy: Policy) -> Iterator[Fault]:
    defaults: dict[str, str] = {}
    for i, queue in enumerate(policy.queues):
        for j, name in enumerate(queue.schedulers):
            if not policy.ours(name):
                where = ("queues", i, "schedulers", j)
                yield fault(where, f"{name!r} is not among the schedulers, so it binds no gang")
        for j, pattern in enumerate(queue.namespaces if queue.default else ()):
            first = defaults.setdefault(pattern, queue.name)
            if first != queue.name:
                yield fault(
                    ("queues", i, "namespaces", j),
                    f"queue {first!r} is the default of {pattern!r} already, and comes first",
                )

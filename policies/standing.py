"""In which queue a gang stands, and whether it may."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from api import names
from api.jsons import JsonObject
from policies import globs, reading
from policies.admission import User
from policies.policy import Policy
from policies.policy_queues import Queue, Submitters
from policies.problems import Problem, choice

_ACCOUNT: Final = "system:serviceaccount:"


@dataclass(frozen=True)
class Standing:
    """The queue that is meant, if the policy has it, and where its name is written."""

    queue: Queue | None
    name: str
    path: str
    is_default: bool = False
    """Whether nobody has named it."""


def of(policy: Policy, namespace: str, labels: JsonObject) -> Standing:
    """Find the queue: the one that is named, or else the namespace's default."""
    for key in names.QUEUE_LABELS:
        written = reading.text(labels.get(key))
        if written:
            named = next((each for each in policy.queues if each.name == written), None)
            return Standing(named, written, f"metadata.labels[{key}]")
    default = next((q for q in policy.queues if q.default and q.has(namespace)), None)
    return Standing(default, default.name if default else "", "metadata.namespace", is_default=True)


def queue_is_open(policy: Policy, namespace: str, standing: Standing) -> Iterator[Problem]:
    """Refuse a queue that there is not, or that is not for this namespace."""
    if not policy.queues:
        return
    usable = [queue.name for queue in policy.queues if queue.has(namespace)]
    if standing.queue is not None:
        if not standing.queue.has(namespace):
            yield Problem(
                standing.path,
                f"queue {standing.name!r} is not for namespace {namespace!r}{choice(usable)}",
            )
    elif standing.name:
        yield Problem(standing.path, f"there is no queue {standing.name!r}{choice(usable)}")
    elif policy.unmatched_namespaces == "deny":
        said = "no queue is for" if not usable else "no queue is the default of"
        yield Problem(
            standing.path,
            f"{said} namespace {namespace!r}; name one in the label {names.QUEUE_LABEL}"
            f"{choice(usable)}",
        )


def queue_is_one(standing: Standing, labels: Iterable[tuple[str, JsonObject]]) -> Iterator[Problem]:
    """Refuse labels of the object, or of what it makes, that name yet another queue."""
    for path, there in labels:
        for key in names.QUEUE_LABELS:
            written = reading.text(there.get(key))
            if written and written != standing.name:
                meant = f"in queue {standing.name!r}" if standing.name else "in no queue"
                yield Problem(
                    f"{path}[{key}]", f"names queue {written!r}, and all of this stands {meant}"
                )


def submitter_may(standing: Standing, user: User) -> Iterator[Problem]:
    """Refuse people who are not among those that a queue is for."""
    queue = standing.queue
    if queue is None or is_among(queue.submitters, user) or acts_for_others(user):
        return
    yield Problem(standing.path, f"{user.name!r} may not submit to queue {queue.name!r}")


def acts_for_others(user: User) -> bool:
    """Tell whether this is a controller of the cluster, which makes what others asked for."""
    if user.name.startswith(_ACCOUNT):
        return user.name.startswith(f"{_ACCOUNT}kube-system:")
    return user.name.startswith("system:") and user.name != "system:anonymous"


def is_among(submitters: Submitters, user: User) -> bool:
    """Tell whether the submitters take in this user."""
    if submitters.are_all:
        return True
    if user.name.startswith(_ACCOUNT):
        account = user.name.removeprefix(_ACCOUNT)
        if globs.any_matches(submitters.service_accounts, account):
            return True
    return globs.any_matches(submitters.users, user.name) or any(
        globs.any_matches(submitters.groups, group) for group in user.groups
    )

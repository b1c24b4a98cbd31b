"""Pods: made from the live PodClique they belong to, one in each place that is empty. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final, TypeAlias

from api import names
from api.jsons import JsonObject
from api.objects import timestamp
from api.streams import Pod
from controller.workloads import belonging, naming
from controller.workloads.making import (
    claims,
    cliques,
    computedomains,
    environment,
    judging,
    waiting,
)
from controller.workloads.making.slots import Slots, slots
from controller.workloads.quota import withdrawing
from controller.workloads.stepping import Again, Change, Create, Remove, Step
from controller.workloads.views import Clique, SetView
from controller.workloads.wants import Wanted, WantedClique
from kube.resources import PODCLIQUES, PODS
from policies import gating, membership

Shaping: TypeAlias = Callable[[SetView, WantedClique, int, JsonObject], JsonObject]

# What is done to each pod's spec after all else, in this order; the waiter comes last, since its
# container shares in nothing.
SHAPINGS: Final[tuple[Shaping, ...]] = (claims.shaped, computedomains.shaped, waiting.shaped)

# A pod that ends sooner than this after its making is not replaced before: what fails at once
# would else be made anew without a pause.
SHORTEST_LIFE: Final = timedelta(seconds=5)
# One that fails after less than this, as others of its clique did before it, waits ever longer.
LONG_LIFE: Final = timedelta(minutes=10)
FIRST_WAIT: Final = timedelta(seconds=10)
LONGEST_WAIT: Final = timedelta(minutes=5)
_NO_GANGS: Final = "GangScheduling=false"
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


def steps(view: SetView, wanted: Wanted, now: datetime) -> Iterator[Step]:
    """Fill empty places, each gang's minimum before any extras; remove pods that are too many."""
    making, held = _Making(view), withdrawing.held(view, wanted, now)
    extras: list[Create] = []
    for clique in wanted.cliques.values():
        there = view.cliques.get(clique.name)
        if there is None or cliques.is_leaving(view, clique, there):
            continue
        found = slots(view, clique)
        if found.make and clique.place.gang not in held:
            made = making.of_clique(clique, there, found.make)
            first = max(0, clique.minimum - (len(found.referred) - len(found.make)))
            yield from made[:first]
            extras += made[first:]
        yield from _removals(view, there, found, now)
    yield from extras


def _removals(view: SetView, there: Clique, found: Slots, now: datetime) -> Iterator[Step]:
    failed = [pod for pod in found.remove if pod.metadata.uid in found.failed]
    young = {pod.metadata.uid: pod for pod in failed if now - _made(pod) < LONG_LIFE}
    wait = _Streak.read(there)
    if any(wait.is_news(pod) for pod in young.values()):
        wait = wait.going_on(view.pods_of(there.metadata.name), now)
        patch: JsonObject = {
            "metadata": {"annotations": {names.FAILURES_ANNOTATION: wait.written()}}
        }
        yield Change(PODCLIQUES, there.metadata.name, there.metadata.uid, patch)
    for pod in found.remove:
        due = max(_made(pod) + SHORTEST_LIFE, wait.until) if pod.metadata.uid in young else now
        if now < due:
            yield Again(due)
        else:
            yield Remove(PODS, pod.metadata.name, pod.metadata.uid)


def _made(pod: Pod) -> datetime:
    return pod.metadata.creation_timestamp or _NEVER


@dataclass(frozen=True)
class _Streak:
    """How often in a row pods of a clique have failed soon after their making.

    All that were made up to `through` count as one time: they were made together. That is an
    instant of the API server's clock, so that no other clock has to agree with it. Written before
    such a pod goes, so that who comes after a crash waits as long.
    """

    count: int = 0
    through: datetime = _NEVER
    since: datetime = _NEVER

    @classmethod
    def read(cls, there: Clique) -> "_Streak":
        """Read what is remembered; what cannot be read was never written by us."""
        written = there.metadata.annotations.get(names.FAILURES_ANNOTATION, "").split()
        try:
            count, through, since = written
            found = cls(int(count), datetime.fromisoformat(through), datetime.fromisoformat(since))
        except ValueError:
            return cls()
        aware = found.through.tzinfo is not None and found.since.tzinfo is not None
        return found if aware and found.count > 0 else cls()

    def is_news(self, pod: Pod) -> bool:
        """Whether a pod's failure has not been counted yet."""
        return _made(pod) > self.through

    def going_on(self, pods: Sequence[Pod], now: datetime) -> "_Streak":
        """Count once more; after a while without any failure the count begins anew."""
        count = self.count + 1 if now < self.until + LONG_LIFE else 1
        return _Streak(count, max(map(_made, pods)), now)

    @property
    def until(self) -> datetime:
        """When what has failed is made anew."""
        if self.count < 2:
            return self.since
        times = 1 << min(self.count - 2, 16)
        return self.since + min(LONGEST_WAIT, FIRST_WAIT * times)

    def written(self) -> str:
        """Write it as an annotation has it."""
        return f"{self.count} {timestamp(self.through)} {timestamp(self.since)}"


class _Making:
    """Writes the pods of one set."""

    def __init__(self, view: SetView) -> None:
        self._view = view

    def of_clique(self, clique: WantedClique, there: Clique, places: Sequence[int]) -> list[Create]:
        """Write the pods of these places; the claims of each must be there."""
        shared = self._shared(clique, there)
        labels = self._labels(clique, there)
        return [
            Create(PODS, self._body(clique, there, index, (shared, labels)))
            for index in places
            if not claims.missing_for(self._view, clique, index)
        ]

    def _body(
        self, clique: WantedClique, there: Clique, index: int, shared: tuple[JsonObject, JsonObject]
    ) -> JsonObject:
        owner = self._view.metadata
        spec, labels = shared
        spec = {**spec, "hostname": naming.hostname(clique.name, index)}
        for shaping in SHAPINGS:
            spec = shaping(self._view, clique, index, spec)
        pod: JsonObject = {
            "apiVersion": PODS.api_version,
            "kind": PODS.kind,
            "metadata": {
                "name": naming.pod(owner.uid, clique.name, index),
                "namespace": owner.namespace,
                "labels": {**labels, names.POD_INDEX_LABEL: str(index)},
                "annotations": {**_annotations(there), **self._free},
                "ownerReferences": [belonging.owned_by(PODCLIQUES, there.metadata)],
            },
            "spec": spec,
        }
        return judging.noted(pod, self._view.choices.goes_by)

    def _shared(self, clique: WantedClique, there: Clique) -> JsonObject:
        """Write what all pods of a clique have in common."""
        owner = self._view.metadata
        spec = environment.given(there.spec.pod_spec, environment.of_pod(owner, clique))
        gates = spec.get("schedulingGates")
        listed = gates if isinstance(gates, list) else []
        # Written here and not left to the webhook, whose outage must neither hold up our pods nor
        # let them start alone. The author's own gates stay: others count on them.
        spec["schedulingGates"] = gating.gated(listed) if self._view.choices.gates else listed
        spec["subdomain"] = naming.base_gang(owner.name, clique.place.replica)
        if self._scheduler:
            spec["schedulerName"] = self._scheduler
        priority = self._view.spec.template.priority_class_name
        if priority and not spec.get("priorityClassName"):
            spec["priorityClassName"] = priority
        return spec

    def _labels(self, clique: WantedClique, there: Clique) -> JsonObject:
        # What a pod is to gangs follows from where its clique stands, not from what is written on
        # the clique, which more people may change.
        copied = there.metadata.labels.items()
        # They stand in the queue that their set was judged in.
        of_set = self._view.metadata.labels
        return {
            **{key: text for key, text in copied if not membership.is_forbidden_label(key)},
            **belonging.labels_of_clique(self._view.metadata.name, clique),
            names.PODCLIQUE_LABEL: clique.name,
            **{key: of_set[key] for key in names.QUEUE_LABELS if of_set.get(key)},
        }

    @property
    def _free(self) -> JsonObject:
        """Have a pod that never waits say so, that it is not taken back with a gang later on."""
        return {} if self._view.choices.gates else {names.RELEASED_ANNOTATION: _NO_GANGS}

    @cached_property
    def _scheduler(self) -> str:
        """Name the scheduler that takes the author's place, if any.

        The webhook may have written another name than the author, and all pods of a set go to one.
        """
        # No other name is taken from a pod: whoever could forge one would choose the scheduler.
        pods: Iterator[Pod] = (pod for pods in self._view.pods.values() for pod in pods)
        taken = any(pod.spec.scheduler_name == names.DEFAULT_SCHEDULER for pod in pods)
        return names.DEFAULT_SCHEDULER if taken else ""


def _annotations(there: Clique) -> JsonObject:
    forbidden = membership.is_forbidden_annotation
    written = there.metadata.annotations.items()
    return {key: text for key, text in written if not forbidden(key) and key not in _NOTES}


# What was done with a PodClique is no word of its template.
_NOTES: Final = frozenset(
    (*names.TERMINATIONS, names.TEMPLATE_HASH_ANNOTATION, names.FAILURES_ANNOTATION)
)

"""Which pods are a plain gang, and what they say of it by their labels. Pure.

A label is a claim, but here it is all there is: guards see to it that a pod has it from the start,
together with our gate, and that only we take that gate off.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from api import names
from api.cliques import MAX_REPLICAS
from api.streams import Pod
from kube.objects import Key

MOST_TOLD: Final = 5  # of what pods say differently; thousands could
_FIRST: Final = "that of the first slot that says it"
_LONGEST_KEY: Final = 317  # of labels: a prefix, a slash and a name
_LONGEST_VALUE: Final = 63
_COUNT: Final = re.compile("[1-9][0-9]{0,8}")
_INDEX: Final = re.compile("[0-9]{1,9}")


@dataclass(frozen=True)
class Whereabouts:
    """Where a gang would best be: apart from others by which level, and in which zone."""

    spread: str = ""
    zone: str = ""


@dataclass(frozen=True)
class Wishes:
    """What a gang's pods say of it, where they disagree too."""

    minimum: int
    priority_class: str
    topology: str
    level: str
    disagreements: tuple[str, ...]
    whereabouts: Whereabouts = Whereabouts()
    timeout: str = ""


def gang_of(pod: Pod) -> Key | None:
    """Give the plain gang that the pod claims, or None if it claims none that could be.

    A PodGang that somebody else makes for the pod comes first.
    """
    labels = pod.metadata.labels
    name = labels.get(names.GANG_LABEL, "")
    if not name or names.PODGANG_LABEL in labels or minimum_of(pod) is None:
        return None
    return pod.metadata.namespace, name


def minimum_of(pod: Pod) -> int | None:
    """Read how many pods must start together: the gang's minimum, else its size."""
    labels = pod.metadata.labels
    written = labels.get(names.GANG_MINIMUM_LABEL, labels.get(names.GANG_SIZE_LABEL, ""))
    if _COUNT.fullmatch(written) and int(written) <= MAX_REPLICAS:
        return int(written)
    return None


def lives(pod: Pod) -> bool:
    """Whether the pod has a future: it has not ended and is not going away."""
    return not pod.finished and pod.metadata.deletion_timestamp is None


def ordinal(pod: Pod) -> int | None:
    """Which one of its owner's pods it is, if it says so."""
    for label in (names.STATEFULSET_INDEX_LABEL, names.JOB_INDEX_LABEL):
        text = pod.metadata.labels.get(label, "")
        if _INDEX.fullmatch(text) and int(text) < MAX_REPLICAS:
            return int(text)
    return None


def by_age(pods: Collection[Pod]) -> list[Pod]:
    """Put pods in order, the oldest first."""
    return sorted(pods, key=_age)


def whereabouts(pod: Pod) -> Whereabouts:
    """Read what a pod says of that; what could be no label's key or value says nothing."""
    annotations, labels = pod.metadata.annotations, pod.metadata.labels
    spread = annotations.get(names.SPREAD_ANNOTATION, "")
    zone = annotations.get(names.PREFERRED_ZONE, "") or labels.get(names.PREFERRED_ZONE, "")
    return Whereabouts(
        spread if len(spread) <= _LONGEST_KEY else "", zone if len(zone) <= _LONGEST_VALUE else ""
    )


def timeout(pod: Pod) -> str:
    """Read for how long a pod says its gang may wait; what could be no duration says nothing."""
    meta = pod.metadata
    text = meta.annotations.get(names.GANG_TIMEOUT, "") or meta.labels.get(names.GANG_TIMEOUT, "")
    return text if len(text) <= _LONGEST_VALUE else ""


def wishes(pods: Sequence[Pod], slots: Mapping[str, int]) -> Wishes:
    """Take what the pods say together; there is at least one, and the oldest comes first.

    Of several minima the largest counts, so that no pod starts with fewer than it asks for. Of
    where they best were, and for how long they may wait, the first pod counts that says it, by
    slots. In everything else the oldest pod is followed, so that a newer one never moves a gang
    that runs.
    """
    oldest = pods[0]
    by_slot = sorted(pods, key=lambda pod: slots[pod.metadata.name])
    spreads = [said.spread for said in map(whereabouts, by_slot) if said.spread]
    zones = [said.zone for said in map(whereabouts, by_slot) if said.zone]
    timeouts = [said for said in map(timeout, by_slot) if said]
    disagreements = (
        _differ("the minimum", "the largest", [str(minimum_of(pod)) for pod in pods]),
        _differ("the priority class", "the oldest pod's", [_priority(pod) for pod in pods]),
        _differ("the topology", "the oldest pod's", ["/".join(_closeness(pod)) for pod in pods]),
        _differ("where they keep apart", _FIRST, spreads),
        _differ("the zone", _FIRST, zones),
        _differ("the gang timeout", _FIRST, timeouts),
    )
    topology, level = _closeness(oldest)
    return Wishes(
        max(minimum_of(pod) or 1 for pod in pods),
        _priority(oldest),
        topology,
        level,
        tuple(each for each in disagreements if each),
        Whereabouts(next(iter(spreads), ""), next(iter(zones), "")),
        next(iter(timeouts), ""),
    )


def _priority(pod: Pod) -> str:
    return pod.spec.priority_class_name


def _closeness(pod: Pod) -> tuple[str, str]:
    """Read in which topology at which level the gang is to stay; a topology alone says nothing."""
    labels = pod.metadata.labels
    level = labels.get(names.TOPOLOGY_LEVEL_LABEL, "")
    return (labels.get(names.TOPOLOGY_LABEL, ""), level) if level else ("", "")


def _differ(what: str, winner: str, said: Sequence[str]) -> str:
    """Say that pods disagree, or "" if they do not."""
    each = sorted(set(said))
    if len(each) <= 1:
        return ""
    told = ", ".join(
        [text or "none" for text in each[:MOST_TOLD]] + ["…"] * (len(each) > MOST_TOLD)
    )
    return f"its pods disagree about {what} ({told}): {winner} counts"


def _age(pod: Pod) -> tuple[str, str]:
    born = pod.metadata.creation_timestamp
    return born.isoformat() if born else "", pod.metadata.name

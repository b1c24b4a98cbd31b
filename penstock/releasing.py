"""Which gated pods a release is about, gang by gang, and in which order. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from api import names
from api.streams import Pod

SHOWN: Final = 5  # of a gang's pods, so many are named


@dataclass(frozen=True)
class Scope:
    """Which pods are meant: all of them, those of a namespace, or of one set or gang in it."""

    namespace: str | None = None
    name: str = ""

    def covers(self, pod: Pod) -> bool:
        """Whether the pod waits behind our gate and is meant."""
        meta = pod.metadata
        if names.GATE not in pod.gates or meta.deletion_timestamp is not None:
            return False
        here = self.namespace is None or meta.namespace == self.namespace
        return here and (not self.name or self.name in (gang_of(pod), _set_of(pod)))

    @property
    def text(self) -> str:
        """Name it for people."""
        if self.name:
            return f"of {self.namespace}/{self.name}"
        return f"in namespace {self.namespace}" if self.namespace else "in any namespace"


@dataclass(frozen=True)
class Batch:
    """The gated pods of one gang; `name` is empty for those that name no gang."""

    namespace: str
    name: str
    pods: tuple[Pod, ...]

    @property
    def title(self) -> str:
        """Name the gang for people."""
        return f"{self.namespace}/{self.name or '(no gang)'}"

    @property
    def text(self) -> str:
        """Say how many pods it has here, and which."""
        called = [pod.metadata.name for pod in self.pods]
        more = f" and {len(called) - SHOWN} more" if len(called) > SHOWN else ""
        return f"{self.title}: {counted(len(called))}: {', '.join(called[:SHOWN])}{more}"


def batches(pods: Iterable[Pod], scope: Scope) -> list[Batch]:
    """Put the pods that are meant in order: gang after gang, so that an end midway halves but one.

    A scaled gang comes after its base gang, without which its pods can do nothing.
    """
    found: dict[tuple[str, bool, str], list[Pod]] = {}
    for pod in pods:
        if scope.covers(pod):
            scaled = names.BASE_PODGANG_LABEL in pod.metadata.labels
            key = (pod.metadata.namespace, scaled, gang_of(pod))
            found.setdefault(key, []).append(pod)
    return [
        Batch(namespace, name, tuple(sorted(of_gang, key=lambda pod: pod.metadata.name)))
        for (namespace, _, name), of_gang in sorted(found.items())
    ]


def gang_of(pod: Pod) -> str:
    """Give the name of the gang that the pod says it belongs to, or ""."""
    labels = pod.metadata.labels
    return labels.get(names.PODGANG_LABEL) or labels.get(names.GANG_LABEL, "")


def _set_of(pod: Pod) -> str:
    labels = pod.metadata.labels
    ours = labels.get(names.MANAGED_BY_LABEL) == names.MANAGED_BY
    return labels.get(names.PART_OF_LABEL, "") if ours else ""


def still_held(found: Sequence[Batch]) -> list[str]:
    """List the gates of others that keep some of these pods waiting all the same."""
    gates = {gate for batch in found for pod in batch.pods for gate in pod.gates}
    return sorted(gates - {names.GATE})


def counted(number: int, what: str = "pod") -> str:
    """Write a number of things."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

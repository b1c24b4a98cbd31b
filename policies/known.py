"""What the rules may know of the cluster beside the object they look at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from api.capacity import Capacity
from api.topology import ClusterTopologyBindingSpec


class Known(Protocol):
    """Answers from memory, about the cluster as it was a moment ago."""

    def binding(self, name: str) -> ClusterTopologyBindingSpec | None:
        """Give the levels of the ClusterTopologyBinding of that name; None if there is none."""
        ...

    def bindings(self) -> list[str]:
        """Give the names of all ClusterTopologyBindings, for messages."""
        ...

    def capacity(self) -> Capacity | None:
        """Give what the largest node and domains hold; None if nobody has said so yet."""
        ...

    def set_annotations(self, namespace: str, name: str) -> Mapping[str, str] | None:
        """Give the annotations of a PodCliqueSet; None if there is no such set."""
        ...


@dataclass(frozen=True)
class Snapshot:
    """A cluster as it is said to be: for what runs without one."""

    topologies: Mapping[str, ClusterTopologyBindingSpec] = field(default_factory=dict)
    largest: Capacity | None = None
    sets: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)

    def binding(self, name: str) -> ClusterTopologyBindingSpec | None:
        """Give the levels of that topology binding."""
        return self.topologies.get(name)

    def bindings(self) -> list[str]:
        """Give the names of all topology bindings."""
        return sorted(self.topologies)

    def capacity(self) -> Capacity | None:
        """Give what the largest node and domains hold."""
        return self.largest

    def set_annotations(self, namespace: str, name: str) -> Mapping[str, str] | None:
        """Give the annotations of a PodCliqueSet."""
        return self.sets.get((namespace, name))


NOTHING: Snapshot = Snapshot()

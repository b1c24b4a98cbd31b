"""How many pods of each clique are up. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from api import names
from api.streams import Pod
from controller.waiter.settings import Parent

# More would make the address of a request too long for servers on the way.
_MOST_NAMED: Final = 32


@dataclass(frozen=True)
class Progress:
    """A clique that is waited for, and how many of its pods are up."""

    parent: Parent
    up: int

    @property
    def done(self) -> bool:
        """Whether it need not be waited for."""
        return self.up >= self.parent.minimum

    @property
    def sentence(self) -> str:
        """How far it is, for people."""
        return f"{self.parent.clique} has {self.up} of {self.parent.minimum} pods up"


def progress(parents: Sequence[Parent], pods: Iterable[Pod]) -> tuple[Progress, ...]:
    """Count the pods with all containers ready, each for the clique that its label names."""
    up = Counter(
        pod.metadata.labels.get(names.PODCLIQUE_LABEL) for pod in pods if pod.containers_ready
    )
    return tuple(Progress(parent, up[parent.clique]) for parent in parents)


def selector(gang: str, parents: Sequence[Parent]) -> str:
    """Select the pods of the gang that count; where they have too many names, the whole gang."""
    whole = f"{names.PODGANG_LABEL}={gang}"
    cliques = sorted({parent.clique for parent in parents})
    if len(cliques) > _MOST_NAMED:
        return whole
    return f"{whole},{names.PODCLIQUE_LABEL} in ({','.join(cliques)})"

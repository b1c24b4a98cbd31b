"""The kinds that `gangs` follows, each in a cache."""

import random
from dataclasses import dataclass
from typing import Final

from api.streams import Custom, Node, Pod, PodClique
from controller.gangs.modes import ALONE, Mode
from controller.gangs.sparing import Sparing
from kube.cache import Cache, Reader, Source
from kube.client import Scope
from kube.resources import NODES, PODCLIQUES, PODGANGS, PODS, RESERVATIONS, SCALING_GROUPS

STAY_READ: Final = 512  # gangs, and reservations


@dataclass(frozen=True)
class Caches:
    """What `gangs` follows. Of gangs and reservations the last `stay_read` stay read, or all."""

    nodes: Cache[Node]
    pods: Cache[Pod]
    gangs: Cache[Custom]
    reservations: Cache[Custom]
    cliques: Cache[PodClique]
    scaling_groups: Cache[Custom]
    mode: Mode = ALONE
    stay_read: int | None = None

    @classmethod
    def spare(cls, source: Source, rng: random.Random, mode: Mode) -> "Caches":
        """Make caches that keep what `gangs` needs of a large cluster in little room."""
        sparing = Sparing()
        return cls(
            Cache(source, NODES, Reader(sparing.node), rng),
            Cache(source, PODS, Reader(sparing.pod, sparing.resemble), rng),
            Cache(source, PODGANGS, Reader(sparing.custom), rng),
            Cache(source, RESERVATIONS, Reader(sparing.custom), rng),
            Cache(source, PODCLIQUES, Reader(sparing.clique), rng),
            Cache(source, SCALING_GROUPS, Reader(sparing.custom), rng, Scope(metadata_only=True)),
            mode,
            STAY_READ,
        )

    @classmethod
    def of(cls, source: Source, rng: random.Random, mode: Mode = ALONE) -> "Caches":
        """Make caches that keep objects as they are."""
        return cls(
            Cache(source, NODES, Node, rng),
            Cache(source, PODS, Pod, rng),
            Cache(source, PODGANGS, Custom, rng),
            Cache(source, RESERVATIONS, Custom, rng),
            Cache(source, PODCLIQUES, PodClique, rng),
            Cache(source, SCALING_GROUPS, Custom, rng, Scope(metadata_only=True)),
            mode,
        )

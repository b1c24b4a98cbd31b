"""The gangs that the engine's benchmark asks for, read from pods as `gangs` reads them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np

from api import names
from api.jsons import JsonObject
from api.streams import Pod
from scheduler.eligible import Constraints
from scheduler.needs import of_pod
from scheduler.requests import Closeness, GangRequest, Group, Want
from tests.bench.engine_clusters import GPU, TAPE, TOLERATIONS

ZONE, BLOCK, RACK = names.ZONE_KEY, names.BLOCK_KEY, names.RACK_KEY
SERVING: Final = {"prefill": (8, 40), "decode": (4, 30), "encode": (2, 10), "cache": (1, 10)}
# Of every clique's width, what its pods take for each GPU they have.
_CPUS: Final = (4, 5, 6, 7, 8)
_GIBS: Final = (24, 32, 40, 48, 64)
# By how full it is, GPUs of a worker, so that a thousand gangs of eight of them take about two
# thirds of what is free.
_WORKERS: Final = ((0.9, (1, 0, 0)), (0.7, (2, 1, 1)), (0.5, (4, 2, 1)), (0.0, (8, 4, 2, 1)))


@dataclass(frozen=True)
class Clique:
    """So many equal pods, and what is peculiar to each of them."""

    name: str
    pods: int
    gpus: int
    cpus: int = 4
    gibs: int = 16
    tapes: int = 0
    selector: dict[str, str] = field(default_factory=lambda: {"kubernetes.io/arch": "amd64"})


NOWHERE_NEAR: Final = Closeness()


def gang(
    name: str,
    cliques: Sequence[Clique],
    groups: Sequence[Group] = (),
    near: Closeness = NOWHERE_NEAR,
    priority: int = 0,
) -> GangRequest:
    """Ask for all pods of these cliques."""
    wants = [want for clique in cliques for want in _wants(name, clique)]
    return GangRequest(
        "bench", name, tuple(wants), near=near, groups=tuple(groups), priority=priority
    )


def _wants(gang_name: str, clique: Clique) -> list[Want]:
    # Those who read every pod by itself are given one and the same need and constraints too.
    pod = _pod(gang_name, clique)
    need, constraints = of_pod(pod), Constraints.of(pod)
    return [Want(clique.name, index, need, constraints) for index in range(clique.pods)]


def _pod(gang_name: str, clique: Clique) -> Pod:
    """Give a pod as `workloads` makes it; its labels name its gang, its clique and itself."""
    asked: JsonObject = {"cpu": str(clique.cpus), "memory": f"{clique.gibs}Gi"}
    if clique.gpus:
        asked[GPU] = str(clique.gpus)
    if clique.tapes:
        asked[TAPE] = str(clique.tapes)
    document = {
        "metadata": {
            "name": f"{gang_name}-{clique.name}-0",
            "namespace": "bench",
            "labels": {
                names.PODGANG_LABEL: gang_name,
                names.PODCLIQUE_LABEL: f"{gang_name}-{clique.name}",
                names.POD_INDEX_LABEL: "0",
            },
        },
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": asked}}],
            "nodeSelector": clique.selector,
            "tolerations": TOLERATIONS,
        },
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=Pod)


def serving(number: int, times: int = 1) -> list[Clique]:
    """Five cliques of 100 pods, or of so many times 100; every number asks for other amounts."""
    random = np.random.default_rng(number)
    made = []
    for name, (gpus, pods) in SERVING.items():
        cpus, gibs = int(random.choice(_CPUS)), int(random.choice(_GIBS))
        made.append(Clique(name, pods * times, gpus, cpus * gpus, gibs * gpus))
    # Some of the large pods are exchanged for as many small ones, so that sizes differ too.
    moved = int(random.integers(0, 6)) * times
    prefill, decode, *rest = made
    made = [
        _sized(prefill, prefill.pods - moved), _sized(decode, decode.pods + moved), *rest
    ]  # fmt: skip
    return [*made, Clique("router", 10 * times, 0, int(random.choice(_CPUS)))]


def _sized(clique: Clique, pods: int) -> Clique:
    return Clique(clique.name, pods, clique.gpus, clique.cpus, clique.gibs)


NESTED: Final = (
    Group("serving", ("prefill", "decode"), Closeness(preferred=ZONE)),
    Group("prefill", ("prefill",), Closeness(preferred=BLOCK)),
    Group("decode", ("decode",), Closeness(required=ZONE, preferred=BLOCK)),
    Group("feeding", ("encode", "cache"), Closeness(required=BLOCK, preferred=RACK)),
    Group("cache", ("cache",), Closeness(required=RACK)),
)
NEAR: Final = Closeness(preferred=ZONE)


def plain_gangs(count: int) -> list[GangRequest]:
    """Gangs of 100 pods with no wish where they are."""
    return [gang(f"plain-{number}", serving(number)) for number in range(count)]


def nested_gangs(count: int) -> list[GangRequest]:
    """Gangs of 100 pods whose groups and cliques require and prefer levels of their own."""
    return [gang(f"nested-{n}", serving(n), NESTED, NEAR) for n in range(count)]


def large_gangs(count: int, full: float) -> list[GangRequest]:
    """Gangs of 1,000 pods; where little is free, of smaller pods."""
    if full < 0.9:
        return [gang(f"large-{n}", serving(n, 10), NESTED[2:3], NEAR) for n in range(count)]
    return [gang(f"large-{n}", _lean(n), NESTED[2:3], NEAR) for n in range(count)]


def _lean(number: int) -> list[Clique]:
    cpus = _CPUS[number % len(_CPUS)]
    shapes = (("prefill", 40, 8), ("decode", 60, 4), ("encode", 300, 2), ("cache", 300, 1))
    made = [Clique(name, pods, gpus, cpus * gpus, 24 * gpus) for name, pods, gpus in shapes]
    return [*made, Clique("router", 300, 0)]


def small_gangs(count: int, full: float, start: int = 0) -> list[GangRequest]:
    """Gangs of 9 pods, a router and workers of two kinds, close together if possible."""
    widths = next(widths for above, widths in _WORKERS if full >= above)
    nears = (Closeness(required=BLOCK), Closeness(preferred=RACK))
    return [
        gang(f"small-{n}", _small(n, widths), near=nears[n % 2], priority=n % 3)
        for n in range(start, start + count)
    ]


def _small(number: int, widths: Sequence[int]) -> list[Clique]:
    random = np.random.default_rng(number)
    first, second = (int(random.choice(widths)) for _ in range(2))
    prefill = int(random.integers(2, 7))
    cpus, gibs = int(random.choice(_CPUS)), int(random.choice(_GIBS))
    return [
        Clique("router", 1, 0),
        Clique("prefill", prefill, first, cpus * max(first, 1), gibs * max(first, 1)),
        Clique("decode", 8 - prefill, second, cpus * max(second, 1), 16 * max(second, 1)),
    ]

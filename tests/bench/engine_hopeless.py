"""Gangs that cannot be placed, each for a reason of its own, and clusters that make it hard to see.

A bound refuses most of them at once. Of three no bound that looks at one kind of pod, or at one
group, by itself can see that there is no room, and bounds that look at several together do. The
last one no bound refuses: for it all steps are spent.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from scheduler import snapshot
from scheduler.requests import Closeness, GangRequest, Group
from scheduler.snapshot import Hold, Snapshot
from tests.bench import engine_clusters as clusters
from tests.bench import quality_engine, quality_wide
from tests.bench.engine_clusters import GPUS, LEVELS, Tenant
from tests.bench.engine_gangs import BLOCK, NEAR, NESTED, RACK, Clique, gang, serving


def too_much(number: int, nodes: int) -> GangRequest:
    """One clique asks for more of a rare device than there is in the cluster."""
    *others, router = serving(number)
    tapes = max(2, nodes // clusters.ZONE + 1)
    rare = Clique("router", router.pods + tapes, 0, tapes=1)
    return gang(f"too-much-{number}", [*others, rare], NESTED, NEAR)


def no_rack(number: int, nodes: int) -> GangRequest:
    """All of it fits, but one clique requires a rack, and is larger than any."""
    del nodes
    groups = (Group("prefill", ("prefill",), Closeness(required=RACK)), *NESTED[3:])
    return gang(f"no-rack-{number}", serving(number), groups, NEAR)


def no_node(number: int, nodes: int) -> GangRequest:
    """One pod is larger than any node."""
    del nodes
    large = Clique("monster", 1, 2 * GPUS, 32, 64)
    return gang(f"no-node-{number}", [*serving(number), large], NESTED, NEAR)


def filtered(number: int, nodes: int) -> GangRequest:
    """No node carries the label that one clique selects."""
    del nodes
    nowhere = Clique("picky", 10, 1, selector={"node.kubernetes.io/instance-type": "gpu-16"})
    return gang(f"filtered-{number}", [*serving(number), nowhere], NESTED, NEAR)


def fragmented(number: int, nodes: int) -> GangRequest:
    """Two cliques share a rack by their sum, and each fits by itself, but not both together.

    On nodes with 7 GPUs free, a pod of 5 leaves no room for one of 3.
    """
    del nodes
    cpus = 1 + number % 4
    cliques = [
        Clique("wide", 12, 5, cpus), Clique("narrow", 26, 3, cpus),
        Clique("pair", 10, 2, cpus), Clique("single", 22, 1, cpus), Clique("router", 30, 0),
    ]  # fmt: skip
    groups = (Group("both", ("wide", "narrow"), Closeness(required=RACK)),)
    return gang(f"fragmented-{number}", cliques, groups, NEAR)


def rivals(number: int, nodes: int) -> GangRequest:
    """Two groups require a rack each, in one block, and no block has two free racks."""
    del nodes
    cpus = 1 + number % 4
    cliques = [Clique("first", 33, 4, cpus), Clique("second", 33, 3, cpus)]
    groups = [Group(c.name, (c.name,), Closeness(required=RACK)) for c in cliques]
    rest = Clique("router", 34, 0)
    return gang(f"rivals-{number}", [*cliques, rest], groups, Closeness(required=BLOCK))


def crowded(number: int, nodes: int) -> GangRequest:
    """The same by processors: where 70 are free, a pod of 50 leaves no room for one of 30."""
    del nodes
    gibs = 16 + number % 4
    cliques = [
        Clique("wide", 12, 0, 50, gibs), Clique("narrow", 26, 0, 30, gibs),
        Clique("router", 62, 0, 1),
    ]  # fmt: skip
    groups = (Group("both", ("wide", "narrow"), Closeness(required=RACK)),)
    return gang(f"crowded-{number}", cliques, groups, NEAR)


KINDS: Final[dict[str, Callable[[int, int], GangRequest]]] = {
    "more of a device than there is": too_much,
    "a group larger than any rack": no_rack,
    "a pod larger than any node": no_node,
    "filters leave no node": filtered,
}


def with_sevens(nodes: int, full: float) -> Snapshot:
    """Some racks whose every node has 7 GPUs free; all others have none."""
    racks = nodes // clusters.RACK
    free = round(racks * (1 - full) * GPUS / (GPUS - 1))
    chosen = set(np.random.default_rng(7).permutation(racks)[: max(1, free)].tolist())
    return _cluster(nodes, lambda row: 1 if row // clusters.RACK in chosen else GPUS)


def with_seventies(nodes: int) -> Snapshot:
    """On every node 70 of 96 processors are free."""
    taken = [Hold(f"node-{row:05}", {"cpu": 26_000}) for row in range(nodes)]
    return snapshot.build(clusters.nodes(nodes), taken, LEVELS)


def with_one_rack_a_block(nodes: int) -> Snapshot:
    """In each block one rack is free, and in others there is room for single pods."""
    per_block = clusters.BLOCK // clusters.RACK

    def gpus(row: int) -> int:
        rack, block = row // clusters.RACK, row // clusters.BLOCK
        return 0 if rack % per_block == block % per_block else GPUS - row % 3

    return _cluster(nodes, gpus)


def endless(nodes: int) -> tuple[Snapshot, GangRequest]:
    """A gang that would fit one rack, where each has as much free in sum, but cut in other pieces.

    Among hundreds of racks it is found; among thousands steps are spent before.
    """
    racks = nodes // quality_wide.EACH
    case = quality_wide.draw(1, 1, (racks, racks))
    return quality_engine.stock(case), quality_engine.request(case)


def _cluster(nodes: int, gpus: Callable[[int], int]) -> Snapshot:
    # Pods of one GPU each, since those of some odd number would need more than a node has.
    there = [Tenant(row, 1) for row in range(nodes) for _ in range(gpus(row))]
    return snapshot.build(clusters.nodes(nodes), clusters.holds(there), LEVELS)

"""Startup order behind the gate, proved by when parents were ready and children were let go."""

import pytest

from api import names
from api.jsons import JsonObject
from api.streams import Pod
from tests.support.living import Cluster, Kubectl
from tests.support.ordered import (
    NEVER_READY,
    SLOW,
    blocked,
    check_order,
    clique,
    let_be_ready,
    of_clique,
    ordered,
    since,
    when,
)

pytestmark = pytest.mark.cluster


async def test_a_diamond_starts_from_its_tip(cluster: Cluster, kubectl: Kubectl) -> None:
    cliques = [
        clique("last", "left", "right"),
        clique("left", "tip", replicas=2, notes=SLOW),
        clique("right", "tip"),
        clique("tip", replicas=2, notes=SLOW),
    ]
    kubectl.apply(ordered("gem", "CliqueStartupTypeExplicit", cliques))
    names_of = [f"gem-0-{name}" for name in ("last", "left", "right", "tip")]
    pods = await when(cluster, "gem", 6, ready=names_of)
    check_order(pods, "gem-0-left", "gem-0-tip")
    check_order(pods, "gem-0-right", "gem-0-tip")
    check_order(pods, "gem-0-last", "gem-0-left", "gem-0-right")
    # Room for the last was kept from before the first was let go.
    (booked,) = await cluster.reservations()
    assert booked.size == 6
    first = min(since(pod, "PodScheduled") for pod in pods)
    assert booked.metadata.creation_timestamp is not None
    assert booked.metadata.creation_timestamp <= first


async def test_a_groups_copy_waits_for_its_own_leader_and_says_so(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    """Copy 1 is a scaled gang, which starts although its base gang is still on its way."""
    cliques = [clique("leader", replicas=2, notes=NEVER_READY), clique("worker")]
    group: JsonObject = {"name": "g", "cliqueNames": ["leader", "worker"], "replicas": 2}
    kubectl.apply(ordered("band", "CliqueStartupTypeInOrder", cliques, [group]))
    leaders, workers = ([f"band-0-g-{i}-{role}" for i in (0, 1)] for role in ("leader", "worker"))

    async def leading() -> list[Pod] | None:
        found = await cluster.pods("band", 6)
        running = [p for p in found if p.status.phase == "Running"]
        return found if len(running) == 4 else None

    pods = await cluster.until(leading, "all leaders at work")
    waiting = [of_clique(pods, name)[0] for name in workers]
    for worker, leader in zip(waiting, leaders, strict=True):
        assert worker.gates == (names.GATE,)
        why = await blocked(cluster, worker.metadata.name, "True")
        assert why.message == f"waits for {leader}: 0 of 2 pods ready"
    gang = await cluster.gang("band-0", reason=names.REASON_WAITING_FOR_PARENTS)
    assert gang.status == "False"
    assert gang.message == f"{workers[0]} waits for {leaders[0]}: 0 of 2 pods ready"
    await let_be_ready(cluster, of_clique(pods, leaders[1]))
    pods = await when(cluster, "band", 6, ready=[leaders[1], workers[1]])
    check_order(pods, workers[1], leaders[1])
    (still,) = of_clique(pods, workers[0])
    assert still.gates == (names.GATE,)
    await blocked(cluster, of_clique(pods, workers[1])[0].metadata.name, "False")
    await let_be_ready(cluster, of_clique(pods, leaders[0]))
    pods = await when(cluster, "band", 6, ready=[*leaders, *workers])
    check_order(pods, workers[0], leaders[0])
    await cluster.gang("band-0", reason=names.REASON_BOUND)

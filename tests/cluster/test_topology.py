"""Closeness, apartness and other networks, as bound pods show them on nodes of their own."""

import pytest

from api import names
from api.jsons import Json
from tests.support import hallnodes
from tests.support.hallnodes import ROW, ROWS, domains, near, placed_set, role
from tests.support.living import Cluster, Kubectl

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("hall")]


def engines(copies: int, minimum: int, **more: Json) -> Json:
    return {
        "name": "engine",
        "cliqueNames": ["leader", "worker"],
        "replicas": copies,
        "minAvailable": minimum,
        **more,
    }


async def test_a_group_is_kept_to_a_rack_and_the_set_to_a_block(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    roles = [role(name, 1, 8, 0) for name in ("router", "leader", "worker")]
    group = engines(2, 2, topologyConstraint=near("rack"))
    kubectl.apply(placed_set("nested", roles, groups=[group], whole=near("block")))
    seen = await cluster.running("nested")
    assert len(domains(seen, names.BLOCK_KEY)) == 1
    racks = [domains(seen, names.RACK_KEY, of=f"nested-0-engine-{copy}-") for copy in (0, 1)]
    assert [len(each) for each in racks] == [1, 1]
    assert len(domains(seen, names.HOSTNAME_KEY)) == 5
    (gang,) = seen.gangs
    # Of the ten pairs two share a rack, and the others a block: of zone, block, rack and host.
    assert gang.status.placement_score == pytest.approx((2 * 3 + 8 * 2) / (10 * 4), abs=1e-4)
    (placed,) = [each for each in gang.status.conditions if each.type == names.PLACED]
    (block,) = domains(seen, names.BLOCK_KEY)
    assert placed.message.startswith(f"in hall-0/{block}: score 0.55, fragmentation")


async def test_a_level_that_holds_too_little_is_waited_for_and_named(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    await hallnodes.cordon(cluster.client, 1, *range(0, hallnodes.COUNT, 2))  # one of each rack
    kubectl.apply(placed_set("pair", [role("main", 2, 8, 1)], whole=near("rack")))
    gang = await cluster.gang("pair-0", reason=names.REASON_INSUFFICIENT)
    assert gang.message.startswith("no rack has room for all 2 pods of the minimum")
    await hallnodes.cordon(cluster.client, 1, 6, off=True)
    seen = await cluster.running("pair")
    assert domains(seen, names.HOSTNAME_KEY) == [hallnodes.name_of(1, n) for n in (6, 7)]


async def test_replicas_keep_apart_where_the_set_asks_for_it(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    spread: dict[str, Json] = {names.SPREAD_ANNOTATION: "rack"}
    three = placed_set("apart", [role("main", 1, 1, 2)], replicas=3, annotations=spread)
    kubectl.apply(three)
    seen = await cluster.running("apart")
    assert len(domains(seen, names.RACK_KEY)) == 3
    kubectl.run("scale", "pcs", "apart", "--replicas=6", check=True)
    seen = await cluster.running("apart", gangs=6)
    assert len(domains(seen, names.RACK_KEY)) == 6


async def test_a_preferred_zone_is_where_a_set_goes_that_could_go_anywhere(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    anywhere = role("main", 2, 1, 7, nodeSelector={hallnodes.HALL: "yes"})
    zone: dict[str, Json] = {names.PREFERRED_ZONE: hallnodes.zone_of(7)}
    kubectl.apply(placed_set("zoned", [anywhere], annotations=zone))
    seen = await cluster.running("zoned")
    assert domains(seen, names.ZONE_KEY) == [hallnodes.zone_of(7)]


@pytest.mark.long
async def test_a_scaled_gang_goes_where_its_base_is(cluster: Cluster, kubectl: Kubectl) -> None:
    roles = [role("leader", 1, 8, 3), role("worker", 1, 8, 3)]
    kubectl.apply(placed_set("grown", roles, groups=[engines(1, 1)], whole=near("block")))
    seen = await cluster.running("grown")
    (block,) = domains(seen, names.BLOCK_KEY)
    kubectl.run("scale", "pcsg", "grown-0-engine", "--replicas=3", check=True)
    seen = await cluster.running("grown", gangs=3)
    assert domains(seen, names.BLOCK_KEY) == [block]
    # Now the block's six nodes are full, and the other block is empty.
    kubectl.run("scale", "pcsg", "grown-0-engine", "--replicas=4", check=True)
    gang = await cluster.gang("grown-0-engine-2", reason=names.REASON_INSUFFICIENT)
    assert "must stay in one block" in gang.message


@pytest.mark.long
async def test_another_topology_has_levels_of_its_own(cluster: Cluster, kubectl: Kubectl) -> None:
    kubectl.apply(placed_set("row", [role("main", 3, 8, 4)], whole=near("row", network=ROWS)))
    seen = await cluster.running("row")
    assert len(domains(seen, ROW)) == 1
    assert len(domains(seen, names.RACK_KEY)) == 3
    (gang,) = seen.gangs
    assert gang.status.placement_score == 1.0


@pytest.mark.long
async def test_room_for_a_daemonsets_pods_is_left_before_they_are_there(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    """They never come, for another's gate holds them back."""
    kubectl.apply(hallnodes.daemonset("agent", 4, 5))
    kubectl.apply(placed_set("beside", [role("main", hallnodes.COUNT + 1, 4, 5)]))
    gang = await cluster.gang("beside-0", reason=names.REASON_NEVER_FITS)
    assert "nvidia.com/gpu: 52 needed, 48 free" in gang.message
    kubectl.run("delete", "daemonset", "agent", check=True)
    seen = await cluster.running("beside")
    assert len(seen.pods) == hallnodes.COUNT + 1


@pytest.mark.long
async def test_a_bound_volume_ties_the_whole_gang_to_its_rack(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    rack = f"{hallnodes.zone_of(6)}-block-1-rack-2"
    volume = f"hall-{cluster.namespace}"
    for body in hallnodes.volume(volume, cluster.namespace, rack):
        kubectl.apply(body)
    mount: Json = [{"name": "data", "persistentVolumeClaim": {"claimName": volume}}]
    roles = [role("main", 1, 8, 6, volumes=mount), role("other", 1, 8, 6)]
    kubectl.apply(placed_set("tied", roles, whole=near("rack")))
    seen = await cluster.running("tied")
    assert domains(seen, names.RACK_KEY) == [rack]
    kubectl.run("delete", "pv", volume, "--wait=false", check=True)

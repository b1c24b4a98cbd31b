"""While an update goes on, or is paused, that a minimum is lacking makes nothing anew."""

import asyncio
from dataclasses import replace

import pytest

from api import names
from api.jsons import JsonObject
from api.objects import condition_of
from tests.cluster.test_termination import MADE_FREE, census, grown_up, spoil, told
from tests.support.living import Cluster, Kubectl
from tests.support.updating import Manifest, Updated, role

pytestmark = pytest.mark.cluster


@pytest.mark.long
@pytest.mark.parametrize("how", ["going on", "paused"])
async def test_an_update_that_takes_the_minimum_away_suspends_it_also_when_it_is_paused(
    how: str, cluster: Cluster, kubectl: Kubectl
) -> None:
    manifest = Manifest("mending", (role("a", 2),), delay="2s", annotations=MADE_FREE)
    updated = Updated(cluster, kubectl, "mending")
    updated.apply(manifest)
    await cluster.running("mending")
    await grown_up(cluster, "mending-0-a")
    before = await census(cluster)
    broken = replace(manifest, image="broken", behaviour="never-ready")
    updated.apply(broken)
    await updated.standing(1, 1)
    if how == "paused":
        updated.apply(replace(broken, strategy={"paused": True}))
        await updated.progressing("UpdatePaused")
    halfway = await census(cluster)
    (left,) = before.pods.items() & halfway.pods.items()
    spoil(kubectl, left[0])

    async def down() -> bool | None:
        return not any(pod.containers_ready for pod in (await updated.pods()).values()) or None

    await cluster.until(down, "no pod ready")
    await asyncio.sleep(5)  # more than twice the delay
    seen = await updated.seen()
    (breach,) = (
        each for each in seen.cliques["mending-0-a"].status.conditions
        if each.type == names.MIN_AVAILABLE_BREACHED
    )  # fmt: skip
    assert breach.status == "Unknown"
    after = await census(cluster)
    assert after.pods == halfway.pods
    assert after.gangs == before.gangs
    assert await told(cluster, "PodCliqueSetReplicaDeleteSuccessful") == []


@pytest.mark.long
async def test_a_copy_that_an_update_takes_the_minimum_from_is_not_made_anew_either(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    """Its group could spare it."""
    parts = (role("leader", 1), role("worker", 1))
    group: JsonObject = {
        "name": "engine", "cliqueNames": ["leader", "worker"], "replicas": 3, "minAvailable": 2,
    }  # fmt: skip
    manifest = Manifest("team", parts, (group,), delay="2s", annotations=MADE_FREE)
    updated = Updated(cluster, kubectl, "team")
    updated.apply(manifest)
    await cluster.running("team")
    for copy in range(3):
        await grown_up(cluster, f"team-0-engine-{copy}-leader")
    updated.apply(replace(manifest, image="broken", behaviour="never-ready"))
    await updated.standing(2, 4)
    halfway = await census(cluster)
    await asyncio.sleep(8)  # more than three times the delay
    seen = await updated.seen()
    for name in seen.cliques:
        said = condition_of(seen.cliques[name].status.conditions, names.MIN_AVAILABLE_BREACHED)
        assert said is not None
        assert said.status == "Unknown", name
    assert (await census(cluster)).pods == halfway.pods
    assert await told(cluster, "PodCliqueScalingGroupReplicaDeleteSuccessful") == []

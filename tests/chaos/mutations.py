"""What must never happen, done by the harness itself: whoever finds nothing then is worthless."""

import asyncio
from collections.abc import Mapping
from typing import Final

from api import names
from api.jsons import JsonObject
from api.streams import Pod
from controller.gangs import pinning
from kube import credentials
from kube.client import Client
from kube.clock import SystemClock
from kube.resources import PODCLIQUESETS, PODS
from penstock.lab.layout import Layout
from tests.chaos.faults import Deed, Scene
from tests.support.living import engine_set

FOREIGN_GATE: Final = "example.com/wait"
PATIENCE: Final = 20.0


async def _waiting_pod(scene: Scene) -> Pod:
    """Make a gang that never goes, since another's gate is on its pods; gives one of them."""
    client = scene.stage.client
    body = engine_set("waits", pods=2, gpus=1, gates=[FOREIGN_GATE])
    await client.create(PODCLIQUESETS, body, scene.space)
    label = f"{names.PART_OF_LABEL}=waits"
    async with asyncio.timeout(PATIENCE):
        while True:
            found = await client.list_pages(PODS, Pod, scene.space, labels=label)
            if len(found.items) == 2:
                return found.items[0]
            await asyncio.sleep(0.1)


async def lift_by_admin(scene: Scene) -> None:
    """A person takes our gate off."""
    pod = await _waiting_pod(scene)
    patch = pinning.lift(pod, "node-00")
    await scene.stage.client.json_patch(PODS, pod.metadata.name, patch, scene.space)


async def lift_by_deposed(scene: Scene) -> None:
    """Somebody who led `gangs` once lifts a pod that the ledger knows nothing of."""
    pod = await _waiting_pod(scene)
    layout = Layout.of(scene.stage.lab.directory)
    clock = SystemClock()
    access = credentials.load(layout.kubeconfig(names.GANGS_ACCOUNT), None, clock, {})
    async with Client(access, "gangs", clock, instance="vm_1_deposed") as client:
        patch = pinning.lift(pod, "node-00")
        await client.json_patch(PODS, pod.metadata.name, patch, scene.space)


async def overdraw(scene: Scene) -> None:
    """A pod is bound by hand to a node that has no room for it."""
    container: JsonObject = {
        "name": "other", "image": "registry.example/other:1",
        "resources": {"limits": {"nvidia.com/gpu": "16"}},
    }  # fmt: skip
    body: JsonObject = {
        "metadata": {"name": "too-big"},
        "spec": {"containers": [container], "nodeName": "node-00"},
    }
    await scene.stage.client.create(PODS, body, scene.space)


async def delete_bound(scene: Scene) -> None:
    """`gangs` deletes a bound pod whose slot is in the ledger."""
    pods = (await scene.stage.client.list_pages(PODS, Pod, scene.space)).items
    bound = [p for p in pods if p.spec.node_name and p.metadata.labels.get(names.PODGANG_LABEL)]
    layout = Layout.of(scene.stage.lab.directory)
    clock = SystemClock()
    access = credentials.load(layout.kubeconfig(names.GANGS_ACCOUNT), None, clock, {})
    async with Client(access, "gangs", clock, instance="vm_1_deposed") as client:
        await client.delete(PODS, bound[0].metadata.name, scene.space)


MUTATIONS: Final[Mapping[str, Deed]] = {
    each.__name__.replace("_", "-"): each
    for each in (lift_by_admin, lift_by_deposed, overdraw, delete_bound)
}
EXPECTED: Final[Mapping[str, str]] = {
    "lift-by-admin": "gates",
    "lift-by-deposed": "deposed",
    "overdraw": "room",
    "delete-bound": "deposed",
}
"""The rule that must be found broken."""

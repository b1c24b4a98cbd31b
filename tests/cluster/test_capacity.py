"""What the largest node and domains hold, as `gangs` tells the webhook."""

import asyncio
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest

from api import names
from api.capacity import Capacity
from kube.client import Client
from kube.resources import CONFIGMAPS, NODES, TOPOLOGY_BINDINGS
from tests.support.installed import Installed

pytestmark = pytest.mark.cluster

GPU = "nvidia.com/gpu"
ROOM = "test.penstock.dev/room"


class ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


async def told(person: Client, wanted: Callable[[Capacity], bool]) -> Capacity:
    """Wait until what is told is as wanted."""
    found = Capacity()
    try:
        async with asyncio.timeout(40):
            while True:
                config = await person.get(
                    CONFIGMAPS, ConfigMap, names.CAPACITY_CONFIG, names.NAMESPACE
                )
                text = config.data.get(names.CAPACITY_KEY, "{}")
                found = msgspec.json.decode(text, type=Capacity)
                if wanted(found):
                    return found
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise AssertionError(f"told in the end: {found}") from None


@pytest.fixture
async def larger_node(installed: Installed, person: Client) -> AsyncIterator[str]:
    """A node of its own kind, which no gang could use: it is not even ready."""
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "capacity-test"}}
    await person.create(NODES, body)
    yield "capacity-test"
    await person.delete(NODES, "capacity-test")


async def test_the_largest_node_and_rack_are_told_and_a_change_is_too(
    installed: Installed, person: Client, larger_node: str
) -> None:
    """The lab has 2 zones of 2 blocks of 5 racks of 2 nodes with 8 GPUs each."""
    # Bindings that other tests made may have levels of their own until it is told that they went.
    by_level = {names.ZONE_KEY: 160, names.BLOCK_KEY: 80, names.RACK_KEY: 16}
    found = await told(
        person,
        lambda capacity: (
            capacity.node.get(GPU) == 8
            and {key: most.get(GPU) for key, most in capacity.domains.items()} == by_level
        ),
    )
    await person.merge_patch(NODES, larger_node, offer("72"), subresource="status")
    found = await told(person, lambda capacity: capacity.node[GPU] == 72)
    assert found.domains[names.ZONE_KEY][GPU] == 160
    await person.merge_patch(NODES, larger_node, offer("4"), subresource="status")
    await told(person, lambda capacity: capacity.node[GPU] == 8)


def offer(gpus: str) -> dict[str, object]:
    return {"status": {"capacity": {GPU: gpus}, "allocatable": {GPU: gpus}}}


async def test_levels_of_topology_bindings_are_told_while_there_is_one(
    installed: Installed, person: Client, larger_node: str
) -> None:
    body = {
        "apiVersion": TOPOLOGY_BINDINGS.api_version,
        "kind": TOPOLOGY_BINDINGS.kind,
        "metadata": {"name": "capacity-test"},
        "spec": {"levels": [{"domain": "zone", "key": ROOM}]},
    }
    await person.merge_patch(NODES, larger_node, {"metadata": {"labels": {ROOM: "one"}}})
    await person.merge_patch(NODES, larger_node, offer("3"), subresource="status")
    await person.create(TOPOLOGY_BINDINGS, body)
    try:
        found = await told(person, lambda capacity: ROOM in capacity.domains)
        assert found.domains[ROOM] == {GPU: 3}
    finally:
        await person.delete(TOPOLOGY_BINDINGS, "capacity-test")
    await told(person, lambda capacity: ROOM not in capacity.domains)

from collections.abc import Mapping, Sequence

import msgspec
import pytest

from api.jsons import Json, JsonObject
from kube.errors import AlreadyExists, Forbidden, Invalid, ServerFault
from kube.resources import NODES, Resource
from penstock.lab.errors import LabError
from penstock.lab.nodes import NodeView, create_nodes, make_nodes, until_created, until_healthy
from penstock.lab.spec import LabSpec
from tests.support.manualclock import LeapingClock

NOW = "2026-01-01T00:00:00Z"
TAINT: JsonObject = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class FakeRegistry:
    """Taints new nodes as the API server does; remembers what was asked."""

    def __init__(
        self,
        existing: Sequence[str] = (),
        *,
        controller_is_faster: bool = False,
        refuses: bool = False,
        not_yet: int = 0,
    ) -> None:
        self.not_yet = not_yet
        self.existing = existing
        self.refuses = refuses
        self.controller_is_faster = controller_is_faster
        self.created: list[str] = []
        self.patched: dict[str, list[Mapping[str, Json]]] = {}

    async def create(self, resource: Resource, body: object) -> bytes:
        assert resource is NODES
        node = msgspec.convert(body, NodeView)
        if self.refuses:
            raise Invalid(422, "Invalid", "not such a node")
        if self.not_yet > 0:
            self.not_yet -= 1
            raise Forbidden(403, "Forbidden", "not yet ready to handle request")
        if node.metadata.name in self.existing:
            raise AlreadyExists(409, "AlreadyExists", "there")
        self.created.append(node.metadata.name)
        assert isinstance(body, dict)
        return msgspec.json.encode({**body, "spec": {"taints": [{"key": "other"}, TAINT]}})

    async def json_patch(
        self, resource: Resource, name: str, operations: Sequence[Mapping[str, Json]]
    ) -> bytes:
        assert resource is NODES
        if self.controller_is_faster:
            raise Invalid(422, "Invalid", "the test failed")
        self.patched[name] = list(operations)
        return b"{}"


def part(node: JsonObject, *path: str) -> JsonObject:
    for key in path:
        found = node[key]
        assert isinstance(found, dict)
        node = found
    return node


def test_nodes_have_the_labels_and_resources_of_a_real_one() -> None:
    nodes = make_nodes(LabSpec(nodes=40, gpus=8, topology="zone=2,block=2,rack=5"), NOW)
    assert [part(node, "metadata")["name"] for node in nodes[:2]] == ["node-00", "node-01"]
    last = nodes[-1]
    labels = part(last, "metadata", "labels")
    assert labels["kubernetes.io/hostname"] == "node-39"
    assert labels["topology.kubernetes.io/rack"] == "zone-1-block-1-rack-4"
    assert part(last, "metadata", "annotations") == {"kwok.x-k8s.io/node": "fake"}
    assert part(last, "status", "capacity") == {
        "nvidia.com/gpu": "8",
        "cpu": "96",
        "memory": "768Gi",
        "pods": "110",
    }
    assert part(last, "status")["allocatable"] == part(last, "status")["capacity"]


def test_names_sort_as_numbers_do() -> None:
    names = [part(node, "metadata")["name"] for node in make_nodes(LabSpec(nodes=1000), NOW)]
    assert names == sorted(map(str, names))


def test_addresses_are_all_different() -> None:
    nodes = make_nodes(LabSpec(nodes=10_000), NOW)
    addresses = [msgspec.json.encode(part(node, "status")["addresses"]) for node in nodes]
    assert len(set(addresses)) == 10_000


def test_without_gpus_nothing_speaks_of_them() -> None:
    (node,) = make_nodes(LabSpec(nodes=1, gpus=0), NOW)
    assert b"nvidia" not in msgspec.json.encode(node)


def test_no_nodes_are_fine_too() -> None:
    assert make_nodes(LabSpec(nodes=0), NOW) == []


def test_a_new_node_serves_once_its_taint_is_gone() -> None:
    (body,) = make_nodes(LabSpec(nodes=1), NOW)
    assert msgspec.convert(body, NodeView).serves()
    assert not msgspec.convert({**body, "spec": {"taints": [TAINT]}}, NodeView).serves()
    part(body, "status")["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    assert not msgspec.convert(body, NodeView).serves()


async def test_every_node_is_created_once_and_freed_of_its_taint() -> None:
    registry = FakeRegistry(existing=["node-07"])
    await create_nodes(registry, make_nodes(LabSpec(nodes=100), NOW))
    expected = {f"node-{index:02d}" for index in range(100)} - {"node-07"}
    assert len(registry.created) == 99
    assert set(registry.created) == expected
    assert registry.patched.keys() == expected
    assert registry.patched["node-01"] == [
        {"op": "test", "path": "/spec/taints/1/key", "value": "node.kubernetes.io/not-ready"},
        {"op": "remove", "path": "/spec/taints/1"},
    ]


async def test_a_taint_that_is_gone_already_is_no_fault() -> None:
    registry = FakeRegistry(controller_is_faster=True)
    await create_nodes(registry, make_nodes(LabSpec(nodes=2), NOW))
    assert len(registry.created) == 2


async def test_a_refused_node_ends_the_work() -> None:
    registry = FakeRegistry(refuses=True)
    with pytest.raises(ExceptionGroup) as failed:
        await create_nodes(registry, make_nodes(LabSpec(nodes=5), NOW))
    assert failed.group_contains(Invalid)


async def test_an_api_server_that_has_just_started_is_asked_again() -> None:
    registry, clock = FakeRegistry(not_yet=3), LeapingClock()
    await until_created(registry, make_nodes(LabSpec(nodes=2), NOW), clock, clock.monotonic() + 60)
    assert set(registry.created) == {"node-0", "node-1"}


class Waking:
    """An API server that has not got all it begins with the first times it is asked."""

    def __init__(self, times: int) -> None:
        self.left = times

    async def raw_get(self, path: str) -> bytes:
        assert path == "/healthz"
        self.left -= 1
        if self.left >= 0:
            raise ServerFault(500, "InternalError", "healthz check failed")
        return b"ok"


async def test_nodes_wait_for_an_api_server_that_has_all_it_begins_with() -> None:
    server, clock = Waking(3), LeapingClock()
    await until_healthy(server, clock, clock.monotonic() + 60)
    assert server.left == -1


async def test_one_that_never_has_it_is_not_waited_for_longer_than_for_nodes() -> None:
    server, clock = Waking(10_000), LeapingClock()
    deadline = clock.monotonic() + 60
    await until_healthy(server, clock, deadline)
    assert deadline <= clock.monotonic() < deadline + 1


async def test_one_that_never_lets_a_node_in_is_quoted() -> None:
    registry, clock = FakeRegistry(not_yet=10_000), LeapingClock()
    with pytest.raises(LabError, match="failed: not yet ready to handle request"):
        await until_created(
            registry, make_nodes(LabSpec(nodes=2), NOW), clock, clock.monotonic() + 60
        )


async def test_a_node_that_is_no_node_is_not_tried_again() -> None:
    registry, clock = FakeRegistry(refuses=True), LeapingClock()
    before = clock.monotonic()
    with pytest.raises(LabError, match="failed: not such a node"):
        await until_created(registry, make_nodes(LabSpec(nodes=2), NOW), clock, before + 60)
    assert clock.monotonic() == before

"""The replayed cluster is one that could be: whole, each object once, and nobody too many."""

from collections import Counter

import msgspec

from api.needs import of_pod
from api.quantities import amounts
from api.reservation import State
from api.streams import Custom, Node, Pod
from controller.gangs.entries import read_reservation
from controller.podgang import read_gang
from kube.client import Client, Scope
from kube.clock import SystemClock
from kube.credentials import load
from kube.resources import NODES, PODGANGS, PODS, RESERVATIONS
from tests.bench.replay_documents import Fleet, read
from tests.bench.replay_events import Events, ask, refused
from tests.bench.replay_server import ReplayServer

FLEET = Fleet(read(), nodes=30, sets=33)


def test_every_object_is_there_once_and_is_bound_where_its_gang_has_room() -> None:
    pods = [msgspec.json.decode(text, type=Pod) for text in FLEET.documents("pods", 0, 10**6)]
    assert len(pods) == 33 * 9
    assert len({pod.metadata.uid for pod in pods}) == len(pods)
    by_key = {(pod.metadata.namespace, pod.metadata.name): pod for pod in pods}
    assert len(by_key) == len(pods)
    found = 0
    for number in range(33):
        gang, booked = (
            next(FLEET.documents(kind.full_name, number, number + 1))
            for kind in (PODGANGS, RESERVATIONS)
        )
        there = read_gang(msgspec.json.decode(gang, type=Custom))
        entry = read_reservation(msgspec.json.decode(booked, type=Custom))
        assert there is not None
        assert entry is not None
        assert entry.state is State.BOUND
        assert entry.spec.gang.uid == there.metadata.uid
        members = [by_key[key] for _, key in there.references()]
        slots = Counter(slot.node for _, slot, _ in entry.slots())
        assert Counter(pod.spec.node_name for pod in members) == slots
        found += len(members)
    assert found == len(pods)


def test_no_node_has_more_than_it_can_bear() -> None:
    taken: dict[str, Counter[str]] = {}
    for text in FLEET.documents("pods", 0, 10**6):
        pod = msgspec.json.decode(text, type=Pod)
        taken.setdefault(pod.spec.node_name, Counter()).update(of_pod(pod))
    nodes = [msgspec.json.decode(text, type=Node) for text in FLEET.documents("nodes", 0, 10**6)]
    assert taken.keys() <= {node.metadata.name for node in nodes}
    for node in nodes:
        room = amounts(node.status.allocatable)
        there = taken.get(node.metadata.name, Counter())
        assert all(amount <= room[name] for name, amount in there.items())


def test_nothing_that_was_recorded_is_a_secret_or_of_one_machine() -> None:
    text = b"".join(bytes(line.object) for line in FLEET.lines)
    for word in (b"PRIVATE KEY", b"CERTIFICATE", b"127.0.0.1", b"localhost"):
        assert word not in text


async def test_it_is_listed_page_by_page_and_watched_like_any_cluster() -> None:
    server = ReplayServer(FLEET)
    async with server.serving() as kubeconfig:
        clock = SystemClock()
        async with Client(load(kubeconfig, None, clock, {}), "tester", clock) as client:
            for kind in (PODS, NODES, PODGANGS):
                listed = await client.list_with(kind, bytes, Scope())
                assert len(listed.items) == FLEET.count(kind.full_name)
            path = ask(server)
            assert not refused(server, path)
            gang = await client.raw_get(path)
            assert b"Initialized" in gang
            await Events(server).report(3)
            assert server.writes.total() == 0

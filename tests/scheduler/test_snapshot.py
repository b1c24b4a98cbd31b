"""What takes room of nodes: pods, what is spoken for, and what DaemonSets are to have there."""

from datetime import UTC, datetime
from typing import Final

import pytest
from msgspec.structs import replace

from api.daemonsets import DaemonSet
from api.jsons import Json
from api.streams import Node
from scheduler.eligible import Constraints
from scheduler.snapshot import Hold, Snapshot, build
from scheduler.stock import Stock, hold_of
from scheduler.topology import Levels
from tests.support.clusters import node, pod
from tests.support.daemonsets import daemonset

LEVELS: Final = [Levels("", ("zone",))]
ROOM: Final = {"cpu": "8", "pods": "10"}


def free(found: Snapshot, name: str = "n", resource: str = "cpu") -> int:
    return int(found.free[found.row_of[name], found.resources.index(resource)])


def with_daemons(made: Node, *daemonsets: DaemonSet, holds: tuple[Hold, ...] = ()) -> Snapshot:
    return build([made], holds, LEVELS, daemonsets)


def owned(name: str, on: str, daemon: str, cpu: str = "2") -> Hold:
    owner: Json = {"kind": "DaemonSet", "name": daemon, "uid": f"uid-{daemon}", "controller": True}
    found = hold_of(
        pod(
            name,
            {"cpu": cpu},
            namespace="system",
            spec={"nodeName": on, "containers": [{"resources": {"requests": {"cpu": cpu}}}]},
            metadata={"ownerReferences": [owner]},
        )
    )
    assert found is not None
    return found


def tainted(key: str, effect: str = "NoSchedule") -> Node:
    return node("n", ROOM, spec={"taints": [{"key": key, "effect": effect}]})


def test_a_pod_a_daemonset_is_to_have_takes_room_before_it_exists() -> None:
    found = with_daemons(node("n", ROOM), daemonset("logs"), daemonset("disks"))
    assert free(found) == 6000
    assert free(found, resource="pods") == 8
    assert [resident.name for resident in found.residents[0]] == ["disks", "logs"]
    assert found.residents[0][0].labels == {"app": "disks"}


def test_once_it_is_there_it_takes_what_it_takes_and_no_more() -> None:
    found = with_daemons(node("n", ROOM), daemonset("logs"), holds=(owned("p", "n", "logs"),))
    assert free(found) == 6000
    assert free(found, resource="pods") == 9
    assert [resident.name for resident in found.residents[0]] == ["p"]


def test_a_pod_of_another_daemonset_or_node_does_not_stand_in() -> None:
    nodes = [node("n", ROOM), node("m", ROOM)]
    holds = (owned("p", "m", "logs"), owned("q", "n", "disks"))
    found = build(nodes, holds, LEVELS, [daemonset("logs")])
    assert (free(found, "n"), free(found, "m")) == (5000, 6000)


def test_when_the_last_pod_of_a_daemonset_goes_the_next_is_expected() -> None:
    stock = Stock(LEVELS)
    stock.put_node(node("n", ROOM))
    stock.put_daemonset(daemonset("logs"))
    stock.put("p", owned("p", "n", "logs"))
    stock.put("q", owned("q", "n", "logs"))
    assert free(stock.snapshot()) == 4000
    stock.drop("p")
    assert free(stock.snapshot()) == 6000
    stock.drop("q")
    assert free(stock.snapshot()) == 7000


@pytest.mark.parametrize(
    ("made", "more", "runs"),
    [
        (tainted("dedicated"), {}, False),
        (tainted("dedicated"), {"tolerations": [{"operator": "Exists"}]}, True),
        (tainted("dedicated", "PreferNoSchedule"), {}, True),
        (tainted("node.kubernetes.io/unschedulable"), {}, True),
        (node("n", ROOM, spec={"unschedulable": True}), {}, True),
        (tainted("node.kubernetes.io/disk-pressure"), {}, True),
        (tainted("node.kubernetes.io/not-ready", "NoExecute"), {}, True),
        (tainted("node.kubernetes.io/not-ready"), {}, False),
        (tainted("node.kubernetes.io/network-unavailable"), {}, False),
        (tainted("node.kubernetes.io/network-unavailable"), {"hostNetwork": True}, True),
        (node("n", ROOM, labels={"a": "b"}), {"nodeSelector": {"a": "b"}}, True),
        (node("n", ROOM), {"nodeSelector": {"a": "b"}}, False),
        (node("n", ROOM), {"nodeName": "n"}, True),
        (node("n", ROOM), {"nodeName": "m"}, False),
    ],
)
def test_only_nodes_that_are_to_have_one_keep_room(
    made: Node,
    more: dict[str, Json],
    runs: bool,  # noqa: FBT001
) -> None:
    found = with_daemons(made, daemonset("logs", **more))
    assert free(found) == (7000 if runs else 8000)


def test_required_affinity_says_where_a_daemonset_runs() -> None:
    term: Json = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    affinity: Json = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}
        }
    }
    nodes = [node("n", ROOM, labels={"disk": "1"}), node("m", ROOM)]
    found = build(nodes, [], LEVELS, [daemonset("logs", affinity=affinity)])
    assert (free(found, "n"), free(found, "m")) == (7000, 8000)


def test_a_daemonset_that_is_being_deleted_makes_no_pods() -> None:
    made = daemonset("logs")
    told = datetime(2026, 1, 1, tzinfo=UTC)
    leaving = replace(made, metadata=replace(made.metadata, deletion_timestamp=told))
    assert free(with_daemons(node("n", ROOM), leaving)) == 8000
    stock = Stock(LEVELS)
    stock.put_node(node("n", ROOM))
    stock.put_daemonset(made)
    assert free(stock.snapshot()) == 7000
    stock.put_daemonset(leaving)
    assert free(stock.snapshot()) == 8000
    stock.put_daemonset(made)
    stock.drop_daemonset(("system", "logs"))
    assert free(stock.snapshot()) == 8000


def test_limits_of_a_template_count_as_the_api_server_will_have_it() -> None:
    containers: Json = [{"resources": {"limits": {"cpu": "3"}}}]
    assert free(with_daemons(node("n", ROOM), daemonset("logs", containers=containers))) == 5000


def test_a_pod_takes_room_where_it_is_or_is_about_to_be() -> None:
    bound = pod("p", spec={"nodeName": "a"}, status={"nominatedNodeName": "b"})
    nominated = pod("p", status={"nominatedNodeName": "b"})
    waiting, done = pod("p"), pod("p", spec={"nodeName": "a"}, status={"phase": "Succeeded"})
    nodes = [getattr(hold_of(each), "node", None) for each in (bound, nominated, waiting, done)]
    assert nodes == ["a", "b", None, None]
    spoken = hold_of(waiting, "c")
    assert spoken is not None
    assert spoken.node == "c"


def test_residents_tell_what_others_must_know() -> None:
    term: Json = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
    sidecar: Json = {"restartPolicy": "Always", "ports": [{"hostPort": 81}]}
    made = pod(
        "p",
        spec={
            "nodeName": "n",
            "containers": [{"ports": [{"hostPort": 80}, {"containerPort": 90}]}],
            "initContainers": [sidecar, {"ports": [{"hostPort": 82}]}],
            "affinity": {
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            },
            "volumes": [
                {"name": "v", "persistentVolumeClaim": {"claimName": "c"}},
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
                {"name": "empty"},
            ],
        },
        metadata={"labels": {"x": "y"}, "deletionTimestamp": "2026-01-01T00:00:00Z"},
    )
    hold = hold_of(made)
    assert hold is not None
    ((found,),) = build([node("n")], [hold], LEVELS).residents
    assert found.labels is made.metadata.labels
    assert [port.host_port for port in found.ports] == [81, 80]
    assert [term.topology_key for term in found.anti] == ["zone"]
    assert found.claims == ("c", "p-scratch")
    assert found.leaving


def test_masks_are_kept_while_nodes_stay_as_they_are() -> None:
    stock = Stock(LEVELS)
    stock.put_node(node("n", ROOM))
    stock.put_node(node("m", ROOM))
    first = stock.snapshot()
    mask = first.masks.mask(Constraints())
    assert mask.tolist() == [True, True]
    stock.put("p", Hold("n", {"cpu": 1}))
    assert stock.snapshot().masks.mask(Constraints()) is mask
    stock.put_node(node("n", ROOM, ready=False))
    assert stock.snapshot().masks.mask(Constraints()).tolist() == [True, False]
    assert first.masks.mask(Constraints()) is mask


def test_what_a_node_has_in_unreadable_amounts_it_has_not() -> None:
    found = build([node("n", {"cpu": "many"}), node("m", {"cpu": "1"})], [], LEVELS)
    assert found.capacity.tolist() == [[1000], [0]]

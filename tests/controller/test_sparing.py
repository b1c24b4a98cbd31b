"""Objects as `gangs` keeps them: alike parts are one, and what it reads of them is still there."""

import json

import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from api.needs import of_pod
from api.streams import Custom, Node, Pod, PodClique
from controller.gangs.sparing import Sparing
from scheduler import residents
from tests.bench.replay_documents import Fleet, read

FLEET = Fleet(read(), nodes=20, sets=20)


def raw(kind: str, number: int) -> msgspec.Raw:
    return msgspec.Raw(next(FLEET.documents(kind, number, number + 1)))


def changed(kind: str, number: int, **parts: JsonObject) -> msgspec.Raw:
    """The same object with members of its parts put in."""
    thing = json.loads(bytes(raw(kind, number)))
    for part, said in parts.items():
        thing[part] |= said
    return msgspec.Raw(json.dumps(thing).encode())


def test_pods_of_one_template_share_all_that_is_not_their_own() -> None:
    sparing = Sparing()
    one, other = sparing.pod(raw("pods", 3)), sparing.pod(raw("pods", 4))
    far = sparing.pod(raw("pods", 9 * 15 + 3))  # of another set
    assert one.metadata.owner_references is other.metadata.owner_references
    assert one.metadata.owner_references != far.metadata.owner_references
    for pod in (other, far):
        assert pod.spec.containers is one.spec.containers
        assert pod.spec.tolerations is one.spec.tolerations
        assert pod.status is one.status
    assert one.spec.affinity is other.spec.affinity  # pinned to the same node
    assert one.spec.affinity != far.spec.affinity
    label = names.PODGANG_LABEL
    assert one.metadata.labels[label] is other.metadata.labels[label]
    assert one.metadata.labels != other.metadata.labels


def test_what_gangs_reads_of_a_pod_is_what_the_pod_says() -> None:
    sparing = Sparing()
    for number in range(FLEET.count("pods")):
        spared = sparing.pod(raw("pods", number))
        pod = msgspec.json.decode(raw("pods", number), type=Pod)
        assert spared.metadata == pod.metadata
        assert msgspec.structs.replace(pod.spec, volumes=()) == spared.spec
        assert of_pod(spared) == of_pod(pod)
        assert residents.of_pod(spared) == residents.of_pod(pod)
        assert spared.containers_ready == pod.containers_ready
        assert (spared.gates, spared.finished) == (pod.gates, pod.finished)
        assert [(c.type, c.status, c.reason, c.message) for c in spared.status.conditions] == [
            (c.type, c.status, c.reason, c.message) for c in pod.status.conditions
        ]


def test_volumes_that_are_claims_are_kept() -> None:
    claims: list[Json] = [
        {"name": "token", "projected": {}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "mine"}},
        {"name": "scratch", "ephemeral": {}},
    ]
    pod = Sparing().pod(changed("pods", 0, spec={"volumes": claims}))
    assert residents.claims(pod.spec, "a") == ("mine", "a-scratch")
    assert len(pod.spec.volumes) == 2


def test_annotations_that_are_read_are_kept_and_of_others_that_there_are_any() -> None:
    read: JsonObject = {
        names.RELEASED_ANNOTATION: "2026-01-01T00:00:00Z",
        names.SPREAD_ANNOTATION: "rack",
        names.PREFERRED_ZONE: "a",
        names.RESERVATION_REF: "room",
        names.MNNVL_ANNOTATION: "group",
    }
    others: JsonObject = {"cni.example/status": "x" * 1000}
    sparing = Sparing()

    def noted(annotations: JsonObject) -> dict[str, str]:
        body = changed("pods", 0, metadata={"annotations": annotations})
        return sparing.pod(body).metadata.annotations

    assert noted({**read, **others}) == read
    assert noted(others)  # a patch is another one where there are none
    assert noted(others) is noted({"other.example/also": "y"})
    assert noted({}) == {}


def test_what_a_kubelet_has_granted_is_kept() -> None:
    more: JsonObject = {"cpu": "50", "memory": "64Gi", "nvidia.com/gpu": "1"}
    told: JsonObject = {
        "name": "worker",
        "allocatedResources": more,
        "resources": {"requests": more},
    }
    body = changed("pods", 3, status={"containerStatuses": [told]})
    pod, spared = msgspec.json.decode(body, type=Pod), Sparing().pod(body)
    assert of_pod(spared) == of_pod(pod)
    assert of_pod(spared)["cpu"] == 50_000


def test_only_our_own_condition_keeps_its_time() -> None:
    at = "2025-06-01T00:00:00Z"
    conditions: list[Json] = [
        {"type": kind, "status": "True", "lastTransitionTime": at}
        for kind in (names.STARTUP_BLOCKED, "Ready")
    ]
    pod = Sparing().pod(changed("pods", 0, status={"conditions": conditions}))
    ours, ready = pod.status.conditions
    assert ours.last_transition_time is not None
    assert ready.last_transition_time is None


def test_pods_that_differ_in_anything_else_do_not_share_it() -> None:
    sparing = Sparing()
    one = sparing.pod(raw("pods", 3))
    others: list[JsonObject] = [
        {"priority": 7},
        {"nodeSelector": {"a": "b"}},
        {"hostNetwork": True},
    ]
    for said in others:
        other = sparing.pod(changed("pods", 4, spec=said))
        assert other.spec != one.spec
        assert other.spec.containers == one.spec.containers
    failed = sparing.pod(changed("pods", 4, status={"phase": "Failed"}))
    assert failed.failed
    assert not one.failed


def test_a_pod_without_containers_is_read_as_well() -> None:
    pod = Sparing().pod(msgspec.Raw(b'{"metadata":{"name":"a"}}'))
    assert pod == Pod(pod.metadata)


def test_a_newer_state_of_a_pod_keeps_what_others_hold_of_the_one_before() -> None:
    sparing = Sparing()
    held = sparing.pod(raw("pods", 3))
    newer = sparing.pod(changed("pods", 3, metadata={"resourceVersion": "7"}))
    sparing.resemble(held, newer)
    assert newer.metadata.labels is held.metadata.labels
    assert newer.metadata.uid is held.metadata.uid
    assert newer.spec is held.spec
    assert newer.metadata.resource_version == "7"


def test_what_a_newer_state_says_otherwise_is_not_the_old() -> None:
    sparing = Sparing()
    held = sparing.pod(raw("pods", 3))
    said: JsonObject = {"uid": "another", "labels": {"a": "b"}}
    newer = sparing.pod(changed("pods", 3, metadata=said, spec={"nodeName": "elsewhere"}))
    sparing.resemble(held, newer)
    assert (newer.metadata.uid, newer.metadata.labels) == ("another", {"a": "b"})
    assert newer.spec.node_name == "elsewhere"
    assert held.spec.node_name != "elsewhere"


def test_nodes_that_are_alike_share_what_they_have() -> None:
    sparing = Sparing()
    one, other = sparing.node(raw("nodes", 0)), sparing.node(raw("nodes", 1))
    assert one.status is other.status
    assert one.spec is other.spec
    plain = msgspec.json.decode(raw("nodes", 1), type=Node)
    assert other.metadata.labels == plain.metadata.labels
    assert (other.ready, other.spec) == (plain.ready, plain.spec)
    assert other.status.allocatable == plain.status.allocatable


def test_cliques_of_one_template_share_its_bytes() -> None:
    sparing = Sparing()
    kind = "podcliques.grove.io"
    one, other = sparing.clique(raw(kind, 0)), sparing.clique(raw(kind, 2))
    assert one.spec.pod_spec is other.spec.pod_spec
    plain = msgspec.json.decode(raw(kind, 2), type=PodClique)
    assert bytes(other.spec.pod_spec) == bytes(plain.spec.pod_spec)
    assert other.metadata == plain.metadata


def test_custom_objects_are_read_as_they_are() -> None:
    for kind in ("podgangs.scheduler.grove.io", "reservations.penstock.dev"):
        spared, plain = (
            Sparing().custom(raw(kind, 1)),
            msgspec.json.decode(raw(kind, 1), type=Custom),
        )
        assert spared.metadata == plain.metadata
        assert bytes(spared.spec) == bytes(plain.spec)
        assert bytes(spared.status) == bytes(plain.status)


def test_an_object_that_cannot_be_read_says_so() -> None:
    with pytest.raises(msgspec.ValidationError):
        Sparing().pod(msgspec.Raw(b'{"metadata":{"name":1}}'))


def test_pods_that_come_and_go_leave_nothing_behind() -> None:
    sparing = Sparing()
    kept = [sparing.pod(raw("pods", number)) for number in range(9)]
    for number in range(3_000):
        said: JsonObject = {"nodeName": f"node-{number}", "hostname": "a", "priority": number}
        born = f"2025-06-{1 + number // 1440:02}T{number // 60 % 24:02}:{number % 60:02}:00Z"
        meta: JsonObject = {
            "creationTimestamp": born,
            "ownerReferences": [{"kind": "Job", "name": f"job-{number}", "uid": f"uid-{number}"}],
            "labels": {"key": f"value-{number}"},
        }
        status: JsonObject = {"reason": f"Reason{number}"}
        sparing.pod(changed("pods", 3, metadata=meta, spec=said, status=status))
    assert max(sparing.sizes()) <= 2 * 1024
    sparing.forget()
    assert sum(sparing.sizes()) < 60
    assert sparing.pod(raw("pods", 3)).spec.containers is kept[3].spec.containers

"""What claims to volumes and devices say of nodes, as kube-scheduler takes it."""

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec
import pytest

from api.claims import (
    ClaimReference,
    DeviceClaim,
    DeviceTemplate,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from api.jsons import Json, JsonObject
from api.streams import Node, Pod
from scheduler.eligible import Constraints
from scheduler.filters.claims import NOWHERE, Claims
from scheduler.filters.constraints import Claimed
from scheduler.filters.devices import Devices
from scheduler.filters.disks import Disks
from scheduler.filters.masks import Masks
from tests.support.clusters import node, pod

ZONE = "topology.kubernetes.io/zone"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
NOBODY: JsonObject = {"provisioner": "kubernetes.io/no-provisioner"}
LAZY: JsonObject = {"volumeBindingMode": "WaitForFirstConsumer", "provisioner": "example.com/disk"}

NODES = [
    node("a", labels={"disk": "ssd", ZONE: "z1"}),
    node("b", labels={"disk": "hdd", ZONE: "z2"}),
    node("c", labels={"disk": "ssd"}),
]


def claim(
    volume: str = "", kind: str = "", notes: Mapping[str, str] | None = None, phase: str = "Pending"
) -> PersistentVolumeClaim:
    raw = {
        "metadata": {"name": "data", "namespace": "default", "annotations": dict(notes or {})},
        "spec": {"volumeName": volume, "storageClassName": kind},
        "status": {"phase": phase},
    }
    return msgspec.convert(raw, PersistentVolumeClaim)


def volume(
    terms: list[Json] | None = None, labels: Mapping[str, str] | None = None
) -> PersistentVolume:
    affinity = {"required": {"nodeSelectorTerms": terms}} if terms is not None else None
    raw = {
        "metadata": {"name": "disk-1", "labels": dict(labels or {})},
        "spec": {"nodeAffinity": affinity},
    }
    return msgspec.convert(raw, PersistentVolume)


def kind(**more: Json) -> StorageClass:
    return msgspec.convert({"metadata": {"name": "lazy"}, **LAZY, **more}, StorageClass)


def known(
    found: PersistentVolumeClaim | None,
    there: PersistentVolume | None = None,
    classes: StorageClass | None = None,
) -> Claims:
    return Claims(
        {("default", "data"): found} if found else {},
        {"disk-1": there} if there else {},
        {"lazy": classes} if classes else {},
    )


KEPT = ClaimReference("default", "data")
DATA: Json = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "other"}]
MOUNTING = pod("p", spec={"volumes": DATA})


def usable(claims: Claims, nodes: list[Node] = NODES) -> tuple[str, tuple[str, ...]]:
    """The names of nodes that a pod with the claim may use, and what is left to kube-scheduler."""
    constraints = Constraints.of(MOUNTING, claims.of(MOUNTING))
    mask = Masks(nodes).mask(constraints)
    names = [each.metadata.name for each, ok in zip(nodes, mask, strict=True) if ok]
    return "".join(names), constraints.left


def expressed(key: str, operator: str, *values: str) -> JsonObject:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


SSD: list[Json] = [expressed("disk", "In", "ssd")]


def test_a_bound_volume_is_reached_from_the_nodes_it_names() -> None:
    assert usable(known(claim("disk-1", notes=BOUND), volume(SSD))) == ("ac", ())
    either = [*SSD, expressed("disk", "In", "hdd")]
    assert usable(known(claim("disk-1", notes=BOUND), volume(either))) == ("abc", ())
    assert usable(known(claim("disk-1", notes=BOUND), volume())) == ("abc", ())


def test_names_of_nodes_are_not_held_against_a_volume() -> None:
    named: JsonObject = {"key": "metadata.name", "operator": "In", "values": ["b"]}
    only: list[Json] = [{"matchFields": [named]}]
    assert usable(known(claim("disk-1", notes=BOUND), volume(only))) == ("abc", ())
    both: list[Json] = [{**expressed("disk", "In", "ssd"), "matchFields": [named]}]
    assert usable(known(claim("disk-1", notes=BOUND), volume(both))) == ("ac", ())


@pytest.mark.parametrize("label", [ZONE, OLD_ZONE])
def test_a_volume_of_a_zone_is_reached_from_there_and_where_there_are_no_zones(label: str) -> None:
    zoned = volume(labels={label: "z1__z9"})
    assert usable(known(claim("disk-1", notes=BOUND), zoned)) == ("ac", ())


def test_the_older_label_of_a_node_counts_before_the_newer() -> None:
    nodes = [node("a", labels={OLD_ZONE: "z1", ZONE: "z2"}), node("b", labels={ZONE: "z1"})]
    old = volume(labels={OLD_ZONE: "z1"})
    new = volume(labels={ZONE: "z1"})
    assert usable(known(claim("disk-1", notes=BOUND), old), nodes) == ("ab", ())
    assert usable(known(claim("disk-1", notes=BOUND), new), nodes) == ("b", ())


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param(known(None), id="no claim"),
        pytest.param(known(claim("disk-1", notes=BOUND)), id="no volume"),
        pytest.param(known(claim()), id="nobody has bound it"),
        pytest.param(known(claim("disk-1"), volume()), id="not bound through"),
        pytest.param(known(claim("disk-1", "lazy"), volume(), kind()), id="bound by hand, not yet"),
        pytest.param(known(claim(kind="gone")), id="no such class"),
        pytest.param(
            known(claim("disk-1", notes=BOUND, phase="Lost"), volume()), id="its volume is lost"
        ),
    ],
)
def test_a_claim_that_cannot_be_met_keeps_a_pod_off_every_node(claims: Claims) -> None:
    assert usable(claims) == ("", ())


def test_a_claim_that_is_being_deleted_keeps_a_pod_off_every_node() -> None:
    there = claim("disk-1", notes=BOUND)
    going = msgspec.structs.replace(
        there.metadata, deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC)
    )
    assert usable(known(msgspec.structs.replace(there, metadata=going), volume())) == ("", ())


def test_an_unbound_claim_is_made_where_its_class_allows() -> None:
    assert usable(known(claim(kind="lazy"), None, kind())) == ("abc", ("volumes",))
    labels: Json = [{"key": ZONE, "values": ["z2", "z3"]}]
    somewhere = kind(allowedTopologies=[{"matchLabelExpressions": labels}])
    assert usable(known(claim(kind="lazy"), None, somewhere)) == ("b", ("volumes",))


def test_where_nobody_makes_volumes_one_is_taken_that_is_nobodys() -> None:
    local = kind(**NOBODY)
    asking, classes = claim(kind="lazy"), {"lazy": local}
    disks = Disks(classes)
    disks.put_claim(asking)
    claims = Claims({("default", "data"): asking}, {}, classes, disks=disks)
    found = claims.of(MOUNTING)
    assert (found.nodes, found.left) == ((), ())
    assert dict(found.takes) == {"volumes.penstock.dev:lazy 0": 1}
    assert usable(known(asking, None, local)) == ("abc", ("volumes",))  # nobody has counted


def test_a_volume_that_is_kept_for_a_claim_is_what_must_be_reached() -> None:
    local = kind(**NOBODY)
    asking, classes = claim(kind="lazy"), {"lazy": local}
    kept = msgspec.structs.replace(
        volume(SSD), spec=msgspec.structs.replace(volume(SSD).spec, claim_ref=KEPT)
    )
    disks = Disks(classes)
    disks.put_volume(kept)
    claims = Claims({("default", "data"): asking}, {"disk-1": kept}, classes, disks=disks)
    assert usable(claims) == ("ac", ())
    assert dict(claims.of(MOUNTING).takes) == {}


def test_an_unbound_claim_stays_with_the_node_that_was_chosen_for_it() -> None:
    chosen = claim(kind="lazy", notes={"volume.kubernetes.io/selected-node": "c"})
    assert usable(known(chosen, None, kind())) == ("c", ("volumes",))


def test_a_class_in_the_old_annotation_counts_before_the_field() -> None:
    old = claim(kind="gone", notes={"volume.beta.kubernetes.io/storage-class": "lazy"})
    assert usable(known(old, None, kind())) == ("abc", ("volumes",))


def test_a_claim_made_for_the_pod_is_found_by_both_names() -> None:
    scratch: Json = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]
    mounting = pod("p", spec={"volumes": scratch})
    made = {("default", "p-scratch"): claim("disk-1", notes=BOUND)}
    found = Claims(made, {"disk-1": volume(SSD)}).of(mounting)
    assert len(found.nodes) == 1
    assert found.left == ()


GPUS = ("default", "gpus")
ASKING: JsonObject = {
    "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}]}
}
TWO = {"devices.penstock.dev/gpu": 2}
GIVEN: JsonObject = {
    "allocation": {"nodeSelector": {"nodeSelectorTerms": [expressed("disk", "In", "hdd")]}}
}
NAMED = pod("p", spec={"resourceClaims": [{"name": "x", "resourceClaimName": "gpus"}]})
FROM_TEMPLATE: JsonObject = {"resourceClaims": [{"name": "x", "resourceClaimTemplateName": "gpus"}]}
TEMPLATED = pod("p", spec=FROM_TEMPLATE)


def devices(status: JsonObject | None = None, name: str = "gpus") -> DeviceClaim:
    raw = {"metadata": {"name": name}, "spec": ASKING, "status": status or {}}
    return msgspec.convert(raw, DeviceClaim)


def template() -> DeviceTemplate:
    return msgspec.convert({"metadata": {"name": "gpus"}, "spec": {"spec": ASKING}}, DeviceTemplate)


def made(name: str | None) -> Pod:
    """A pod for which a claim was made from its template, or none where none is needed."""
    told: Json = [{"name": "x", "resourceClaimName": name}]
    return pod("p", spec=FROM_TEMPLATE, status={"resourceClaimStatuses": told})


def test_given_devices_tie_a_pod_to_their_nodes() -> None:
    for asking, name in ((NAMED, "gpus"), (made("p-x-1"), "p-x-1")):
        found = Claims(devices={("default", name): devices(GIVEN, name)}).of(asking)
        assert list(Masks(NODES).mask(Constraints.of(asking, found))) == [False, True, False]
        assert (found.left, dict(found.needs)) == ((), {})


def test_devices_that_nobody_gave_yet_are_taken_by_number() -> None:
    claims = Claims(
        devices={GPUS: devices(), ("default", "p-x-1"): devices(None, "p-x-1")},
        templates={GPUS: template()},
        offered=Devices(),
    )
    for asking in (TEMPLATED, made("p-x-1"), made("not-seen-yet")):
        assert claims.of(asking) == Claimed(takes=TWO)
    found = claims.of(NAMED)
    assert (dict(found.takes), [each.name for each in found.common]) == ({}, ["gpus"])
    assert dict(found.needs) == TWO
    assert claims.of(made(None)) == Claimed()


def test_a_claim_or_template_that_is_not_there_keeps_a_pod_off_every_node() -> None:
    claims = Claims(offered=Devices())
    for asking in (NAMED, TEMPLATED):
        found = claims.of(asking)
        assert not Masks(NODES).mask(Constraints.of(asking, found)).any()
    meta = msgspec.structs.replace(
        devices().metadata, deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC)
    )
    going = msgspec.structs.replace(devices(), metadata=meta)
    assert Claims(devices={GPUS: going}, offered=Devices()).of(NAMED).nodes == (NOWHERE,)


def test_what_is_not_served_is_left_to_kube_scheduler() -> None:
    waiting, bound = claim(kind="lazy"), claim("disk-1", notes=BOUND)
    data = ("default", "data")
    for claims in (
        Claims(claims=None),
        Claims({data: bound}, volumes=None),
        Claims({data: waiting}, classes=None),
        Claims({data: waiting}, {}, {"lazy": kind(**NOBODY)}, disks=None),
    ):
        assert usable(claims) == ("abc", ("volumes",))
    for unknown in (
        Claims(devices=None, templates={GPUS: template()}),
        Claims(devices={GPUS: devices()}, templates=None),
        Claims(devices={GPUS: devices()}, templates={GPUS: template()}, offered=None),
    ):
        for asking in (NAMED, TEMPLATED):
            assert unknown.of(asking) == Claimed(left=("devices",))


def test_what_nobody_looked_up_is_named_as_left() -> None:
    volumes: Json = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    asked: Json = [{"name": "gpus", "resourceClaimTemplateName": "gpus"}]
    unread = pod("p", spec={"volumes": volumes, "resourceClaims": asked})
    assert Constraints.of(unread).left == ("volumes", "devices")
    assert Constraints.of(pod("p", spec={"volumes": [{"name": "token"}]})).left == ()

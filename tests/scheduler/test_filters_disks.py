"""Local volumes are counted by node and by what claims ask of them."""

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec
import pytest

from api.claims import PersistentVolume, PersistentVolumeClaim, StorageClass
from api.jsons import Json, JsonObject
from scheduler.filters.disks import Disks
from tests.support.clusters import node

HOST = "kubernetes.io/hostname"
LATER: JsonObject = {"volumeBindingMode": "WaitForFirstConsumer"}
NONE: JsonObject = {"provisioner": "kubernetes.io/no-provisioner"}


def storage(name: str, **more: Json) -> StorageClass:
    return msgspec.convert({"metadata": {"name": name}, **LATER, **NONE, **more}, StorageClass)


def expressed(key: str, *values: str) -> JsonObject:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": [*values]}]}


def disk(
    name: str,
    where: JsonObject | None = None,
    size: str = "100Gi",
    phase: str = "Available",
    labels: Mapping[str, str] | None = None,
    **more: Json,
) -> PersistentVolume:
    affinity: JsonObject = {"required": {"nodeSelectorTerms": [where or expressed(HOST, "n1")]}}
    spec: JsonObject = {
        "storageClassName": "local",
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "nodeAffinity": affinity,
        **more,
    }
    meta: JsonObject = {"name": name, "labels": dict(labels or {})}
    raw = {"metadata": meta, "spec": spec, "status": {"phase": phase}}
    return msgspec.convert(raw, PersistentVolume)


def claim(
    name: str = "c", size: str = "10Gi", notes: Mapping[str, str] | None = None, **more: Json
) -> PersistentVolumeClaim:
    spec: JsonObject = {
        "storageClassName": "local",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
        **more,
    }
    meta: JsonObject = {"name": name, "namespace": "x", "annotations": dict(notes or {})}
    return msgspec.convert({"metadata": meta, "spec": spec}, PersistentVolumeClaim)


def known(
    *things: PersistentVolume | PersistentVolumeClaim, kinds: tuple[StorageClass, ...] = ()
) -> Disks:
    every = kinds or (storage("local"),)
    found = Disks({each.metadata.name: each for each in every})
    for thing in things:
        if isinstance(thing, PersistentVolume):
            found.put_volume(thing)
        else:
            found.put_claim(thing)
    return found


def counts(found: Disks, name: str = "n1", **labels: str) -> tuple[int, int]:
    """How many volumes there are for the one demand, and how many of them are somebody's."""
    shelf = found.on(node(name, labels={HOST: name, **labels}))
    assert len(shelf.has) <= 1
    return sum(shelf.has.values()), sum(shelf.taken.values())


def test_each_host_has_its_own_volumes() -> None:
    found = known(claim(), disk("a"), disk("b"), disk("c", expressed(HOST, "n2")))
    assert counts(found) == (2, 0)
    assert counts(found, "n2") == (1, 0)
    assert counts(found, "n3") == (0, 0)


@pytest.mark.parametrize(
    "somebodys",
    [
        pytest.param(disk("b", phase="Bound"), id="bound"),
        pytest.param(disk("b", phase="Released"), id="left behind"),
        pytest.param(disk("b", claimRef={"namespace": "x", "name": "other"}), id="kept"),
    ],
)
def test_volumes_that_are_somebodys_are_taken(somebodys: PersistentVolume) -> None:
    assert counts(known(claim(), disk("a"), somebodys)) == (2, 1)


def test_a_volume_that_is_being_deleted_is_taken() -> None:
    there = disk("a")
    meta = msgspec.structs.replace(
        there.metadata, deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC)
    )
    assert counts(known(claim(), msgspec.structs.replace(there, metadata=meta))) == (1, 1)


@pytest.mark.parametrize(
    "asking",
    [
        pytest.param(claim(size="101Gi"), id="larger"),
        pytest.param(claim(accessModes=["ReadWriteMany"]), id="another mode"),
        pytest.param(claim(accessModes=["ReadWriteOnce", "ReadWriteMany"]), id="one more mode"),
        pytest.param(claim(volumeMode="Block"), id="a block device"),
        pytest.param(claim(selector={"matchLabels": {"tier": "fast"}}), id="selected"),
        pytest.param(claim(storageClassName="other"), id="another class"),
    ],
)
def test_only_volumes_that_would_do_count(asking: PersistentVolumeClaim) -> None:
    assert counts(known(asking, disk("a"), kinds=(storage("local"), storage("other")))) == (0, 0)


def test_a_claim_takes_what_it_asks_for() -> None:
    fast = disk("a", labels={"tier": "fast"}, volumeMode="Block")
    asking = claim(size="100Gi", volumeMode="Block", selector={"matchLabels": {"tier": "fast"}})
    found = known(asking, fast)
    assert counts(found) == (1, 0)
    assert found.takes(asking) == {
        "volumes.penstock.dev:local 100Gi, ReadWriteOnce, Block, tier In fast": 1
    }


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(storage("local", provisioner="example.com/disk"), id="made when asked for"),
        pytest.param(storage("local", volumeBindingMode="Immediate"), id="bound at once"),
        pytest.param(storage("another"), id="no such class"),
    ],
)
def test_of_other_classes_nothing_is_counted(kind: StorageClass) -> None:
    assert counts(known(claim(), disk("a"), kinds=(kind,))) == (0, 0)


def test_volumes_of_several_nodes_count_where_they_are_reached() -> None:
    rack = disk("a", expressed("rack", "r1"))
    either = disk("b", expressed(HOST, "n1", "n2"))
    found = known(claim(), rack, either)
    assert counts(found, rack="r1") == (2, 0)
    assert counts(found, "n2") == (1, 0)
    assert counts(found, "n3") == (0, 0)
    found.put_volume(disk("a", expressed("rack", "r1"), phase="Bound"))
    assert counts(found, rack="r1") == (2, 1)


def test_claims_with_a_volume_ask_for_none() -> None:
    done = claim(notes={"pv.kubernetes.io/bind-completed": "yes"})
    assert counts(known(done, disk("a"))) == (0, 0)
    found = known(claim(), disk("a"))
    assert found.changed() is None
    found.put_claim(done)
    assert found.changed() == frozenset()


def test_a_large_claim_takes_also_from_those_that_ask_for_less() -> None:
    small, large = claim("s", "10Gi"), claim("l", "400Gi")
    found = known(small, large, disk("a"), disk("b", size="500Gi"))
    shelf = found.on(node("n1", labels={HOST: "n1"}))
    assert sorted(shelf.has.values()) == [1, 2]
    assert found.takes(small).keys() < found.takes(large).keys() == shelf.has.keys()


def test_what_a_claim_takes_follows_the_volumes_there_are() -> None:
    small, large = claim("s", "10Gi"), claim("l", "400Gi")
    found = known(small, large, disk("b", size="500Gi"))
    assert len(found.takes(small)) == 2  # every volume that would do is a large one
    found.put_volume(disk("a"))
    assert len(found.takes(small)) == 1


def test_hosts_are_named_when_their_volumes_change() -> None:
    found = known(claim(), disk("a"))
    assert found.changed() is None
    found.put_volume(disk("b", expressed(HOST, "n2")))
    assert found.changed() == frozenset({"n2"})
    found.drop_volume(disk("b", expressed(HOST, "n2")))
    assert found.changed() == frozenset({"n2"})
    assert counts(found, "n2") == (0, 0)
    found.classes_changed()
    assert found.changed() is None


def test_nobody_is_bothered_with_volumes_that_nobody_asks_for() -> None:
    found = known(disk("a"))
    assert found.changed() == frozenset()
    assert counts(found) == (0, 0)


def test_a_volume_may_be_kept_for_a_claim() -> None:
    found = known(disk("a", claimRef={"namespace": "x", "name": "c"}))
    assert found.kept_for(claim()) == "a"
    assert not found.kept_for(claim("other"))


def test_demands_of_the_past_are_forgotten_in_time() -> None:
    found = known(disk("a", size="1000Gi"))
    for size in range(1, 50):
        found.put_claim(claim(f"c{size}", f"{size}Gi"))
        found.drop_claim(("x", f"c{size}"))
    assert len(found.on(node("n1", labels={HOST: "n1"})).has) <= 34

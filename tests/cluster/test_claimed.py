"""Devices and local volumes: kube-scheduler gives each pod what the engine kept for it."""

from collections import Counter

import pytest

from api import names
from api.jsons import Json, JsonObject
from api.streams import Pod
from kube.resources import (
    CLAIM_TEMPLATES,
    DEVICE_CLASSES,
    DEVICE_SLICES,
    PODS,
    RESOURCE_CLAIMS,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
)
from tests.support.clusterwide import Made, there
from tests.support.living import Cluster, Kubectl

pytestmark = pytest.mark.cluster

TYPE = 'device.attributes["{driver}"].type == "gpu"'


def shelf(driver: str, node: str, count: int) -> Made:
    """So many GPUs on a node, and one device of another type."""
    devices = [{"name": f"d{i}", "attributes": {"type": {"string": "gpu"}}} for i in range(count)]
    other = {"name": "link", "attributes": {"type": {"string": "link"}}}
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": [*devices, other]}
    return DEVICE_SLICES, f"{driver}-{node}", {"spec": spec}


def class_of(driver: str) -> Made:
    """A class as drivers write them: of this driver, and of this type."""
    rule = f"device.driver == '{driver}' && {TYPE.format(driver=driver)}"
    return DEVICE_CLASSES, driver, {"spec": {"selectors": [{"cel": {"expression": rule}}]}}


def devices(driver: str, count: int) -> JsonObject:
    exactly: JsonObject = {"deviceClassName": driver, "count": count}
    return {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}


def gang_pod(gang: str, index: int, size: int, label: str, **spec: Json) -> JsonObject:
    """A pod of a plain gang, kept to nodes that are labelled so."""
    labels: JsonObject = {
        "app": gang, names.GANG_LABEL: gang, names.GANG_SIZE_LABEL: str(size),
    }  # fmt: skip
    main: Json = {"name": "main", "image": "registry.example/it:1"}
    body: JsonObject = {
        "containers": [main],
        "nodeSelector": {label: "yes"},
        "terminationGracePeriodSeconds": 0,
        **spec,
    }
    meta: JsonObject = {"name": f"{gang}-{index}", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body}


async def homes(cluster: Cluster, gang: str, count: int) -> Counter[str]:
    """Wait until all pods of a gang are bound; give the nodes they are on."""

    async def attempt() -> Counter[str] | None:
        found = await cluster.client.list_pages(PODS, Pod, cluster.namespace, labels=f"app={gang}")
        bound = Counter(pod.spec.node_name for pod in found.items if pod.spec.node_name)
        return bound if bound.total() == count else None

    return await cluster.until(attempt, f"{count} bound pods of {gang}")


async def test_a_gang_goes_where_devices_are_and_one_that_lacks_one_waits(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    label, driver = "claimed-test-devices", "gpu.penstock.example"
    large, small, without = await cluster.label_nodes(label, count=3)
    things = (class_of(driver), shelf(driver, large, 5), shelf(driver, small, 3))
    async with there(cluster.client, *things):
        kubectl.apply({
            "apiVersion": CLAIM_TEMPLATES.api_version, "kind": CLAIM_TEMPLATES.kind,
            "metadata": {"name": "two"}, "spec": {"spec": devices(driver, 2)},
        })  # fmt: skip
        two: Json = [{"name": "gpus", "resourceClaimTemplateName": "two"}]
        for index in range(3):
            kubectl.apply(gang_pod("whole", index, 3, label, resourceClaims=two))
        # Each node has one device left over, which makes two, but not for one pod.
        assert await homes(cluster, "whole", 3) == {large: 2, small: 1}
        kubectl.apply(gang_pod("short", 0, 1, label, resourceClaims=two))
        said = await cluster.gang("short", reason=names.REASON_INSUFFICIENT)
        assert f"2 devices of class {driver} on one node" in said.message
        kubectl.run("delete", "pod", "whole-0", "whole-1", "whole-2", "--wait=false", check=True)
        assert without not in await homes(cluster, "short", 1)
        for index in range(4):
            kubectl.apply(gang_pod("large", index, 4, label, resourceClaims=two))
        said = await cluster.gang("large", reason=names.REASON_NEVER_FITS)
        assert f"2 devices of class {driver} on one node" in said.message


async def test_pods_that_share_devices_are_put_where_these_are(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    label, driver = "claimed-test-shared", "shared.penstock.example"
    nodes = await cluster.label_nodes(label, count=2)
    things = (class_of(driver), *(shelf(driver, node, 2) for node in nodes))
    async with there(cluster.client, *things):
        kubectl.apply({
            "apiVersion": RESOURCE_CLAIMS.api_version, "kind": RESOURCE_CLAIMS.kind,
            "metadata": {"name": "both"}, "spec": devices(driver, 2),
        })  # fmt: skip
        both: Json = [{"name": "gpus", "resourceClaimName": "both"}]
        cpu: Json = {"requests": {"cpu": "1"}}
        main: Json = {"name": "main", "image": "registry.example/it:1", "resources": cpu}
        for index in range(4):
            body = gang_pod("sharing", index, 4, label, resourceClaims=both, containers=[main])
            kubectl.apply(body)
        assert len(await homes(cluster, "sharing", 4)) == 1


async def test_pods_that_claim_local_disks_go_where_one_is_left_for_each(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    label, kind = "claimed-test-disks", "local-penstock"
    nodes = await cluster.label_nodes(label, count=3)
    later = {
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
    }  # fmt: skip
    disks = (
        disk(kind, nodes[0], "100Gi"),
        disk(kind, nodes[1], "200Gi"),
        disk(kind, nodes[2], "50Gi"),
    )
    async with there(cluster.client, (STORAGE_CLASSES, kind, later), *disks):
        for index in range(3):
            kubectl.apply({
                "apiVersion": "v1", "kind": VOLUME_CLAIMS.kind,
                "metadata": {"name": f"data-{index}"},
                "spec": {
                    "storageClassName": kind, "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "80Gi"}},
                },
            })  # fmt: skip
        for index in range(2):
            kubectl.apply(storing("stored", index, 2, label, f"data-{index}"))
        assert await homes(cluster, "stored", 2) == {nodes[0]: 1, nodes[1]: 1}
        kubectl.apply(storing("late", 0, 1, label, "data-2"))
        said = await cluster.gang("late", reason=names.REASON_INSUFFICIENT)
        assert f"volumes of class {kind} (80Gi, ReadWriteOnce)" in said.message


def storing(gang: str, index: int, size: int, label: str, claim: str) -> JsonObject:
    data: Json = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    return gang_pod(gang, index, size, label, volumes=[data])


def disk(kind: str, node: str, size: str) -> Made:
    here = {"key": names.HOSTNAME_KEY, "operator": "In", "values": [node]}
    spec = {
        "storageClassName": kind, "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain", "local": {"path": "/mnt/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
    }  # fmt: skip
    return VOLUMES, f"{kind}-{node}", {"spec": spec}

"""Shared devices: claims at three levels that pods run with, and NVLink domains of GPU pods."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from api.streams import Pod
from kube.client import Client
from kube.errors import NotFound
from kube.resources import CLAIM_TEMPLATES, COMPUTE_DOMAINS, PODS, RESOURCE_CLAIMS, Resource
from tests.support.installed import Installed
from tests.support.living import Cluster, Kubectl

pytestmark = pytest.mark.cluster

CLASSES: Final = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", False)  # noqa: FBT003
SLICES: Final = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", False)  # noqa: FBT003
DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False  # noqa: FBT003
)  # fmt: skip
DRIVER: Final = "links.example.com"

# As much of NVIDIA's definition as is written.
COMPUTE_DOMAIN: Final[JsonObject] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": COMPUTE_DOMAINS.full_name},
    "spec": {
        "group": COMPUTE_DOMAINS.group,
        "names": {"plural": COMPUTE_DOMAINS.plural, "kind": COMPUTE_DOMAINS.kind},
        "scope": "Namespaced",
        "versions": [
            {
                "name": COMPUTE_DOMAINS.version,
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["numNodes", "channel"],
                                "properties": {
                                    "numNodes": {"type": "integer"},
                                    "channel": {
                                        "type": "object",
                                        "properties": {
                                            "resourceClaimTemplate": {
                                                "type": "object",
                                                "properties": {"name": {"type": "string"}},
                                            }
                                        },
                                    },
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}


@asynccontextmanager
async def links(client: Client, count: int) -> AsyncIterator[None]:
    """Devices that every node reaches, and a class of them."""
    devices: list[Json] = [{"name": f"link-{index}"} for index in range(count)]
    rule = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    spec = {
        "driver": DRIVER, "allNodes": True, "devices": devices,
        "pool": {"name": "links", "generation": 1, "resourceSliceCount": 1},
    }  # fmt: skip
    await client.create(CLASSES, body(CLASSES, "links", {"selectors": [rule]}))
    await client.create(SLICES, body(SLICES, "links", spec))
    try:
        yield
    finally:
        await client.delete(SLICES, "links")
        await client.delete(CLASSES, "links")


def body(kind: Resource, name: str, spec: Json | object) -> dict[str, object]:
    return {
        "apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name},
        "spec": spec,
    }  # fmt: skip


def template() -> JsonObject:
    request: JsonObject = {"name": "link", "exactly": {"deviceClassName": "links"}}
    return {"spec": {"devices": {"requests": [request]}}}


def one(name: str, scope: str, **more: Json) -> JsonObject:
    return {"name": name, "scope": scope, **more}


def linked_set(name: str) -> JsonObject:
    """A router alone, and a leader with two workers in two copies, sharing at every level."""

    def clique(role: str, replicas: int, *shared: JsonObject) -> JsonObject:
        pod: JsonObject = {
            "containers": [{"name": role, "image": "registry.example/it:1"}],
            "terminationGracePeriodSeconds": 1,
        }
        spec: JsonObject = {"roleName": role, "replicas": replicas, "podSpec": pod}
        return {"name": role, "spec": spec, "resourceSharing": [*shared]}

    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "template": {
                "resourceClaimTemplates": [
                    {"name": "fast", "templateSpec": template()},
                    {"name": "near", "templateSpec": template()},
                ],
                "resourceSharing": [
                    one("fast", "AllReplicas"),
                    one(
                        "stored", "PerReplica",
                        filter={"childScalingGroupNames": ["model"]},
                    ),
                    one("near", "PerReplica", filter={"childCliqueNames": ["router"]}),
                ],
                "cliques": [
                    clique("router", 1),
                    clique("leader", 1),
                    clique("worker", 2, one("fast", "PerReplica")),
                ],
                "podCliqueScalingGroups": [
                    {
                        "name": "model",
                        "cliqueNames": ["leader", "worker"],
                        "replicas": 2,
                        "minAvailable": 2,
                        "resourceSharing": [
                            one("fast", "PerReplica", filter={"childCliqueNames": ["leader"]})
                        ],
                    }
                ],
            },
        },
    }  # fmt: skip


async def there(client: Client, kind: Resource, space: str) -> dict[str, JsonObject]:
    raw = await client.raw_get(kind.path(space))
    items: list[JsonObject] = msgspec.json.decode(raw)["items"]
    return {str(metadata(item)["name"]): item for item in items}


def metadata(of: JsonObject) -> JsonObject:
    found = of["metadata"]
    assert isinstance(found, dict)
    return found


def claims_of(pod: JsonObject) -> list[str]:
    spec = pod["spec"]
    assert isinstance(spec, dict)
    entries = spec.get("resourceClaims") or []
    assert isinstance(entries, list)
    return [str(e.get("resourceClaimName")) for e in entries if isinstance(e, dict)]


def scale(kubectl: Kubectl, copies: int, replicas: int) -> None:
    kubectl.run("scale", "pcsg", "linked-0-model", f"--replicas={copies}", check=True)
    kubectl.run("scale", "pcs", "linked", f"--replicas={replicas}", check=True)


def of_copy(replica: int, copy: int) -> list[str]:
    """The claims that a copy of the group and its cliques have for themselves."""
    name = f"linked-{replica}-model-{copy}"
    return [f"{name}-fast", *(f"{name}-worker-{pod}-fast" for pod in range(2))]


async def until_left(cluster: Cluster, kind: Resource, what: str, *left: str) -> None:
    """Wait until these and no others are there."""

    async def attempt() -> bool | None:
        return sorted(await there(cluster.client, kind, cluster.namespace)) == sorted(left) or None

    await cluster.until(attempt, what)


async def test_claims_of_three_levels_are_made_used_scaled_and_removed(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    client, space = cluster.client, cluster.namespace
    async with links(client, 20):
        kubectl.apply(linked_set("linked"))
        # No pod is made before its claims are: those of the group lack a template still.
        pods = await cluster.pods("linked", 1)
        assert pods[0].metadata.labels[names.PODCLIQUE_LABEL] == "linked-0-router"
        stored = {**body(CLAIM_TEMPLATES, "stored", template())}
        await client.create(CLAIM_TEMPLATES, stored, space)
        await cluster.running("linked")

        ours = ["linked-0-near", "linked-0-stored"]
        first = ["linked-all-fast", *ours, *of_copy(0, 0), *of_copy(0, 1)]
        made = await there(client, RESOURCE_CLAIMS, space)
        assert sorted(made) == sorted(first)
        used = {
            (
                str(labels["grove.io/podclique"]),
                str(labels["grove.io/podclique-pod-index"]),
            ): claims_of(pod)
            for pod in (await there(client, PODS, space)).values()
            if isinstance(labels := metadata(pod)["labels"], dict)
        }
        assert used["linked-0-router", "0"] == ["linked-all-fast", "linked-0-near"]
        assert used["linked-0-model-1-leader", "0"] == [
            "linked-all-fast", "linked-0-stored", "linked-0-model-1-fast",
        ]  # fmt: skip
        assert used["linked-0-model-0-worker", "1"] == [
            "linked-all-fast", "linked-0-stored", "linked-0-model-0-worker-1-fast",
        ]  # fmt: skip

        # Each copy and each replica brings claims of its own, which go with it.
        more = ["linked-1-near", "linked-1-stored", *of_copy(0, 2), *of_copy(1, 0), *of_copy(1, 1)]
        scale(kubectl, 3, 2)
        await until_left(cluster, RESOURCE_CLAIMS, "claims of what came", *first, *more)
        await cluster.running("linked", gangs=3)
        scale(kubectl, 2, 1)
        await until_left(cluster, RESOURCE_CLAIMS, "claims of what went gone", *first)
        left = await there(client, RESOURCE_CLAIMS, space)
        assert {n: metadata(c)["uid"] for n, c in left.items()} == {
            n: metadata(c)["uid"] for n, c in made.items()
        }

        kubectl.delete("linked")
        await until_left(cluster, RESOURCE_CLAIMS, "all claims gone")


@pytest.fixture
async def nvlink(installed: Installed, person: Client) -> AsyncIterator[None]:
    """The kind ComputeDomain served."""
    await person.create(DEFINITIONS, COMPUTE_DOMAIN)
    yield
    await person.delete(DEFINITIONS, COMPUTE_DOMAINS.full_name)


def of_nvlink(group: str) -> JsonObject:
    return {"grove.io/mnnvl-group": group}


def gpu_set(name: str, replicas: int) -> JsonObject:
    """An engine in the set's NVLink group, and cliques with one of their own or of their group."""
    gpu: JsonObject = {"limits": {"nvidia.com/gpu": "1"}}

    def clique(role: str, resources: JsonObject, **annotations: JsonObject) -> JsonObject:
        pod: JsonObject = {
            "containers": [
                {"name": role, "image": "registry.example/it:1", "resources": resources}
            ],
            "terminationGracePeriodSeconds": 1,
        }
        spec: JsonObject = {"roleName": role, "replicas": 1, "minAvailable": 1, "podSpec": pod}
        return {"name": role, "spec": spec, **annotations}

    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name, "annotations": of_nvlink("nv")},
        "spec": {
            "replicas": replicas,
            "template": {
                "cliques": [
                    clique("router", {}),
                    clique("engine", gpu),
                    clique("draft", gpu, annotations=of_nvlink("own")),
                    clique("expert", gpu),
                    clique("apart", gpu, annotations=of_nvlink("none")),
                ],
                "podCliqueScalingGroups": [
                    {
                        "name": "pool",
                        "cliqueNames": ["expert"],
                        "annotations": of_nvlink("pool"),
                    }
                ],
            },
        },
    }


def as_the_driver_makes(name: str) -> JsonObject:
    """The template of a domain's channels, without which no pod of the domain is placed."""
    return {
        "apiVersion": CLAIM_TEMPLATES.api_version, "kind": CLAIM_TEMPLATES.kind,
        "metadata": {"name": name}, "spec": {"spec": {"devices": {}}},
    }  # fmt: skip


async def test_each_replica_has_a_compute_domain_as_long_as_it_has_pods(
    nvlink: None, cluster: Cluster, kubectl: Kubectl
) -> None:
    # Admission refuses NVLink groups where the policy does not allow them; it leaves this namespace
    # out.
    space = "kube-system"
    system = Cluster(cluster.client, space)
    person = Kubectl(kubectl.binary, kubectl.kubeconfig, space)
    every = [f"wide-{replica}-{group}" for replica in range(2) for group in ("nv", "own", "pool")]
    for domain in every:
        person.apply(as_the_driver_makes(domain))
    person.apply(gpu_set("wide", 2))
    try:

        async def attempt() -> dict[str, JsonObject] | None:
            found = await there(system.client, COMPUTE_DOMAINS, space)
            return found if len(found) == len(every) else None

        domains = await system.until(attempt, "all domains")
        assert sorted(domains) == every
        assert metadata(domains["wide-1-nv"])["finalizers"] == ["grove.io/computedomain-finalizer"]
        assert domains["wide-1-nv"]["spec"] == {
            "numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "wide-1-nv"}},
        }  # fmt: skip
        await system.pods("wide", 10)
        pods = await system.client.raw_get(
            f"{PODS.path(space)}?labelSelector=grove.io/podcliqueset-replica-index%3D1"
        )
        used = {
            pod["metadata"]["labels"]["grove.io/podclique"]: pod["spec"]
            for pod in msgspec.json.decode(pods)["items"]
        }
        for role, domain in (
            ("engine", "wide-1-nv"), ("draft", "wide-1-own"), ("pool-0-expert", "wide-1-pool")
        ):  # fmt: skip
            spec = used[f"wide-1-{role}"]
            assert spec["resourceClaims"] == [
                {"name": "mnnvl-claim", "resourceClaimTemplateName": domain}
            ]
            (container,) = spec["containers"]
            assert container["resources"]["claims"] == [{"name": "mnnvl-claim"}]
        for role in ("router", "apart"):
            assert "resourceClaims" not in used[f"wide-1-{role}"]

        person.run("scale", "pcs", "wide", "--replicas", "1", check=True)
        await until_left(system, COMPUTE_DOMAINS, "the second domains gone", *every[:3])
        left = await system.client.list_pages(
            PODS, Pod, space, labels="grove.io/podcliqueset-replica-index=1"
        )
        assert left.items == [], "its domain went before its pods"
    finally:
        person.delete("wide")
        for domain in every:
            await system.client.delete(CLAIM_TEMPLATES, domain, space)
    await until_left(system, COMPUTE_DOMAINS, "all domains gone")

    async def set_is_gone() -> bool | None:
        try:
            await system.client.raw_get("/apis/grove.io/v1alpha1/namespaces/kube-system/"
                                        "podcliquesets/wide")  # fmt: skip
        except NotFound:
            return True
        return None

    await system.until(set_is_gone, "set wide gone")

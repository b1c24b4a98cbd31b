"""What the guide's examples promise of what becomes of a set that was started."""

import re
from contextlib import suppress

import msgspec
import pytest

from api import names
from api.jsons import JsonObject
from api.streams import Pod
from kube.errors import Forbidden, NotFound
from kube.resources import (
    AUTOSCALERS,
    ENDPOINTSLICES,
    PODCLIQUES,
    PODCLIQUESETS,
    PODS,
    SCALING_GROUPS,
    SERVICES,
    Resource,
)
from tests.support.guideplaces import pods_of, stored
from tests.support.guiderooms import part
from tests.support.living import Cluster
from tests.support.ordered import NEVER_READY, let_be_ready, of_clique, said, when
from tests.support.scaling import parts
from tests.support.witnessing import witness

NEW = "registry.example/engine:2.0"


async def images(cluster: Cluster, gang: str) -> dict[str, str]:
    """By UID, what the pods of a gang run; those that are going left out."""
    raw = await cluster.client.raw_get(PODS.path(cluster.namespace))
    return {
        pod["metadata"]["uid"]: pod["spec"]["containers"][0]["image"]
        for pod in msgspec.json.decode(raw)["items"]
        if pod["metadata"]["labels"].get(names.PODGANG_LABEL) == gang
        and "deletionTimestamp" not in pod["metadata"]
    }


async def renewed(cluster: Cluster, name: str) -> None:
    """Change the image of a set's engines."""
    kind = PODCLIQUESETS
    path = "/spec/template/cliques/0/spec/podSpec/containers/0/image"
    change: JsonObject = {"op": "replace", "path": path, "value": NEW}
    await cluster.client.json_patch(kind, name, [change], cluster.namespace)


async def in_order(cluster: Cluster) -> None:
    """Who comes next is behind the gate until the last are up; but there is room for it already."""
    name, count = "in-order", 4
    for held, waiting in (("store", ("engine", "router")), ("engine", ("router",))):
        clique = f"{name}-0-{held}"

        async def on_its_node(clique: str = clique) -> list[Pod] | None:
            pods = await cluster.pods(name, count)
            of = of_clique(pods, clique)
            return pods if all(pod.status.phase == "Running" for pod in of) else None

        pods = await cluster.until(on_its_node, f"{clique} running")
        for later in waiting:
            assert all(names.GATE in pod.gates for pod in of_clique(pods, f"{name}-0-{later}"))
        (entry,) = (r for r in await cluster.reservations() if r.metadata.name == f"{name}-0")
        assert entry.size == count
        await let_be_ready(cluster, of_clique(pods, clique))
    await cluster.running(name)


async def in_init_container(cluster: Cluster) -> None:
    """Engines are on their nodes, though the store is not up, and wait there for it."""
    name = "in-init-container"

    async def on_nodes() -> list[Pod] | None:
        pods = await cluster.pods(name, 3)
        return pods if all(pod.spec.node_name for pod in pods) else None

    pods = await cluster.until(on_nodes, f"all of {name} on nodes")
    (store,) = of_clique(pods, f"{name}-0-store")
    assert not store.containers_ready
    engine, _ = of_clique(pods, f"{name}-0-engine")
    spec = part(await stored(cluster, PODS, engine.metadata.name), "spec")
    waiter = str(spec["initContainers"])
    assert f"'name': '{names.WAITER}'" in waiter
    assert f"{name}-0-store:1" in waiter
    await let_be_ready(cluster, [store])


async def ready_together(cluster: Cluster) -> None:
    """One of two is up and not Ready, until the other one is up too."""
    name = "ready-together"
    pods = await cluster.pods(name, 2)
    one, other = sorted(pods, key=lambda pod: pod.metadata.name)
    await cluster.gang(f"{name}-0", reason=names.REASON_BOUND)
    await let_be_ready(cluster, [one])

    async def up(ready: str) -> bool | None:
        pod = await cluster.client.get(PODS, Pod, one.metadata.name, cluster.namespace)
        told = said(pod, "Ready")
        return (pod.containers_ready and told is not None and told.status == ready) or None

    await cluster.until(lambda: up("False"), "its containers are ready, and it is not")
    await let_be_ready(cluster, [other])
    await cluster.until(lambda: up("True"), "it is Ready as the other one is up")


async def host_names(cluster: Cluster) -> None:
    """What DNS goes by: a Service, and those it leads to by their hosts' names, once ready."""
    name = "host-names"
    await cluster.running(name)
    await cluster.service(f"{name}-0")
    service = part(await stored(cluster, SERVICES, f"{name}-0"), "spec")
    assert service["clusterIP"] == "None"
    assert not service.get("publishNotReadyAddresses")
    path = ENDPOINTSLICES.path(cluster.namespace)

    async def attempt() -> set[str] | None:
        slices = msgspec.json.decode(await cluster.client.raw_get(path))["items"]
        found = {
            end["hostname"]
            for each in slices
            if each["metadata"]["labels"]["kubernetes.io/service-name"] == f"{name}-0"
            for end in each["endpoints"] or ()
            if end["conditions"]["ready"]
        }
        return found if len(found) == 2 else None

    hosts = await cluster.until(attempt, "both hosts by name")
    assert hosts == {f"{name}-0-engine-0", f"{name}-0-engine-1"}
    pods = await pods_of(cluster, f"{name}-0")
    spec = part(await stored(cluster, PODS, pods[0].metadata.name), "spec")
    assert spec["subdomain"] == f"{name}-0"
    told = set(re.findall(r"'name': '(GROVE_\w+)'", str(spec["containers"])))
    assert {"GROVE_PCS_NAME", "GROVE_PCS_INDEX", "GROVE_HEADLESS_SERVICE"} <= told


async def autoscaled(cluster: Cluster) -> None:
    """Routers by their CPU, engines by a queue; and an engine more is one of both pods."""
    name = "autoscaled"
    await cluster.running(name)
    for target, kind, least, most, metric in (
        (f"{name}-0-router", "PodClique", 1, 6, "cpu"),
        (f"{name}-0-engine", "PodCliqueScalingGroup", 1, 4, "queued_requests"),
    ):
        spec = part(await stored(cluster, AUTOSCALERS, target), "spec")
        assert part(spec, "scaleTargetRef")["kind"] == kind
        assert (spec["minReplicas"], spec["maxReplicas"]) == (least, most)
        assert f"'name': '{metric}'" in str(spec["metrics"])
    two: JsonObject = {"spec": {"replicas": 2}}
    await cluster.client.merge_patch(SCALING_GROUPS, f"{name}-0-engine", two, cluster.namespace)
    seen = await cluster.running(name, gangs=2)
    more = [p for p in seen.pods.values() if p.metadata.labels[names.PODGANG_LABEL] != f"{name}-0"]
    roles = sorted(pod.metadata.labels[names.PODCLIQUE_LABEL] for pod in more)
    assert roles == [f"{name}-0-engine-1-{role}" for role in ("leader", "worker")]


async def put_back(cluster: Cluster, kind: Resource, name: str, spec: JsonObject) -> None:
    """Change what is made for a set, and wait until it is as before."""
    before = await stored(cluster, kind, name)
    changed = await cluster.client.merge_patch(kind, name, {"spec": spec}, cluster.namespace)
    assert msgspec.json.decode(changed)["spec"] != before["spec"]

    async def attempt() -> bool | None:
        return (await stored(cluster, kind, name))["spec"] == before["spec"] or None

    await cluster.until(attempt, f"{name} as it was")


async def from_repository(cluster: Cluster) -> None:
    await cluster.running("from-repository")
    await put_back(cluster, PODCLIQUES, "from-repository-0-engine", {"replicas": 3})
    await cluster.pods("from-repository", 2)


async def by_hand(cluster: Cluster) -> None:
    """It may be written to, unlike what is made for another set; but the set's word is put back."""
    await cluster.running("by-hand")

    async def is_made() -> bool | None:
        with suppress(NotFound):
            return bool(await stored(cluster, PODCLIQUES, "zone-0-engine"))
        return None

    await cluster.until(is_made, "the clique of another set")
    label: JsonObject = {"metadata": {"labels": {"mine": "yes"}}}
    with pytest.raises(Forbidden, match="made and kept by Penstock for PodCliqueSet zone"):
        await cluster.client.merge_patch(PODCLIQUES, "zone-0-engine", label, cluster.namespace)
    name = "by-hand-0-engine"
    await cluster.client.merge_patch(PODCLIQUES, name, label, cluster.namespace)
    other: JsonObject = {"containers": [{"name": "engine", "image": NEW}]}
    await put_back(cluster, PODCLIQUES, name, {"podSpec": other})


async def budget(cluster: Cluster) -> None:
    """Two of four are replaced at a time."""
    await cluster.running("budget")
    async with witness(cluster.client, cluster.namespace) as seeing:

        async def ready() -> bool | None:
            return (
                len([p for p in await pods_of(cluster, "budget-0") if p.containers_ready]) == 4
                or None
            )

        await cluster.until(ready, "all four ready")
        seeing.forget()
        await renewed(cluster, "budget")

        async def attempt() -> bool | None:
            found = await images(cluster, "budget-0")
            return (len(found) == 4 and set(found.values()) == {NEW}) or None

        await cluster.until(attempt, "all four are new")
        assert seeing.least_ready["budget-0-engine"] == 2


async def on_delete(cluster: Cluster) -> None:
    """A change reaches no pod but the one that is deleted."""
    name = "on-delete"
    await cluster.running(name)
    before = await images(cluster, f"{name}-0")
    await renewed(cluster, name)

    async def known() -> bool | None:
        return NEW in str(await stored(cluster, PODCLIQUES, f"{name}-0-engine")) or None

    await cluster.until(known, "its clique has the new template")
    gone, *_ = await pods_of(cluster, f"{name}-0")
    assert await images(cluster, f"{name}-0") == before
    await cluster.client.delete(PODS, gone.metadata.name, cluster.namespace)

    async def followed() -> dict[str, str] | None:
        found = await images(cluster, f"{name}-0")
        return found if len(found) == 2 and gone.metadata.uid not in found else None

    after = await cluster.until(followed, "a successor")
    kept = before.keys() - {gone.metadata.uid}
    assert {uid: image for uid, image in after.items() if image != NEW} == {
        uid: before[uid] for uid in kept
    }


async def made_anew(cluster: Cluster) -> None:
    """One of two is missing for too long: both are others then."""
    name = "made-anew"
    seen = await cluster.running(name)
    before = {pod.metadata.uid for pod in seen.pods.values()}
    await when(cluster, name, 2, ready=[f"{name}-0-engine"])
    sick = next(iter(seen.pods))
    await cluster.client.merge_patch(
        PODS, sick, {"metadata": {"annotations": NEVER_READY}}, cluster.namespace
    )

    async def attempt() -> bool | None:
        found, whole = await parts(cluster, name)
        uids = {pod.metadata.uid for pod in found.pods}
        return (whole and found.up[f"{name}-0-engine"] == 2 and not uids & before) or None

    await cluster.until(attempt, "both are made anew")

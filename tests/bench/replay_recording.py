"""Records in a real lab what the replay multiplies: a set with all that is made for it, and a node.

`.venv/bin/python -m tests.bench.replay_recording` writes `tests/vectors/replay.jsonl` anew.
Documents are kept as the API server sends them, managed fields and all, since whoever lists them
reads past these too.
"""

import asyncio
import os
import re
import secrets
from typing import Final

import msgspec

from api import names
from api.jsons import JsonObject
from controller.workloads.caches import NEEDED, OPTIONAL
from kube.client import EVERYTHING, Client, Scope
from kube.errors import NotFound
from kube.resources import (
    CLAIM_TEMPLATES,
    CONFIGMAPS,
    DAEMONSETS,
    DEVICE_CLASSES,
    DEVICE_SLICES,
    NODES,
    PODCLIQUESETS,
    RESERVATIONS,
    RESOURCE_CLAIMS,
    STORAGE_CLASSES,
    TOPOLOGY_BINDINGS,
    VOLUME_CLAIMS,
    VOLUMES,
    Resource,
)
from penstock.lab import cluster
from penstock.lab.install import InstallOptions, install
from penstock.lab.progress import Silence
from penstock.lab.spec import LabSpec
from tests.bench.replay_documents import RECORDED, SET, SPACE, Line, written
from tests.support.living import Cluster, connect, namespace

FRONTS: Final = 2
WORKERS: Final = 7  # with a GPU each: of 10 pods on a node at most eight have one
SETTLED_SECONDS: Final = 10.0
OF_THE_SET: Final = (*dict.fromkeys((*NEEDED, *OPTIONAL, RESERVATIONS)),)
OF_THE_CLUSTER: Final = (
    TOPOLOGY_BINDINGS, DAEMONSETS, VOLUME_CLAIMS, VOLUMES, STORAGE_CLASSES, RESOURCE_CLAIMS,
    CLAIM_TEMPLATES, DEVICE_SLICES, DEVICE_CLASSES,
)  # fmt: skip


def the_set() -> JsonObject:
    """A set of nine pods with what people write: ports, variables, a volume, tolerations."""
    cliques = [
        _clique("front", FRONTS, {"cpu": "2", "memory": "8Gi"}),
        _clique("worker", WORKERS, {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}),
    ]
    return {
        "apiVersion": PODCLIQUESETS.api_version,
        "kind": PODCLIQUESETS.kind,
        "metadata": {"name": SET, "labels": {"app.kubernetes.io/name": "serving"}},
        "spec": {"replicas": 1, "template": {"cliques": [*cliques]}},
    }


def _clique(role: str, pods: int, limits: dict[str, str]) -> JsonObject:
    container: JsonObject = {
        "name": role,
        "image": f"registry.example/serving/{role}:1.4.2",
        "args": ["--port", "8000", "--model", "/models/large"],
        "env": [{"name": "LOG_LEVEL", "value": "info"}],
        "ports": [{"name": "http", "containerPort": 8000}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5},
        "resources": {"limits": {**limits}},
        "volumeMounts": [{"name": "models", "mountPath": "/models"}],
    }
    everywhere: JsonObject = {"key": "nvidia.com/gpu", "operator": "Exists"}
    pod_spec: JsonObject = {
        "containers": [container],
        "tolerations": [everywhere],
        "volumes": [{"name": "models", "emptyDir": {}}],
    }
    spec: JsonObject = {
        "roleName": role, "replicas": pods, "minAvailable": pods, "podSpec": pod_spec,
    }  # fmt: skip
    return {"name": role, "labels": {"team": "serving"}, "spec": spec}


async def record() -> list[Line]:
    """Bring a lab up, have the set bound, and read everything."""
    spec = LabSpec(f"bench-{os.getpid()}-{secrets.token_hex(3)}", nodes=10)
    try:
        await cluster.up(spec, Silence())
        lab = cluster.lookup(spec.name)
        helm = lab.binaries["helm"]
        await install(lab.directory, lab.kubeconfig, helm, InstallOptions(), lambda _: None)
        async with connect(lab.kubeconfig, "bench") as client, namespace(client, SPACE):
            await client.create(PODCLIQUESETS, the_set(), SPACE)
            await Cluster(client, SPACE).running(SET)
            await asyncio.sleep(SETTLED_SECONDS)
            return await _read(client)
    finally:
        await cluster.down(spec.name, Silence())


async def _read(client: Client) -> list[Line]:
    found = [Line("nodes", of_set=False, object=(await _all(client, NODES, EVERYTHING))[0])]
    for kind in OF_THE_SET:
        if kind.namespaced:
            each = await _all(client, kind, Scope(SPACE))
            found += [Line(kind.full_name, of_set=True, object=one) for one in each]
    others = {CONFIGMAPS: Scope(names.NAMESPACE), **dict.fromkeys(OF_THE_CLUSTER, EVERYTHING)}
    for kind, scope in others.items():
        each = await _all(client, kind, scope)
        found += [Line(kind.full_name, of_set=False, object=one) for one in each]
    # The lab's own certificate is nobody's business.
    return [line for line in found if b"BEGIN CERTIFICATE" not in bytes(line.object)]


async def _all(client: Client, kind: Resource, scope: Scope) -> list[msgspec.Raw]:
    try:
        return (await client.list_with(kind, lambda raw: raw.copy(), scope)).items
    except NotFound:
        return []


def main() -> None:
    recorded = written(asyncio.run(record()))
    assert not re.search(rb"BEGIN [A-Z ]*PRIVATE KEY", recorded)
    RECORDED.write_bytes(recorded)


if __name__ == "__main__":
    main()

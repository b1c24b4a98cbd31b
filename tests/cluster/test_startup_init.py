"""The init way of a startup order: what is made for it, and its waiter as a real process."""

import asyncio
import base64
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from api.streams import Custom, Pod
from kube.client import Client
from kube.errors import NotFound
from kube.resources import (
    NAMESPACES,
    PODCLIQUESETS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICEACCOUNTS,
    Resource,
)
from tests.support.living import Cluster, Kubectl
from tests.support.ordered import blocked

pytestmark = pytest.mark.cluster

NEVER_READY = "lab.penstock.dev/behaviour"


def chain(name: str) -> JsonObject:
    """A set whose router waits in an init container for two engines that never become ready."""

    def clique(role: str, replicas: int, notes: JsonObject, **spec: Json) -> JsonObject:
        pod: JsonObject = {
            "containers": [{"name": role, "image": "registry.example/it:1"}],
            "terminationGracePeriodSeconds": 1,
        }
        return {
            "name": role,
            "annotations": notes,
            "spec": {"roleName": role, "replicas": replicas, "podSpec": pod, **spec},
        }

    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {
            "name": name,
            "annotations": {
                "penstock.dev/startup": "init",
                "grove.io/disable-managed-resource-protection": "true",
            },
        },
        "spec": {
            "replicas": 1,
            "template": {
                "cliqueStartupType": "CliqueStartupTypeExplicit",
                "cliques": [
                    clique("engine", 2, {NEVER_READY: "never-ready"}),
                    clique(
                        "router", 1, {"lab.penstock.dev/init-seconds.grove-initc": "600"},
                        startsAfter=["engine"],
                    ),
                ],
            },
        },
    }  # fmt: skip


async def found(client: Client, resource: Resource, name: str, namespace: str) -> JsonObject:
    raw = await client.raw_get(resource.path(namespace, name))
    body: JsonObject = msgspec.json.decode(raw)
    return body


def part(body: Json, *path: str | int) -> Json:
    for step in path:
        if isinstance(step, int):
            assert isinstance(body, list)
            body = body[step]
        else:
            assert isinstance(body, dict)
            body = body[step]
    return body


async def is_gone(client: Client, resource: Resource, name: str, namespace: str) -> bool:
    try:
        await found(client, resource, name, namespace)
    except NotFound:
        return True
    return False


async def bound(cluster: Cluster, name: str, count: int) -> list[Pod]:
    """Wait until all pods of a set have a node."""

    async def attempt() -> list[Pod] | None:
        pods = await cluster.pods(name, count)
        return pods if all(pod.spec.node_name for pod in pods) else None

    return await cluster.until(attempt, f"pods of {name} bound")


async def token_of(cluster: Cluster, secret: str, to: Path) -> None:
    """Put the account's token and authority where a kubelet would."""

    async def attempt() -> dict[str, Json] | None:
        try:
            body = await found(cluster.client, SECRETS, secret, cluster.namespace)
        except NotFound:
            return None
        data = body.get("data")
        return data if isinstance(data, dict) and {"token", "ca.crt"} <= data.keys() else None

    data = await cluster.until(attempt, f"token in Secret {secret}")
    for name in ("token", "ca.crt"):
        (to / name).write_bytes(base64.b64decode(str(data[name])))


@asynccontextmanager
async def waiter(
    cluster: Cluster, arguments: list[str], folder: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the waiter as in a pod: with the container's arguments and what a kubelet gives it."""
    server = urlsplit(cluster.client.server)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "controller.waiter", *arguments,
        "--pod-info", str(folder), "--account", str(folder),
        stderr=asyncio.subprocess.PIPE,
        env={
            "KUBERNETES_SERVICE_HOST": server.hostname or "",
            "KUBERNETES_SERVICE_PORT": str(server.port),
        },
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_a_waiter_waits_with_its_own_account_until_those_before_it_are_up(
    cluster: Cluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    client, space = cluster.client, cluster.namespace
    kubectl.apply(chain("serial"))
    await bound(cluster, "serial", 3)
    label = "grove.io/podclique=serial-0-router"
    (name,) = kubectl.run("get", "pods", "-l", label, "-o", "name", check=True).stdout.split()
    pod = await found(client, PODS, name.removeprefix("pod/"), space)
    container = part(pod, "spec", "initContainers", 0)
    assert isinstance(container, dict)
    assert container["name"] == "grove-initc"
    assert container["args"] == ["--podcliques=serial-0-engine:2"]
    clique = await found(
        client, Resource("grove.io", "v1alpha1", "podcliques", "PodClique", namespaced=True),
        "serial-0-router", space,
    )  # fmt: skip
    assert part(clique, "spec", "startsAfter") == ["serial-0-engine"]

    (tmp_path / "namespace").write_text(space)
    (tmp_path / "podgangname").write_text(str(part(pod, "metadata", "labels", "grove.io/podgang")))
    await token_of(cluster, "serial-ic-sat", tmp_path)
    async with waiter(cluster, ["--podcliques=serial-0-engine:2"], tmp_path) as process:
        assert process.stderr is not None
        line = await asyncio.wait_for(process.stderr.readline(), 20)
        assert b"serial-0-engine has 0 of 2 pods up" in line
        why = await blocked(cluster, name.removeprefix("pod/"), "True")
        assert why.message == "waits for serial-0-engine: 0 of 2 pods ready"
        kubectl.run(
            "annotate", "pods", "-l", "grove.io/podclique=serial-0-engine", f"{NEVER_READY}-",
            check=True,
        )  # fmt: skip
        rest = await asyncio.wait_for(process.stderr.read(), 20)
        assert await asyncio.wait_for(process.wait(), 20) == 0, rest.decode()
        assert rest.splitlines()[-1].endswith(b"all are up")
        await blocked(cluster, name.removeprefix("pod/"), "False")
    engines = await client.list_pages(PODS, Pod, space, labels="grove.io/podclique=serial-0-engine")
    assert all(pod.containers_ready for pod in engines.items)

    await account_may_do_nothing_else(cluster, tmp_path)
    kubectl.delete("serial")
    for resource, left in (
        (SERVICEACCOUNTS, "serial"), (ROLES, "grove.io:pcs:serial"),
        (ROLE_BINDINGS, "grove.io:pcs:serial"), (SECRETS, "serial-ic-sat"),
    ):  # fmt: skip

        async def attempt(resource: Resource = resource, left: str = left) -> bool | None:
            return await is_gone(client, resource, left, space) or None

        await cluster.until(attempt, f"{resource.kind} {left} gone")


async def test_kubernetes_may_fill_in_the_token_of_a_set_that_nobody_else_may_touch(
    cluster: Cluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    body = chain("guarded")
    notes = part(body, "metadata", "annotations")
    assert isinstance(notes, dict)
    del notes[names.UNPROTECTED_ANNOTATION]
    kubectl.apply(body)
    await token_of(cluster, "guarded-ic-sat", tmp_path)


async def test_in_a_group_each_copy_waits_in_its_init_container_for_its_own_leader(
    cluster: Cluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    """Copy 1 is a gang of its own; that of copy 0 never gets ready, and is nothing to it."""
    client, space = cluster.client, cluster.namespace
    body = chain("pairs")
    template = part(body, "spec", "template")
    assert isinstance(template, dict)
    template["podCliqueScalingGroups"] = [
        {"name": "g", "cliqueNames": ["engine", "router"], "replicas": 2, "minAvailable": 1}
    ]
    kubectl.apply(body)
    await bound(cluster, "pairs", 6)
    for copy, gang in enumerate(("pairs-0", "pairs-0-g-0")):
        label = f"grove.io/podclique=pairs-0-g-{copy}-router"
        (pod,) = (await client.list_pages(PODS, Pod, space, labels=label)).items
        raw = await found(client, PODS, pod.metadata.name, space)
        arguments = part(raw, "spec", "initContainers", 0, "args")
        assert arguments == [f"--podcliques=pairs-0-g-{copy}-engine:2"]
        assert part(raw, "metadata", "labels", names.PODGANG_LABEL) == gang
        assert pod.status.phase == "Pending"

    (tmp_path / "namespace").write_text(space)
    (tmp_path / "podgangname").write_text("pairs-0-g-0")
    await token_of(cluster, "pairs-ic-sat", tmp_path)
    async with waiter(cluster, ["--podcliques=pairs-0-g-1-engine:2"], tmp_path) as process:
        assert process.stderr is not None
        line = await asyncio.wait_for(process.stderr.readline(), 20)
        assert b"pairs-0-g-1-engine has 0 of 2 pods up" in line
        label = "grove.io/podclique=pairs-0-g-1-engine"
        kubectl.run("annotate", "pods", "-l", label, f"{NEVER_READY}-", check=True)
        rest = await asyncio.wait_for(process.stderr.read(), 20)
        assert await asyncio.wait_for(process.wait(), 20) == 0, rest.decode()


async def account_may_do_nothing_else(cluster: Cluster, folder: Path) -> None:
    """With its token, pods of the namespace can be read, and nothing else or elsewhere."""
    space = cluster.namespace
    review = Resource(
        "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview",
        namespaced=False,
    )  # fmt: skip
    asked = {
        ("list", "pods", space): True,
        ("watch", "pods", space): True,
        ("delete", "pods", space): False,
        ("get", "secrets", space): False,
        ("list", "pods", "default"): False,
    }
    for (verb, resource, where), expected in asked.items():
        attributes = {"verb": verb, "resource": resource, "namespace": where}
        spec = {
            "user": f"system:serviceaccount:{space}:serial",
            "resourceAttributes": attributes,
        }
        answer = await cluster.client.create(review, {"spec": spec})
        assert msgspec.json.decode(answer)["status"]["allowed"] is expected, attributes


async def test_an_account_that_is_not_the_sets_gets_neither_rights_nor_a_token(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    client, space = cluster.client, cluster.namespace
    kubectl.run("create", "serviceaccount", "powerful", check=True)
    kubectl.apply(chain("powerful"))

    async def attempt() -> JsonObject | None:
        body = await found(client, PODCLIQUESETS, "powerful", space)
        status = body.get("status")
        errors = status.get("lastErrors") if isinstance(status, dict) else None
        for error in errors if isinstance(errors, list) else []:
            if isinstance(error, dict) and error.get("code") == "ERR_CREATE_SERVICE_ACCOUNT":
                return error
        return None

    error = await cluster.until(attempt, "the account is said to be somebody else's")
    assert "powerful" in str(error["description"])
    for resource, name in (
        (SECRETS, "powerful-ic-sat"),
        (ROLES, "grove.io:pcs:powerful"),
        (ROLE_BINDINGS, "grove.io:pcs:powerful"),
    ):
        assert await is_gone(client, resource, name, space), f"{resource.kind} {name} was made"
    account = await client.get(SERVICEACCOUNTS, Custom, "powerful", space)
    assert account.metadata.owner_references == ()


async def test_a_pod_that_waits_passes_the_strictest_level_of_pod_security(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    client, space = cluster.client, cluster.namespace
    level = {"pod-security.kubernetes.io/enforce": "restricted"}
    await client.merge_patch(NAMESPACES, space, {"metadata": {"labels": level}})
    body = chain("strict")
    cliques = part(body, "spec", "template", "cliques")
    assert isinstance(cliques, list)
    for clique in cliques:
        spec = part(clique, "spec", "podSpec")
        assert isinstance(spec, dict)
        spec["securityContext"] = {
            "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"},
        }  # fmt: skip
        container = part(spec, "containers", 0)
        assert isinstance(container, dict)
        container["securityContext"] = {
            "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
        }  # fmt: skip
    kubectl.apply(body)
    pods = await cluster.pods("strict", 3)
    assert sorted(p.metadata.labels[names.PODCLIQUE_LABEL] for p in pods)[-1] == "strict-0-router"

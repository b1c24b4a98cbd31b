"""Beside a stand-in for Grove's operator: it makes gangs and pods, and Penstock gangs them."""

import asyncio
import secrets
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from api.podcliqueset import PodCliqueSetSpec
from api.streams import Pod
from kube.client import Client
from kube.clock import SystemClock
from kube.errors import Forbidden
from kube.resources import (
    MUTATING_WEBHOOKS,
    PODCLIQUES,
    PODCLIQUESETS,
    PODGANGS,
    PODS,
    SCALING_GROUPS,
    SERVICEACCOUNTS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from penstock.lab import cluster as labs
from penstock.lab import kubeconfigs, tokens
from penstock.lab.errors import LabError
from penstock.lab.install import InstallOptions, install, stop
from penstock.lab.progress import Screen
from penstock.lab.spec import LabSpec
from penstock.lab.state import Lab
from penstock.plugin.asking import Where
from penstock.plugin.running import mode_of
from tests.support import standin
from tests.support.leftovers import fresh_name
from tests.support.living import Cluster, connect, namespace
from tests.support.standin import ACCOUNT, DEFINITIONS, SPACE, StandIn
from tests.support.tenants import RBAC, ROLEBINDINGS, ROLES
from tests.support.updating import BEHAVIOUR, Manifest, engine, role
from tests.support.upstream import GATE

pytestmark = [pytest.mark.cluster, pytest.mark.long]

ROLES_OF_SET = {"router": 2, "leader": 1, "worker": 1}
# Each node takes two of its pods. Its workers wait for a leader that never gets ready, in an init
# container: behind our gate they would wait for ever.
NOTES: JsonObject = {BEHAVIOUR: "never-ready", names.READINESS_GATE_ANNOTATION: "true"}
SET = Manifest(
    "chat",
    tuple({**role(n, pods), "annotations": NOTES} for n, pods in ROLES_OF_SET.items()),
    (engine(2),),
    gpus=4,
    startup="InOrder",
)
# The stand-in speaks by the same library, hence as `penstock-grove`.
OURS = {
    names.GANGS_MANAGER,
    names.READINESS_MANAGER,
    names.PLAIN_GANGS_MANAGER,
    names.WORKLOADS_MANAGER,
}
BASE, SCALED = "chat-0", "chat-0-engine-0"


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lab, Path]]:
    """A lab with Grove's definitions and Penstock as a companion, and the stand-in's kubeconfig."""
    screen = Screen(sys.stderr, SystemClock(), live=False)
    spec = LabSpec(fresh_name(), nodes=6, gpus=8, topology="rack=2")
    lab = asyncio.run(labs.up(spec, screen))
    try:
        yield lab, asyncio.run(_installed(lab, tmp_path_factory.mktemp("standin")))
    finally:
        stop(lab.directory)
        asyncio.run(labs.down(spec.name, screen))


async def _installed(lab: Lab, folder: Path) -> Path:
    options = InstallOptions(webhooks=1, companion=True)
    arguments = (lab.directory, lab.kubeconfig, lab.binaries["helm"], options, lambda _: None)
    with pytest.raises(LabError, match=r"podgangs.* are not served in this lab"):
        await install(*arguments)
    async with connect(lab.kubeconfig) as person:
        await standin.settle(person)
        await install(*arguments)
        return await kubeconfig_of(lab, person, (SPACE, ACCOUNT), folder)


@asynccontextmanager
async def acting(kubeconfig: Path, space: str) -> AsyncIterator[StandIn]:
    """The stand-in at work in a namespace."""
    async with connect(kubeconfig, "grove") as client:
        made = StandIn(client, space)
        work = asyncio.create_task(made.run())
        try:
            yield made
        finally:
            work.cancel()


@pytest.fixture
async def there(beside: tuple[Lab, Path]) -> AsyncIterator[Cluster]:
    """A namespace of that lab."""
    async with connect(beside[0].kubeconfig) as person:
        name = f"test-{secrets.token_hex(4)}"
        async with namespace(person, name):
            cluster = Cluster(person, name)
            yield cluster
            # Its pods go before the next test counts nodes.
            for pod in (await person.list_pages(PODS, Pod, name)).items:
                await person.delete(PODS, pod.metadata.name, name)
            await cluster.until(lambda: _bound(cluster, 0), "no pods left")


async def _bound(cluster: Cluster, count: int, gang: str = "") -> list[Pod] | None:
    label = f"{names.PODGANG_LABEL}={gang}" if gang else ""
    pods = (await cluster.client.list_pages(PODS, Pod, cluster.namespace, labels=label)).items
    return pods if sum(bool(pod.spec.node_name) for pod in pods) == count else None


def spec_of(manifest: Manifest) -> PodCliqueSetSpec:
    body = manifest.body()["spec"]
    return PodCliqueSetSpec.model_validate(body)


async def raw(cluster: Cluster, kind: Resource, name: str = "") -> JsonObject:
    path = kind.path(cluster.namespace if kind.namespaced else None, name or None)
    found: JsonObject = msgspec.json.decode(await cluster.client.raw_get(path))
    return found


def items(found: JsonObject) -> list[JsonObject]:
    listed = found["items"]
    assert isinstance(listed, list)
    return [each for each in listed if isinstance(each, dict)]


def part(found: JsonObject, *path: str) -> Json:
    value: Json = found
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def writers(found: JsonObject) -> set[str]:
    fields = part(found, "metadata", "managedFields")
    assert isinstance(fields, list)
    return {str(each["manager"]) for each in fields if isinstance(each, dict)}


async def test_gangs_of_the_other_are_bound_whole_and_a_scaled_one_after_its_base(
    beside: tuple[Lab, Path], there: Cluster
) -> None:
    manifest = SET
    async with acting(beside[1], there.namespace) as grove:
        grove.keeps.add(SCALED)
        await grove.make("chat", spec_of(manifest))
        await there.until(lambda: _bound(there, 4, BASE), "the base gang bound")
        said = await there.gang(SCALED, reason=names.REASON_FOREIGN_GATES)
        assert GATE in said.message
        assert [r.metadata.name for r in await there.reservations()] == [BASE]
        for pod in (await there.client.list_pages(
            PODS, Pod, there.namespace, labels=f"{names.PODGANG_LABEL}={SCALED}"
        )).items:  # fmt: skip
            assert set(pod.gates) == {GATE, names.GATE}
        grove.keeps.clear()
        pods = await there.until(lambda: _bound(there, 6), "all bound")
    assert {r.metadata.name for r in await there.reservations()} == {BASE, SCALED}
    # Not by us: its leader never gets ready, and the worker was bound all the same.
    kinds = {c.type for pod in pods for c in pod.status.conditions}
    assert names.STARTUP_BLOCKED not in kinds
    assert not any(kind.startswith(names.GROUP) for kind in kinds)
    assert not any(pod.spec.readiness_gates for pod in pods)
    for name in (BASE, SCALED):
        await there.gang(name, reason=names.REASON_BOUND)
    await _nothing_of_theirs_is_written(there)


async def _nothing_of_theirs_is_written(there: Cluster) -> None:
    for gang in items(await raw(there, PODGANGS)):
        assert part(gang, "status", "phase") == "Pending", "that is its maker's to say"
        assert part(gang, "status", "placementScore") is None
        conditions = part(gang, "status", "conditions")
        assert isinstance(conditions, list)
        told = {str(c["type"]): c for c in conditions if isinstance(c, dict)}
        assert told["Initialized"]["message"] == "said by the stand-in"
        assert told[names.SCHEDULED]["reason"] == names.REASON_BOUND
        assert told.keys() <= {"Initialized", names.SCHEDULED, names.PLACED, names.READY}
        for fields in _fields(gang):
            if str(fields["manager"]) in OURS:
                assert fields["subresource"] == "status"
                assert _keys(fields) == {"f:status"}
                written = part(fields, "fieldsV1", "f:status")
                assert isinstance(written, dict)
                assert set(written) == {"f:conditions"}
    for kind in (PODCLIQUESETS, PODCLIQUES, SCALING_GROUPS):
        for found in items(await raw(there, kind)):
            assert not writers(found) & OURS, found
    for pod in items(await raw(there, PODS)):
        for fields in _fields(pod):
            if str(fields["manager"]) in OURS:
                written = part(fields, "fieldsV1", "f:spec")
                assert _keys(fields) == {"f:spec"}
                assert isinstance(written, dict)
                assert set(written) <= {"f:affinity", "f:schedulingGates"}


def _fields(found: JsonObject) -> list[JsonObject]:
    fields = part(found, "metadata", "managedFields")
    assert isinstance(fields, list)
    return [each for each in fields if isinstance(each, dict)]


def _keys(fields: JsonObject) -> set[str]:
    written = fields["fieldsV1"]
    assert isinstance(written, dict)
    return set(written)


async def test_a_gang_without_room_waits_whole_and_says_why(
    beside: tuple[Lab, Path], there: Cluster
) -> None:
    large = Manifest("large", (role("main", 7),), gpus=8)
    async with acting(beside[1], there.namespace) as grove:
        await grove.make("large", spec_of(large))
        said = await there.gang("large-0", reason=names.REASON_NEVER_FITS)
        assert "gpu" in said.message
        pods = await there.pods("large", 7)
        assert {pod.gates for pod in pods} == {(names.GATE,)}, "Grove's gate is off, ours is not"
        assert await there.reservations() == []


async def test_a_gang_that_no_set_owns_is_told_by_the_labels_of_its_pods(
    beside: tuple[Lab, Path], there: Cluster
) -> None:
    references: list[Json] = [{"namespace": there.namespace, "name": f"w-{i}"} for i in range(2)]
    group: JsonObject = {"name": "w", "minReplicas": 2, "podReferences": references}
    gang: JsonObject = {
        "apiVersion": PODGANGS.api_version,
        "kind": PODGANGS.kind,
        "metadata": {"name": "alone"},
        "spec": {"podgroups": [group]},
    }
    async with acting(beside[1], there.namespace) as grove:
        await grove.begin_alone(gang, [loose(f"w-{i}") for i in range(2)])
        await there.until(lambda: _bound(there, 2, "alone"), "both bound")
        (booked,) = await there.reservations()
        assert booked.metadata.name == "alone"


def loose(name: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {names.PODGANG_LABEL: "alone", names.PODCLIQUE_LABEL: "w"},
        },
        "spec": {
            "hostname": name,
            "schedulingGates": [{"name": GATE}],
            "containers": [{"name": "main", "image": "registry.example/w:1"}],
            "terminationGracePeriodSeconds": 0,
        },
    }


async def test_labelled_pods_get_a_podgang_here_too(there: Cluster) -> None:
    for i in range(2):
        body = loose(f"t-{i}")
        body["metadata"] = {
            "name": f"t-{i}",
            "labels": {names.GANG_LABEL: "train", names.GANG_SIZE_LABEL: "2"},
        }
        spec = body["spec"]
        assert isinstance(spec, dict)
        del spec["schedulingGates"]
        await there.client.create(PODS, body, there.namespace)
    await there.until(lambda: _bound(there, 2), "both bound")
    await there.gang("train", reason=names.REASON_BOUND)

    async def whole() -> JsonObject | None:
        found = await raw(there, PODGANGS, "train")
        return found if part(found, "status", "phase") == "Running" else None

    gang = await there.until(whole, "the gang said to run")
    conditions = part(gang, "status", "conditions")
    assert isinstance(conditions, list)
    said = {str(c["type"]) for c in conditions if isinstance(c, dict)}
    assert said >= {names.INITIALIZED, names.SCHEDULED, names.READY}, "one list, and nothing lost"


async def called(cluster: Cluster, kind: Resource) -> list[Json]:
    """Name the webhooks of a configuration of ours."""
    found = (await raw(cluster, kind, names.WEBHOOK_CONFIGURATION))["webhooks"]
    assert isinstance(found, list)
    return [part(each, "name") for each in found if isinstance(each, dict)]


async def test_sets_are_left_to_the_other_and_only_it_makes_gangs(
    beside: tuple[Lab, Path], there: Cluster, tmp_path: Path
) -> None:
    definitions = {
        str(part(each, "metadata", "name")): writers(each)
        for each in items(await raw(there, DEFINITIONS))
    }
    ours = {name for name, by in definitions.items() if "helm" in by}
    assert ours == {"reservations.penstock.dev"}
    # Edits of the policy are ours to judge here too.
    assert await called(there, VALIDATING_WEBHOOKS) == ["policy.penstock.dev"]
    assert await called(there, MUTATING_WEBHOOKS) == ["pods.penstock.dev"]
    async with tenant(beside[0], there, tmp_path) as client:
        with pytest.raises(Forbidden, match="only the makers of gangs may write"):
            await client.create(PODS, loose("forged"), there.namespace)
        gang: JsonObject = {
            "apiVersion": PODGANGS.api_version,
            "kind": PODGANGS.kind,
            "metadata": {"name": "forged"},
            "spec": {"podgroups": []},
        }
        with pytest.raises(Forbidden, match="PodGangs are written by the makers of gangs"):
            await client.create(PODGANGS, gang, there.namespace)


@asynccontextmanager
async def tenant(lab: Lab, there: Cluster, folder: Path) -> AsyncIterator[Client]:
    """Somebody who may do everything in the namespace, and nothing elsewhere."""
    person, space = there.client, there.namespace
    rules: list[Json] = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    role: JsonObject = {"apiGroup": RBAC, "kind": "Role", "name": "owner"}
    who: JsonObject = {"kind": "ServiceAccount", "name": "owner", "namespace": space}
    await person.create(SERVICEACCOUNTS, {"metadata": {"name": "owner"}}, space)
    await person.create(ROLES, {"metadata": {"name": "owner"}, "rules": rules}, space)
    binding: JsonObject = {"metadata": {"name": "owner"}, "roleRef": role, "subjects": [who]}
    await person.create(ROLEBINDINGS, binding, space)
    async with connect(await kubeconfig_of(lab, person, (space, "owner"), folder)) as client:

        async def heard() -> bool | None:
            with suppress(Forbidden):
                await client.list_pages(PODS, Pod, space)
                return True
            return None

        await there.until(heard, "rights of the tenant")
        yield client


async def kubeconfig_of(lab: Lab, person: Client, who: tuple[str, str], folder: Path) -> Path:
    """Write a kubeconfig with the token of an account."""
    space, name = who
    request = tokens.request(7200)
    answer = await person.create_in(SERVICEACCOUNTS, name, "token", request, space)
    token, kubeconfig = folder / f"{name}.token", folder / name
    kubeconfigs.write_private(token, tokens.answer(msgspec.json.decode(answer)))
    cluster = kubeconfigs.cluster_of(lab.kubeconfig)
    kubeconfigs.write_private(kubeconfig, kubeconfigs.render(cluster, name, token))
    return kubeconfig


async def test_the_plugin_finds_out_that_another_makes_the_gangs(there: Cluster) -> None:
    assert (await mode_of(there.client, Where())).companion

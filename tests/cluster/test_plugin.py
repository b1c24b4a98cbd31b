"""The plugin asks a real cluster as a reader who may change nothing, and says what `gangs` says."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import pytest
import yaml

from api import exits, names
from api.jsons import Json, JsonObject
from kube.client import Client
from kube.clock import SystemClock
from kube.errors import Forbidden
from kube.resources import ROLE_BINDINGS, SERVICEACCOUNTS, Resource
from penstock.ending import AskedWronglyError
from penstock.lab import kubeconfigs, tokens
from penstock.plugin import (
    explaining,
    judging,
    keeping,
    planning,
    queueing,
    showing_sets,
    status,
    supposing,
    topology,
)
from penstock.plugin.scenes import VIEWER, Scene, scene
from penstock.policy import in_force
from tests.support.installed import Installed
from tests.support.living import Cluster, Kubectl, connect, engine_set

pytestmark = pytest.mark.cluster

RBAC = "rbac.authorization.k8s.io"
BINDINGS = Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)


@dataclass(frozen=True)
class Reader:
    """Somebody with a real token, who may do what the chart's role for viewers says."""

    kubeconfig: Path
    namespace: str

    async def ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "penstock", *arguments]
        return await asyncio.to_thread(
            partial(
                subprocess.run, [*command, "--kubeconfig", str(self.kubeconfig)],
                capture_output=True, text=True, check=False, timeout=60,
                env={**os.environ, "COLUMNS": "250"},
            )
        )  # fmt: skip

    async def scene(self) -> Scene:
        """Read the cluster with these rights."""
        async with connect(self.kubeconfig) as client:
            return await scene(client, SystemClock().now())


async def reader_of(person: Client, space: str, lab: Path, folder: Path) -> Reader:
    """Make an account in a namespace, and give a kubeconfig with nothing but its token."""
    await person.create(SERVICEACCOUNTS, {"metadata": {"name": "reader"}}, space)
    answer = await person.create_in(SERVICEACCOUNTS, "reader", "token", tokens.request(3600), space)
    token, path = folder / "token", folder / "kubeconfig"
    kubeconfigs.write_private(token, tokens.answer(msgspec.json.decode(answer)))
    written = kubeconfigs.render(kubeconfigs.cluster_of(lab), "reader", token)
    kubeconfigs.write_private(path, written)
    return Reader(path, space)


@pytest.fixture
async def reader(cluster: Cluster, installed: Installed, tmp_path: Path) -> AsyncIterator[Reader]:
    """A reader in the test's namespace who is bound to the chart's role."""
    person, space = cluster.client, cluster.namespace
    made = await reader_of(person, space, installed.lab.kubeconfig, tmp_path)
    who: JsonObject = {"kind": "ServiceAccount", "name": "reader", "namespace": space}
    role: JsonObject = {"apiGroup": RBAC, "kind": "ClusterRole", "name": VIEWER}
    await person.create(BINDINGS, {"metadata": {"name": space}, "roleRef": role, "subjects": [who]})

    async def may() -> bool | None:
        try:
            await made.scene()
        except AskedWronglyError:
            return None
        return True

    await cluster.until(may, "the reader's rights")
    yield made
    await person.delete(BINDINGS, space)


async def test_explain_says_what_the_gangs_condition_says(
    cluster: Cluster, kubectl: Kubectl, reader: Reader
) -> None:
    await cluster.label_nodes("plugin-test", count=2)
    kubectl.apply(engine_set("wide", pods=3, gpus=8, selector="plugin-test"))
    gang = f"{cluster.namespace}/wide-0"

    async def agreed() -> JsonObject | None:
        said = await cluster.gang("wide-0", reason=names.REASON_NEVER_FITS)
        report = await explaining.report(await reader.scene(), cluster.namespace, gang=gang)
        told = report.data
        same = (told["reason"], told["message"]) == (said.reason, said.message)
        return told if same else None

    told = await cluster.until(agreed, "explain and the condition agree")
    assert told["scheduled"] is False
    shown = await reader.ask("explain", "wide-0", "-n", cluster.namespace)
    assert shown.returncode == exits.OK, shown.stderr
    assert str(told["message"]) in " ".join(shown.stdout.split())


async def test_a_set_is_placed_where_plan_has_said_it_would_be(
    cluster: Cluster, kubectl: Kubectl, reader: Reader, tmp_path: Path
) -> None:
    # Nodes for nobody else: a gang of another test that is still going would be planned first.
    await cluster.label_nodes("plan-test", count=6)
    body = engine_set("chat", pods=3, gpus=8, minimum=2, selector="plan-test")
    file = tmp_path / "chat.yaml"
    file.write_text(yaml.safe_dump(body))
    report = await planning.report(await reader.scene(), cluster.namespace, paths=[file])
    assert (report.code, report.data["verdict"]) == (exits.OK, "fits")
    planned = {
        str(pod["clique"]) + str(pod["index"]): pod["node"]
        for gang in _objects(report.data["gangs"])
        for placement in _objects(gang["placements"])
        for pod in _objects(placement["pods"])
    }
    assert await cluster.reservations() == [], "nothing was written"
    kubectl.apply(body)
    await cluster.running("chat")
    (booked,) = await cluster.reservations()
    assert {f"{name}{slot.index}": slot.node for name, slot, _ in booked.slots()} == planned


async def test_every_question_is_answered_of_a_real_cluster(
    cluster: Cluster, kubectl: Kubectl, reader: Reader
) -> None:
    nodes = await cluster.label_nodes("asked-test", count=2)
    kubectl.apply(engine_set("chat", pods=2, gpus=8, selector="asked-test"))
    await cluster.running("chat")
    found, space = await reader.scene(), cluster.namespace
    drained = await supposing.report(found, space, drain=nodes[:1])
    assert drained.code == planning.WAITS
    starving = [each["name"] for each in _objects(drained.data["starves"])]
    assert starving == ["chat-0"], "there is no other node for it"
    deleted = await supposing.report(found, space, delete="chat")
    assert [each["name"] for each in _objects(deleted.data["gone"])] == ["chat-0"]
    picture = await topology.report(found, space)
    used = {str(each["name"]): each["used"] for each in _objects(picture.data["nodes"])}
    assert [used[node] for node in nodes] == [8, 8]
    ledger = await keeping.report(found, space, everywhere=False, ledger=True)
    assert [each["gang"] for each in _objects(ledger.data["ledger"])] == ["chat-0"]
    here = await status.report(found, space, everywhere=False)
    assert here.data["waiting"] == []
    assert (await queueing.report(found, space)).data["queues"]
    async with connect(reader.kubeconfig) as client:
        policy = await in_force.asked(client, space, system=names.NAMESPACE)
    assert policy.code == exits.OK
    of_set = await explaining.report(found, space, gang="chat")
    assert [each["phase"] for each in _objects(of_set.data["gangs"])] == ["Running"]


def _objects(found: Json) -> list[JsonObject]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


async def test_who_may_view_a_namespace_sees_its_sets_and_is_told_what_else_it_takes(
    cluster: Cluster, kubectl: Kubectl, installed: Installed, tmp_path: Path
) -> None:
    person, space = cluster.client, cluster.namespace
    kubectl.apply(engine_set("chat", pods=1, gpus=1))
    viewer = await reader_of(person, space, installed.lab.kubeconfig, tmp_path)
    who: JsonObject = {"kind": "ServiceAccount", "name": "reader", "namespace": space}
    role: JsonObject = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}
    body: JsonObject = {"metadata": {"name": "view"}, "roleRef": role, "subjects": [who]}
    await person.create(ROLE_BINDINGS, body, space)

    async def seen() -> JsonObject | None:
        async with connect(viewer.kubeconfig) as client:
            try:
                return (await showing_sets.asked(client, space, name="chat")).data
            except Forbidden:
                return None

    told = await cluster.until(seen, "the viewer's rights")
    assert told["set"] == {"namespace": space, "name": "chat"}
    with pytest.raises(AskedWronglyError, match=r"may not list nodes, pods.*penstock-viewer"):
        await viewer.scene()
    wrong = await viewer.ask("tree", "chatt", "-n", space)
    assert wrong.returncode == judging.NOT_FOUND
    assert "did you mean chat?" in wrong.stderr


async def test_a_tree_too_takes_a_cluster_that_has_penstock(bare: Path) -> None:
    told = await Reader(bare, "default").ask("tree", "chat")
    assert told.returncode == exits.MISSING_KIND
    assert "Penstock is not installed there" in told.stderr

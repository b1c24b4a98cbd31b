"""The audit log of a live cluster: what was refused is found, by whoever has the right to read."""

import asyncio
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from http.client import HTTPSConnection
from pathlib import Path
from typing import Final

import msgspec
import orjson
import pytest

from api import names
from api.jsons import Json, JsonObject
from certs.issue import Names, issue_authority, issue_leaf
from kube.client import Client
from kube.clock import SystemClock
from kube.errors import Invalid, NotFound
from kube.resources import API_SERVICES, EVENTS, PODCLIQUESETS, SERVICEACCOUNTS, SERVICES
from penstock.lab import cluster as labs
from penstock.lab import kubeconfigs
from penstock.lab.install import InstallOptions, install, stop
from penstock.lab.layout import Layout
from penstock.lab.progress import Screen
from penstock.lab.spec import LabSpec, Setting
from penstock.lab.state import Lab
from tests.support import rotating
from tests.support.auditstand import KEY, SECRET, review
from tests.support.charts import Render, helm, render
from tests.support.clientpair import client_pair
from tests.support.installed import Installed
from tests.support.leftovers import fresh_name
from tests.support.living import Cluster, connect, engine_set, namespace
from tests.support.tenants import CLUSTERROLEBINDINGS, ROLEBINDINGS
from tests.webhook.running import CLOCK, HOST, JSON, VALIDATE, Files, files_in, serving
from webhook import audit_api

pytestmark = pytest.mark.cluster

PATIENCE: Final = 20.0

__all__ = ["helm", "render"]


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> JsonObject:
        assert self.code == 0, self.err
        found: JsonObject = orjson.loads(self.out)
        return found


async def audit(*words: str) -> Done:
    """Run `penstock audit` as people do."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "penstock", "audit", *words,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    return Done(process.returncode or 0, out.decode(), err.decode())


def ids(done: Done) -> list[str]:
    found = done.json["records"]
    assert isinstance(found, list)
    return [str(each["audit_id"]) for each in found if isinstance(each, dict)]


async def test_a_refused_set_is_in_the_log_and_in_an_event(
    installed: Installed, cluster: Cluster
) -> None:
    body = engine_set("tried", pods=1, gpus=0, replicas=1)
    body["spec"] = {**dict(body["spec"]), "replicas": -1}  # type: ignore[arg-type]
    with pytest.raises(Invalid):
        await cluster.client.create(PODCLIQUESETS, body, cluster.namespace)
    folder = Layout.of(installed.lab.directory).audit

    async def noted() -> JsonObject | None:
        done = await audit("query", "--dir", str(folder), "-n", cluster.namespace, "-o", "json")
        if done.code:
            return None
        found = done.json["records"]
        assert isinstance(found, list)
        return found[0] if found and isinstance(found[0], dict) else None

    record = await cluster.until(noted, "the refusal in the log")
    assert (record["decision"], record["name"], record["op"]) == ("deny", "tried", "CREATE")
    assert record["gvk"] == "grove.io/v1alpha1/PodCliqueSet"
    assert str(record["user"]["name"])  # type: ignore[index,call-overload]
    checked = await audit(
        "verify", "--dir", str(folder), "--key", str(Layout.of(installed.lab.directory).audit_key)
    )
    assert checked.code == 0, checked.out

    async def told() -> bool | None:
        text = await cluster.client.raw_get(EVENTS.path(cluster.namespace))
        return True if str(record["audit_id"]).encode() in text else None

    await cluster.until(told, "the Event")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def refuse(files: Files, port: int, uid: str, space: str) -> None:
    connection = HTTPSConnection(HOST, port, timeout=20.0, context=files.client())
    connection.request("POST", VALIDATE, review(VALIDATE, [], uid=uid, namespace=space), JSON)
    assert not orjson.loads(connection.getresponse().read())["response"]["allowed"]
    connection.close()


@dataclass(frozen=True)
class Place:
    """Where the test's own webhooks stand, and how they know the API server."""

    installed: Installed
    person: Client
    space: str
    folder: Path
    trust: Sequence[str] = ()

    def by_the_labs_certificate(self) -> "Place":
        """Know it by the certificate that labs have, of which nothing is said in a ConfigMap."""
        (authority,) = self.installed.lab.directory.glob("kwok/clusters/*/pki/ca.crt")
        named = ("--audit-client-ca", str(authority), "--audit-client-name", "kwok-admin")
        return replace(self, trust=named)


@asynccontextmanager
async def served(place: Place) -> AsyncIterator[Files]:
    """Two webhooks of the test's own, and an API server that serves their logs.

    Their certificate is the installation's, by which `gangs` has the API server know them.
    """
    installed, person, space, tmp_path = place.installed, place.person, place.space, place.folder
    files = replace(files_in(tmp_path / "tls"), authority=(await rotating.look(person)).authority)
    service = f"audit-{secrets.token_hex(3)}"
    leaf = issue_leaf(
        files.authority, Names.of(HOST, "localhost", f"{service}.{space}.svc"), CLOCK.now()
    )
    files.swap(leaf.certificate_pem, leaf.key_pem)
    (tmp_path / "key").write_bytes(SECRET)
    ports = (free_port(), free_port())
    own = installed.installation.kubeconfig(names.WEBHOOK_ACCOUNT)
    async with AsyncExitStack() as stack:
        for i, port in enumerate(ports):
            flags = [
                "--kubeconfig", str(own), "--audit-dir", str(tmp_path / f"log-{i}"),
                "--audit-key", str(tmp_path / "key"), "--audit-replica", f"own-{i}",
                "--audit-port", str(port), *place.trust,
                *(word for each in ports for word in ("--audit-peer", f"{HOST}:{each}")),
            ]  # fmt: skip
            running = stack.enter_context(serving(files, tmp_path / f"out-{i}", *flags))
            await asyncio.to_thread(refuse, files, running.port, f"u-{i}", space)
        await person.create(
            SERVICES,
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": service},
                "spec": {"type": "ExternalName", "externalName": "localhost"},
            },
            space,
        )
        name = f"{audit_api.VERSION}.{audit_api.GROUP}"
        await person.create(
            API_SERVICES,
            {
                "apiVersion": API_SERVICES.api_version,
                "kind": API_SERVICES.kind,
                "metadata": {"name": name},
                "spec": {
                    "group": audit_api.GROUP,
                    "version": audit_api.VERSION,
                    "groupPriorityMinimum": 100,
                    "versionPriority": 100,
                    "service": {"name": service, "namespace": space, "port": ports[0]},
                },
            },
        )
        try:
            yield files
        finally:
            # What is registered and does not answer would keep namespaces from being deleted.
            with suppress(NotFound):
                await person.delete(API_SERVICES, name)


@pytest.mark.long
async def test_the_api_server_serves_all_logs_to_whoever_may_read_them(
    installed: Installed, person: Client, space: str, tmp_path: Path
) -> None:
    reader = await account(installed.lab, person, space, tmp_path)
    words = ("query", "-n", space, "-o", "json", "--kubeconfig")
    place = Place(installed, person, space, tmp_path).by_the_labs_certificate()
    async with served(place):
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while (done := await audit(*words, str(installed.lab.kubeconfig))).code:
            assert asyncio.get_running_loop().time() < deadline, done.err
            await asyncio.sleep(0.2)
        assert sorted(ids(done)) == ["u-0", "u-1"]
        admin = str(installed.lab.kubeconfig)
        checked = await audit("verify", "--public", KEY.public, "--kubeconfig", admin)
        assert checked.code == 0, checked.out + checked.err
        assert checked.out.count(": whole: ") == 2

        anew = await audit("explain", "u-0", "--kubeconfig", admin)
        assert "today: " in anew.out, anew.err

        refused = await audit(*words, str(reader))
        assert refused.code != 0
        assert "forbidden" in refused.err.lower()
        binding = f"audit-{secrets.token_hex(3)}"
        await person.create(CLUSTERROLEBINDINGS, bound(binding, space))
        try:
            deadline = asyncio.get_running_loop().time() + PATIENCE
            while (done := await audit(*words, str(reader))).code:
                assert asyncio.get_running_loop().time() < deadline, done.err
                await asyncio.sleep(0.2)
            assert sorted(ids(done)) == ["u-0", "u-1"]
        finally:
            await person.delete(CLUSTERROLEBINDINGS, binding)


def bound(name: str, space: str) -> JsonObject:
    subject: Json = {"kind": "ServiceAccount", "name": "reader", "namespace": space}
    return {
        "apiVersion": CLUSTERROLEBINDINGS.api_version,
        "kind": CLUSTERROLEBINDINGS.kind,
        "metadata": {"name": name},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "penstock-audit-reader",
        },
        "subjects": [subject],
    }


async def account(lab: Lab, person: Client, space: str, folder: Path) -> Path:
    """Make an account without any right, and a kubeconfig for it."""
    made: JsonObject = {
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"},
    }  # fmt: skip
    await person.create(SERVICEACCOUNTS, made, space)
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await person.create_in(SERVICEACCOUNTS, "reader", "token", asked, space)
    (folder / "token").write_text(msgspec.json.decode(answer)["status"]["token"])
    path = folder / "reader.kubeconfig"
    path.write_text(
        kubeconfigs.render(kubeconfigs.cluster_of(lab.kubeconfig), "reader", folder / "token")
    )
    return path


@pytest.mark.long
def test_a_cluster_says_itself_by_which_certificate_its_api_server_is_known(
    render: Render, tmp_path: Path
) -> None:
    """In a lab of its own, whose API server has a front proxy's authority as most clusters do."""
    authority = issue_authority(CLOCK.now())
    (tmp_path / "front-proxy.crt").write_bytes(authority.certificate_pem)
    pair = client_pair(authority, "front-proxy", tmp_path)
    flags = {
        "requestheader-client-ca-file": str(tmp_path / "front-proxy.crt"),
        "requestheader-allowed-names": "front-proxy",
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "proxy-client-cert-file": str(pair),
        "proxy-client-key-file": str(pair),
    }
    settings = tuple(Setting("kube-apiserver", flag, value) for flag, value in flags.items())
    spec = LabSpec(fresh_name(), nodes=1, settings=settings)
    screen = Screen(sys.stderr, SystemClock(), live=False)
    rights = render("audit.serve=true")["RoleBinding", "penstock-webhook-audit"]
    try:
        lab = asyncio.run(labs.up(spec, screen))
        asyncio.run(_followed(lab, rights, tmp_path))
    finally:
        asyncio.run(labs.down(spec.name, screen))


async def _followed(lab: Lab, rights: JsonObject, folder: Path) -> None:
    made = await install(
        lab.directory, lab.kubeconfig, lab.binaries["helm"], InstallOptions(), lambda _: None
    )
    try:
        async with connect(lab.kubeconfig) as person, namespace(person, "followed") as space:
            await person.create(ROLEBINDINGS, rights, "kube-system")
            words = ("query", "-n", space, "-o", "json", "--kubeconfig", str(lab.kubeconfig))
            async with served(Place(Installed(lab, made), person, space, folder)):
                deadline = asyncio.get_running_loop().time() + PATIENCE
                while (done := await audit(*words)).code:
                    assert asyncio.get_running_loop().time() < deadline, done.err
                    await asyncio.sleep(0.2)
                assert sorted(ids(done)) == ["u-0", "u-1"]
    finally:
        await asyncio.to_thread(stop, lab.directory)

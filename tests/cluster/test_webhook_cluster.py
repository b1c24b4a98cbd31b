"""The webhook beside a real API server: what it knows, what it needs, and how it ends without."""

import re
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from http.client import HTTPSConnection
from pathlib import Path

import msgspec
import psutil
import pytest
import yaml

from api import exits, names
from api.jsons import Json, JsonObject
from kube.client import Client
from kube.errors import Forbidden, NotFound
from kube.resources import CONFIGMAPS, PODCLIQUESETS, TOPOLOGY_BINDINGS
from tests.support import policies
from tests.support.installed import Installed
from tests.support.living import Kubectl, engine_set
from tests.webhook.running import Files, Running, files_in, serving

pytestmark = pytest.mark.cluster


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = files_in(tmp_path / "tls")
    made.issue()
    return made


@pytest.fixture
def own(installed: Installed) -> Path:
    """The kubeconfig with the webhook's own token."""
    return installed.installation.kubeconfig(names.WEBHOOK_ACCOUNT)


@pytest.fixture
def second(own: Path, files: Files, tmp_path: Path) -> Iterator[Running]:
    """One more webhook in the cluster, that nobody calls but the test."""
    flags = ("--kubeconfig", str(own), "--drain-seconds", "0")
    with serving(files, tmp_path / "log", *flags) as running:
        yield running


def ended(files: Files, *flags: str) -> tuple[int, str]:
    """Run a webhook that cannot go on; its exit code and the one line it leaves."""
    command = [sys.executable, "-m", "webhook", "--port", "0", "--host", "127.0.0.1"]
    done = subprocess.run(
        [*command, "--tls-dir", str(files.folder), *flags],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    (line,) = done.stderr.splitlines()
    return done.returncode, line


def page(running: Running, path: str) -> str:
    connection = running.connect()
    connection.request("GET", path)
    found = connection.getresponse().read().decode()
    connection.close()
    return found


def test_it_is_ready_with_its_own_token_and_knows_the_cluster(second: Running) -> None:
    assert page(second, "/readyz") == "ok"
    assert "penstock_webhook_caches_synced 1.0" in page(second, "/metrics")
    # The built-in one, or the last that another test's was.
    assert "penstock_webhook_policy_info{" in page(second, "/metrics")


def test_it_stays_small(second: Running) -> None:
    master = psutil.Process(second.process.pid)
    each = [master, *master.children(recursive=True)]
    assert sum(p.memory_full_info().pss for p in each) < 90 * 1024 * 1024


def test_it_ends_in_order_while_it_follows_the_cluster(second: Running) -> None:
    second.terminate()
    assert second.ended(30) == exits.OK
    for word in ("Traceback", "Unclosed", "destroyed", "ERROR"):
        assert word not in second.written()


def test_a_token_that_is_not_accepted_is_said_so(own: Path, files: Files, tmp_path: Path) -> None:
    config = yaml.safe_load(own.read_text())
    for user in config["users"]:
        user["user"] = {"token": "expired"}
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    code, line = ended(files, "--kubeconfig", str(path))
    assert code == exits.BAD_CREDENTIALS
    assert "does not accept our credentials" in line


def test_a_missing_right_is_said_so(installed: Installed, files: Files) -> None:
    path = installed.installation.kubeconfig(names.WORKLOADS_ACCOUNT)
    code, line = ended(files, "--kubeconfig", str(path))
    assert code == exits.BAD_CREDENTIALS
    assert "a right is missing" in line
    assert "is forbidden" in line


@asynccontextmanager
async def config_map(person: Client, name: str, data: JsonObject) -> AsyncIterator[None]:
    body: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    body["data"] = data
    with suppress(NotFound):
        await person.delete(CONFIGMAPS, name, names.NAMESPACE)
    await person.create(CONFIGMAPS, body, names.NAMESPACE)
    try:
        yield
    finally:
        await policies.take_back(person)


async def test_it_goes_by_the_policy_in_the_config_map(
    person: Client, own: Path, files: Files, tmp_path: Path
) -> None:
    policy: JsonObject = {names.POLICY_KEY: "pods: {queue: batch}\n"}
    async with config_map(person, names.POLICY_CONFIG, policy):
        with serving(files, tmp_path / "log", "--kubeconfig", str(own)) as running:
            source = f"ConfigMap {names.NAMESPACE}/{names.POLICY_CONFIG} key policy.yaml"
            assert f'source="{source}"}} 1.0' in page(running, "/metrics")


async def test_a_bad_policy_in_the_config_map_is_named_by_line_and_field(
    person: Client, own: Path, files: Files
) -> None:
    policy: JsonObject = {names.POLICY_KEY: "pods:\n  queeu: batch\n"}
    async with (
        policies.unlooked_at(person),
        config_map(person, names.POLICY_CONFIG, policy),
    ):
        # There was none that could be gone by before.
        nothing: JsonObject = {"data": {names.POLICY_KEY: None}}
        await person.merge_patch(CONFIGMAPS, names.KEPT_POLICY_CONFIG, nothing, names.NAMESPACE)
        code, line = ended(files, "--kubeconfig", str(own))
    assert code == exits.BAD_POLICY
    assert f"ConfigMap {names.NAMESPACE}/{names.POLICY_CONFIG} key policy.yaml: line 2" in line
    assert "pods.queeu" in line


def a_binding(name: str, *domains: str) -> JsonObject:
    levels: list[Json] = [
        {"domain": domain, "key": f"topology.kubernetes.io/{domain}"} for domain in domains
    ]
    return {
        "apiVersion": TOPOLOGY_BINDINGS.api_version,
        "kind": TOPOLOGY_BINDINGS.kind,
        "metadata": {"name": name},
        "spec": {"levels": levels},
    }


def constrained(name: str, topology: str, level: str) -> JsonObject:
    """A set that wants to be in one domain of a level."""
    found = engine_set(name, pods=1, gpus=0)
    spec = found["spec"]
    assert isinstance(spec, dict)
    template = spec["template"]
    assert isinstance(template, dict)
    template["topologyConstraint"] = {"topologyName": topology, "pack": {"required": level}}
    return found


async def test_a_binding_and_a_set_can_be_applied_in_one_go(
    installed: Installed, kubectl: Kubectl, person: Client, space: str
) -> None:
    """Five times, since the watch may win the race; by a question it is never lost."""
    made = [f"{space}-{number}" for number in range(5)]
    try:
        for name in made:
            both = [a_binding(name, "zone", "rack"), constrained(f"s{name[-1]}", name, "rack")]
            text = "---\n".join(yaml.safe_dump(each) for each in both)
            done = kubectl.run("apply", "-f", "-", text=text)
            assert done.returncode == 0, done.stderr
    finally:
        for name in made:
            with suppress(NotFound):
                await person.delete(TOPOLOGY_BINDINGS, name)


async def test_a_set_is_born_with_its_finalizer(
    installed: Installed, person: Client, space: str
) -> None:
    made = await person.create(PODCLIQUESETS, engine_set("s", pods=1, gpus=0), space)
    assert msgspec.json.decode(made)["metadata"]["finalizers"] == [names.SET_FINALIZER]


def test_a_set_names_a_binding_there_is_none_of(
    installed: Installed, kubectl: Kubectl, space: str
) -> None:
    text = yaml.safe_dump(constrained("lost", f"{space}-none", "rack"))
    done = kubectl.run("apply", "-f", "-", text=text)
    assert done.returncode != 0
    assert f"{space}-none" in done.stderr


async def test_its_account_reads_what_it_knows_by_and_nothing_else(
    installed: Installed, person: Client
) -> None:
    async with installed.acting(names.WEBHOOK_ACCOUNT) as webhook:
        await webhook.raw_get(TOPOLOGY_BINDINGS.path())
        await webhook.raw_get(PODCLIQUESETS.path())
        for name in (names.POLICY_CONFIG, names.CAPACITY_CONFIG):
            with suppress(NotFound):
                await webhook.raw_get(CONFIGMAPS.path(names.NAMESPACE, name))
            await webhook.list_pages(
                CONFIGMAPS, dict[str, object], names.NAMESPACE, fields=f"metadata.name={name}"
            )
        for path in (
            CONFIGMAPS.path(names.NAMESPACE),
            CONFIGMAPS.path(names.NAMESPACE, "kube-root-ca.crt"),
            CONFIGMAPS.path("kube-system", names.POLICY_CONFIG),
        ):
            with pytest.raises(Forbidden, match="configmaps"):
                await webhook.raw_get(path)
        body: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap"}
        body["metadata"] = {"name": names.POLICY_CONFIG}
        with pytest.raises(Forbidden, match="configmaps"):
            await webhook.create(CONFIGMAPS, body, names.NAMESPACE)
        with pytest.raises(Forbidden, match="clustertopologybindings"):
            await webhook.create(TOPOLOGY_BINDINGS, a_binding("x", "rack"))


def port_of(installed: Installed, component: str) -> int:
    words = psutil.Process(installed.installation.pid(component)).cmdline()
    return int(words[words.index("--port") + 1])


def metrics_at(port: int, authority: str) -> str:
    trusting = ssl.create_default_context(cadata=authority)
    connection = HTTPSConnection("127.0.0.1", port, timeout=20, context=trusting)
    connection.request("GET", "/metrics")
    found = connection.getresponse().read().decode()
    connection.close()
    return found


def test_nothing_reaches_the_webhooks_that_has_no_business_there(
    installed: Installed, kubectl: Kubectl
) -> None:
    """After pods of no gang, of a gang, a set, and changes to them."""
    pod: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "plain", "labels": {"app": "x"}},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    }
    kubectl.apply(pod)
    kubectl.run("label", "pod", "plain", "a=b", check=True)
    kubectl.run("delete", "pod", "plain", "--wait=false", check=True)
    kubectl.apply(engine_set("s", pods=1, gpus=0))
    kubectl.run("scale", "pcs", "s", "--replicas=2", check=True)
    authority = (installed.installation.layout.tls / "ca.crt").read_text()
    for component in ("webhook-0", "webhook-1"):
        found = metrics_at(port_of(installed, component), authority)
        strays = re.findall(r"^penstock_webhook_stray_reviews_total\{.*\} (\S+)$", found, re.M)
        assert len(strays) == 6
        assert set(strays) == {"0.0"}, found

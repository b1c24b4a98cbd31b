import asyncio
import json
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import psutil
import pytest
import yaml

from penstock.lab import fingerprint, install, install_cli, kubeconfigs, processes
from penstock.lab.errors import LabError
from penstock.lab.helm import Helm, chart
from penstock.lab.installation import Installation
from penstock.lab.layout import Layout, Settings
from penstock.lab.ports import LOOPBACK

KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "one",
    "contexts": [{"name": "one", "context": {"cluster": "c", "user": "admin"}}],
    "clusters": [
        {"name": "c", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority": "ca"}}
    ],
    "users": [{"name": "admin", "user": {"token": "the-persons-own-secret"}}],
}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout.of(tmp_path)
    layout.create()
    return layout


def remember(layout: Layout, port: int) -> None:
    settings = Settings(port, webhooks=2, workloads=True, code="x")
    layout.settings.write_bytes(msgspec.json.encode(settings))


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_an_accounts_kubeconfig_has_the_clusters_ca_inside_and_nothing_of_the_person(
    tmp_path: Path,
) -> None:
    (tmp_path / "ca").write_bytes(b"authority")
    (tmp_path / "config").write_text(yaml.safe_dump(KUBECONFIG))
    cluster = kubeconfigs.cluster_of(tmp_path / "config")
    text = kubeconfigs.render(cluster, "penstock-gangs", tmp_path / "token")
    written = yaml.safe_load(text)
    assert written["clusters"][0]["cluster"] == {
        "server": "https://127.0.0.1:1",
        "certificate-authority-data": "YXV0aG9yaXR5",
    }
    assert written["users"][0]["user"] == {"tokenFile": str(tmp_path / "token")}
    assert "the-persons-own-secret" not in text


def test_a_kubeconfig_of_no_use_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="absent"):
        kubeconfigs.cluster_of(tmp_path / "absent")


def test_private_files_are_private_when_they_replace_open_ones(tmp_path: Path) -> None:
    path = tmp_path / "it"
    path.write_text("old")
    path.chmod(0o644)
    kubeconfigs.write_private(path, "new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_fingerprint_follows_our_modules_only(tmp_path: Path) -> None:
    module = tmp_path / "kube" / "client.py"
    module.parent.mkdir()
    module.write_text("one")
    before = fingerprint.of_code(tmp_path)
    (tmp_path / "other.py").write_text("x")
    (tmp_path / "kube" / "notes.txt").write_text("x")
    assert fingerprint.of_code(tmp_path) == before
    module.write_text("two!")
    assert fingerprint.of_code(tmp_path) != before


def test_the_balancers_port_stays_while_it_can_be_had(layout: Layout) -> None:
    first = install._balancer_port(layout)
    assert install._balancer_port(layout) == first  # the same lab begins its search alike
    with socket.socket() as stranger:
        stranger.bind((LOOPBACK, 0))
        stranger.listen()
        taken = stranger.getsockname()[1]
        remember(layout, taken)
        assert install._balancer_port(layout) == first
    remember(layout, taken)
    assert install._balancer_port(layout) == taken


async def test_one_webhook_alone_is_refused_where_the_chart_runs_them() -> None:
    options = install.InstallOptions(webhooks=install_cli.FEWEST_INSIDE - 1)
    with pytest.raises(LabError, match="two webhooks at least: leave --webhooks out"):
        await install_cli._inside("any", Path("helm"), options)


def test_that_is_as_many_as_the_charts_schema_asks_for() -> None:
    schema = json.loads((chart() / "values.schema.json").read_text())
    fewest = schema["properties"]["webhook"]["properties"]["replicas"]["minimum"]
    assert fewest == install_cli.FEWEST_INSIDE


async def test_two_installs_at_once_do_not_meet(tmp_path: Path) -> None:
    layout = Layout.of(tmp_path)
    layout.create()
    options = install.InstallOptions()
    with (
        install._only_one(layout),
        pytest.raises(LabError, match="another `penstock lab install` is at work"),
    ):
        await install.install(tmp_path, tmp_path / "k", tmp_path / "h", options, lambda _: None)


def test_stopping_where_nothing_is_installed_is_fine(tmp_path: Path) -> None:
    install.stop(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_stop_ends_what_a_killed_keeper_left(layout: Layout) -> None:
    left = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
    record = processes.record_of(left.pid)
    assert record is not None
    processes.write_record(layout.record("gangs"), record)
    dead = processes.Record(left.pid, record.created - 1000)  # a keeper whose pid was given out
    processes.write_record(layout.record("keeper"), dead)
    install.stop(layout.root.parent)
    assert not psutil.pid_exists(left.pid)
    assert list(layout.records.iterdir()) == []
    left.wait()


async def test_helms_last_line_tells_what_failed(tmp_path: Path) -> None:
    binary = script(tmp_path / "helm", 'echo "walk of $1"; echo "Error: no way" >&2; exit 1')
    with pytest.raises(LabError, match="helm upgrade failed: Error: no way"):
        await Helm(binary, tmp_path / "k", tmp_path).run("upgrade")


async def test_helm_is_given_the_persons_kubeconfig_and_a_home_of_its_own(tmp_path: Path) -> None:
    binary = script(tmp_path / "helm", 'echo "$HOME $*"')
    said = await Helm(binary, tmp_path / "k", tmp_path / "home").run("list")
    kubeconfig = tmp_path / "k"
    assert said == f"{tmp_path / 'home'} list --kubeconfig {kubeconfig} --namespace penstock-system"


async def test_an_interrupted_install_leaves_no_helm_behind(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    binary = script(tmp_path / "helm", f"echo $$ > {mark}.new; mv {mark}.new {mark}; exec sleep 60")
    work = asyncio.create_task(Helm(binary, tmp_path / "k", tmp_path).run("upgrade"))
    async with asyncio.timeout(10):
        while not mark.exists():
            await asyncio.sleep(0.01)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert not psutil.pid_exists(int(mark.read_text()))


def test_the_chart_is_found() -> None:
    assert (chart() / "values.schema.json").is_file()


def test_what_is_not_installed_is_said_so(layout: Layout) -> None:
    with pytest.raises(LabError, match="run `penstock lab install`"):
        _ = Installation(layout).settings

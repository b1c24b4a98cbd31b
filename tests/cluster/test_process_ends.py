"""Each controller ends cleanly when it cannot work: one line that says what to do, and a code."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml

from api import exits, names
from penstock.lab import cluster as labs
from penstock.lab import processes
from penstock.lab.folders import Labs
from penstock.lab.progress import Silence
from penstock.lab.state import read_state
from tests.support.installed import Installed
from tests.support.living import Cluster, Kubectl, engine_set
from tests.support.polling import eventually
from tests.support.ports import free_port

pytestmark = pytest.mark.cluster

CONTROLLERS = ["controller.workloads", "controller.gangs"]


def run(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def the_line(done: subprocess.CompletedProcess[str]) -> str:
    """The one line a process left, and nothing else."""
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize("module", CONTROLLERS)
def test_without_api_server_the_address_is_named(module: str, tmp_path: Path) -> None:
    server = f"https://127.0.0.1:{free_port()}"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "c", "cluster": {"server": server, "insecure-skip-tls-verify": True}}
        ],
        "users": [{"name": "u", "user": {"token": "x"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    done = run(module, "--kubeconfig", str(path), "--wait", "1")
    assert f"no API server at {server}" in the_line(done)
    assert done.returncode == exits.NO_API_SERVER


# What else may be wrong with one is tried where it is read: to start a process takes a second.
@pytest.mark.parametrize(
    ("module", "content"), [*zip(CONTROLLERS, (None, "{not yaml"), strict=True)]
)
def test_a_bad_kubeconfig_is_named(module: str, content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    done = run(module, "--kubeconfig", str(path))
    assert str(path) in the_line(done)
    assert done.returncode == exits.BAD_CREDENTIALS


@pytest.mark.parametrize("module", CONTROLLERS)
def test_a_token_that_is_not_accepted_is_said_so(
    module: str, installed: Installed, tmp_path: Path
) -> None:
    config = yaml.safe_load(installed.installation.kubeconfig(names.GANGS_ACCOUNT).read_text())
    for user in config["users"]:
        user["user"] = {"token": "expired"}
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    done = run(module, "--kubeconfig", str(path))
    assert "does not accept our credentials" in the_line(done)
    assert done.returncode == exits.BAD_CREDENTIALS


@pytest.mark.parametrize("module", CONTROLLERS)
def test_a_missing_kind_is_named_with_the_way_to_mend_it(module: str, bare: Path) -> None:
    """`bare` is the kubeconfig of a control plane in which Penstock was never installed."""
    done = run(module, "--kubeconfig", str(bare))
    line = the_line(done)
    assert "is not installed" in line
    assert "grove.io" in line
    assert "chart" in line
    assert done.returncode == exits.MISSING_KIND


def test_a_missing_right_is_said_so(installed: Installed) -> None:
    kubeconfig = installed.installation.kubeconfig(names.WEBHOOK_ACCOUNT)
    done = run("controller.workloads", "--kubeconfig", str(kubeconfig))
    assert "a right is missing" in the_line(done)
    assert done.returncode == exits.BAD_CREDENTIALS


@pytest.mark.parametrize(
    ("module", "arguments"), [*zip(CONTROLLERS, (["--lease", "0"], ["--what"]), strict=True)]
)
def test_a_bad_flag_is_named(module: str, arguments: list[str]) -> None:
    done = run(module, *arguments)
    assert arguments[0] in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == exits.BAD_SETTINGS


async def test_a_standby_shows_its_metrics_and_told_to_stop_ends_with_zero(
    installed: Installed,
) -> None:
    kubeconfig = installed.installation.kubeconfig(names.GANGS_ACCOUNT)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "controller.gangs", "--kubeconfig", str(kubeconfig),
        "--metrics-address", "127.0.0.1:0",
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    assert b"standing for the lease" in await process.stderr.readline()
    served = (await process.stderr.readline()).decode()
    url = served.rpartition("metrics are served at ")[2].strip()
    async with asyncio.timeout(10):
        shown = ""
        while 'grove_gangs{phase="Pending"}' not in shown:
            shown = (await asyncio.to_thread(urlopen, url, timeout=5)).read().decode()
    assert "penstock_gangs_leads 0.0" in shown
    process.terminate()
    rest = await asyncio.wait_for(process.stderr.read(), 20)
    assert (await process.wait(), b"Traceback" in rest) == (0, False)


@pytest.mark.long
async def test_an_outage_of_the_api_server_ends_nothing_for_good(
    installed: Installed, cluster: Cluster, kubectl: Kubectl
) -> None:
    """A short one is sat out; a longer one costs the lease, and the process is started again."""
    state = read_state(Labs.of(os.environ).folder(installed.lab.name))
    assert state is not None
    server = state.records["kube-apiserver"]
    os.kill(server.pid, signal.SIGKILL)
    await eventually(lambda: not processes.running(server), "the API server is dead")
    await labs.up(installed.lab.spec, Silence())
    kubectl.apply(engine_set("after", pods=2, gpus=1))
    await cluster.running("after")

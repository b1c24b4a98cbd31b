import asyncio
import base64
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec
import psutil
import pytest

from api import exits
from api.jsons import Json
from certs.issue import Names, issue_authority, issue_leaf
from penstock.lab import keeper as keepers
from penstock.lab.balancer import https_readyz
from penstock.lab.errors import LabError
from penstock.lab.installation import Installation
from penstock.lab.keeper import Keeper, KeeperError
from penstock.lab.kubelet import Kubelet
from penstock.lab.layout import Layout, Settings
from penstock.lab.ports import LOOPBACK

# Answers GET /readyz over TLS with 200 once its files are there, and says on which port.
WEBHOOK = """
import http.server, pathlib, ssl, sys, time
port, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
while not (folder / "tls.key").exists():
    time.sleep(0.02)
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = str(port).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Answer)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


class FakeCluster:
    """Gives tokens and a real certificate."""

    def __init__(self) -> None:
        now = datetime.now(UTC)  # noqa: TID251  (ssl compares it with the machine's own clock)
        leaf = issue_leaf(issue_authority(now), Names.of(LOOPBACK), now)
        pair = {"tls.crt": leaf.certificate_pem, "tls.key": leaf.key_pem}
        data: dict[str, Json] = {name: base64.b64encode(pem).decode() for name, pem in pair.items()}
        self.secret: Json = {"data": data}

    async def token(self, account: str, seconds: int) -> str:
        return f"a.{account}.{seconds}"

    async def tls_secret(self) -> Json:
        return self.secret


def command_line(layout: Layout, settings: Settings, name: str, port: int) -> Sequence[str]:
    if name.startswith("webhook"):
        return [sys.executable, "-S", "-c", WEBHOOK, str(port), str(layout.tls)]
    return [sys.executable, "-S", "-c", "import time; time.sleep(600)"]


@dataclass
class Rig:
    layout: Layout
    port: int
    task: "asyncio.Task[None]"

    @property
    def installation(self) -> Installation:
        return Installation(self.layout)

    async def answers(self) -> bool:
        return await https_readyz(LOOPBACK, self.port)


def prepared(folder: Path) -> tuple[Layout, Settings]:
    layout = Layout.of(folder)
    layout.create()
    settings = Settings(keepers.free_port(), webhooks=2, workloads=True, code="x")
    layout.settings.write_bytes(msgspec.json.encode(settings))
    return layout, settings


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    layout, settings = prepared(tmp_path)
    kubelet = Kubelet(layout, FakeCluster(), lambda: 0.0)
    work = Keeper(layout, settings, kubelet, command_line).run()
    rig = Rig(layout, settings.balancer_port, asyncio.create_task(work))
    yield rig
    rig.task.cancel()
    with suppress(asyncio.CancelledError):
        await rig.task
    assert not list(layout.records.iterdir())


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.02)


async def until_answers(rig: Rig) -> None:
    async with asyncio.timeout(20):
        while not await rig.answers():
            await asyncio.sleep(0.05)


async def test_all_components_run_and_one_port_leads_to_the_webhooks(rig: Rig) -> None:
    await until_answers(rig)
    for component in ("webhook-0", "webhook-1", "workloads", "gangs"):
        await until(partial(rig.installation.running, component))


async def test_while_one_webhook_is_dead_the_other_answers(rig: Rig) -> None:
    await until_answers(rig)
    await until(lambda: rig.installation.running("webhook-1"))
    await asyncio.to_thread(rig.installation.kill_component, "webhook-0")
    await until_answers(rig)
    await asyncio.to_thread(rig.installation.kill_component, "webhook-1")
    assert not await rig.answers()
    await asyncio.to_thread(rig.installation.start_component, "webhook-0")
    await until_answers(rig)


async def test_a_component_stopped_on_purpose_stays_stopped(rig: Rig) -> None:
    await until(lambda: rig.installation.running("gangs"))
    await asyncio.to_thread(rig.installation.stop_component, "gangs")
    with pytest.raises(LabError, match="gangs does not run"):
        rig.installation.pid("gangs")
    await asyncio.to_thread(rig.installation.start_component, "gangs")
    assert rig.installation.pid("gangs")


async def test_it_ends_by_itself_when_the_labs_directory_goes(rig: Rig) -> None:
    await until(lambda: rig.installation.running("gangs"))
    pid = rig.installation.pid("gangs")
    rig.layout.settings.unlink()
    async with asyncio.timeout(20):
        await rig.task
    assert not psutil.pid_exists(pid)


async def test_a_balancer_port_that_is_taken_is_said_so(tmp_path: Path) -> None:
    layout, settings = prepared(tmp_path)
    stranger = await asyncio.start_server(lambda *_: None, LOOPBACK, settings.balancer_port)
    kubelet = Kubelet(layout, FakeCluster(), lambda: 0.0)
    with pytest.raises(KeeperError, match=f"port {settings.balancer_port}") as caught:
        await Keeper(layout, settings, kubelet, command_line).run()
    assert caught.value.code == exits.PORT_TAKEN
    stranger.close()


def test_components_are_told_their_own_credentials_and_nothing_else(tmp_path: Path) -> None:
    layout = Layout.of(tmp_path)
    settings = Settings(1, webhooks=2, workloads=True, code="x")
    workloads = " ".join(keepers.command_line(layout, settings, "workloads", 0))
    gangs = " ".join(keepers.command_line(layout, settings, "gangs", 0))
    webhook = " ".join(keepers.command_line(layout, settings, "webhook-1", 4711))
    assert workloads.endswith(
        f"-m controller.workloads --kubeconfig {layout.kubeconfig('penstock-workloads')}"
        " --namespace penstock-system --waiter-image penstock-waiter:lab --mnnvl"
    )
    assert gangs.endswith(
        f"-m controller.gangs --kubeconfig {layout.kubeconfig('penstock-gangs')}"
        " --namespace penstock-system --webhook-host 127.0.0.1"
        f" --webhook-addresses {layout.addresses} --trust-wait 10"
    )
    assert webhook.endswith(
        f"-m webhook --host 127.0.0.1 --port 4711 --tls-dir {layout.tls} --drain-seconds 1.5"
        f" --audit-dir {layout.audit / 'webhook-1'} --audit-replica webhook-1"
        f" --audit-key {layout.audit_key}"
        f" --kubeconfig {layout.kubeconfig('penstock-webhook')} --namespace penstock-system"
    )


def test_components_are_told_what_is_switched_off_and_who_else_makes_gangs(tmp_path: Path) -> None:
    layout = Layout.of(tmp_path)
    off = Settings(1, 2, workloads=True, code="x", feature_gates="GangScheduling=false")
    for component in off.components():
        line = " ".join(keepers.command_line(layout, off, component, 1))
        assert "--feature-gates GangScheduling=false" in line
        assert "--companion" not in line
    beside = Settings(1, 2, workloads=False, code="x", companion=True)
    lines = [" ".join(keepers.command_line(layout, beside, c, 1)) for c in beside.components()]
    assert all("--companion" in line and "--feature-gates" not in line for line in lines)


def test_there_is_one_keeper_a_lab(tmp_path: Path) -> None:
    layout, _ = prepared(tmp_path)
    with (
        keepers.take_lock(layout),
        pytest.raises(KeeperError, match="this lab has a keeper already"),
    ):
        keepers.take_lock(layout)
    keepers.take_lock(layout).close()


def test_a_new_keeper_ends_what_a_killed_one_left(tmp_path: Path) -> None:
    layout, _ = prepared(tmp_path)
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    created = psutil.Process(left.pid).create_time()
    layout.record("gangs").write_text(f'{{"pid": {left.pid}, "created": {created}}}')
    keepers.record_self(layout)
    assert left.wait(5) is not None
    assert [path.name for path in layout.records.iterdir()] == ["keeper.json"]
    assert Installation(layout).pid("keeper") == os.getpid()


def test_without_settings_it_ends_with_one_line(tmp_path: Path) -> None:
    Layout.of(tmp_path).create()
    done = subprocess.run(
        [sys.executable, "-m", "penstock.lab.keeper", "--directory", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == exits.BAD_SETTINGS
    assert len(done.stderr.splitlines()) == 1
    assert "settings.json" in done.stderr

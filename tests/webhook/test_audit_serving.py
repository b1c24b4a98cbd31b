"""The audit log served: to whom, of which replicas, and what is said to everybody else."""

import asyncio
import json
import math
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from http.client import HTTPSConnection
from pathlib import Path
from typing import Final

import orjson
import pytest

from api.jsons import Json
from certs.issue import issue_authority
from certs.seals import Signer
from kube.access import Credentials
from kube.tallies import CallTally
from kube.tokens import FixedHeader
from tests.support.auditstand import SECRET, ledger
from tests.support.clientpair import client_pair
from tests.support.manualclock import ManualClock
from tests.webhook.clusterstand import CONFIGS, Stand
from tests.webhook.clusterstand import standing as standing_api
from tests.webhook.running import CLOCK, HOST, Files, files_in
from tests.webhook.test_audit_ledger import record
from webhook import audit_api, audit_callers
from webhook.audit_callers import FrontProxy, Peers
from webhook.audit_serving import AuditServer, Door, Gate, Service

LOGS: Final = audit_api.LOGS
ALICE: Final = {"X-Remote-User": "alice"}


@dataclass
class Replica:
    name: str
    folder: Path
    gate: Gate
    server: AuditServer
    tls: Files

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    def get(
        self, target: str, pair: Path | None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        context = self.tls.client()
        if pair is not None:
            context.load_cert_chain(pair)
        connection = HTTPSConnection(HOST, self.port, timeout=20.0, context=context)
        try:
            connection.request("GET", target, headers=headers or {})
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@dataclass
class Site:
    replicas: list[Replica]
    proxy: Path
    """The certificate that the API server shows."""
    folder: Path

    def stranger(self, name: str = "front-proxy") -> Path:
        folder = self.folder / "strangers"
        folder.mkdir(exist_ok=True)
        return client_pair(issue_authority(CLOCK.now()), name, folder)

    def listed(self, replica: Replica) -> dict[str, object]:
        status, body = replica.get(LOGS, self.proxy, ALICE)
        assert status == 200, body
        found: dict[str, object] = orjson.loads(body)
        return found

    def names(self, replica: Replica) -> list[str]:
        items = self.listed(replica)["items"]
        assert isinstance(items, list)
        return [each["metadata"]["name"] for each in items]


@contextmanager
def standing(tmp_path: Path, secrets: tuple[bytes, ...] = (SECRET, SECRET)) -> Iterator[Site]:
    files = files_in(tmp_path / "tls")
    files.issue()
    authority = issue_authority(CLOCK.now())
    proxy = FrontProxy(authority.certificate_pem.decode(), ("front-proxy",))
    ports = [free_port() for _ in secrets]
    site = Site([], client_pair(authority, "front-proxy", tmp_path), tmp_path)
    services = []
    for i, (port, secret) in enumerate(zip(ports, secrets, strict=True)):
        folder = tmp_path / f"log-{i}"
        log = ledger(folder, pod=f"webhook-{i}")
        log.append([record(i)])
        door = Door(
            (HOST, port), files.folder, folder, f"webhook-{i}", [(HOST, each) for each in ports]
        )
        gate = Gate(door, Peers(Signer.of(secret), lambda: CLOCK.now().timestamp()))
        gate.admit(proxy)
        server = AuditServer(door, gate)
        services.append(Service(server))
        site.replicas.append(Replica(f"webhook-{i}", folder, gate, server, files))
    for service in services:
        service.start()
    try:
        yield site
    finally:
        for service in services:
            service.stop()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with standing(tmp_path) as made:
        yield made


def test_every_replica_tells_of_all(site: Site) -> None:
    for replica in site.replicas:
        assert site.names(replica) == ["webhook-0", "webhook-1"]
        assert site.listed(replica)["unreachable"] == []


def test_every_file_can_be_had_from_every_replica(site: Site) -> None:
    for replica in site.replicas:
        for other in site.replicas:
            (path,) = other.folder.glob("audit-*")
            target = f"{LOGS}/{other.name}?file={path.name}"
            assert replica.get(target, site.proxy, ALICE) == (200, path.read_bytes())


@pytest.mark.parametrize("target", [f"{LOGS}", f"{LOGS}/webhook-0?file=x", audit_api.ROOT, "/"])
def test_nobody_without_the_front_proxys_certificate_is_told_anything(
    site: Site, target: str
) -> None:
    replica = site.replicas[0]
    assert replica.get(target, None, ALICE)[0] == 403
    with pytest.raises((ssl.SSLError, ConnectionError)):
        replica.get(target, site.stranger(), ALICE)
    assert replica.get(target, site.proxy)[0] == 403  # it acts for nobody


def test_a_certificate_of_the_authority_for_somebody_else_is_not_enough(tmp_path: Path) -> None:
    with standing(tmp_path) as site:
        authority = issue_authority(CLOCK.now())
        other = client_pair(authority, "kubelet", tmp_path)
        site.replicas[0].gate.admit(
            FrontProxy(authority.certificate_pem.decode(), ("front-proxy",))
        )
        assert site.replicas[0].get(LOGS, other, ALICE)[0] == 403
        site.replicas[0].gate.admit(FrontProxy(authority.certificate_pem.decode()))
        assert site.replicas[0].get(LOGS, other, ALICE)[0] == 200


def test_nobody_is_let_in_before_it_is_known_who_may_be(site: Site) -> None:
    site.replicas[0].gate.admit(None)
    assert site.replicas[0].get(LOGS, None, ALICE)[0] == 403


def test_a_replica_without_the_shared_key_is_none(tmp_path: Path) -> None:
    with standing(tmp_path, (SECRET, SECRET[::-1])) as site:
        first, other = site.replicas
        assert site.names(first) == ["webhook-0"]
        assert site.listed(first)["unreachable"] == [f"{HOST}:{other.port}"]


def test_a_replica_that_shows_another_certificate_is_none(tmp_path: Path) -> None:
    with standing(tmp_path) as site:
        stranger = files_in(tmp_path / "other")
        stranger.issue()
        gate = site.replicas[1].gate
        gate._door = replace(gate._door, tls_dir=stranger.folder)
        gate._contexts = gate._made()
        assert site.names(site.replicas[0]) == ["webhook-0"]
        silent = site.listed(site.replicas[0])["unreachable"]
        assert silent == [f"{HOST}:{site.replicas[1].port}"]


def test_a_replica_that_is_down_is_named(site: Site) -> None:
    gone = site.replicas[1]
    gone.server.socket.close()
    assert site.names(site.replicas[0]) == ["webhook-0"]
    assert site.listed(site.replicas[0])["unreachable"] == [f"{HOST}:{gone.port}"]


@pytest.mark.parametrize(
    "name",
    ["../key", "head.json", ".front-proxy.pem", "", "audit-000000000099.jsonl", "%2e%2e/key"],
)
def test_only_files_of_the_log_are_given(site: Site, name: str) -> None:
    (site.folder / "key").write_text("secret")
    status, body = site.replicas[0].get(f"{LOGS}/webhook-0?file={name}", site.proxy, ALICE)
    assert status == 404
    assert b"secret" not in body


def test_an_api_server_learns_what_is_served(site: Site) -> None:
    status, body = site.replicas[0].get(audit_api.ROOT, site.proxy, ALICE)
    found = orjson.loads(body)
    assert (status, found["kind"]) == (200, "APIResourceList")
    assert found["resources"][0]["verbs"] == ["get", "list"]


def test_a_peers_question_counts_for_its_path_and_for_a_minute() -> None:
    now = 1000.0
    peers = Peers(Signer.of(SECRET), lambda: now)
    header = peers.header(LOGS)
    assert peers.is_one(header, LOGS)
    assert not peers.is_one(header, f"{LOGS}/x")
    assert not Peers(Signer.of(SECRET[::-1]), lambda: now).is_one(header, LOGS)
    for odd in ("", ":", "x:y", "1000:", "²:00", f"1001:{header.partition(':')[2]}"):
        assert not peers.is_one(odd, LOGS)
    now = 1061.0
    assert not peers.is_one(header, LOGS)


def test_what_a_cluster_says_of_its_front_proxy_is_read() -> None:
    data = {
        "requestheader-client-ca-file": "PEM",
        "requestheader-allowed-names": json.dumps(["front-proxy-client"]),
        "requestheader-username-headers": json.dumps(["X-Remote-User", "X-Other"]),
    }
    found = FrontProxy.read(data)
    assert found == FrontProxy("PEM", ("front-proxy-client",), ("X-Remote-User", "X-Other"))
    assert FrontProxy.read({}) is None
    assert FrontProxy.read({"client-ca-file": "PEM"}) is None
    odd = {**data, "requestheader-allowed-names": "{", "requestheader-username-headers": "3"}
    assert FrontProxy.read(odd) == FrontProxy("PEM", (), (audit_callers.USER_HEADER,))


async def test_it_is_followed_who_the_front_proxy_is(tmp_path: Path) -> None:
    door = Door((HOST, 0), tmp_path, tmp_path / "log", "webhook-0")
    gate = Gate(door, Peers(Signer.of(SECRET), lambda: 0.0))
    clock, where = ManualClock(), audit_callers.CONFIG_NAMESPACE
    async with standing_api(Stand()) as api:
        configs = api.kinds[CONFIGS]
        credentials = Credentials(api.url, None, FixedHeader())
        following = asyncio.create_task(gate.follow(credentials, clock, CallTally()))

        async def until_it_is(wanted: FrontProxy | None) -> None:
            async with asyncio.timeout(20.0):
                while gate.proxy != wanted or clock.next_wake() == math.inf:
                    await asyncio.sleep(0.01)

        await until_it_is(None)  # there is no such ConfigMap
        for authority in ("one", "two"):
            data: Json = {"requestheader-client-ca-file": authority}
            configs.place(where, audit_callers.CONFIG, {"data": data})
            await clock.advance(60.0)
            await until_it_is(FrontProxy(authority))
        configs.objects.clear()
        await clock.advance(60.0)
        await until_it_is(FrontProxy("two"))  # who was known stays so
        configs.place(where, audit_callers.CONFIG, {"data": {"client-ca-file": "three"}})
        await clock.advance(60.0)
        await until_it_is(None)
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following

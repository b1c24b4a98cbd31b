"""The webhook's certificates: rotated under load, and healed when somebody spoils them."""

import asyncio
import base64
import os
import ssl
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
from cryptography import x509

from api import names
from api.jsons import JsonObject
from certs import issue, reading
from certs.issue import Names
from controller.gangs import replicas
from controller.gangs.replicas import ListedReplicas, ServiceReplicas
from controller.gangs.trusting import read
from kube import credentials
from kube.client import Client
from kube.clock import SystemClock
from kube.errors import ApiError, Forbidden
from kube.resources import API_SERVICES, ENDPOINTSLICES, MUTATING_WEBHOOKS, PODCLIQUESETS, SECRETS
from kube.transport import Call, Patience, Transport
from penstock.lab.helm import Helm, chart
from penstock.proving import a_set
from tests.support import rotating
from tests.support.installed import Installed
from tests.support.rolling import hasty_gangs
from tests.support.rotating import Certificates, spoil, until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

T = TypeVar("T")

PACE = 0.06  # seconds between two calls
GARBAGE = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
WANTED = Names.of(
    names.WEBHOOK_SERVICE,
    f"{names.WEBHOOK_SERVICE}.{names.NAMESPACE}",
    f"{names.WEBHOOK_SERVICE}.{names.NAMESPACE}.svc",
    "127.0.0.1",
)


@dataclass
class Load:
    """Sets that are created, but not stored: each passes through our webhooks."""

    transport: Transport
    passed: int = 0
    failed: list[str] = field(default_factory=list)

    async def call(self) -> None:
        body = msgspec.json.encode(a_set({"leader": [], "worker": ["leader"]}))
        call = Call("POST", PODCLIQUESETS.path("default"), {"dryRun": "All"}, body)
        try:
            await self.transport.send(call)
        except ApiError as error:
            self.failed.append(error.message)
        else:
            self.passed += 1

    async def during(self, act: Awaitable[T]) -> T:
        """Call and call until the act is done, whether or not those before were answered."""
        done = asyncio.Event()

        async def calling(group: asyncio.TaskGroup) -> None:
            while not done.is_set():
                group.create_task(self.call())
                await asyncio.sleep(PACE)

        async with asyncio.TaskGroup() as group:
            group.create_task(calling(group))
            try:
                return await act
            finally:
                done.set()


@pytest.fixture
async def load(installed: Installed) -> AsyncIterator[Load]:
    clock = SystemClock()
    own = credentials.load(installed.lab.kubeconfig, None, clock, os.environ)
    transport = Transport(own, "tests/load", clock, Patience())
    transport.open()
    yield Load(transport)
    await transport.close()


async def in_service(installed: Installed) -> set[int]:
    """Give the serial numbers of the certificates that the webhooks show; 0 if one shows none."""
    listed = ListedReplicas(installed.installation.layout.addresses)
    shown = await replicas.served(await listed.addresses())
    return {x509.load_der_x509_certificate(der).serial_number if der else 0 for der in shown}


def serial(leaf: bytes) -> int:
    found = reading.certificate(leaf)
    assert found is not None
    return found.serial_number


async def settled(installed: Installed, person: Client) -> Certificates:
    """Wait until nothing is being changed and all webhooks serve the leaf that is stored.

    They learn of it a second late: whoever spoilt one may have been healed while they still serve
    what was put there, and would go on with it if there were no leaf at all.
    """
    shown, found = set[int](), await until(person, lambda seen: seen.at_rest)
    try:
        async with asyncio.timeout(rotating.PATIENCE):
            while True:
                shown, found = await in_service(installed), await rotating.look(person)
                if found.at_rest and shown == {serial(found.leaf)}:
                    return found
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"webhooks show {shown}, not {serial(found.leaf)}") from None


async def test_two_rotations_of_authority_and_leaf_under_load_fail_no_call(
    installed: Installed, person: Client, load: Load
) -> None:
    before = await settled(installed, person)

    async def rotate_twice() -> list[bytes]:
        return [await rotating.rotate(person), await rotating.rotate(person)]

    leaves = await load.during(rotate_twice())
    assert load.failed == []
    assert load.passed > 20
    assert len({serial(leaf) for leaf in (before.leaf, *leaves)}) == 3
    found = await rotating.look(person)
    assert await in_service(installed) == {serial(leaves[-1])}
    for bundle in (await read(person)).every:
        newest, *former = reading.certificates(bundle)
        assert newest == reading.certificate(found.authority.certificate_pem)
        assert reading.certificate(before.authority.certificate_pem) in former


def foreign() -> dict[str, bytes | None]:
    other = issue.issue_authority(SystemClock().now())
    return {"ca.crt": other.certificate_pem, "ca.key": other.key_pem}


def leaf_of(authority: issue.Authority, wanted: Names, made: datetime) -> dict[str, bytes | None]:
    leaf = issue.issue_leaf(authority, wanted, made)
    return {"tls.crt": leaf.certificate_pem, "tls.key": leaf.key_pem}


@pytest.mark.parametrize(
    ("fault", "alarm"),
    [
        ("none", ""),  # the first leaf of an authority is not there either
        ("garbage", "the leaf's certificate is not readable"),
        ("expired", "the leaf expired on"),
        ("wrong names", "the leaf is for other names than wanted"),
        ("foreign", "the leaf is not signed by the authority"),
    ],
)
async def test_a_spoilt_leaf_is_replaced_and_said_so(
    fault: str, alarm: str, installed: Installed, person: Client, load: Load
) -> None:
    before = await settled(installed, person)
    now = SystemClock().now()
    garbage: dict[str, bytes | None] = {"tls.crt": GARBAGE, "tls.key": b"?"}
    data = {
        "none": None,
        "garbage": garbage,
        "expired": leaf_of(before.authority, WANTED, now - timedelta(days=31)),
        "wrong names": leaf_of(before.authority, Names.of("elsewhere.svc"), now),
        "foreign": leaf_of(issue.issue_authority(now), WANTED, now),
    }[fault]
    await spoil(person, names.TLS_SECRET, data)
    spoilt = (data or {}).get("tls.crt", b"")

    def healed(found: Certificates) -> bool:
        return found.leaf not in {b"", before.leaf, spoilt}

    found = await until(person, healed, patience=30)
    assert found.authority == before.authority
    await settled(installed, person)
    await passes(load)
    if alarm:
        await until(person, lambda found: alarm in found.alarm)


async def passes(load: Load) -> None:
    """Wait until calls pass; they may not while an API server has yet to learn of a bundle."""
    async with asyncio.timeout(30):
        while not load.passed:
            await load.call()
            await asyncio.sleep(0.1)


@pytest.mark.parametrize(
    "fault",
    [
        "deleted",
        *(pytest.param(each, marks=pytest.mark.long) for each in ("emptied", "garbage", "foreign")),
    ],
)
async def test_a_lost_authority_is_replaced_while_calls_go_on(
    fault: str, installed: Installed, person: Client, load: Load
) -> None:
    """What the webhooks serve stays trusted until all of them serve what the new one signed."""
    before = await settled(installed, person)

    async def spoil_and_wait() -> Certificates:
        if fault == "deleted":
            for secret in (names.CA_SECRET, names.TLS_SECRET):
                await person.delete(SECRETS, secret, names.NAMESPACE)
        elif fault == "emptied":
            await spoil(person, names.CA_SECRET, None)
        elif fault == "garbage":
            await spoil(person, names.CA_SECRET, {"ca.crt": GARBAGE})
        else:
            await spoil(person, names.CA_SECRET, foreign())

        def healed(found: Certificates) -> bool:
            return found.at_rest and found.leaf != before.leaf

        return await until(person, healed)

    found = await load.during(spoil_and_wait())
    assert load.failed == []
    assert load.passed > 10
    assert found.authority != before.authority
    await until(person, lambda seen: seen.alarm not in ("", before.alarm))
    if fault == "deleted":
        home = installed.installation.layout.root / "helm"
        helm = Helm(installed.helm, installed.lab.kubeconfig, home)
        await helm.run("upgrade", "penstock", str(chart()), "--reuse-values")
        after = await rotating.look(person)
        assert (after.ca.data, after.tls.data) == (found.ca.data, found.tls.data)


async def test_a_bundle_that_was_cleared_is_filled_again(
    installed: Installed, person: Client, load: Load
) -> None:
    before = await settled(installed, person)
    patch = [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]
    await person.json_patch(MUTATING_WEBHOOKS, names.WEBHOOK_CONFIGURATION, patch)
    async with asyncio.timeout(30):
        while b"" in (await read(person)).every:
            await asyncio.sleep(0.05)
    await passes(load)
    assert (await until(person, lambda found: found.alarm != before.alarm)).leaf == before.leaf


@asynccontextmanager
async def shows_another_leaf(folder: Path) -> AsyncIterator[tuple[str, asyncio.Event]]:
    """A replica that has not taken the new leaf up; tells when it was asked."""
    other = issue.issue_leaf(
        issue.issue_authority(SystemClock().now()), WANTED, SystemClock().now()
    )
    (folder / "tls.crt").write_bytes(other.certificate_pem)
    (folder / "tls.key").write_bytes(other.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    asked = asyncio.Event()

    def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0, ssl=context)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()


async def test_the_former_authority_stays_until_every_replica_serves_the_new_leaf(
    installed: Installed, person: Client, tmp_path: Path
) -> None:
    before = await settled(installed, person)
    ready = installed.installation.layout.addresses.read_text()
    listed = tmp_path / "webhooks"
    async with shows_another_leaf(tmp_path) as (laggard, asked):
        listed.write_text(f"{ready}{laggard}\n")
        flags = ("--webhook-addresses", str(listed), "--trust-wait", "0.1", "--retire-after", "0")
        with hasty_gangs(installed.installation, *flags):
            rotation = asyncio.ensure_future(rotating.rotate(person))
            for _ in range(2):
                async with asyncio.timeout(30):
                    await asked.wait()
                asked.clear()
                assert (await rotating.look(person)).phase == "Serving"
            assert not rotation.done()
            former = reading.certificate(before.authority.certificate_pem)
            for bundle in (await read(person)).every:
                assert former in [*reading.certificates(bundle)]
            listed.write_text(ready)
            await rotation
            found = await until(person, lambda found: found.phase == "Steady")
    newest = found.authority.certificate_pem
    assert newest != before.authority.certificate_pem
    assert {*(await read(person)).every} == {newest}


async def test_gangs_may_list_where_the_replicas_are(installed: Installed, person: Client) -> None:
    slices = {
        "apiVersion": ENDPOINTSLICES.api_version,
        "kind": ENDPOINTSLICES.kind,
        "metadata": {
            "name": "certificates-test",
            "labels": {"kubernetes.io/service-name": names.WEBHOOK_SERVICE},
        },
        "addressType": "IPv4",
        "endpoints": [
            {"addresses": ["10.20.30.40"], "conditions": {"ready": True}},
            {"addresses": ["10.20.30.41"], "conditions": {"ready": False}},
        ],
        "ports": [{"name": "https", "port": 9443, "protocol": "TCP"}],
    }
    await person.create(ENDPOINTSLICES, slices, names.NAMESPACE)
    try:
        async with installed.acting(names.GANGS_ACCOUNT) as gangs:
            found = await ServiceReplicas(gangs, names.NAMESPACE).addresses()
    finally:
        await person.delete(ENDPOINTSLICES, "certificates-test", names.NAMESPACE)
    assert found == [("10.20.30.40", 9443)]


async def test_gangs_cannot_make_itself_a_token_of_another_account(installed: Installed) -> None:
    """Its right to create Secrets is for two names of one type; RBAC alone could not say so."""
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/service-account-token",
        "metadata": {
            "name": names.TLS_SECRET,
            "annotations": {"kubernetes.io/service-account.name": names.WORKLOADS_ACCOUNT},
        },
    }
    async with installed.acting(names.GANGS_ACCOUNT) as gangs:
        with pytest.raises(Forbidden, match="penstock-guard-secrets"):
            await gangs.create(SECRETS, body, names.NAMESPACE)


async def test_the_audit_logs_registration_is_given_our_authority(
    person: Client, space: str
) -> None:
    """With the rights that `gangs` has by the chart; nobody need answer behind it."""
    service: JsonObject = {"name": "nobody", "namespace": space}
    body: JsonObject = {
        "apiVersion": API_SERVICES.api_version,
        "kind": API_SERVICES.kind,
        "metadata": {"name": names.AUDIT_SERVICE},
        "spec": {
            "group": "audit.penstock.dev",
            "version": "v1alpha1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "service": service,
        },
    }
    await person.create(API_SERVICES, body)
    try:
        async with asyncio.timeout(20):
            while True:
                text = await person.raw_get(API_SERVICES.path(None, names.AUDIT_SERVICE))
                found = base64.b64decode(msgspec.json.decode(text)["spec"].get("caBundle", ""))
                if found in (await read(person)).every:
                    break
                await asyncio.sleep(0.1)
    finally:
        await person.delete(API_SERVICES, names.AUDIT_SERVICE)
    assert (await rotating.look(person)).authority.certificate_pem in found

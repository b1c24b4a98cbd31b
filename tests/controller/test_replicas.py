import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from api import names
from api.jsons import JsonObject
from certs import issue
from controller.gangs import replicas
from controller.gangs.replicas import ListedReplicas, ServiceReplicas
from tests.support import fakeapi
from tests.support.ports import free_port
from tests.support.talking import talking

LEAF = issue.issue_leaf(
    issue.issue_authority(datetime(2031, 5, 6, tzinfo=UTC)),
    issue.Names.of("webhook.svc"),
    datetime(2031, 5, 6, tzinfo=UTC),
)
DER = x509.load_pem_x509_certificate(LEAF.certificate_pem).public_bytes(Encoding.DER)


@asynccontextmanager
async def server(folder: Path, *, tls: bool = True) -> AsyncIterator[replicas.Address]:
    """Shows the leaf, whoever asks; or takes connections and says nothing."""
    (folder / "tls.crt").write_bytes(LEAF.certificate_pem)
    (folder / "tls.key").write_bytes(LEAF.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    listening = await asyncio.start_server(
        lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context if tls else None
    )
    try:
        host, port = listening.sockets[0].getsockname()[:2]
        yield host, port
    finally:
        listening.close()


async def test_each_replica_is_asked_for_the_certificate_it_shows(tmp_path: Path) -> None:
    """Not one of them is trusted: the certificate is of long ago and for another name."""
    async with server(tmp_path) as one, server(tmp_path) as other:
        assert await replicas.served([one, other]) == (DER, DER)


async def test_one_that_does_not_answer_or_speaks_no_tls_shows_nothing(tmp_path: Path) -> None:
    async with server(tmp_path) as good, server(tmp_path, tls=False) as mute:
        found = await replicas.served([("127.0.0.1", free_port()), good, mute])
    assert found == (b"", DER, b"")


async def test_nobody_to_ask_is_no_fault() -> None:
    assert await replicas.served([]) == ()


async def test_a_file_lists_replicas_and_is_read_anew_each_time(tmp_path: Path) -> None:
    path = tmp_path / "webhooks"
    listed = ListedReplicas(path)
    path.write_text("127.0.0.1:8443\n[::1]:9443\nwebhook\n")
    assert await listed.addresses() == [("127.0.0.1", 8443), ("::1", 9443)]
    path.write_text("")
    assert await listed.addresses() == []


async def test_a_file_that_is_not_there_is_not_taken_for_no_replicas(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await ListedReplicas(tmp_path / "none").addresses()


async def test_in_a_cluster_they_are_the_ready_endpoints_of_the_service() -> None:
    first: JsonObject = {
        "endpoints": [
            {"addresses": ["10.0.0.1"], "conditions": {"ready": True}},
            {"addresses": ["10.0.0.2"], "conditions": {"ready": False}},
            {"addresses": ["10.0.0.3"], "conditions": {}},
        ],
        "ports": [{"port": 9443}],
    }
    second: JsonObject = {
        "endpoints": [{"addresses": ["10.0.0.1"]}, {"addresses": ["fd00::1"]}],
        "ports": [{"port": 9443}],
    }
    empty: JsonObject = {"endpoints": None, "ports": None}
    async with talking() as t:
        t.api.answers.append(
            fakeapi.json({"metadata": {"resourceVersion": "1"}, "items": [first, second, empty]})
        )
        found = await ServiceReplicas(t.client, "ours").addresses()
        (seen,) = t.api.seen
    assert found == [("10.0.0.1", 9443), ("10.0.0.3", 9443), ("fd00::1", 9443)]
    assert seen.path == "/apis/discovery.k8s.io/v1/namespaces/ours/endpointslices"
    label = f"kubernetes.io/service-name={names.WEBHOOK_SERVICE}"
    assert seen.query["labelSelector"] == label

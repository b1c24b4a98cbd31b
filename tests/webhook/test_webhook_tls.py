import logging
import shutil
import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from certs.issue import Leaf, Names, issue_authority, issue_leaf
from kube.clock import SystemClock
from tests.webhook.running import Files, files_in
from webhook import tls
from webhook.tls import Contexts, Missing


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return files_in(tmp_path / "tls")


def contexts_of(files: Files) -> Contexts:
    return Contexts(files.folder, ssl.SSLSocket)


def shown_by(context: ssl.SSLContext | Missing, files: Files) -> bytes:
    """The PEM of the leaf that a server with this context shows."""
    assert isinstance(context, ssl.SSLContext), context
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(to_server, to_client, server_side=True)
    client = files.client().wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    shown = client.getpeercert(binary_form=True)
    assert shown
    return ssl.DER_cert_to_PEM_cert(shown).encode()


def first(leaf: Leaf) -> bytes:
    return leaf.certificate_pem[: leaf.certificate_pem.index(b"-----END") + 26]


def test_the_same_files_give_the_same_context(files: Files) -> None:
    files.issue()
    contexts = contexts_of(files)
    assert contexts.current() is contexts.current()


def test_swapped_files_are_shown_at_once(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    contexts = contexts_of(files)
    old = files.issue()
    assert shown_by(contexts.current(), files) == first(old)
    with caplog.at_level(logging.INFO):
        new = files.issue()
        assert shown_by(contexts.current(), files) == first(new)
    assert caplog.messages == [f"serving the new certificate in {files.folder}"]


def test_files_without_a_link_are_followed_too(files: Files) -> None:
    contexts = contexts_of(files)
    for _ in range(2):
        leaf = issue_leaf(files.authority, Names.of("127.0.0.1"), SystemClock().now())
        (files.folder / "tls.crt").write_bytes(leaf.certificate_pem)
        (files.folder / "tls.key").write_bytes(leaf.key_pem)
        assert shown_by(contexts.current(), files) == first(leaf)


@pytest.mark.parametrize("fault", ["garbage", "foreign key", "gone", "encrypted"])
def test_a_bad_pair_leaves_the_old_one_in_use_and_is_said_once(
    fault: str, files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    contexts = contexts_of(files)
    old = files.issue()
    kept = contexts.current()
    foreign = issue_leaf(issue_authority(SystemClock().now()), Names.of("x"), SystemClock().now())
    match fault:
        case "garbage":
            files.swap(b"?", old.key_pem)
        case "foreign key":
            files.swap(old.certificate_pem, foreign.key_pem)
        case "gone":
            shutil.rmtree(files.folder)
        case _:
            files.swap(old.certificate_pem, locked(old.key_pem))
    with caplog.at_level(logging.INFO):
        assert contexts.current() is kept
        assert contexts.current() is kept
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("keeping the certificate in use: ")
    assert str(files.folder / "tls.crt") in caplog.messages[0]


def locked(key_pem: bytes) -> bytes:
    return serialization.load_pem_private_key(key_pem, None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )


def test_a_good_pair_after_a_bad_one_is_taken(files: Files) -> None:
    contexts = contexts_of(files)
    files.issue()
    contexts.current()
    files.swap(b"?", b"?")
    contexts.current()
    new = files.issue()
    assert shown_by(contexts.current(), files) == first(new)


def test_only_tls_1_3_is_spoken(files: Files) -> None:
    files.issue()
    context = contexts_of(files).current()
    assert isinstance(context, ssl.SSLContext)
    assert context.minimum_version is ssl.TLSVersion.TLSv1_3


def test_waiting_says_every_ten_seconds_what_for(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    naps: list[float] = []
    with caplog.at_level(logging.INFO):
        missing = tls.wait(contexts_of(files), files.folder, 25.0, naps.append)
    assert isinstance(missing, Missing)
    assert missing.reason == f"{files.folder / 'tls.crt'} is not there"
    assert sum(naps) == pytest.approx(25.0, abs=0.2)
    assert len(caplog.messages) == 3
    assert set(caplog.messages) == {
        f"waiting for a certificate in {files.folder}: {files.folder / 'tls.crt'} is not there"
    }


def test_waiting_ends_as_soon_as_the_files_are_there(files: Files) -> None:
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            files.issue()

    assert tls.wait(contexts_of(files), files.folder, 25.0, nap) is None
    assert len(naps) == 3


def test_files_that_are_there_are_taken_without_any_waiting(files: Files) -> None:
    files.issue()
    naps: list[float] = []
    assert tls.wait(contexts_of(files), files.folder, 0.0, naps.append) is None
    assert naps == []

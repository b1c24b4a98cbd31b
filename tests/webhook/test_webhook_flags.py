"""The webhook as a process: what its flags demand of clients, policy and API server."""

import re
import ssl
from pathlib import Path

import orjson
import pytest
import yaml

from api import exits
from certs.issue import Names, issue_authority, issue_leaf
from tests.support.clientpair import client_pair
from tests.webhook.running import (
    CLOCK,
    HOST,
    JSON,
    REVIEW,
    VALIDATE,
    Files,
    Running,
    files_in,
    ready,
    review,
    serving,
    started,
    until,
)

TOKEN = {"token": "t"}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = files_in(tmp_path / "tls")
    made.issue()
    return made


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def only_line(log: Path) -> str:
    (line,) = log.read_text().splitlines()
    return line


def page(running: Running, path: str) -> tuple[int, str]:
    connection = running.connect()
    try:
        connection.request("GET", path)
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
    finally:
        connection.close()


def asked_by(running: Running, pair: Path | None) -> int:
    """Ask for a review with this client certificate; the status of the reply."""
    connection = running.connect()
    context = running.files.client()
    if pair is not None:
        context.load_cert_chain(pair)
    connection._context = context  # type: ignore[attr-defined]  # as a client would be made
    try:
        connection.request("POST", VALIDATE, REVIEW, JSON)
        return connection.getresponse().status
    finally:
        connection.close()


def test_reviews_are_for_the_named_client_and_probes_for_everybody(
    files: Files, log: Path, tmp_path: Path
) -> None:
    clients, others = issue_authority(CLOCK.now()), issue_authority(CLOCK.now())
    (tmp_path / "client-ca.crt").write_bytes(clients.certificate_pem)
    named = client_pair(clients, "kube-apiserver", tmp_path)
    stranger = client_pair(clients, "somebody", tmp_path)
    flags = ("--client-ca", str(tmp_path / "client-ca.crt"), "--client-name", "kube-apiserver")
    with serving(files, log, *flags, "--client-name", "other-apiserver") as running:
        assert asked_by(running, named) == 200
        assert asked_by(running, stranger) == 403
        assert asked_by(running, None) == 403
        for path in ("/healthz", "/readyz", "/metrics"):
            assert running.get(path) == 200
        foreign = client_pair(others, "kube-apiserver", tmp_path)
        with pytest.raises((ssl.SSLError, OSError)):
            asked_by(running, foreign)
        _, metrics = page(running, "/metrics")
        assert "penstock_webhook_tls_handshake_failures_total 1.0" in metrics
        turned_away = f'penstock_webhook_rejected_total{{code="403",path="{VALIDATE}"}} 2.0'
        assert turned_away in metrics
        # The authority is followed like the certificate.
        (tmp_path / "client-ca.crt").write_bytes(others.certificate_pem)
        assert asked_by(running, foreign) == 200
    assert "Traceback" not in log.read_text()


def test_a_client_authority_that_is_none_ends_it_with_one_line(
    files: Files, log: Path, tmp_path: Path
) -> None:
    (tmp_path / "ca").write_text("no certificate")
    flags = ("--client-ca", str(tmp_path / "ca"), "--client-name", "a", "--tls-wait", "0")
    with started(files, log, "--port", "0", *flags) as running:
        assert running.ended() == exits.NO_CERTIFICATE
    assert f"{tmp_path / 'ca'} is no certificate authority" in log.read_text().splitlines()[-1]


def test_tls_1_2_is_spoken_where_it_is_asked_for(files: Files, log: Path) -> None:
    with serving(files, log, "--tls-min", "1.2") as running:
        old = files.client()
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with running.plain() as plain, old.wrap_socket(plain, server_hostname=HOST) as secure:
            assert secure.version() == "TLSv1.2"
        with running.secure() as secure:
            assert secure.version() == "TLSv1.3"


def test_it_goes_by_the_policy_in_the_file(files: Files, log: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("pods: {queue: batch}\n")
    with serving(files, log, "--policy-file", str(policy)) as running:
        _, metrics = page(running, "/metrics")
        form = r'penstock_webhook_policy_info\{revision="[0-9a-f]{12}",source="(.*)"\} 1\.0'
        found = re.search(form, metrics)
        assert found
        assert found[1] == str(policy)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"pods:\n  queeu: a\n", "line 2: pods.queeu: there is no such key"),
        (b"pods: &a {}\n", "line 1: anchors and aliases"),
        (b"#" * (256 * 1024 + 1), "larger than 256 KiB"),
        (b"\xff\xff", "it is not text"),
        (None, "No such file or directory"),
    ],
)
def test_a_bad_policy_ends_it_with_one_line(
    text: bytes | None, told: str, files: Files, log: Path, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.yaml"
    if text is not None:
        policy.write_bytes(text)
    with started(files, log, "--port", "0", "--policy-file", str(policy)) as running:
        assert running.ended() == exits.BAD_POLICY
    assert f"policy {policy}: " in only_line(log)
    assert told in only_line(log)


def kubeconfig(folder: Path, server: str, **user: str) -> Path:
    path = folder / "kubeconfig"
    document = {
        "clusters": [{"name": "k", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "current-context": "c",
    }
    path.write_text(yaml.safe_dump(document))
    return path


def test_no_api_server_ends_it_with_one_line(files: Files, log: Path, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "http://127.0.0.1:1", **TOKEN)
    flags = ("--port", "0", "--kubeconfig", str(path), "--wait", "0")
    with started(files, log, *flags) as running:
        assert running.ended() == exits.NO_API_SERVER
    assert "no API server at http://127.0.0.1:1: " in only_line(log)


@pytest.mark.parametrize(
    ("user", "told"),
    [
        ({}, "user 'u' has neither token nor tokenFile"),
        ({"tokenFile": "nowhere"}, "there is no such file"),
        ({"client-certificate": "x"}, "client-certificate is not taken here"),
    ],
)
def test_bad_credentials_end_it_with_one_line(
    user: dict[str, str], told: str, files: Files, log: Path, tmp_path: Path
) -> None:
    path = kubeconfig(tmp_path, "http://127.0.0.1:1", **user)
    with started(files, log, "--port", "0", "--kubeconfig", str(path)) as running:
        assert running.ended() == exits.BAD_CREDENTIALS
    assert told in only_line(log)


def test_it_can_be_stopped_while_it_waits_for_the_api_server(
    files: Files, log: Path, tmp_path: Path
) -> None:
    path = kubeconfig(tmp_path, "http://127.0.0.1:1", **TOKEN)
    flags = ("--port", "0", "--kubeconfig", str(path), "--wait", "60", "--log-level", "debug")
    with started(files, log, *flags) as running:
        until(lambda: "asking the API server at" in running.written(), "asking")
        running.terminate()
        assert running.ended() == exits.OK
    assert "Traceback" not in log.read_text()


def test_metrics_tell_of_reviews_and_certificate(files: Files, log: Path) -> None:
    with serving(files, log) as running:
        connection = running.connect()
        review(connection)
        connection.close()
        status, metrics = page(running, "/metrics")
        assert status == 200
        labels = f'decision="allow",dry_run="false",operation="DELETE",path="{VALIDATE}"'
        assert f"penstock_webhook_requests_total{{{labels}}} 1.0" in metrics
        assert "penstock_webhook_caches_synced 1.0" in metrics
        expiry = re.search(
            r"penstock_webhook_certificate_expiry_timestamp_seconds ([\d.e+]+)", metrics
        )
        assert expiry
        days = (float(expiry[1]) - CLOCK.now().timestamp()) / 86_400
        assert 29 < days <= 30
        for line in metrics.splitlines():
            assert line.startswith(("# ", "penstock_webhook_", "process_"))


def test_a_certificate_that_has_ended_makes_it_unready_and_no_more(files: Files, log: Path) -> None:
    old = CLOCK.now().replace(year=CLOCK.now().year - 1)
    leaf = issue_leaf(files.authority, Names.of(HOST), old)
    with serving(files, log) as running:
        blind = ssl.create_default_context()
        blind.check_hostname, blind.verify_mode = False, ssl.CERT_NONE
        files.swap(leaf.certificate_pem, leaf.key_pem)

        def answer(path: str) -> tuple[int, str]:
            connection = running.connect()
            connection._context = blind  # type: ignore[attr-defined]
            connection.request("GET", path)
            reply = connection.getresponse()
            found = reply.status, reply.read().decode()
            connection.close()
            return found

        until(lambda: answer("/readyz")[0] == 503, "unready")
        assert "the certificate has ended at " in answer("/readyz")[1]
        assert answer("/healthz")[0] == 200
        files.issue()
        until(lambda: ready(running), "ready again")


def test_time_spent_waiting_for_a_thread_counts_towards_the_deadline(
    files: Files, log: Path
) -> None:
    with serving(files, log, "--threads", "1") as running:
        hog, waiting = running.secure(), running.connect()
        # Both are greeted and waited for by now, this one first.
        hog.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert hog.recv(1000).startswith(b"HTTP/1.1 200")
        review(waiting)
        head = f"POST {VALIDATE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        # The only thread waits for the rest of this body, until patience ends.
        hog.sendall(f"{head}Content-Length: 1000\r\n\r\n".encode() + REVIEW[:10])
        waiting.request("POST", f"{VALIDATE}?timeout=2s", REVIEW, JSON)
        response = orjson.loads(waiting.getresponse().read())["response"]
        waiting.close()
        hog.close()
        assert not response["allowed"]
        assert response["status"]["code"] == 503
        _, metrics = page(running, "/metrics")
        assert f'penstock_webhook_shed_total{{path="{VALIDATE}"}} 1.0' in metrics

import base64
import ssl
import sys
from pathlib import Path

import msgspec
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kube import accounts, credentials, kubeconfig
from kube.access import Credentials
from kube.clock import SystemClock
from kube.errors import BadCredentials
from tests.support.manualclock import START, ManualClock


class Pair:
    """A self-signed certificate and its key, in PEM."""

    def __init__(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(1)
            .not_valid_before(START)
            .not_valid_after(START.replace(year=2050))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM)
        self.key = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


@pytest.fixture(scope="module")
def pair() -> Pair:
    return Pair()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


Section = dict[str, object]


def write(
    path: Path,
    user: Section | None,
    cluster: Section | None = None,
    context: str = "c",
    *,
    current: str | None = "c",
) -> Path:
    config: Section = {
        "clusters": [
            {"name": "k", "cluster": {"server": "http://127.0.0.1:1/", **(cluster or {})}}
        ],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": context, "context": {"cluster": "k", "user": "u"}}],
    }
    if current is not None:
        config["current-context"] = current
    path.write_text(yaml.safe_dump(config))
    return path


def load(path: Path | None, context: str | None = None, **environ: str) -> Credentials:
    return credentials.load(path, context, ManualClock(), environ)


async def header(loaded: Credentials) -> str | None:
    return await loaded.tokens.authorization()


async def test_inline_certificates_make_a_tls_context_and_leave_no_key_behind(
    tmp_path: Path, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    path = write(
        tmp_path / "config",
        {"client-certificate-data": b64(pair.certificate), "client-key-data": b64(pair.key)},
        {"server": "https://127.0.0.1:6443", "certificate-authority-data": b64(pair.certificate)},
    )
    loaded = load(path)
    assert loaded.server == "https://127.0.0.1:6443"
    assert loaded.ssl_context is not None
    assert loaded.ssl_context.verify_mode is ssl.CERT_REQUIRED
    assert loaded.ssl_context.cert_store_stats()["x509_ca"] == 1
    assert await header(loaded) is None
    assert list(scratch.iterdir()) == []
    # The library remembers the files it made; a second load must not trip over their absence.
    assert load(path).ssl_context is not None


async def test_files_are_found_beside_the_kubeconfig(tmp_path: Path, pair: Pair) -> None:
    (tmp_path / "ca.pem").write_bytes(pair.certificate)
    (tmp_path / "me.pem").write_bytes(pair.certificate)
    (tmp_path / "me.key").write_bytes(pair.key)
    (tmp_path / "token").write_text("from-file")
    user: Section = {"client-certificate": "me.pem", "client-key": "me.key", "tokenFile": "token"}
    cluster: Section = {
        "server": "https://127.0.0.1:6443",
        "certificate-authority": "ca.pem",
        "tls-server-name": "kubernetes",
        "proxy-url": "http://127.0.0.1:3128",
    }
    loaded = load(write(tmp_path / "config", user, cluster))
    assert loaded.server_name == "kubernetes"
    assert loaded.proxy == "http://127.0.0.1:3128"
    assert await header(loaded) == "Bearer from-file"


async def test_verification_is_left_out_only_where_the_file_says_so(tmp_path: Path) -> None:
    cluster: Section = {"server": "https://127.0.0.1:6443", "insecure-skip-tls-verify": True}
    loaded = load(write(tmp_path / "config", {}, cluster))
    assert loaded.ssl_context is not None
    assert loaded.ssl_context.verify_mode is ssl.CERT_NONE


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"token": "abc"}, "Bearer abc"),
        ({"username": "me", "password": "pw"}, "Basic " + b64(b"me:pw")),
        ({}, None),
        (None, None),
    ],
)
async def test_each_plain_way_to_say_who_we_are(
    tmp_path: Path, user: Section | None, expected: str | None
) -> None:
    loaded = load(write(tmp_path / "config", user))
    assert await header(loaded) == expected
    assert loaded.server == "http://127.0.0.1:1"
    assert loaded.ssl_context is None


async def test_a_token_file_wins_over_a_token_and_is_followed(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one")
    loaded = load(write(tmp_path / "config", {"token": "inline", "tokenFile": str(token)}))
    assert await header(loaded) == "Bearer one"
    token.write_text("two")
    assert loaded.tokens.refused()
    assert await header(loaded) == "Bearer two"


def plugin(folder: Path, status: Section) -> Section:
    """Write an exec plugin that counts its runs and prints this status."""
    answer = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": status,
    }
    script = folder / "plugin.py"
    script.write_text(
        "import pathlib\n"
        f"runs = pathlib.Path({str(folder / 'runs')!r})\n"
        "runs.write_text((runs.read_text() if runs.exists() else '') + 'x')\n"
        f"print({msgspec.json.encode(answer).decode()!r})\n"
    )
    return {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(script)],
        "env": [{"name": "A", "value": "b"}],
        "interactiveMode": "Never",
    }


async def test_an_exec_plugin_gives_a_token_that_is_renewed_when_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "config", {"exec": plugin(tmp_path, {"token": "t"})})
    loaded = credentials.load(path, None, SystemClock(), {})
    assert await header(loaded) == "Bearer t"
    assert (tmp_path / "runs").read_text() == "x"
    assert loaded.tokens.refused()
    assert await header(loaded) == "Bearer t"
    assert (tmp_path / "runs").read_text() == "xx"


async def test_an_exec_plugin_may_give_a_certificate(tmp_path: Path, pair: Pair) -> None:
    status: Section = {
        "clientCertificateData": pair.certificate.decode(),
        "clientKeyData": pair.key.decode(),
    }
    cluster: Section = {"server": "https://127.0.0.1:6443"}
    loaded = load(write(tmp_path / "config", {"exec": plugin(tmp_path, status)}, cluster))
    assert loaded.ssl_context is not None
    assert await header(loaded) is None


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ({}, "neither a token nor a client certificate"),
        ({"token": 5}, "Expected `str"),
        ({"token": "t", "expirationTimestamp": "soon"}, "Invalid RFC3339"),
    ],
)
def test_an_exec_plugin_that_gives_nothing_of_use_is_named(
    tmp_path: Path, status: Section, problem: str
) -> None:
    path = write(tmp_path / "config", {"exec": plugin(tmp_path, status)})
    with pytest.raises(BadCredentials, match=r"the exec plugin of user 'u'") as caught:
        load(path)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    "exec_config",
    [
        {"command": "/no/such/plugin", "apiVersion": "client.authentication.k8s.io/v1"},
        {"command": "false", "apiVersion": "client.authentication.k8s.io/v1"},
        {"command": "echo", "apiVersion": "client.authentication.k8s.io/v1"},
        {"apiVersion": "client.authentication.k8s.io/v1"},
        "not an object",
    ],
)
def test_an_exec_plugin_that_cannot_run_is_one_clear_line(
    tmp_path: Path, exec_config: object
) -> None:
    path = write(tmp_path / "config", {"exec": exec_config})
    with pytest.raises(BadCredentials, match=r"the exec plugin of user 'u'") as caught:
        load(path)
    assert "\n" not in str(caught.value)


def complaint(path: Path | None, context: str | None = None, **environ: str) -> str:
    with pytest.raises(BadCredentials) as caught:
        load(path, context, **environ)
    line = str(caught.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a: [", "it is not YAML: "),
        ("", "it is not a kubeconfig: "),
        ("just text", "it is not a kubeconfig: "),
        ("clusters: {}", "it is not a kubeconfig: Expected `array | null`, got `object`"),
        ("users: [{user: {}}]", "it is not a kubeconfig: "),
        ("current-context: gone", "no context 'gone' (it has none)"),
        ("clusters: []", "it names no current-context; give one with --context"),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_named_with_its_fault(
    tmp_path: Path, content: str, problem: str
) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    line = complaint(path)
    assert line.startswith(f"kubeconfig {path}: ")
    assert problem in line


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    assert complaint(tmp_path / "x") == f"kubeconfig {tmp_path / 'x'}: there is no such file"
    assert "cannot be read: Is a directory" in complaint(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert "it is not text" in complaint(tmp_path / "binary")


def test_a_context_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    path = write(tmp_path / "config", {})
    assert "no context 'other' (it has 'c')" in complaint(path, "other")


@pytest.mark.parametrize(
    ("drop", "problem"),
    [
        ("clusters", "context 'c' names the absent cluster 'k' (it has none)"),
        ("users", "context 'c' names the absent user 'u' (it has none)"),
    ],
)
def test_a_context_that_points_nowhere_is_told(tmp_path: Path, drop: str, problem: str) -> None:
    path = write(tmp_path / "config", {})
    config = yaml.safe_load(path.read_text())
    config[drop] = None
    path.write_text(yaml.safe_dump(config))
    assert problem in complaint(path)


@pytest.mark.parametrize("server", [None, "", "127.0.0.1:6443", 5])
def test_a_server_that_is_no_url_is_told(tmp_path: Path, server: object) -> None:
    path = write(tmp_path / "config", {}, {"server": server})
    assert "the cluster's server is no URL" in complaint(path)


@pytest.mark.parametrize(
    ("user", "cluster", "problem"),
    [
        ({}, {"certificate-authority": "/no/ca.pem"}, "File does not exist: /no/ca.pem"),
        ({}, {"certificate-authority-data": b64(b"x")}, "the certificate authority cannot be used"),
        ({}, {"certificate-authority-data": "abc"}, "Incorrect padding"),
        ({"client-certificate": "/no/me.pem"}, {}, "File does not exist: /no/me.pem"),
        (
            {"client-certificate-data": b64(b"x"), "client-key-data": b64(b"y")},
            {},
            "the client certificate and key cannot be used",
        ),
        ({"tokenFile": "/no/token"}, {}, "token file /no/token: there is no such file"),
        ({"token": {"a": 1}}, {}, "the token of user 'u' is no text"),
    ],
)
def test_unusable_parts_of_a_kubeconfig_are_one_clear_line(
    tmp_path: Path, user: Section, cluster: Section, problem: str
) -> None:
    path = write(tmp_path / "config", user, {"server": "https://127.0.0.1:6443", **cluster})
    assert problem in complaint(path)


def test_a_key_that_is_not_the_certificates_is_told(tmp_path: Path, pair: Pair) -> None:
    user: Section = {
        "client-certificate-data": b64(pair.certificate),
        "client-key-data": b64(Pair().key),
    }
    path = write(tmp_path / "config", user, {"server": "https://127.0.0.1:6443"})
    assert "the client certificate and key cannot be used" in complaint(path)


async def test_of_several_files_the_first_mention_counts(tmp_path: Path) -> None:
    first = write(tmp_path / "first", {"token": "one"}, current=None)
    other = tmp_path / "folder"
    other.mkdir()
    second = write(other / "second", {"token": "two"}, context="d", current="d")
    listed = f"{first}:{tmp_path / 'absent'}:{second}"
    loaded = load(None, KUBECONFIG=listed)
    assert await header(loaded) == "Bearer one"
    assert kubeconfig.default_files({"KUBECONFIG": listed}) == [first, second]
    assert kubeconfig.default_files({"KUBECONFIG": "/x:/y"}) == [Path("/x")]


def test_without_anything_kubectls_own_place_is_used(tmp_path: Path) -> None:
    assert complaint(None, HOME=str(tmp_path)).startswith(
        f"kubeconfig {tmp_path}/.kube/config: there is no such file"
    )
    missing = tmp_path / "x"
    assert str(missing) in complaint(None, KUBECONFIG=str(missing))


POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


async def test_inside_a_pod_its_service_account_is_used_and_followed(
    tmp_path: Path, pair: Pair
) -> None:
    (tmp_path / "ca.crt").write_bytes(pair.certificate)
    (tmp_path / "token").write_text("one\n")
    clock = ManualClock()
    loaded = accounts.in_cluster(tmp_path, clock, POD)
    assert loaded.server == "https://10.0.0.1:443"
    assert loaded.ssl_context is not None
    assert await header(loaded) == "Bearer one"
    (tmp_path / "token").write_text("two\n")
    await clock.advance(60)
    assert await header(loaded) == "Bearer two"


def test_a_pod_without_a_mount_says_where_it_looked(tmp_path: Path, pair: Pair) -> None:
    assert str(accounts.SERVICE_ACCOUNT_MOUNT) in complaint(None, **POD)
    with pytest.raises(BadCredentials, match="there is no such file"):
        accounts.in_cluster(tmp_path, ManualClock(), POD)
    (tmp_path / "token").write_text("one")
    (tmp_path / "ca.crt").write_bytes(b"no certificate")
    with pytest.raises(BadCredentials, match="the certificate authority cannot be used"):
        accounts.in_cluster(tmp_path, ManualClock(), POD)


def test_a_context_asked_for_by_name_is_never_the_pods(tmp_path: Path) -> None:
    path = write(tmp_path / "config", {})
    assert load(None, "c", KUBECONFIG=str(path), **POD).server == "http://127.0.0.1:1"

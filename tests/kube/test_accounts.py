import base64
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from certs.issue import issue_authority
from kube import accounts, kubeconfig
from kube.access import Credentials
from kube.errors import BadCredentials
from tests.support.manualclock import START, ManualClock

Section = dict[str, object]


@pytest.fixture(scope="module")
def authority() -> bytes:
    return issue_authority(START).certificate_pem


def write(path: Path, user: Section, **cluster: object) -> Path:
    server: Section = {"server": "https://127.0.0.1:6443/", **cluster}
    config = {
        "clusters": [{"name": "k", "cluster": server}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "current-context": "c",
    }
    path.write_text(yaml.safe_dump(config))
    return path


def load(path: Path | None, **environ: str) -> Credentials:
    return accounts.load(path, ManualClock(), environ)


def complaint(path: Path | None, **environ: str) -> str:
    with pytest.raises(BadCredentials) as caught:
        load(path, **environ)
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def test_a_token_file_and_a_ca_inside_are_all_it_takes(
    tmp_path: Path, authority: bytes
) -> None:
    (tmp_path / "token").write_text("one\n")
    data = base64.b64encode(authority).decode()
    path = write(
        tmp_path / "config",
        {"tokenFile": "token"},
        **{"certificate-authority-data": data, "tls-server-name": "kubernetes"},
    )
    found = load(path)
    assert (found.server, found.server_name) == ("https://127.0.0.1:6443", "kubernetes")
    assert found.ssl_context is not None
    assert len(found.ssl_context.get_ca_certs()) == 1
    assert await found.tokens.authorization() == "Bearer one"
    # It is followed, as kubelet renews it.
    (tmp_path / "token").write_text("two")
    assert found.tokens.refused()
    assert await found.tokens.authorization() == "Bearer two"


async def test_a_ca_in_a_file_and_a_token_inside_will_do(tmp_path: Path, authority: bytes) -> None:
    (tmp_path / "ca.crt").write_bytes(authority)
    path = write(tmp_path / "config", {"token": "t"}, **{"certificate-authority": "ca.crt"})
    found = load(path)
    assert await found.tokens.authorization() == "Bearer t"
    assert not found.tokens.refused()


def test_plain_http_needs_no_ca(tmp_path: Path) -> None:
    path = write(tmp_path / "config", {"token": "t"}, server="http://127.0.0.1:1")
    assert load(path).ssl_context is None


@pytest.mark.parametrize(
    ("user", "cluster", "told"),
    [
        ({}, {}, "user 'u' has neither token nor tokenFile"),
        ({"client-certificate": "x"}, {}, "client-certificate is not taken here"),
        ({"exec": {}}, {}, "exec is not taken here"),
        ({"token": "t"}, {"insecure-skip-tls-verify": True}, "insecure-skip-tls-verify is not"),
        ({"token": "t"}, {"server": "nowhere"}, "the cluster's server is no URL: 'nowhere'"),
        (
            {"token": "t"},
            {"certificate-authority": "x"},
            "the certificate authority cannot be read",
        ),
        ({"token": "t"}, {"certificate-authority-data": "?"}, "cannot be read"),
        ({"token": "t"}, {"certificate-authority-data": "eA=="}, "cannot be used"),
        ({"tokenFile": "nowhere"}, {}, "there is no such file"),
    ],
)
def test_what_a_service_account_does_not_have_is_refused_by_name(
    user: Section, cluster: Section, told: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "config", user, **cluster)
    line = complaint(path)
    assert told in line
    assert str(tmp_path) in line


def test_neither_a_pod_nor_a_kubeconfig_says_what_to_give() -> None:
    assert "--kubeconfig" in complaint(None)


async def test_a_pods_own_account_is_taken_where_no_kubeconfig_is_named(
    tmp_path: Path, authority: bytes
) -> None:
    (tmp_path / "token").write_text("one")
    (tmp_path / "ca.crt").write_bytes(authority)
    environ = {accounts.HOST: "fd00::1", accounts.PORT: "443"}
    found = accounts.in_cluster(tmp_path, ManualClock(), environ)
    assert found.server == "https://[fd00::1]:443"
    assert str(accounts.SERVICE_ACCOUNT_MOUNT) in complaint(None, **environ)


def test_a_pod_that_is_told_half_of_the_address_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadCredentials, match="KUBERNETES_SERVICE_PORT are not both set"):
        accounts.in_cluster(tmp_path, ManualClock(), {accounts.HOST: "10.0.0.1"})


def test_for_a_token_the_kubernetes_package_is_not_loaded(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib\n"
        "from kube import clock, credentials\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "found = credentials.load(path, None, clock.SystemClock(), {})\n"
        "print(found.server, 'kubernetes' in sys.modules)"
    )
    path = write(tmp_path / "config", {"token": "t"}, server="http://127.0.0.1:1")
    done = subprocess.run(
        [sys.executable, "-c", program, path], env={}, capture_output=True, check=True, text=True
    )
    assert done.stdout.strip() == "http://127.0.0.1:1 False"


@pytest.mark.parametrize(
    ("user", "cluster", "enough"),
    [
        ({"token": "t"}, {}, True),
        ({"tokenFile": "t"}, {"tls-server-name": "k", "extensions": []}, True),
        ({}, {}, False),
        ({"token": {"a": 1}}, {}, False),
        ({"token": "t", "client-certificate": "x"}, {}, False),
        ({"token": "t"}, {"insecure-skip-tls-verify": True}, False),
    ],
)
def test_a_token_and_a_server_are_read_here_and_nothing_else(
    user: Section, cluster: Section, *, enough: bool, tmp_path: Path
) -> None:
    path = write(tmp_path / "config", user, **cluster)
    assert accounts.suffices(kubeconfig.choose([path], None)) is enough

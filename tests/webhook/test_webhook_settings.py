import socket
import ssl
from pathlib import Path

import pytest

from api import exits
from api.features import Features
from webhook import settings
from webhook.tls import Terms


def test_flags_become_settings_with_defaults() -> None:
    parsed = settings.parse(["--tls-dir", "/tls", "--port", "0", "--drain-seconds", "0.5"])
    assert parsed == settings.Settings(
        host="0.0.0.0",  # noqa: S104
        port=0,
        tls_dir=Path("/tls"),
        tls_wait=60.0,
        tls_min="1.3",
        client_ca=None,
        client_name=(),
        kubeconfig=None,
        no_cluster=False,
        namespace="penstock-system",
        wait=30.0,
        policy_file=None,
        threads=16,
        drain_seconds=0.5,
        metrics_address=None,
        log_level="info",
        log_format="text",
        traces_endpoint=None,
        feature_gates=Features(),
        companion=False,
        audit_dir=None,
        audit_stdout=False,
        audit_key=None,
        audit_mib=200,
        audit_admitted=False,
        audit_replica=socket.gethostname(),
        audit_port=None,
        audit_peer=(),
        audit_client_ca=None,
        audit_client_name=(),
    )


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "--tls-dir"),
        (["--port", "65536"], "--port: must be a number from 0 to 65535, got '65536'"),
        (["--port", "-1"], "--port"),
        (["--port", "https"], "--port"),
        (["--port", "²"], "--port"),
        (["--threads", "0"], "--threads: must be a number from 1 to 256"),
        (["--tls-wait", "-1"], "--tls-wait: must be seconds from 0 to 3600, got '-1'"),
        (["--tls-wait", "nan"], "--tls-wait"),
        (["--drain-seconds", "inf"], "--drain-seconds"),
        (["--drain-seconds", "soon"], "--drain-seconds"),
        (["--log-level", "loud"], "--log-level"),
        (["--tls-min", "1.1"], "--tls-min"),
        (["--client-ca", "ca.crt"], "--client-ca and --client-name go together"),
        (["--client-name", "kube-apiserver"], "--client-ca and --client-name go together"),
        (["--audit-port", "1"], "--audit-port serves what is in --audit-dir"),
        (["--audit-peer", "9443"], "--audit-peer: must be HOST:PORT"),
        (["--audit-peer", "a:1", "--audit-dir", "x"], "--audit-peer needs --audit-key"),
        (["--audit-client-ca", "x"], "--audit-client-ca and --audit-client-name go together"),
        (
            ["--audit-client-ca", "/nowhere", "--audit-client-name", "x"],
            "--audit-client-ca /nowhere is not there",
        ),
        (["--audit-mib", "0"], "--audit-mib"),
        (["--kubeconfig", "x", "--no-cluster"], "--no-cluster: not allowed with"),
        (["--wait", "never"], "--wait"),
        (["--tls"], "--tls"),
        (["--colour"], "--colour"),
        (
            ["--feature-gates", "GangSchedule=false"],
            "there is no feature gate 'GangSchedule', only GangScheduling and GroveIntegration",
        ),
        (["--feature-gates", "GangScheduling=no"], "is not GangScheduling=true or"),
        (["--feature-gates", "GroveIntegration"], "is not GroveIntegration=true or"),
    ],
)
def test_a_bad_flag_ends_with_one_line_that_names_it(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--tls-dir", "tls", *arguments] if arguments else []
    with pytest.raises(SystemExit) as ended:
        settings.parse(given)
    written = capsys.readouterr().err
    assert ended.value.code == exits.BAD_SETTINGS
    assert named in written
    assert written.count("\n") == 1


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        settings.parse(["--help"])
    assert ended.value.code == exits.OK
    assert "python -m webhook --port 9443 --tls-dir" in capsys.readouterr().out


def test_clients_may_have_several_names_and_older_tls() -> None:
    flags = ["--client-ca", "ca.crt", "--client-name", "a", "--client-name", "b"]
    parsed = settings.parse(["--tls-dir", "/tls", "--tls-min", "1.2", *flags])
    assert parsed.client_name == ("a", "b")
    assert settings.terms(parsed) == Terms(ssl.TLSVersion.TLSv1_2, Path("ca.crt"))

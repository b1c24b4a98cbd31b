"""Flags into one frozen Settings, checked before anything starts."""

import argparse
import math
import socket
import ssl
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from typing_extensions import override

from api import exits, features, names
from api.features import Features
from kube import logs, tracing
from kube.exposing import Address
from webhook.tls import Terms

LONGEST: Final = 3600
LEVELS: Final = ("debug", "info", "warning", "error")

EXAMPLES: Final = """\
examples:
  python -m webhook --port 9443 --tls-dir /etc/penstock/tls
  python -m webhook --kubeconfig webhook.kubeconfig --tls-dir ./tls --policy-file policy.yaml
  python -m webhook --no-cluster --host 127.0.0.1 --port 0 --tls-dir ./tls --log-level debug

--tls-dir must hold tls.crt (the certificate, with its chain) and tls.key. They may be replaced at
any time, best all at once by swapping a link as kubelet does; new connections get the new ones.
"""


@dataclass(frozen=True)
class Settings:
    """How to serve. Durations are seconds."""

    host: str
    port: int
    tls_dir: Path
    tls_wait: float
    tls_min: str
    client_ca: Path | None
    client_name: tuple[str, ...]
    kubeconfig: Path | None
    no_cluster: bool
    namespace: str
    wait: float
    policy_file: Path | None
    threads: int
    drain_seconds: float
    metrics_address: Address | None
    log_level: str
    log_format: str
    traces_endpoint: str | None
    feature_gates: Features
    companion: bool
    audit_dir: Path | None
    audit_stdout: bool
    audit_key: Path | None
    audit_mib: int
    audit_admitted: bool
    audit_replica: str
    audit_port: int | None
    audit_peer: tuple[tuple[str, int], ...]
    audit_client_ca: Path | None
    audit_client_name: tuple[str, ...]


class _Parser(argparse.ArgumentParser):
    """A parser that ends with one line instead of the whole usage."""

    @override
    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{self.prog}: {message} (see --help)\n")
        raise SystemExit(exits.BAD_SETTINGS)


def parse(arguments: Sequence[str]) -> Settings:
    """Read the flags; ends the process with one line and BAD_SETTINGS if they make no sense."""
    parser = _Parser(
        prog="python -m webhook",
        description="Answer admission reviews over HTTPS: check PodCliqueSets, gate gangs' pods.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_serving(parser)
    _add_tls(parser)
    _add_cluster(parser)
    _add_switches(parser)
    _add_audit(parser)
    _add_audit_api(parser)
    given = parser.parse_args(arguments)
    if bool(given.client_ca) != bool(given.client_name):
        parser.error(
            "--client-ca and --client-name go together: an authority vouches for many clients"
        )
    _see_to_audit(parser, given)
    several = ("client_name", "audit_client_name", "audit_peer")
    return Settings(**{**vars(given), **{name: tuple(getattr(given, name)) for name in several}})


def _see_to_audit(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    if given.audit_port is not None and given.audit_dir is None:
        parser.error("--audit-port serves what is in --audit-dir: give that too")
    if given.audit_peer and given.audit_key is None:
        parser.error(
            "--audit-peer needs --audit-key: replicas know each other by the key they share"
        )
    if bool(given.audit_client_ca) != bool(given.audit_client_name):
        parser.error("--audit-client-ca and --audit-client-name go together")
    if given.audit_client_ca is not None and not given.audit_client_ca.is_file():
        parser.error(f"--audit-client-ca {given.audit_client_ca} is not there")


def _add_serving(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="0.0.0.0", help="address to serve on (%(default)s)")  # noqa: S104 - a pod is called from outside
    parser.add_argument(
        "--port", type=_port, default=9443, help="port; 0 takes a free one (%(default)s)"
    )
    parser.add_argument(
        "--threads", type=_threads, default=16, help="connections attended to at once (%(default)s)"
    )
    parser.add_argument(
        "--drain-seconds",
        type=_seconds,
        default=5.0,
        help="seconds to go on serving, unready, after SIGTERM (%(default)g)",
    )
    parser.add_argument(
        "--metrics-address",
        type=_exposed,
        metavar="HOST:PORT",
        help="serve /metrics there too, over plain HTTP; port 0 takes a free one "
        "(default: nowhere else)",
    )
    parser.add_argument("--log-level", choices=LEVELS, default="info", help="(%(default)s)")
    logs.add(parser)
    tracing.add(parser)


def _add_tls(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tls-dir", type=Path, required=True, help="directory with tls.crt and tls.key"
    )
    parser.add_argument(
        "--tls-wait",
        type=_seconds,
        default=60.0,
        help="seconds to wait for these files at the start (%(default)g)",
    )
    parser.add_argument(
        "--tls-min", choices=("1.2", "1.3"), default="1.3", help="oldest TLS spoken (%(default)s)"
    )
    parser.add_argument(
        "--client-ca",
        type=Path,
        metavar="FILE",
        help="answer reviews only to clients with a certificate of this authority",
    )
    parser.add_argument(
        "--client-name",
        action="append",
        default=[],
        metavar="NAME",
        help="and of this name, such as the API server's; may be repeated",
    )


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    access = parser.add_mutually_exclusive_group()
    access.add_argument(
        "--kubeconfig",
        type=Path,
        help="how to reach the cluster, by token or tokenFile (default: the pod's own account)",
    )
    access.add_argument(
        "--no-cluster", action="store_true", help="ask no API server: know nothing of any cluster"
    )
    parser.add_argument(
        "--namespace",
        default=names.NAMESPACE,
        help="where Penstock's own objects are (%(default)s)",
    )
    parser.add_argument(
        "--wait",
        type=_seconds,
        default=30.0,
        help="seconds to wait for an API server at the start (%(default)g)",
    )
    parser.add_argument(
        "--policy-file",
        type=Path,
        metavar="FILE",
        help=f"the policy, instead of the ConfigMap {names.POLICY_CONFIG}",
    )


def _add_switches(parser: argparse.ArgumentParser) -> None:
    features.add(parser)
    parser.add_argument(
        "--companion",
        action="store_true",
        help="another controller makes the gangs and pods of sets, such as Grove's operator",
    )


def _add_audit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--audit-dir", type=Path, metavar="DIR", help="keep the audit log in files in this folder"
    )
    parser.add_argument(
        "--audit-stdout", action="store_true", help="write the audit log to standard output"
    )
    parser.add_argument(
        "--audit-key",
        type=Path,
        metavar="FILE",
        help="at least 32 random bytes that all replicas share, to sign the log and for its tags "
        "(default: made for this process)",
    )
    parser.add_argument(
        "--audit-mib",
        type=_mebibytes,
        default=200,
        metavar="MIB",
        help="how much --audit-dir may hold; the oldest goes (%(default)s)",
    )
    parser.add_argument(
        "--audit-admitted",
        action="store_true",
        help="have records of what was let in without a word, too",
    )
    parser.add_argument(
        "--audit-replica",
        default=socket.gethostname(),
        metavar="NAME",
        help="what this replica is called in the log (default: the host's name)",
    )


def _add_audit_api(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--audit-port", type=_port, help="serve the audit log to API servers; 0 takes a free one"
    )
    parser.add_argument(
        "--audit-peer",
        type=_address,
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="where other replicas serve theirs; a name may stand for all, and this one among them",
    )
    parser.add_argument(
        "--audit-client-ca",
        type=Path,
        metavar="FILE",
        help="by which authority API servers are known that pass on what is asked "
        "(default: what the cluster says of its front proxy)",
    )
    parser.add_argument(
        "--audit-client-name",
        action="append",
        default=[],
        metavar="NAME",
        help="and by which name; may be repeated",
    )


def terms(settings: Settings) -> Terms:
    """Give what is asked of clients' TLS."""
    oldest = ssl.TLSVersion.TLSv1_2 if settings.tls_min == "1.2" else ssl.TLSVersion.TLSv1_3
    return Terms(oldest, settings.client_ca)


def _port(text: str) -> int:
    return _whole(text, 0, 65535)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host:
        raise argparse.ArgumentTypeError(f"must be HOST:PORT, got {text!r}")
    return host, _port(port)


def _exposed(text: str) -> Address:
    host, port = _address(text)
    return Address(host.removeprefix("[").removesuffix("]"), port)


def _threads(text: str) -> int:
    return _whole(text, 1, 256)


def _mebibytes(text: str) -> int:
    return _whole(text, 1, 1_000_000)


def _whole(text: str, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
        raise argparse.ArgumentTypeError(f"must be a number from {low} to {high}, got {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= LONGEST:
        raise argparse.ArgumentTypeError(f"must be seconds from 0 to {LONGEST}, got {text!r}")
    return seconds

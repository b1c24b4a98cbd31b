"""What a controller is told at its start: flags into one frozen value, checked before all else."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from api import features, names
from api.features import Features
from kube import logs, tracing
from kube.exposing import Address
from kube.lease import LeaseSettings

_LEVELS = ("debug", "info", "warning", "error")
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*")


@dataclass(frozen=True)
class Settings:
    """What both controllers are told."""

    kubeconfig: Path | None
    context: str | None
    namespace: str
    wait_seconds: float
    lease: LeaseSettings
    log_level: str
    features: Features
    metrics: Address | None = None
    log_format: str = "text"
    traces: str | None = None


def parser(program: str, about: str, example: str) -> argparse.ArgumentParser:
    """Make the parser of the flags that both controllers have."""
    made = argparse.ArgumentParser(
        prog=f"python -m {program}",
        description=about,
        epilog=f"example: python -m {program} {example}",
        allow_abbrev=False,
    )
    made.add_argument(
        "--kubeconfig", type=Path, help="how to reach the cluster (default: the pod's own account)"
    )
    made.add_argument("--context", help="which context of the kubeconfig to use")
    made.add_argument(
        "--namespace", default=names.NAMESPACE, help="where Penstock's own objects are"
    )
    made.add_argument(
        "--wait",
        type=_seconds,
        default=30.0,
        metavar="SECONDS",
        help="how long to wait for an API server at the start (default: 30)",
    )
    made.add_argument(
        "--lease",
        type=_seconds,
        default=15.0,
        metavar="SECONDS",
        help="how long a leader that died keeps others waiting (default: 15)",
    )
    made.add_argument(
        "--metrics-address",
        type=_address,
        metavar="HOST:PORT",
        help="serve /metrics there over plain HTTP; port 0 takes a free one (default: nowhere)",
    )
    made.add_argument("--log-level", choices=_LEVELS, default="info")
    logs.add(made)
    tracing.add(made)
    features.add(made)
    return made


def read(options: argparse.Namespace) -> Settings:
    """Turn parsed flags into settings."""
    lease: float = options.lease
    return Settings(
        options.kubeconfig,
        options.context,
        options.namespace,
        options.wait,
        # The proportions client-go uses: 15, 10 and 2 seconds.
        LeaseSettings(lease, lease * 2 / 3, lease * 2 / 15),
        options.log_level,
        options.feature_gates,
        options.metrics_address,
        options.log_format,
        options.traces_endpoint,
    )


def parse(made: argparse.ArgumentParser, arguments: Sequence[str]) -> Settings:
    """Read the command line; a mistake ends the process with the usage and the fault."""
    return read(made.parse_args(arguments))


def host(text: str) -> str:
    """Check a name or address that a certificate is to be for."""
    try:
        return str(ip_address(text))
    except ValueError:
        pass
    if not _HOST.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a DNS name nor an IP address (without scheme or port)"
        )
    return text


def _address(text: str) -> Address:
    name, _, port = text.rpartition(":")
    if not name or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT, as in 127.0.0.1:9090")
    return Address(host(name.removeprefix("[").removesuffix("]")), int(port))


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value

"""The flags that only `gangs` has, into frozen values."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from api import names
from certs.rotation import Waits
from controller import settings
from controller.gangs.replicas import ListedReplicas, Replicas, ServiceReplicas
from controller.gangs.rotating import Care
from kube.client import Client

OURS: Final = "penstock"
CERT_MANAGER: Final = "cert-manager"
LONGEST: Final = 30 * 86_400.0  # a leaf lives no longer


@dataclass(frozen=True)
class Leave:
    """Somebody else keeps the certificates."""


@dataclass(frozen=True)
class Keep:
    """We keep them; `care_with` gives the rest once there is a client."""

    namespace: str
    hosts: tuple[str, ...]
    addresses: Path | None
    waits: Waits

    def care_with(self, client: Client) -> Care:
        """Say what is to be kept, and where the replicas are found."""
        found: Replicas = ServiceReplicas(client, self.namespace)
        if self.addresses is not None:
            found = ListedReplicas(self.addresses)
        return Care(self.namespace, self.hosts, found, self.waits)


Certificates = Leave | Keep


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "--certificates",
        choices=(OURS, CERT_MANAGER),
        default=OURS,
        help="who issues the webhook's certificate (default: penstock)",
    )
    parser.add_argument(
        "--webhook-host",
        type=settings.host,
        action="append",
        metavar="NAME",
        help="a further name or address the webhook is called by; may be given several times",
    )
    parser.add_argument(
        "--webhook-addresses",
        type=Path,
        metavar="FILE",
        help="where webhooks outside the cluster answer, one host:port a line; read at every look "
        "(default: the endpoints of the webhook's Service)",
    )
    parser.add_argument(
        "--trust-wait",
        type=_seconds(LONGEST),
        default=Waits().trust.total_seconds(),
        metavar="SECONDS",
        help="how long API servers get to learn of a new authority (default: 60)",
    )
    parser.add_argument(
        "--retire-after",
        type=_seconds(LONGEST),
        default=Waits().retire.total_seconds(),
        metavar="SECONDS",
        help="how long a former authority stays trusted (default: 86400, a day)",
    )
    parser.add_argument(
        "--scheduler",
        action="append",
        metavar="NAME",
        help="a scheduler whose labelled pods become gangs, as in the policy's schedulers; may be "
        "given several times (default: default-scheduler)",
    )
    parser.add_argument(
        "--companion",
        action="store_true",
        help="another controller makes the gangs and pods of sets, such as Grove's operator: of "
        "its PodGangs only conditions of ours are written, and its startup order is its own",
    )
    parser.add_argument(
        "--gang-timeout",
        type=_seconds(LONGEST),
        default=0.0,
        metavar="SECONDS",
        help="how long gangs that say nothing of it may wait to be bound before the room they have "
        "is given back for a while (default: 0, for ever)",
    )
    parser.add_argument(
        "--record-refusals",
        type=Path,
        metavar="FOLDER",
        help="keep in this folder what the engine saw when it last refused a gang, at most once a "
        "minute, for `python -m scheduler plan` (default: nothing is kept)",
    )


def companion(options: argparse.Namespace) -> bool:
    """Say whether another controller makes the gangs and pods of sets."""
    found: bool = options.companion
    return found


def schedulers(options: argparse.Namespace) -> tuple[str, ...]:
    """Name the schedulers whose labelled pods are gangs of ours."""
    found: list[str] = options.scheduler or [names.DEFAULT_SCHEDULER]
    return tuple(found)


def records(options: argparse.Namespace) -> Path | None:
    """Give the folder in which refusals are kept, if any."""
    found: Path | None = options.record_refusals
    return found


def gang_timeout(options: argparse.Namespace) -> timedelta:
    """Give how long gangs may wait that say nothing of it; nothing means for ever."""
    return timedelta(seconds=options.gang_timeout)


def read(options: argparse.Namespace) -> Certificates:
    """Turn parsed flags into who keeps the certificates, and how."""
    if options.certificates == CERT_MANAGER:
        return Leave()
    waits = Waits(timedelta(seconds=options.trust_wait), timedelta(seconds=options.retire_after))
    hosts: list[str] = options.webhook_host or []
    return Keep(options.namespace, tuple(hosts), options.webhook_addresses, waits)


def _seconds(longest: float) -> Callable[[str], float]:
    def read_seconds(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value <= longest:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a number of seconds from 0 to {longest:.0f}"
            )
        return value

    return read_seconds

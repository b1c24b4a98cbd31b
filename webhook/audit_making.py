"""The audit log of a webhook, put together from its settings."""

import os
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from api import exits
from certs import seals
from certs.seals import Signer
from kube.access import Credentials
from kube.clock import Clock
from kube.startup import StartupFailure
from webhook.audit_files import Files, Room
from webhook.audit_ledger import Ledger, Scribe
from webhook.audit_metrics import AuditMetrics
from webhook.background import Duty
from webhook.journal import Choices, Journal
from webhook.settings import Settings
from webhook.telling import Herald

STOP_SECONDS: Final = 5.0
"""How long the end of the process waits for the log's last lines."""


@dataclass(frozen=True)
class Auditing:
    """A log, and what is to run beside it."""

    journal: Journal
    duty: Duty | None


def secret_of(settings: Settings) -> bytes:
    """Read the key, or make one for this process; raises StartupFailure with the line to end with.

    A webhook may not read Secrets, so the key comes as a file, like its certificate.
    """
    path = settings.audit_key
    if path is None:
        return secrets.token_bytes(seals.SHORTEST_SECRET)
    try:
        found = path.read_bytes()
    except OSError as error:
        line = f"--audit-key {path} cannot be read: {error.strerror}"
        raise StartupFailure(exits.BAD_SETTINGS, line) from error
    if len(found) < seals.SHORTEST_SECRET:
        line = f"--audit-key {path} is too short: it must hold {seals.SHORTEST_SECRET} bytes"
        raise StartupFailure(exits.BAD_SETTINGS, line)
    return found


def make(
    settings: Settings,
    secret: bytes,
    metrics: AuditMetrics,
    clock: Clock,
    credentials: Credentials | None,
) -> Auditing | None:
    """Make the log that was asked for; None if none was."""
    if settings.audit_dir is None and not settings.audit_stdout:
        return None
    scribe = Scribe(settings.audit_replica, secrets.token_hex(8), Signer.of(secret), clock.now)
    files = None
    if settings.audit_dir is not None:
        files = Files(settings.audit_dir, Room.of(settings.audit_mib))
    ledger = Ledger(scribe, files, _to_stdout() if settings.audit_stdout else None)
    herald = Herald(metrics, clock) if credentials is not None else None
    choices = Choices(
        settings.audit_replica, seals.tag_key(secret), admitted=settings.audit_admitted
    )
    journal = Journal(ledger, choices, metrics, clock, herald)
    if herald is None or credentials is None:
        return Auditing(journal, None)
    return Auditing(journal, lambda: herald.run(credentials))


def _to_stdout() -> Callable[[bytes], None]:
    def write(text: bytes) -> None:
        left = memoryview(text)
        while left:
            left = left[os.write(sys.stdout.fileno(), left) :]

    return write

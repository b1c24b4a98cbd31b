"""The audit log of a webhook, put together from its settings."""

import logging
import os
import secrets
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from api import exits
from certs import seals
from certs.seals import Signer
from kube.access import Credentials
from kube.clock import Clock
from kube.startup import StartupFailure
from webhook.audit_callers import FrontProxy, Peers
from webhook.audit_files import Files, Room
from webhook.audit_ledger import Ledger, Scribe
from webhook.audit_metrics import AuditMetrics
from webhook.audit_serving import AuditServer, Door, Gate, Service
from webhook.background import Duty
from webhook.journal import Choices, Journal
from webhook.settings import Settings
from webhook.telling import Herald

LOG: Final = logging.getLogger(__name__)

STOP_SECONDS: Final = 10.0
"""How long the end of the process waits for the log's last lines."""


@dataclass
class Auditing:
    """A log, and what runs beside it."""

    journal: Journal
    duties: Sequence[Duty] = ()
    door: Door | None = None
    gate: Gate | None = None
    _service: Service | None = None

    def start(self) -> None:
        """Begin to write, and to serve what is written."""
        self.journal.start()
        if self.door is None or self.gate is None:
            return
        try:
            self._service = Service(AuditServer(self.door, self.gate))
        except OSError as error:
            # Reviews go on; nobody can read the log this way.
            LOG.error("the audit log cannot be served at %s: %s", self.door.address, error)  # noqa: TRY400 - the error says it all
        else:
            self._service.start()

    def stop(self) -> None:
        """Write the last lines, and end all of it."""
        if self._service is not None:
            self._service.stop()
        self.journal.stop(STOP_SECONDS)


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
    duties: list[Duty] = []
    herald = Herald(metrics, clock) if credentials is not None else None
    if herald is not None and credentials is not None:
        duties.append(partial(herald.run, credentials))
    choices = Choices(
        settings.audit_replica, seals.tag_key(secret), admitted=settings.audit_admitted
    )
    journal = Journal(ledger, choices, metrics, clock, herald)
    if settings.audit_port is None or settings.audit_dir is None:
        return Auditing(journal, duties)
    door = Door(
        (settings.host, settings.audit_port),
        settings.tls_dir,
        settings.audit_dir,
        settings.audit_replica,
        settings.audit_peer,
    )
    gate = Gate(door, Peers(Signer.of(secret), lambda: clock.now().timestamp()))
    if settings.audit_client_ca is not None:
        gate.admit(FrontProxy(settings.audit_client_ca.read_text(), settings.audit_client_name))
    elif credentials is not None:
        duties.append(partial(gate.follow, credentials, clock, metrics.calls))
    return Auditing(journal, duties, door, gate)


def _to_stdout() -> Callable[[bytes], None]:
    def write(text: bytes) -> None:
        left = memoryview(text)
        while left:
            left = left[os.write(sys.stdout.fileno(), left) :]

    return write

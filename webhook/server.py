"""The process: a listening socket, a certificate, and gunicorn around both."""

import asyncio
import errno
import gc
import logging
import math
import os
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from flask import Flask
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger
from typing_extensions import override

from api import names
from kube import logs
from kube.clock import Clock
from kube.exposing import serving_on
from kube.tracing import Exporter, exporting
from policies.known import NOTHING
from policies.switching import Switches
from webhook import audit_making, peers, serving, tls, tracing
from webhook.answering import Answering
from webhook.audit_metrics import AuditMetrics
from webhook.background import Background
from webhook.beginning import Foundation
from webhook.governing import Governing
from webhook.knowledge import Knowledge
from webhook.metrics import Metrics
from webhook.routes import PATHS
from webhook.selfcheck import SelfCheck
from webhook.serving import Desk
from webhook.settings import Settings
from webhook.shadowing import Shadow
from webhook.worker import AdmissionWorker

BACKLOG: Final = 1024
# Kept below the 1024 files a process may have open on many systems.
CONNECTIONS: Final = 512
# Seconds a connection may idle. Longer than the 90 after which API servers drop one, since a
# request that meets a connection closed by us is lost.
KEEPALIVE: Final = 120
# After draining: what a slow request may take to arrive, to be answered, and to be read.
AFTER_DRAINING: Final = 15
# How many more objects there are before garbage is looked for. Reviews leave none in cycles, while
# a set alone has so many objects that Python would look several times as it is read.
YOUNG: Final = 50_000
MEMORY_FILES: Final = Path("/dev/shm")  # noqa: S108 - gunicorn makes and unlinks a private file


@dataclass(frozen=True)
class CannotListen:
    """The address is not to be had; `taken` if somebody else has it."""

    reason: str
    taken: bool


def bind(host: str, port: int) -> socket.socket | CannotListen:
    """Take the address without serving on it yet: there may be no certificate to show."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        return CannotListen(
            f"--host {host} is not an address of this machine: {error}", taken=False
        )
    listener = socket.socket(family, kind)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        return _cannot(host, port, error)
    return listener


def listen(listener: socket.socket) -> CannotListen | None:
    """Start to take connections; they wait in line until a worker runs."""
    try:
        listener.listen(BACKLOG)
    except OSError as error:
        host, port = listener.getsockname()[:2]
        listener.close()
        return _cannot(host, port, error)
    return None


def _cannot(host: str, port: int, error: OSError) -> CannotListen:
    if error.errno == errno.EADDRINUSE:
        return CannotListen(f"port {port} of {host} is taken; choose another --port", taken=True)
    return CannotListen(f"cannot serve on {host} port {port}: {error.strerror}", taken=False)


class Server(BaseApplication):  # type: ignore[misc]  # gunicorn publishes no types
    """gunicorn with one worker process, set up for API servers as its clients."""

    def __init__(
        self,
        settings: Settings,
        listener: socket.socket,
        contexts: tls.Contexts,
        foundation: Foundation,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._address = listener.getsockname()[:2]
        self._descriptor = listener.detach()
        self._contexts = contexts
        self._check = SelfCheck(self._address, contexts, clock)
        self._background = Background([])
        self._metrics = Metrics(PATHS)
        self._exposed: socket.socket | None = None
        self._answering: Answering | None = None
        self._exporter: Exporter | None = None
        audit_metrics = AuditMetrics(self._metrics.registry)
        self._metrics.calls.add(audit_metrics.calls)
        self._auditing = audit_making.make(
            settings,
            foundation.audit_secret,
            audit_metrics,
            clock,
            foundation.credentials,
        )
        self._governing = Governing(foundation.source, settings.namespace, self._metrics)
        self._knowledge = _knowledge_of(foundation, settings, clock, self._heard)
        known = self._knowledge or NOTHING
        self._shadow = Shadow(known, settings.namespace, self._metrics, clock.monotonic)
        # Plain, not an Event: it is set in a signal handler, where a lock may deadlock.
        self._draining = False
        self.clock = clock.monotonic
        self._now = clock.now
        self.drain_seconds = settings.drain_seconds
        super().__init__()

    def expose(self, listener: socket.socket) -> None:
        """Serve metrics there too. There is one worker, so what it counted is all there is."""
        self._exposed = listener

    @override
    def load_config(self) -> None:
        """Hand our choices to gunicorn; no file, flag or variable of its own is read."""
        settings = self._settings
        memory = MEMORY_FILES if os.access(MEMORY_FILES, os.W_OK) else None
        choices: dict[str, object] = {
            "bind": f"fd://{self._descriptor}",
            "workers": 1,
            "threads": settings.threads,
            "worker_class": AdmissionWorker,
            "worker_connections": max(CONNECTIONS, 2 * settings.threads),
            "worker_tmp_dir": str(memory) if memory else None,
            "keepalive": KEEPALIVE,
            "timeout": 30,
            "graceful_timeout": math.ceil(settings.drain_seconds) + AFTER_DRAINING,
            "preload_app": True,
            "control_socket_disable": True,
            "proc_name": "penstock-webhook",
            # Nobody stands before us whose word about path and scheme would count.
            "forwarded_allow_ips": "",
            "forwarder_headers": "",
            "loglevel": settings.log_level,
            "logger_class": PlainLog,
            # These make gunicorn say https; the contexts are ours.
            "certfile": str(settings.tls_dir / tls.CERTIFICATE),
            "keyfile": str(settings.tls_dir / tls.KEY),
        }
        for name, value in choices.items():
            self.cfg.set(name, value)

    @override
    def load(self) -> Flask:
        """Make the WSGI application."""
        known, policy = self._knowledge or NOTHING, self._governing.policy
        switches = Switches(self._settings.feature_gates, self._settings.companion)
        answering = Answering(policy, known, self._metrics, self.clock, self._now, switches)
        answering.try_beside(self._shadow)
        self._answering = answering
        if self._auditing is not None:
            answering.tell(self._auditing.journal.note)
        app = serving.make_app(Desk(answering, self._unready, self._written_metrics))
        # What is there now stays: looking through it for garbage would make some reviews wait for
        # tens of milliseconds, and make copies of memory that worker and master share.
        gc.collect()
        gc.freeze()
        return app

    def start_working(self) -> None:
        """Begin to follow the cluster and to look after ourselves, in the worker's process."""
        gc.set_threshold(YOUNG)
        duties = [self._check.run]
        if self._exposed is not None:
            duties.append(partial(self._serve_metrics, self._exposed))
        if self._knowledge is not None:
            self._metrics.calls.add(self._knowledge.calls)
            duties.append(self._knowledge.run)
        if self._auditing is not None:
            self._auditing.start()
            duties += self._auditing.duties
        self._background = Background(duties)
        self._background.start()
        self._shadow.start()

        if self._settings.traces_endpoint and self._answering is not None:
            # Here and not before: its thread would not come along into the worker's process.
            self._exporter = exporting(self._settings.traces_endpoint, "webhook")
            note = self._auditing.journal.note if self._auditing is not None else None
            self._answering.tell(tracing.hearing(self._exporter.record, self._now, note))

    def stop_working(self) -> None:
        """End all of it again; the last lines of the audit log are written first."""
        if self._exporter is not None:
            self._exporter.close()
        self._shadow.stop()
        if self._auditing is not None:
            self._auditing.stop()
        self._background.stop()

    def _heard(self, data: Mapping[str, str] | None) -> None:
        """Take what the policy's ConfigMap says now."""
        said = data or {}
        self._governing.take(said.get(names.POLICY_KEY))
        self._shadow.take(said.get(names.CANDIDATE_KEY))

    def is_stranger(self, connection: ssl.SSLSocket) -> bool:
        """Tell whether this client has yet to show who it is."""
        expected = self._settings.client_name
        return bool(expected) and not peers.is_one_of(expected, connection)

    def note_failed_handshake(self) -> None:
        """Count a client that could not agree with us on TLS."""
        self._metrics.handshake_failures.inc()

    def _unready(self) -> tuple[str, ...]:
        reasons = ["draining"] if self._draining else []
        if self._knowledge is not None and not self._knowledge.synced:
            reasons.append("the first lists from the API server have not arrived")
        return (*reasons, *self._check.reasons())

    def _written_metrics(self) -> bytes:
        metrics, validity = self._metrics, self._check.validity
        metrics.synced.set(self._knowledge is None or self._knowledge.synced)
        if validity is not None:
            metrics.certificate_expiry.set(validity.until.timestamp())
        return metrics.written()

    async def _serve_metrics(self, listener: socket.socket) -> None:
        # A copy, since what is served on is closed in the end and may be asked for again.
        async with serving_on(listener.dup(), self._written_metrics):
            await asyncio.get_running_loop().create_future()

    def context(self) -> ssl.SSLContext:
        """Give the TLS context for a connection that begins now."""
        found = self._contexts.current()
        if isinstance(found, tls.Missing):
            raise ConnectionError(found.reason)
        return found

    def start_draining(self) -> None:
        """Take the readiness away."""
        self._draining = True


def _knowledge_of(
    foundation: Foundation,
    settings: Settings,
    clock: Clock,
    heard: Callable[[Mapping[str, str] | None], None],
) -> Knowledge | None:
    if foundation.credentials is None:
        return None
    rng = Random()  # noqa: S311 - jitter, not secrets
    # A file is read once: who gives one wants no other.
    on_policy = heard if settings.policy_file is None else None
    needed = not settings.companion
    return Knowledge(
        foundation.credentials, settings.namespace, clock, rng, on_policy, needed=needed
    )


class PlainLog(Logger):  # type: ignore[misc]  # gunicorn publishes no types
    """gunicorn's log, written as ours is: a line that looks otherwise would be read by nobody."""

    @override
    def setup(self, cfg: object) -> None:
        """Leave the writing to our own handler."""
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


def configure_logging(settings: Settings) -> None:
    """Write our log as gunicorn writes its own."""
    text = logging.Formatter(
        "%(asctime)s [%(process)d] [%(levelname)s] %(message)s", "[%Y-%m-%d %H:%M:%S %z]"
    )
    logs.configure(settings.log_format, settings.log_level, "webhook", text)

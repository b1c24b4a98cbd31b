"""A controller as a process: start-up checks, election, signals, and an end in one line.

What may go wrong at the start is said in one line on stderr; the codes are in `api.exits`. Later a
controller sits out an API server's absence; one that lasts beyond the lease ends a leader, since by
then another may lead, and whoever runs the process starts it again.
"""

import asyncio
import gc
import logging
import os
import random
import signal
import socket
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from api import exits
from controller.exposing import Metrics
from controller.settings import Settings
from kube import credentials, logs
from kube.client import Client
from kube.clock import Clock, SystemClock
from kube.errors import ApiError, BadCredentials, Forbidden, NotFound, Unauthorized
from kube.exposing import serving
from kube.lease import Elector, LostLease
from kube.leasebox import ClusterLease
from kube.resources import Resource
from kube.startup import StartupFailure, preflight
from kube.tracing import Record, exporting

# How many objects come before Python looks for cycles among the new ones. What a plan or a list of
# pods is made of has none, and with Python's own 700 a decision would wait for it again and again.
YOUNG: Final = 50_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Surroundings:
    """What a controller works with."""

    settings: Settings
    client: Client
    clock: Clock
    rng: random.Random
    elector: Elector
    metrics: Metrics
    record: Record | None = None
    """Takes spans, where somebody listens to traces."""


@dataclass(frozen=True)
class Component:
    """One controller: what it is called, what it needs served, and what it does.

    `work` starts caches at once, so that a standby is warm, and writes only once it leads.
    """

    name: str
    lease: str
    kinds: tuple[Resource, ...]
    work: Callable[[Surroundings], Awaitable[None]]


def main(component: Component, settings: Settings) -> int:
    """Run the controller until it is told to stop; returns the exit code."""
    text = logging.Formatter(f"%(asctime)s %(levelname)-7s {component.name} %(name)s: %(message)s")
    logs.configure(settings.log_format, settings.log_level, component.name, text)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    gc.set_threshold(YOUNG)
    try:
        asyncio.run(_run(component, settings))
    except BaseExceptionGroup as group:
        return _end(component, settings, _first(group))
    except (StartupFailure, LostLease, ApiError) as error:
        return _end(component, settings, error)
    return exits.OK


def _end(component: Component, settings: Settings, error: BaseException) -> int:
    code, line = _verdict(error)
    if code == exits.UNEXPECTED:
        _log.error("stopped by an unexpected error", exc_info=error)
    logs.last_words(settings.log_format, component.name, line)
    return code


def _verdict(error: BaseException) -> tuple[int, str]:
    match error:
        case StartupFailure():
            return error.exit_code, error.line
        case LostLease():
            return exits.LOST_LEASE, f"no longer the leader: {error}"
        case BadCredentials() | Unauthorized() | Forbidden():
            return exits.BAD_CREDENTIALS, str(error)
        case NotFound():
            return exits.MISSING_KIND, str(error)
        case ApiError():
            return exits.NO_API_SERVER, str(error)
        case _:
            return exits.UNEXPECTED, f"{type(error).__name__}: {error}"


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Give the failure that came first; the others are its siblings being cancelled."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _run(component: Component, settings: Settings) -> None:
    """Work until done or told to stop, which may be said at any time from here on."""
    working = asyncio.ensure_future(_work(component, settings))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, working.cancel)
    with suppress(asyncio.CancelledError):
        await working


async def _work(component: Component, settings: Settings) -> None:
    clock, rng = SystemClock(), random.Random()  # noqa: S311 - jitter, not secrets
    found = credentials.load(settings.kubeconfig, settings.context, clock, os.environ)
    identity = _identity()
    async with Client(found, component.name, clock, instance=identity) as client:
        await preflight(client, component.kinds, settings.wait_seconds)
        box = ClusterLease(client, settings.namespace, component.lease)
        elector = Elector(box, identity, settings.lease, clock, rng)
        metrics = Metrics(component.name, elector.is_leader, component.lease)
        metrics.calls.add(client.tally)
        exporter = exporting(settings.traces, component.name) if settings.traces else None
        record = exporter.record if exporter is not None else None
        surroundings = Surroundings(settings, client, clock, rng, elector, metrics, record)
        _log.info("standing for the lease %s/%s", settings.namespace, component.lease)
        try:
            async with serving(settings.metrics, metrics.written), asyncio.TaskGroup() as group:
                group.create_task(elector.run())
                group.create_task(_awaited(component.work(surroundings)))
        finally:
            # Only after all work has ended: whoever leads next may begin at once.
            await elector.release()
            if exporter is not None:
                await asyncio.to_thread(exporter.close)


async def _awaited(work: Awaitable[None]) -> None:
    await work


def _identity() -> str:
    # A restarted process must not take itself for its predecessor, whose writes may be under way.
    return f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"

"""Puts the dashboard together: watches on one side, browsers on the other, until interrupted."""

import asyncio
import logging
import os
import webbrowser
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

import typer

from controller.gangs.modes import ALONE, Mode
from kube import logs
from kube.cache import Source
from kube.clock import SystemClock
from kube.errors import ApiError
from penstock.dashboard import answers, files, refusals
from penstock.dashboard.choices import Choices
from penstock.dashboard.drawing import Around, Asked, Board
from penstock.dashboard.following import Ask, Following
from penstock.dashboard.hub import Hub
from penstock.dashboard.refusals import Refusals
from penstock.dashboard.serving import Address, serving
from penstock.dashboard.timeline import Detail
from penstock.dashboard.view import View
from penstock.ending import AskedWronglyError, run_to_end
from penstock.lab import auditing
from penstock.lab.folders import Labs
from penstock.plugin import running
from penstock.plugin.asking import Where

_WARNING: Final = "whoever reaches {} sees what you may see; nobody is asked for a password"


@dataclass(frozen=True)
class Sources:
    """Where everything is read from; tests hand in others."""

    cluster: Source
    policy: Ask
    audit: refusals.Source
    name: str = ""
    mode: Mode = ALONE


def run(where: Where, choices: Choices, log_format: str = "text") -> None:
    """Serve until a signal comes, and end with its code."""
    logs.configure(log_format, "error", "dashboard", logging.Formatter("%(message)s"))
    run_to_end("dashboard", _run(where, choices))


async def _run(where: Where, choices: Choices) -> None:
    with running.pointing():
        client = running.client_of(where, SystemClock())
    async with client:
        with running.pointing():
            mode = await running.mode_of(client, where)
        audit = choices.audit_dir or auditing.folder_of(client.server, Labs.of(os.environ))
        sources = Sources(
            client,
            partial(running.policy_of, client, where.system),
            refusals.Folder(audit) if audit is not None else refusals.Served(client),
            client.server,
            mode,
        )
        # To be interrupted is how this command ends well.
        with running.pointing(), suppress(asyncio.CancelledError):
            async with served(sources, choices) as found:
                url = found.address.url
                typer.echo(f"the dashboard is at {url} (Ctrl-C ends it)")
                if choices.bind not in answers.LOOPBACK:
                    typer.echo(_WARNING.format(choices.bind), err=True)
                if choices.opened:
                    webbrowser.open(url)
                await found.work


@dataclass(frozen=True)
class Served:
    """Where it is served, and the work behind it, which ends only if it fails."""

    address: Address
    work: asyncio.Future[None]


@asynccontextmanager
async def served(sources: Sources, choices: Choices) -> AsyncIterator[Served]:
    """Serve while the context lasts, from when all has been read."""
    board = Board(Asked(choices.topology, choices.resource, sources.name))
    following = Following(sources.cluster, board, sources.mode, sources.policy)
    seen = Refusals(sources.audit, sources.cluster.clock, following.news.set)

    def draw() -> View:
        notes = (*following.notes(), *filter(None, [seen.note]))
        around = Around(following.policy, seen.rows, notes, not seen.note)
        return following.view(around)

    hub = Hub(draw, following.news, sources.cluster.clock)

    def details(namespace: str, name: str) -> Detail | None:
        return following.detail((namespace, name))

    address = Address(choices.bind, choices.port, frozenset(map(str.lower, choices.hosts)))
    ready = asyncio.Event()
    work = asyncio.ensure_future(_together(following.run(ready.set), seen.run(), hub.run()))
    try:
        await _until(ready, work)
        following.check(choices.topology, choices.resource)
        async with serving(address, files.read(), hub, details) as found:
            yield Served(found, work)
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def _together(*parts: Coroutine[None, None, None]) -> None:
    """Run all until one fails; then fail as that one did."""
    try:
        async with asyncio.TaskGroup() as group:
            for each in parts:
                group.create_task(each)
    except* (ApiError, AskedWronglyError) as several:
        raise several.exceptions[0] from None


async def _until(ready: asyncio.Event, work: asyncio.Future[None]) -> None:
    waiting = asyncio.ensure_future(ready.wait())
    await asyncio.wait((waiting, work), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if work.done():
        work.result()

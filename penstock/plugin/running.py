"""Reads the cluster, has a question answered, and writes the answer: once, or again and again."""

import importlib
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console

from api import names
from api.jsons import JsonObject
from controller.gangs.modes import Mode
from kube import accounts, credentials, kubeconfig
from kube.cache import Source
from kube.client import Client
from kube.clock import Clock, SystemClock
from kube.errors import BadCredentials, Forbidden, NotFound, Unreachable
from kube.resources import CONFIGMAPS
from penstock.ending import run_to_end
from penstock.plugin import reports
from penstock.plugin.asking import Form, Where
from penstock.plugin.progress import Counting
from penstock.plugin.reports import Report
from penstock.plugin.scenes import Scene, scene
from policies import policy_source
from policies.policy import BUILT_IN, Policy
from policies.policy_source import BadPolicyError

_REST: Final = 3.0


class _Config(msgspec.Struct):
    data: dict[str, str] = {}


Answer = Callable[[Scene, str], Awaitable[Report]]
"""What is said of a scene to somebody who stands in this namespace."""


def run(module: str, where: Where, form: Form, told: Mapping[str, object]) -> None:
    """Have a module's `report` answer a question, and end with its code."""
    answer: Answer = partial(importlib.import_module(module).report, **told)
    # What cannot be read of a cluster is for those who look after it, not for whoever asks.
    logging.basicConfig(level=logging.ERROR, format="%(message)s", stream=sys.stderr)
    clock = SystemClock()
    console = Console(highlight=False, soft_wrap=form.output in ("json", "yaml"))

    async def work() -> int:
        namespace = where.namespace or default_namespace(where)
        async with _client(where, clock) as client:
            source = Counting(client, Console(stderr=True, highlight=False))

            async def once() -> Report:
                with source.shown():
                    policy = await _policy(client, where.system)
                    found = await read(source, clock.now(), where, policy)
                return await answer(found, namespace)

            if form.watch:
                await _again_and_again(once, form, console, clock)
            report = await once()
        reports.written(report, form.output, console)
        return report.code

    sys.exit(run_to_end(form.command, work()))


async def read(source: Source, now: datetime, where: Where, policy: Policy = BUILT_IN) -> Scene:
    """Read the cluster; a failure says what to look at."""
    try:
        return await scene(source, now, Mode(companion=where.companion), policy)
    except Unreachable as error:
        raise Unreachable(
            f"{error}; is the cluster up, and is it the one you mean? `kubectl config get-contexts`"
            " lists others; choose by --context or --kubeconfig"
        ) from error


async def _policy(client: Client, namespace: str) -> Policy:
    """Read the policy in force: the one there is, else the last good one, else the built-in."""
    for name in (names.POLICY_CONFIG, names.KEPT_POLICY_CONFIG):
        try:
            text = (await client.get(CONFIGMAPS, _Config, name, namespace)).data.get(
                names.POLICY_KEY
            )
            if text is not None:
                return policy_source.read(name, text).policy
        except (NotFound, Forbidden, BadPolicyError):
            continue
    return BUILT_IN


def default_namespace(where: Where) -> str:
    """Give the namespace of the context, as kubectl would take it."""
    path = Path(where.kubeconfig) if where.kubeconfig else None
    if path is None and not where.context and os.environ.get(accounts.HOST):
        return "default"
    files = [path] if path is not None else kubeconfig.default_files(os.environ)
    return kubeconfig.choose(files, where.context or None).namespace or "default"


def _client(where: Where, clock: Clock) -> Client:
    path = Path(where.kubeconfig) if where.kubeconfig else None
    try:
        found = credentials.load(path, where.context or None, clock, os.environ)
    except BadCredentials as error:
        raise BadCredentials(f"{error}; choose a cluster by --kubeconfig or --context") from error
    return Client(found, "plugin", clock)


async def _again_and_again(
    once: Callable[[], Awaitable[Report]], form: Form, console: Console, clock: Clock
) -> None:
    """Write the answer whenever it has changed, until interrupted."""
    said: JsonObject | None = None
    while True:
        begun = clock.monotonic()
        report = await once()
        if report.data != said:
            said = report.data
            if console.is_terminal and form.output not in ("json", "yaml"):
                console.clear()
            reports.written(report, form.output, console)
            console.file.flush()
        # A cluster that takes long to read is not to be read all the time.
        took = clock.monotonic() - begun
        await clock.sleep(max(form.interval, _REST * took))

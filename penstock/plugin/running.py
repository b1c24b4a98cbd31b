"""Reads the cluster, has a question answered, and writes the answer: once, or again and again."""

import importlib
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console

from api import names
from api.jsons import JsonObject
from controller.gangs.modes import Mode
from kube import accounts, credentials, kubeconfig
from kube.client import Client
from kube.clock import Clock, SystemClock
from kube.errors import BadCredentials, Forbidden, NotFound, Unreachable
from kube.objects import LabelledMeta
from kube.resources import CONFIGMAPS
from kube.transport import Patience
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
    metadata: LabelledMeta = msgspec.field(default_factory=LabelledMeta)
    data: dict[str, str] = {}


Looking = Callable[[], Awaitable[Report]]


def run(name: str, where: Where, form: Form, told: Mapping[str, object]) -> None:
    """Have a module answer a question, and end with its code.

    Its `report` is about a whole cluster, as it was read once. One that has `asked` instead reads
    for itself what it needs, which is less.
    """
    # What cannot be read of a cluster is for those who look after it, not for whoever asks.
    logging.basicConfig(level=logging.ERROR, format="%(message)s", stream=sys.stderr)
    module = importlib.import_module(name)
    clock = SystemClock()
    as_data = form.output in ("json", "yaml")
    console = Console(
        highlight=False,
        soft_wrap=as_data,
        width=reports.width(os.environ, shown=sys.stdout.isatty()),
    )

    async def work() -> int:
        with pointing():
            namespace = where.namespace or default_namespace(where)
            found = client_of(where, clock)
        async with found as client:
            if hasattr(module, "asked"):
                once: Looking = partial(module.asked, client, namespace, **told)
            else:
                whole = Whole(client, clock, where)
                once = partial(whole.told, partial(module.report, **told), namespace)
            with pointing():
                report = await answered(once, form, console, clock)
        reports.written(report, form.output, console)
        return report.code

    sys.exit(run_to_end(form.command, work()))


class Whole:
    """Reads the whole cluster for each answer, and shows how far it has come."""

    def __init__(self, client: Client, clock: Clock, where: Where) -> None:
        self._client = client
        self._clock = clock
        self._where = where
        self._source = Counting(client, Console(stderr=True, highlight=False))

    async def told(
        self, answer: Callable[[Scene, str], Awaitable[Report]], namespace: str
    ) -> Report:
        """Read, and answer."""
        with self._source.shown():
            policy = await policy_of(self._client, self._where.system)
            mode = await mode_of(self._client, self._where)
            found = await scene(self._source, self._clock.now(), mode, policy)
        return await answer(found, namespace)


@contextmanager
def pointing() -> Iterator[None]:
    """Say of a failure what to look at."""
    try:
        yield
    except Unreachable as error:
        raise Unreachable(
            f"{error}; is the cluster up, and is it the one you mean? `kubectl config get-contexts`"
            " lists others; choose by --context or --kubeconfig"
        ) from error
    except BadCredentials as error:
        raise BadCredentials(f"{error}; choose a cluster by --kubeconfig or --context") from error


async def mode_of(client: Client, where: Where) -> Mode:
    """Tell who makes gangs there: what the person says, else what the chart was told."""
    if where.companion is not None:
        return Mode(companion=where.companion)
    try:
        found = await client.get(CONFIGMAPS, _Config, names.CAPACITY_CONFIG, where.system)
    except (NotFound, Forbidden):
        return Mode()
    return Mode(companion=found.metadata.labels.get(names.COMPANION_LABEL) == "true")


async def policy_of(client: Client, namespace: str) -> Policy:
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


def client_of(where: Where, clock: Clock) -> Client:
    """Make a client for the cluster that is meant."""
    path = Path(where.kubeconfig) if where.kubeconfig else None
    found = credentials.load(path, where.context or None, clock, os.environ)
    return Client(found, "plugin", clock, Patience(lost_attempts=2))


async def answered(once: Looking, form: Form, console: Console, clock: Clock) -> Report:
    """Give the answer; if it is watched, write it whenever it has changed, until interrupted."""
    if not form.watch:
        return await once()
    said: JsonObject | None = None
    while True:
        begun = clock.monotonic()
        report = await once()
        if report.data != said:
            first, said = said is None, report.data
            if console.is_terminal and form.output not in ("json", "yaml"):
                console.clear()
            reports.written(report, form.output, console, first=first)
            console.file.flush()
        # A cluster that takes long to read is not to be read all the time.
        took = clock.monotonic() - begun
        await clock.sleep(max(form.interval, _REST * took))

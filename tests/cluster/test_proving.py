"""`penstock prove` on a real API server: with the account the chart has for it."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from api import exits, names
from kube import credentials
from kube.client import Client
from kube.clock import SystemClock
from kube.errors import ApiError, Forbidden
from kube.resources import (
    MUTATING_WEBHOOKS,
    PODCLIQUESETS,
    TOPOLOGY_BINDINGS,
    VALIDATING_WEBHOOKS,
)
from penstock import proving
from penstock.lab import kubeconfigs, tokens
from penstock.lab.account import ApiCluster
from penstock.proving import OPEN, Opening, ServedDoors
from tests.support.installed import Installed, answered, away

pytestmark = [pytest.mark.cluster, pytest.mark.long]

ACCOUNT: Final = "penstock-prover"
CLOSING: Final = {
    "podcliquesets.penstock.dev",
    "clustertopologybindings.penstock.dev",
    "managed.penstock.dev",
}


@pytest.fixture
async def prover(installed: Installed, person: Client, tmp_path: Path) -> Path:
    """A kubeconfig with nothing but that account's token."""
    token = await ApiCluster(person).token(ACCOUNT, tokens.KUBELET_SECONDS)
    (tmp_path / "token").write_text(token)
    cluster = kubeconfigs.cluster_of(installed.lab.kubeconfig)
    content = kubeconfigs.render(cluster, ACCOUNT, tmp_path / "token")
    path = tmp_path / "kubeconfig"
    kubeconfigs.write_private(path, content)
    return path


@pytest.fixture
async def opened(installed: Installed, person: Client) -> AsyncIterator[list[Opening]]:
    """What the chart would close, opened again as an installation finds it."""
    doors = ServedDoors(person)
    found: list[Opening] = []
    for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS):
        there = await person.get(kind, proving.Configuration, names.WEBHOOK_CONFIGURATION)
        closing = there.metadata.annotations[names.CLOSES_ANNOTATION].split(",")
        found += [
            Opening(kind, i, each.name)
            for i, each in enumerate(there.webhooks)
            if each.name in closing
        ]
    await doors.turn(found, OPEN)
    yield found
    await doors.turn(await doors.opened(), proving.CLOSED)


def command(kubeconfig: Path, *arguments: str) -> list[str]:
    run = (sys.executable, "-P", "-m", "penstock", "prove", "--kubeconfig", str(kubeconfig))
    return [*run, *arguments]


def prove(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(kubeconfig, *arguments), capture_output=True, text=True, check=False, timeout=120
    )


async def test_an_installation_is_closed_when_it_returns(
    installed: Installed, person: Client
) -> None:
    assert await ServedDoors(person).opened() == []


async def test_its_own_account_closes_what_is_open_and_then_again_finds_nothing_to_do(
    opened: list[Opening], prover: Path, person: Client
) -> None:
    assert {each.name for each in opened} == CLOSING
    assert await ServedDoors(person).opened() == opened
    done = prove(prover, "--wait", "60")
    assert done.returncode == exits.OK, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == f"Closed: {', '.join(sorted(CLOSING))}."
    assert await ServedDoors(person).opened() == []
    again = prove(prover)
    assert again.returncode == exits.OK
    assert "All webhooks that should fail closed do." in again.stdout


async def test_a_look_closes_nothing(opened: list[Opening], prover: Path, person: Client) -> None:
    assert prove(prover, "--look", "--wait", "60").returncode == exits.OK
    assert await ServedDoors(person).opened() == opened


async def test_what_no_webhook_answers_stays_open_and_says_so(
    opened: list[Opening], prover: Path, installed: Installed, person: Client
) -> None:
    with away(installed, "webhook-0", "webhook-1"):
        done = prove(prover, "--wait", "3")
        assert await ServedDoors(person).opened() == opened
        # Open means that sets go in unseen meanwhile.
        cycle = proving.a_set({"a": ["b"], "b": ["a"]})
        await person.create(PODCLIQUESETS, cycle, proving.NAMESPACE, dry_run=True)
    assert done.returncode == exits.UNEXPECTED
    assert "Not yet: a set with a cycle in startsAfter is admitted" in done.stdout

    await answered(installed)


async def test_one_that_is_killed_is_finished_by_the_next(
    opened: list[Opening], prover: Path, person: Client
) -> None:
    """Killed as soon as the first webhook is closed: the others are still open, or none is."""
    running = subprocess.Popen(command(prover), stdout=subprocess.DEVNULL)
    try:
        async with asyncio.timeout(60):
            while len(await ServedDoors(person).opened()) == len(opened):
                await asyncio.sleep(0.005)
    finally:
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
    assert prove(prover).returncode == exits.OK
    assert await ServedDoors(person).opened() == []


async def test_it_can_create_nothing_in_earnest(prover: Path, person: Client) -> None:
    clock = SystemClock()
    valid = proving.a_set({"leader": []})
    async with Client(credentials.load(prover, None, clock, {}), "test", clock) as own:
        for kind, body, namespace in (
            (PODCLIQUESETS, valid, proving.NAMESPACE),
            (TOPOLOGY_BINDINGS, proving.a_binding(), None),
        ):
            with pytest.raises(ApiError, match="may create nothing, and only try it in a dry run"):
                await own.create(kind, body, namespace)
            await own.create(kind, body, namespace, dry_run=True)
        with pytest.raises(Forbidden, match="cannot create resource"):
            await own.create(PODCLIQUESETS, valid, "kube-public", dry_run=True)

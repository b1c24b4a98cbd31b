"""`penstock lab install` a second time, after a crash, and with parts switched off."""

import asyncio
import os
import signal
from functools import partial

import msgspec
import psutil
import pytest

from api import names
from api.jsons import Json
from kube.client import Client
from kube.resources import MUTATING_WEBHOOKS, PODCLIQUESETS, SECRETS, VALIDATING_WEBHOOKS
from penstock.lab import processes
from penstock.lab.errors import LabError
from penstock.lab.helm import Helm, chart
from penstock.lab.install import InstallOptions
from tests.support.installed import Installed
from tests.support.living import engine_set
from tests.support.polling import eventually

pytestmark = pytest.mark.cluster

COMPONENTS = ("keeper", "webhook-0", "webhook-1", "workloads", "gangs")


async def what_gangs_wrote(installed: Installed) -> list[Json]:
    """The CA, the leaf, and where the API server was told to trust them."""
    found: list[Json] = []
    async with installed.person() as person:
        for name in (names.CA_SECRET, names.TLS_SECRET):
            secret = msgspec.json.decode(await person.raw_get(SECRETS.path(names.NAMESPACE, name)))
            assert secret["data"], f"{name} is empty"
            found.append(secret["data"])
        for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS):
            path = kind.path(None, names.WEBHOOK_CONFIGURATION)
            configuration = msgspec.json.decode(await person.raw_get(path))
            found += [each["clientConfig"]["caBundle"] for each in configuration["webhooks"]]
    return found


def pids(installed: Installed) -> dict[str, int]:
    return {name: installed.installation.pid(name) for name in COMPONENTS}


async def test_a_second_install_keeps_the_certificate_and_what_runs(installed: Installed) -> None:
    before, running = await what_gangs_wrote(installed), pids(installed)
    steps = await installed.again()
    assert "processes: running and up to date" in steps
    assert await what_gangs_wrote(installed) == before
    assert pids(installed) == running


async def test_an_upgrade_that_changes_every_object_keeps_what_gangs_wrote(
    installed: Installed,
) -> None:
    before = await what_gangs_wrote(installed)
    home = installed.installation.layout.root / "helm"
    helm = Helm(installed.helm, installed.lab.kubeconfig, home)
    await helm.run(
        *("upgrade", "penstock", str(chart()), "--reuse-values"),
        *("--set", "labels.upgraded=yes", "--set", "webhook.timeoutSeconds.pods=4"),
    )
    async with installed.person() as person:
        path = MUTATING_WEBHOOKS.path(None, names.WEBHOOK_CONFIGURATION)
        changed = msgspec.json.decode(await person.raw_get(path))
    seconds = {each["name"]: each["timeoutSeconds"] for each in changed["webhooks"]}
    assert seconds["pods.penstock.dev"] == 4  # else the upgrade proved nothing
    assert await what_gangs_wrote(installed) == before
    await installed.again()
    assert await what_gangs_wrote(installed) == before


async def test_what_an_interrupted_helm_left_is_mended(installed: Installed) -> None:
    async with installed.person() as person:
        path = f"{SECRETS.path(names.NAMESPACE)}?labelSelector=status%3Ddeployed"
        (release,) = msgspec.json.decode(await person.raw_get(path))["items"]
        name = release["metadata"]["name"]
        stuck = {"metadata": {"labels": {"status": "pending-upgrade"}}}
        await person.merge_patch(SECRETS, name, stuck, names.NAMESPACE)
    await installed.again()


@pytest.mark.long
async def test_restart_gives_every_component_a_new_process(installed: Installed) -> None:
    before = pids(installed)
    await installed.again(InstallOptions(restart=True))
    after = pids(installed)
    assert all(after[name] != before[name] for name in COMPONENTS)
    assert not any(psutil.pid_exists(pid) for pid in before.values())


async def test_after_a_kill_of_the_keeper_nothing_stays_and_install_mends_it(
    installed: Installed,
) -> None:
    layout = installed.installation.layout
    recorded = [processes.read_record(layout.record(name)) for name in COMPONENTS]
    records = [record for record in recorded if record is not None]
    assert len(records) == len(COMPONENTS)
    os.kill(installed.installation.pid("keeper"), signal.SIGKILL)
    await eventually(
        lambda: not any(map(processes.running, records)), "components end with the keeper", 20
    )
    await installed.again()
    assert pids(installed)


async def test_a_killed_component_comes_back_by_itself(installed: Installed) -> None:
    installation = installed.installation
    before = installation.pid("workloads")
    os.kill(before, signal.SIGKILL)

    def another() -> bool:
        record = processes.read_record(installation.layout.record("workloads"))
        return record is not None and record.pid != before and processes.running(record)

    await eventually(another, "workloads runs again", 20)


async def test_a_webhook_that_goes_and_comes_costs_no_admission(installed: Installed) -> None:
    """Each attempt is a call of its own; they go on while one of two webhooks stops and starts."""
    installation = installed.installation
    body = engine_set("idle", pods=1, gpus=1, replicas=0)
    answered = 0

    async def admit(person: Client) -> None:
        nonlocal answered
        while not stop.is_set():
            await person.apply(PODCLIQUESETS, "idle", body, "default")
            answered += 1

    stop = asyncio.Event()
    async with installed.person() as person, asyncio.TaskGroup() as group:
        group.create_task(admit(person))
        for _ in range(2):
            await asyncio.to_thread(installation.stop_component, "webhook-0")
            seen = answered
            await eventually(partial(lambda before: answered > before + 5, seen), "the other one")
            await asyncio.to_thread(installation.start_component, "webhook-0")
        stop.set()
    async with installed.person() as person:
        await person.delete(PODCLIQUESETS, "idle", "default")


@pytest.mark.long
async def test_without_workloads_the_rest_runs(installed: Installed) -> None:
    try:
        await installed.again(InstallOptions(workloads=False, webhooks=1))
        assert not installed.installation.running("workloads")
        assert not installed.installation.running("webhook-1")
        assert installed.installation.running("gangs")
    finally:
        await installed.again()
    assert pids(installed)


@pytest.mark.long
async def test_what_is_not_up_in_time_is_named_with_its_last_words(installed: Installed) -> None:
    installation = installed.installation
    components = ("webhook-0", "webhook-1")
    for name in components:
        await asyncio.to_thread(installation.stop_component, name)
    try:
        with pytest.raises(
            LabError, match=r"webhook-0 (does not run|is not up) after 1 s: .*last line of"
        ):
            await installed.again(InstallOptions(timeout=1))
    finally:
        for name in components:
            await asyncio.to_thread(installation.start_component, name)
    await installed.again()

"""Each process of an installed Penstock serves its metrics, and those that are listed."""

import asyncio
import subprocess
import sys
from contextlib import suppress
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from penstock.plugin.asking import Where
from penstock.plugin.running import mode_of
from tests.support import families
from tests.support.installed import Installed
from tests.support.living import PATIENCE, Cluster, Kubectl, engine_set

pytestmark = pytest.mark.cluster

SECTIONS = {
    "webhook-0": ("Webhook", families.EVERY),
    "workloads": ("Workloads", families.CONTROLLERS, families.EVERY),
    "gangs": ("Gangs", families.CONTROLLERS, families.EVERY),
}


async def fetched(installed: Installed, component: str) -> str:
    """Its metrics, as soon as it serves them: a test before may have started it anew."""

    def fetch() -> str:
        url = installed.installation.metrics(component)
        with urlopen(url, timeout=20.0) as answer:  # noqa: S310 - at a loopback address
            text: str = answer.read().decode()
        return text

    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(URLError):
                return await asyncio.to_thread(fetch)
            await asyncio.sleep(0.2)


@pytest.mark.parametrize("component", SECTIONS)
async def test_a_process_shows_what_is_listed(installed: Installed, component: str) -> None:
    wanted = families.listed(*SECTIONS[component])
    there = families.shown(await fetched(installed, component))
    assert families.differences(wanted, there) == []


async def test_a_sets_way_is_counted_by_all_three(
    installed: Installed, cluster: Cluster, kubectl: Kubectl
) -> None:
    series = {
        "webhook-0": "penstock_webhook_requests_total",
        "workloads": 'controller_runtime_reconcile_total{controller="podcliqueset"',
        "gangs": "grove_gang_wait_seconds_count",
    }
    webhooks = [each for each in installed.installation.settings.components() if "webhook" in each]

    async def sums() -> dict[str, float]:
        found = {}
        for component, start in series.items():
            of = webhooks if component == "webhook-0" else [component]
            values = [families.values(await fetched(installed, each)) for each in of]
            found[component] = sum(
                number for each in values for name, number in each.items() if name.startswith(start)
            )
        return found

    before = await sums()
    kubectl.apply(engine_set("counted", pods=2, gpus=1))
    await cluster.running("counted")

    async def counted() -> bool | None:
        after = await sums()
        return all(after[component] > before[component] for component in series) or None

    await cluster.until(counted, "all three have counted")
    gangs = families.values(await fetched(installed, "gangs"))
    assert gangs['leader_election_master_status{name="penstock-gangs"}'] == 1
    assert any(
        name.startswith("rest_client_requests_total") and 'code="200",' in name and value > 0
        for name, value in gangs.items()
    )


async def test_a_lab_tells_where_its_metrics_are(installed: Installed) -> None:
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "penstock", "lab", "metrics", "--name", installed.lab.name],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    told = dict(line.split() for line in done.stdout.splitlines())
    components = installed.installation.settings.components()
    assert told == {each: installed.installation.metrics(each) for each in components}


async def test_the_plugin_knows_that_nobody_else_makes_gangs_here(installed: Installed) -> None:
    async with installed.person() as person:
        assert not (await mode_of(person, Where())).companion

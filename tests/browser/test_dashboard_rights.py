"""The dashboard of somebody who may only read: what the chart's roles are enough for."""

from pathlib import Path

import pytest

from api.jsons import JsonObject
from penstock.dashboard.choices import Choices
from penstock.dashboard.refusals import Served
from penstock.dashboard.running import Sources, served
from penstock.ending import AskedWronglyError
from penstock.plugin import running
from penstock.plugin.scenes import VIEWER
from policies.policy import Policy
from tests.browser.conftest import Looking
from tests.cluster.test_plugin import BINDINGS, RBAC, Reader, reader_of
from tests.support.chromium import Chromium
from tests.support.installed import Installed
from tests.support.living import Cluster, Kubectl, connect, engine_set

pytestmark = pytest.mark.browser

EVENTS_NOTE = "you may not list them: events.events.k8s.io"


async def bind(cluster: Cluster, role: str) -> None:
    space = cluster.namespace
    who: JsonObject = {"kind": "ServiceAccount", "name": "reader", "namespace": space}
    named: JsonObject = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
    metadata: JsonObject = {"name": f"{space}-{role}"}
    body: JsonObject = {"metadata": metadata, "roleRef": named, "subjects": [who]}
    await cluster.client.create(BINDINGS, body)


async def readable(cluster: Cluster, reader: Reader) -> None:
    async def may() -> bool | None:
        try:
            await reader.scene()
        except AskedWronglyError:
            return None
        return True

    await cluster.until(may, "the reader's rights")


async def test_the_roles_of_the_chart_are_enough_and_what_they_lack_is_said(
    installed: Installed, cluster: Cluster, kubectl: Kubectl, browser: Chromium, tmp_path: Path
) -> None:
    lab = installed.lab.kubeconfig
    reader = await reader_of(cluster.client, cluster.namespace, lab, tmp_path)
    roles = (VIEWER, "penstock-dashboard")
    try:
        async with connect(reader.kubeconfig, "plugin") as client:

            async def policy() -> Policy:
                return await running.policy_of(client, "penstock-system")

            sources = Sources(client, policy, Served(client), client.server)
            with pytest.raises(AskedWronglyError, match="--clusterrole=penstock-viewer"):
                async with served(sources, Choices()):
                    pass
            await bind(cluster, VIEWER)
            await readable(cluster, reader)
            async with served(sources, Choices()) as found, browser.page() as page:
                looking = Looking(page, found.address.url)
                await looking.begin()
                await page.says("#notes", EVENTS_NOTE)
                await page.says("#notes", "refused specs are not shown")
                kubectl.apply(engine_set("seen", pods=1, gpus=8))
                await page.says("#gangs", f"{cluster.namespace}/seen-0")
                await looking.keep("notes-light")
                await bind(cluster, roles[1])
                gone = f"!document.getElementById('notes').innerText.includes('{EVENTS_NOTE}')"
                await page.until(gone, "Events are followed from when they may be")
                assert page.complaints() == []
    finally:
        for role in roles:
            await cluster.client.delete(BINDINGS, f"{cluster.namespace}-{role}")

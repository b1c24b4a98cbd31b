"""One trace a set from review to bound, sent by three processes to a collector; and their logs."""

import json
from collections.abc import AsyncIterator

import pytest

from kube import logs
from kube.resources import PODCLIQUESETS
from kube.tracing import Step
from penstock.lab.install import InstallOptions
from tests.support.collector import Arrived, Collector, collecting
from tests.support.installed import Installed
from tests.support.living import Cluster, Kubectl, engine_set

pytestmark = pytest.mark.cluster

TELLERS = {
    "review": "penstock-webhook",
    "expand": "penstock-workloads",
    "decide": "penstock-gangs",
    "reserve": "penstock-gangs",
    "lift": "penstock-gangs",
    "bound": "penstock-gangs",
}


@pytest.fixture
async def collector(installed: Installed) -> AsyncIterator[Collector]:
    """A collector, and an installation that sends it traces and logs for machines."""
    with collecting() as collector:
        await installed.again(InstallOptions(traces_endpoint=collector.url, log_format="json"))
        yield collector
        await installed.again()


async def test_a_set_is_one_trace_from_review_to_bound(
    collector: Collector, installed: Installed, cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(engine_set("traced", pods=3, gpus=1))
    await cluster.running("traced")
    found = json.loads(
        await cluster.client.raw_get(PODCLIQUESETS.path(cluster.namespace, "traced"))
    )
    trace = logs.trace_id(found["metadata"]["uid"])

    async def told() -> list[Arrived] | None:
        spans = collector.of(trace)
        return spans if len(spans) >= len(Step) else None

    spans = {span.name: span for span in await cluster.until(told, "all spans have arrived")}
    assert {name: span.service for name, span in spans.items()} == TELLERS
    assert spans["review"].parent == ""
    for before, after in zip(Step, list(Step)[1:], strict=False):
        assert spans[after].parent == spans[before].number, f"{after} is within {before}"
        # What is told by one process begins where the step before ended; clocks of two differ.
        assert spans[after].ended >= spans[before].ended or TELLERS[after] != TELLERS[before]
        assert spans[after].begun <= spans[after].ended
    assert not any(span.failed for span in spans.values())
    for component in ("webhook-0", "workloads", "gangs"):
        log = installed.installation.log(component).read_text()
        lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
        assert lines, f"{component} logs no JSON"
        assert all(set(line) <= set(logs.KEYS) for line in lines)

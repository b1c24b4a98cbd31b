"""What was there before a policy is held against it, and reported where such reports are kept."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

import msgspec
import pytest

from api import names
from api.jsons import JsonObject
from kube.client import Client
from kube.errors import NotFound
from kube.resources import CONFIGMAPS, PODCLIQUESETS, POLICY_REPORTS, Resource
from tests.support import policies
from tests.support.living import Cluster, engine_set

pytestmark = pytest.mark.cluster

DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition",
    namespaced=False,
)  # fmt: skip
PATIENCE: Final = 30.0
OPEN: Final[JsonObject] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
REPORTS: Final[JsonObject] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": POLICY_REPORTS.full_name,
        "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
    },
    "spec": {
        "group": POLICY_REPORTS.group,
        "scope": "Namespaced",
        "names": {
            "plural": POLICY_REPORTS.plural,
            "singular": "policyreport",
            "kind": POLICY_REPORTS.kind,
            "listKind": "PolicyReportList",
        },
        "versions": [
            {
                "name": POLICY_REPORTS.version,
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": OPEN},
            }
        ],
    },
}
FEW: Final = """
queues: [{name: q, namespaces: ['*'], default: true, submitters: {users: [nobody]}, mode: warn,
  limits: {gangs: 1}}]
"""


@pytest.fixture
async def reports(person: Client) -> AsyncIterator[None]:
    """Have the API server keep reports, as where somebody reads them."""
    await person.create(DEFINITIONS, REPORTS)
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(NotFound):
                    await person.probe(POLICY_REPORTS)
                    break
                await asyncio.sleep(0.1)
        yield
    finally:
        await person.delete(DEFINITIONS, POLICY_REPORTS.full_name)


async def read(person: Client, path: str) -> JsonObject | None:
    try:
        found: JsonObject = msgspec.json.decode(await person.raw_get(path))
    except NotFound:
        return None
    return found


async def test_what_breaks_a_new_policy_is_reported_and_left_as_it_is(
    cluster: Cluster, person: Client, space: str, reports: None
) -> None:
    body = engine_set("before", pods=1, gpus=0, replicas=2, gates=["example.com/never"])
    await person.create(PODCLIQUESETS, body, space)
    stored = await read(person, PODCLIQUESETS.path(space, "before"))
    metadata: JsonObject = {"name": names.POLICY_CONFIG}
    config: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    try:
        whole = {**config, "data": {names.POLICY_KEY: FEW}}
        await person.create(CONFIGMAPS, whole, names.NAMESPACE)
        path = POLICY_REPORTS.path(space, names.POLICY_REPORT)
        report = await cluster.until(lambda: read(person, path), "a report", PATIENCE)
        results = report["results"]
        assert isinstance(results, list)
        (result,) = results
        assert isinstance(result, dict)
        # Who may submit cannot be asked of what is there.
        assert (result["rule"], result["result"]) == ("queue-gangs-are-few", "warn")
        assert "comes to 2 gangs" in str(result["message"])

        async def summed() -> JsonObject | None:
            found = await read(person, CONFIGMAPS.path(names.NAMESPACE, names.SCAN_CONFIG))
            data = (found or {}).get("data")
            text = data.get(names.SCAN_KEY, "") if isinstance(data, dict) else ""
            said: JsonObject = msgspec.json.decode(str(text)) if text else {}
            return said if "queue-gangs-are-few" in str(text) else None

        said = await cluster.until(summed, "a summary", PATIENCE)
        assert "before" in str(said["broken"])
    finally:
        await policies.take_back(person)

    async def gone() -> bool | None:
        return await read(person, path) is None or None

    await cluster.until(gone, "the report is taken away with the rules", PATIENCE)
    after = await read(person, PODCLIQUESETS.path(space, "before"))
    assert stored is not None
    assert after is not None
    assert after["spec"] == stored["spec"]

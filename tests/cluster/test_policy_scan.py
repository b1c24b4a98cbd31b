"""What was there before a policy is held against it, and reported where such reports are kept."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec
import pytest

from api import names
from api.jsons import JsonObject
from controller.gangs import scan_results
from controller.gangs.scan_results import KINDS, Looked, Tally
from kube.client import Client
from kube.errors import ApiError, NotFound
from kube.resources import CONFIGMAPS, PODCLIQUESETS, Resource
from kube.transport import Call
from policies.findings import Finding
from policies.policy_queues import Mode
from policies.problems import Problem
from tests.support import policies
from tests.support.living import Cluster, engine_set
from tests.support.report_kinds import DEFINITIONS, definition

pytestmark = pytest.mark.cluster

PATIENCE: Final = 60.0
FEW: Final = """
queues: [{name: q, namespaces: ['*'], default: true, submitters: {users: [nobody]}, mode: warn,
  limits: {gangs: 1}}]
"""


@pytest.fixture
async def reports(person: Client) -> AsyncIterator[None]:
    """Have the API server keep reports, as where somebody reads them."""
    for kind in KINDS:
        await person.create(DEFINITIONS, definition(kind))
    try:
        async with asyncio.timeout(PATIENCE):
            for kind in KINDS:
                while True:
                    with suppress(NotFound):
                        await person.probe(kind)
                        break
                    await asyncio.sleep(0.1)
        yield
    finally:
        for kind in KINDS:
            await person.delete(DEFINITIONS, kind.full_name)
        # Who needs them next makes them anew, which those that still go are in the way of.
        async with asyncio.timeout(PATIENCE):
            for kind in KINDS:
                while await read(person, DEFINITIONS.path(None, kind.full_name)):
                    await asyncio.sleep(0.1)


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
        paths = [kind.path(space, names.POLICY_REPORT) for kind in KINDS]
        for path in paths:
            report = await cluster.until(partial(read, person, path), "a report", PATIENCE)
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
        return not any([await read(person, path) for path in paths]) or None

    await cluster.until(gone, "the report is taken away with the rules", PATIENCE)
    after = await read(person, PODCLIQUESETS.path(space, "before"))
    assert stored is not None
    assert after is not None
    assert after["spec"] == stored["spec"]


async def test_every_field_of_a_report_is_one_that_its_readers_know(
    person: Client, space: str, reports: None
) -> None:
    """Asked strictly, an API server refuses what it would otherwise leave out in silence."""
    modes = (Mode.ENFORCE, Mode.WARN, Mode.AUDIT)
    findings = [Finding(mode, mode, Problem("spec.replicas", "too many")) for mode in modes]
    tally = Tally("r1")
    tally.add(Looked("grove.io/v1alpha1", "PodCliqueSet", space, "x", "uid-x", (*findings,)))
    for kind in KINDS:
        (report,) = scan_results.reports(tally, kind).values()
        await tried(person, kind, space, report)
        results = report["results"]
        assert isinstance(results, list)
        assert isinstance(results[0], dict)
        for wrong in ({"result": "maybe"}, {"policy": None}, {"scored": "yes"}, {"extra": "x"}):
            broken: JsonObject = {**report, "results": [{**results[0], **wrong}]}
            with pytest.raises(ApiError) as refused:
                await tried(person, kind, space, broken)
            assert refused.value.status in (400, 422), wrong


async def tried(person: Client, kind: Resource, space: str, body: JsonObject) -> None:
    """Have the API server look at every field, and store nothing."""
    asked = {"dryRun": "All", "fieldValidation": "Strict"}
    await person._transport.send(Call("POST", kind.path(space), asked, msgspec.json.encode(body)))

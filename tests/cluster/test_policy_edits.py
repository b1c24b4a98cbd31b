"""The policy is edited while webhooks are up; and is judged by alike with and without them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import msgspec
import pytest

from api import names
from api.jsons import JsonObject
from kube.client import Client
from kube.errors import ApiError, Invalid, NotFound
from kube.resources import CONFIGMAPS, PODCLIQUESETS, PODS, TOPOLOGY_BINDINGS
from kube.transport import Call
from penstock.policy import files
from policies import policy_source, trying, verdicts
from policies.policy import Policy
from policies.trying import Submitter, Tried
from tests.repo import checkout
from tests.support import policies
from tests.support.installed import Installed

pytestmark = pytest.mark.cluster

GOOD: Final = "queues: [{name: a, namespaces: ['*']}]\n"
BAD: Final = "queues:\n- name: a\n  namespaces: ['*']\n  limit: 3\n"
FAULT: Final = "line 4: queues[0].limit: there is no such key"
WEBHOOK: Final = f'admission webhook "{policies.WEBHOOK}" denied the request'
PATIENCE: Final = 10.0
STRICT: Final = """
queues:
- name: q
  namespaces: ["*"]
  default: true
  limits: {gangs: 1, podsPerGang: {max: 2}}
rules:
- {id: digests, images: {requireDigest: true}}
"""
RESOURCES: Final = {each.kind: each for each in (PODCLIQUESETS, PODS, TOPOLOGY_BINDINGS)}


def config(text: str, key: str = names.POLICY_KEY, name: str = names.POLICY_CONFIG) -> JsonObject:
    metadata: JsonObject = {"name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {key: text}}


@pytest.fixture
async def writer(installed: Installed, person: Client) -> AsyncIterator[Client]:
    async with asyncio.timeout(PATIENCE):
        while not await policies.refusal(person, policies.BAD):
            await asyncio.sleep(0.1)
    yield person
    await policies.take_back(person)


@pytest.mark.parametrize("key", [names.POLICY_KEY, names.CANDIDATE_KEY])
async def test_a_bad_edit_is_refused_with_line_and_field_and_changes_nothing(
    writer: Client, key: str
) -> None:
    await writer.create(CONFIGMAPS, config(GOOD), names.NAMESPACE)
    edit: JsonObject = {"data": {key: BAD}}
    with pytest.raises(Invalid) as caught:
        await writer.merge_patch(CONFIGMAPS, names.POLICY_CONFIG, edit, names.NAMESPACE)
    assert WEBHOOK in caught.value.message
    assert f"{key}: {FAULT}" in caught.value.message
    await writer.delete(CONFIGMAPS, names.POLICY_CONFIG, names.NAMESPACE)
    with pytest.raises(Invalid):
        await writer.create(CONFIGMAPS, config(BAD, key), names.NAMESPACE)
    with pytest.raises(NotFound):
        await writer.raw_get(CONFIGMAPS.path(names.NAMESPACE, names.POLICY_CONFIG))


async def test_other_config_maps_are_nobody_s_business(writer: Client, space: str) -> None:
    await writer.create(CONFIGMAPS, config(BAD), space)
    await writer.create(CONFIGMAPS, config(BAD, name="another"), names.NAMESPACE)
    await writer.delete(CONFIGMAPS, "another", names.NAMESPACE)


async def test_a_good_policy_is_let_in_and_may_be_deleted(writer: Client) -> None:
    await writer.create(CONFIGMAPS, config(GOOD), names.NAMESPACE)
    await writer.delete(CONFIGMAPS, names.POLICY_CONFIG, names.NAMESPACE)


async def test_a_candidate_lets_in_what_it_would_refuse_and_says_so_in_the_log(
    writer: Client, installed: Installed, space: str
) -> None:
    manifest = next(each.raw for each in EXAMPLES if each.path.endswith("disaggregated.yaml"))
    tried = trying.asked(manifest, Submitter(namespace=space), None)
    assert tried is not None
    body = config("")
    body["data"] = {names.POLICY_KEY: "", names.CANDIDATE_KEY: STRICT}
    await writer.create(CONFIGMAPS, body, names.NAMESPACE)
    replicas = range(installed.installation.settings.webhooks)
    logs = [installed.installation.log(f"webhook-{i}") for i in replicas]
    line = f"rule queue-gangs-are-sized, none to enforce, for a PodCliqueSet in namespace {space}"
    async with asyncio.timeout(PATIENCE):
        while not any(line in log.read_text() for log in logs):
            assert await online(writer, tried) == ""
            await asyncio.sleep(0.1)


def offline(policy: Policy, tried: Tried) -> str:
    """Give what `penstock policy test` says to an object."""
    return verdicts.verdict(trying.judged(policy, KNOWN, tried)).message


EXAMPLES: Final = files.manifests(sorted((checkout.ROOT / "examples").glob("*.yaml")))
KNOWN: Final = trying.known_from(each.raw for each in EXAMPLES)


async def online(person: Client, tried: Tried) -> str:
    """Give what the API server says to it, by mouth of the webhook."""
    resource = RESOURCES[tried.request.kind]
    path = resource.path(tried.namespace or None)
    body = {"apiVersion": resource.api_version, **(tried.request.object or {})}
    try:
        await person._transport.send(
            Call("POST", path, {"dryRun": "All"}, msgspec.json.encode(body))
        )
    except ApiError as error:
        return error.message.partition(" denied the request: ")[2] or error.message
    return ""


async def gone_by(person: Client, space: str) -> None:
    """Wait until every replica goes by the strict policy: ten answers in a row say so."""
    manifest = next(each.raw for each in EXAMPLES if each.path.endswith("disaggregated.yaml"))
    tried = trying.asked(manifest, Submitter(namespace=space), None)
    assert tried is not None
    asked = 0
    async with asyncio.timeout(PATIENCE):
        while asked < 10:
            asked = asked + 1 if "policy rule" in await online(person, tried) else 0
            await asyncio.sleep(0.02)


async def test_the_examples_are_judged_alike_by_the_cluster_and_offline(
    writer: Client, space: str
) -> None:
    policy = policy_source.read("strict", STRICT).policy
    network = next(each.raw for each in EXAMPLES if each.raw["kind"] == TOPOLOGY_BINDINGS.kind)
    await writer.create(CONFIGMAPS, config(STRICT), names.NAMESPACE)
    await writer.create(TOPOLOGY_BINDINGS, network)
    try:
        await gone_by(writer, space)
        compared = 0
        for each in EXAMPLES:
            tried = trying.asked(each.raw, Submitter(namespace=space), None)
            if tried is None or tried.kind == TOPOLOGY_BINDINGS.kind:
                continue
            # Our client shows so much of a message and no more.
            said, cut, _ = (await online(writer, tried)).partition("… (")
            expected = offline(policy, tried)
            assert said == (expected[: len(said)] if cut else expected), tried.title
            compared += 1
        assert compared >= 7
    finally:
        await writer.delete(TOPOLOGY_BINDINGS, "network")

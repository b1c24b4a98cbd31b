"""A lab's policy taken back: the last good one outlives its ConfigMap, also beyond a test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import msgspec

from api import names
from api.jsons import JsonObject
from kube.client import Client
from kube.errors import ApiError, NotFound
from kube.resources import CONFIGMAPS, VALIDATING_WEBHOOKS
from kube.transport import Call

BUILT_IN: Final[JsonObject] = {"data": {names.POLICY_KEY: ""}}
NONE_KEPT: Final[JsonObject] = {"data": {names.POLICY_KEY: None}}


async def take_back(person: Client) -> None:
    """Go back to the built-in policy, and have nobody remember another."""
    where = names.NAMESPACE
    with suppress(NotFound):
        await person.merge_patch(CONFIGMAPS, names.POLICY_CONFIG, BUILT_IN, where)
    await person.merge_patch(CONFIGMAPS, names.KEPT_POLICY_CONFIG, NONE_KEPT, where)
    with suppress(NotFound):
        await person.delete(CONFIGMAPS, names.POLICY_CONFIG, where)


WEBHOOK: Final = "policy.penstock.dev"
OFF: Final = "is-switched-off-by-a-test"
BAD: Final = "no such key: 1"


@asynccontextmanager
async def unlooked_at(person: Client) -> AsyncIterator[None]:
    """Have no webhook look at edits of the policy, as if none were up, so that bad ones get in."""
    place = await _place(person)
    condition: JsonObject = {"name": OFF, "expression": "false"}
    added: JsonObject = {"op": "add", "path": f"{place}/matchConditions/-", "value": condition}
    await person.json_patch(VALIDATING_WEBHOOKS, names.WEBHOOK_CONFIGURATION, [added])
    try:
        await _until(person, looked_at=False)
        yield
    finally:
        index = len((await _webhook(person))["matchConditions"]) - 1  # type: ignore[arg-type]
        path = f"{await _place(person)}/matchConditions/{index}"
        gone: list[JsonObject] = [
            {"op": "test", "path": f"{path}/name", "value": OFF},
            {"op": "remove", "path": path},
        ]
        await person.json_patch(VALIDATING_WEBHOOKS, names.WEBHOOK_CONFIGURATION, gone)
        await _until(person, looked_at=True)


async def _webhooks(person: Client) -> list[JsonObject]:
    path = VALIDATING_WEBHOOKS.path(None, names.WEBHOOK_CONFIGURATION)
    found: list[JsonObject] = msgspec.json.decode(await person.raw_get(path))["webhooks"]
    return found


async def _webhook(person: Client) -> JsonObject:
    return next(each for each in await _webhooks(person) if each["name"] == WEBHOOK)


async def _place(person: Client) -> str:
    found = await _webhooks(person)
    return f"/webhooks/{[each['name'] for each in found].index(WEBHOOK)}"


async def _until(person: Client, *, looked_at: bool) -> None:
    """Wait until the API server asks about edits, or does not; it learns of that in a moment."""
    async with asyncio.timeout(30):
        while bool(await refusal(person, BAD)) != looked_at:
            await asyncio.sleep(0.05)


async def refusal(person: Client, text: str) -> str:
    """Say how a policy would be refused, without storing any; empty if it is not."""
    metadata: JsonObject = {"name": names.POLICY_CONFIG, "namespace": names.NAMESPACE}
    whole: JsonObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {names.POLICY_KEY: text},
    }
    path = CONFIGMAPS.path(names.NAMESPACE, names.POLICY_CONFIG)
    asked = {"dryRun": "All", "fieldManager": "asking", "force": "true"}
    try:
        await person._transport.send(
            Call("PATCH", path, asked, msgspec.json.encode(whole), "application/apply-patch+yaml")
        )
    except ApiError as error:
        return error.message
    return ""

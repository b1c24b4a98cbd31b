"""A lab's policy taken back: the last good one outlives its ConfigMap, also beyond a test."""

from contextlib import suppress
from typing import Final

from api import names
from api.jsons import JsonObject
from kube.client import Client
from kube.errors import NotFound
from kube.resources import CONFIGMAPS

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

"""The CA bundles of our webhook configurations: read together, written one object at a time."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from api import names
from api.jsons import Json, JsonObject
from kube.client import Client
from kube.errors import NotFound
from kube.objects import ObjectMeta
from kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource

_log = logging.getLogger(__name__)

CONFIGURATIONS: Final = (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS)


class _ClientConfig(msgspec.Struct, frozen=True, rename="camel"):
    ca_bundle: bytes = b""  # msgspec takes the base64 off


class _Webhook(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    client_config: _ClientConfig = _ClientConfig()


class _Configuration(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    webhooks: list[_Webhook] = []


@dataclass(frozen=True)
class Bundles:
    """What each webhook trusted when the configurations were read."""

    _found: tuple[tuple[Resource, _Configuration], ...]

    @property
    def every(self) -> tuple[bytes, ...]:
        """Give one bundle a webhook, whatever configuration it is in."""
        return tuple(
            webhook.client_config.ca_bundle
            for _, configuration in self._found
            for webhook in configuration.webhooks
        )

    async def write(self, client: Client, wanted: bytes, may: Callable[[], bool]) -> None:
        """Give the bundle to each webhook that has another one, while we may."""
        for kind, configuration in self._found:
            patch = _patch(configuration, wanted)
            if patch and may():
                await client.json_patch(kind, names.WEBHOOK_CONFIGURATION, patch)
                _log.info("%s %s has a new CA bundle", kind.kind, names.WEBHOOK_CONFIGURATION)


async def read(client: Client) -> Bundles:
    """Read both configurations. One that is gone is left out: only the chart can bring it back."""
    found: list[tuple[Resource, _Configuration]] = []
    for kind in CONFIGURATIONS:
        try:
            one = await client.get(kind, _Configuration, names.WEBHOOK_CONFIGURATION)
        except NotFound:
            _log.warning(
                "there is no %s %s, so nothing is checked by it: install the chart again",
                kind.kind,
                names.WEBHOOK_CONFIGURATION,
            )
        else:
            found.append((kind, one))
    return Bundles(tuple(found))


def _patch(configuration: _Configuration, wanted: bytes) -> list[JsonObject]:
    encoded: Json = msgspec.to_builtins(wanted)
    patch: list[JsonObject] = []
    for i, webhook in enumerate(configuration.webhooks):
        if webhook.client_config.ca_bundle != wanted:
            place = f"/webhooks/{i}"
            patch += [
                {"op": "test", "path": f"{place}/name", "value": webhook.name},
                {"op": "add", "path": f"{place}/clientConfig/caBundle", "value": encoded},
            ]
    if patch:
        # The decision rests on what was read, so nobody may have changed it since.
        version = configuration.metadata.resource_version
        patch.insert(0, {"op": "test", "path": "/metadata/resourceVersion", "value": version})
    return patch

"""The CA bundles by which our webhooks are trusted: read together, written one object at a time.

The webhook configurations' are decided on. The audit log's registration, which comes and goes
with a setting, follows them: it is given what all webhooks trust, and has no say in what that is.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from api import names
from api.jsons import Json, JsonObject
from kube.client import Client
from kube.errors import ApiError, Forbidden, NotFound
from kube.objects import ObjectMeta
from kube.resources import API_SERVICES, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource

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


class _Service(msgspec.Struct, frozen=True, rename="camel"):
    """What of an APIService says whom API servers trust behind it."""

    ca_bundle: bytes = b""
    insecure_skip_tls_verify: bool = msgspec.field(default=False, name="insecureSkipTLSVerify")


class _Registration(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: _Service = _Service()


@dataclass(frozen=True)
class Bundles:
    """What each webhook trusted when the configurations were read."""

    _found: tuple[tuple[Resource, _Configuration], ...]
    _audit: _Registration | None = None

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

    async def follow(self, client: Client, may: Callable[[], bool]) -> bool:
        """Have the audit log's registration trust what all webhooks do; say if it was written."""
        patch = self._following()
        if not (patch and may()):
            return False
        try:
            await client.json_patch(API_SERVICES, names.AUDIT_SERVICE, patch)
        except ApiError as error:  # no reason to hold up the webhooks' certificates
            _log.warning("the audit log's CA bundle cannot be kept now: %s", error)
            return False
        _log.info("%s %s has a new CA bundle", API_SERVICES.kind, names.AUDIT_SERVICE)
        return True

    def _following(self) -> list[JsonObject]:
        audit, agreed = self._audit, {*self.every}
        if audit is None or audit.spec.insecure_skip_tls_verify or audit.spec.ca_bundle in agreed:
            return []
        if len(agreed) != 1 or b"" in agreed:
            return []
        encoded: Json = msgspec.to_builtins(agreed.pop())
        version = audit.metadata.resource_version
        return [
            {"op": "test", "path": "/metadata/resourceVersion", "value": version},
            {"op": "add", "path": "/spec/caBundle", "value": encoded},
        ]


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
    return Bundles(tuple(found), await _registration(client))


async def _registration(client: Client) -> _Registration | None:
    """Read how the audit log is registered; None if it is not served, which is the usual case."""
    try:
        return await client.get(API_SERVICES, _Registration, names.AUDIT_SERVICE)
    except NotFound:
        return None
    except Forbidden as error:  # by a chart from before; no reason to leave the webhooks alone
        _log.warning("the audit log's CA bundle cannot be kept: %s", error)
        return None


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

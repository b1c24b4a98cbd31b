"""Keeps the webhook's certificate good: looks at the Secrets, decides purely, writes what is due.

The order is such that every prefix of it serves: first the authority, then trust in it beside the
old one, then the leaf it signed.
"""

import logging
from collections.abc import Callable
from typing import Final

import msgspec

from api import names
from api.jsons import Json, JsonObject
from certs import bundle, issue, rotation
from kube.client import Client
from kube.clock import Clock
from kube.errors import ApiError
from kube.objects import ObjectMeta
from kube.resources import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS, Resource

_log = logging.getLogger(__name__)

LOOK_EVERY: Final = 30.0  # seconds; also how soon trust is mended after somebody removed it
RETRY_AFTER: Final = 2.0


class _Secret(msgspec.Struct):
    metadata: ObjectMeta
    data: dict[str, bytes] | None = None  # msgspec takes the base64 off

    def part(self, key: str) -> bytes | None:
        return (self.data or {}).get(key)


class _ClientConfig(msgspec.Struct, rename="camel"):
    ca_bundle: bytes = b""


class _Webhook(msgspec.Struct, rename="camel"):
    name: str
    client_config: _ClientConfig = msgspec.field(default_factory=_ClientConfig)


class _Configuration(msgspec.Struct):
    metadata: ObjectMeta
    webhooks: list[_Webhook] = msgspec.field(default_factory=list)


class Rotator:
    """Issues and renews, and has the API server trust what is served."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        namespace: str,
        hosts: tuple[str, ...],
        fenced: Callable[[], int | None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._wanted = _names(namespace, hosts)
        self._fenced = fenced

    async def run(self) -> None:
        """Look again and again until cancelled; what fails is logged and tried again."""
        while True:
            try:
                if self._fenced() is not None:
                    await self.look()
                await self._clock.sleep(LOOK_EVERY)
            except ApiError as error:
                _log.warning("the certificates cannot be kept now: %s", error)
                await self._clock.sleep(RETRY_AFTER)

    async def look(self) -> None:
        """Look once and write what is due."""
        authority, leaf = await self._secret(names.CA_SECRET), await self._secret(names.TLS_SECRET)
        found = rotation.Found(
            authority.part("ca.crt"),
            authority.part("ca.key"),
            leaf.part("tls.crt"),
            leaf.part("tls.key"),
        )
        now = self._clock.now()
        decision = rotation.decide(found, self._wanted, now)
        signer: issue.Authority | None = None
        if isinstance(decision, rotation.IssueAuthority):
            _log.info("issuing a new authority: %s", decision.reason)
            signer = issue.issue_authority(now)
            await self._write(
                names.CA_SECRET,
                authority,
                {"ca.crt": signer.certificate_pem, "ca.key": signer.key_pem},
            )
        elif found.authority_certificate and found.authority_key:
            signer = issue.Authority(found.authority_certificate, found.authority_key)
        if signer is None:
            return
        for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS):
            await self._trust(kind, signer)
        if not isinstance(decision, rotation.Keep):
            _log.info("issuing a new leaf: %s", decision.reason)
            fresh = issue.issue_leaf(signer, self._wanted, now)
            await self._write(
                names.TLS_SECRET,
                leaf,
                {
                    "tls.crt": fresh.certificate_pem,
                    "tls.key": fresh.key_pem,
                    "ca.crt": signer.certificate_pem,
                },
            )

    async def _secret(self, name: str) -> _Secret:
        return await self._client.get(SECRETS, _Secret, name, self._namespace)

    async def _write(self, name: str, seen: _Secret, data: dict[str, bytes]) -> None:
        body = {"metadata": {"resourceVersion": seen.metadata.resource_version}, "data": data}
        await self._client.merge_patch(SECRETS, name, body, self._namespace)

    async def _trust(self, kind: Resource, signer: issue.Authority) -> None:
        """Have the webhooks trust the authority, beside the one before while that lives."""
        found = await self._client.get(kind, _Configuration, names.WEBHOOK_CONFIGURATION)
        patch: list[JsonObject] = []
        for i, webhook in enumerate(found.webhooks):
            before = webhook.client_config.ca_bundle
            wanted = bundle.merge(signer.certificate_pem, before, self._clock.now())
            if wanted != before:
                encoded: Json = msgspec.to_builtins(wanted)
                patch += [
                    {"op": "test", "path": f"/webhooks/{i}/name", "value": webhook.name},
                    {
                        "op": "add",
                        "path": f"/webhooks/{i}/clientConfig/caBundle",
                        "value": encoded,
                    },
                ]
        if patch:
            # A bundle is merged from what was read, so nobody may have changed it since.
            version = found.metadata.resource_version
            patch.insert(0, {"op": "test", "path": "/metadata/resourceVersion", "value": version})
            _log.info("%s %s trusts the authority now", kind.kind, names.WEBHOOK_CONFIGURATION)
            await self._client.json_patch(kind, names.WEBHOOK_CONFIGURATION, patch)


def _names(namespace: str, hosts: tuple[str, ...]) -> issue.Names:
    service = names.WEBHOOK_SERVICE
    return issue.Names.of(service, f"{service}.{namespace}", f"{service}.{namespace}.svc", *hosts)

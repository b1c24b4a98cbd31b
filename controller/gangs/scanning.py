"""Holds what is there already against the policy: what would be refused or warned of by now.

Nothing of it is changed. By the same evaluator as admission, but for who submits it, which nobody
can know any more. Each scan begins at nothing and each of its writes stands for itself, so that a
successor of one who died begins anew.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast

import msgspec
import orjson

from api import names
from api.jsons import JsonObject
from controller.gangs import scan_results
from controller.gangs.scan_metering import Unmetered
from controller.gangs.scan_reporting import Reporter
from controller.gangs.scan_results import Looked, Tally
from kube.backoff import Backoff, BackoffSettings
from kube.client import Client, Scope
from kube.errors import ApiError, NotFound
from kube.objects import LabelledMeta, LabelledObject
from kube.resources import (
    CONFIGMAPS,
    MUTATING_WEBHOOKS,
    PODCLIQUESETS,
    PODS,
    TOPOLOGY_BINDINGS,
    Resource,
)
from policies import policy_source, trying
from policies.known import Snapshot
from policies.policy import Policy
from policies.policy_source import BUILT_IN_SOURCE, BadPolicyError, Source
from policies.trying import Submitter

_log = logging.getLogger(__name__)

LOOK_EVERY: Final = 2.0
"""Seconds between two looks whether there is a reason to scan."""

SCAN_EVERY: Final = 600.0
RETRIES: Final = BackoffSettings(floor=4.0, ceiling=60.0)
PAUSE: Final = 0.02
"""Seconds between two objects, so that there are fifty a second at most."""

MOST_FINDINGS: Final = 20

ALWAYS_LEFT_OUT: Final = ("kube-system", "kube-public", "kube-node-lease")
NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"

_PLAIN: Final = Scope(
    labels=f"{names.GANG_LABEL},!{names.PODGANG_LABEL}",
    fields="status.phase!=Succeeded,status.phase!=Failed",
    metadata_only=True,
)
_SETS: Final = Scope(metadata_only=True)


class _Config(msgspec.Struct, frozen=True):
    data: dict[str, str] | None = None


class _Expression(msgspec.Struct, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class _Selector(msgspec.Struct, frozen=True, rename="camel"):
    match_expressions: tuple[_Expression, ...] = ()


class _Webhook(msgspec.Struct, frozen=True, rename="camel"):
    namespace_selector: _Selector = _Selector()


class _Configuration(msgspec.Struct, frozen=True):
    webhooks: tuple[_Webhook, ...] = ()


class Scanner:
    """Looks at everything now and then, and when the policy has changed, while leading."""

    def __init__(
        self, client: Client, namespace: str, fenced: Callable[[], int | None], *, sets: bool
    ) -> None:
        self._client = client
        self._clock = client.clock
        self._namespace = namespace
        self._fenced = fenced
        self._reporter = Reporter(client)
        self.meter: Unmetered = Unmetered()
        self._kinds = ((PODCLIQUESETS, _SETS), (PODS, _PLAIN)) if sets else ((PODS, _PLAIN),)
        self._changed = True
        self._scanned = ""
        self._due = float("-inf")

    def wake(self) -> None:
        """Have a look soon whether it is another policy by now."""
        self._changed = True

    async def run(self, rng: random.Random) -> None:
        """Scan until cancelled; what fails is logged and tried again."""
        backoff = Backoff(RETRIES, rng)
        while True:
            await self._clock.sleep(LOOK_EVERY)
            is_due = self._clock.monotonic() >= self._due
            if self._fenced() is None or not (self._changed or is_due):
                continue
            self._changed = False
            try:
                await self.look(again=is_due)
                backoff.succeeded(self._clock.monotonic())
            except ApiError as error:
                _log.warning("what is there cannot be held against the policy now: %s", error)
                self.meter.failed()
                now = self._clock.monotonic()
                self._due = now + backoff.failed(now)

    async def look(self, *, again: bool = False) -> None:
        """Scan, if it is another policy than last time or is to be done `again`."""
        source = await self._policy()
        if source.revision == self._scanned and not again:
            return
        begun = self._clock.monotonic()
        tally = await self._scan(source)
        if tally is None:
            return  # another leads
        await self._write(tally)
        self.meter.finished(tally, self._clock.monotonic() - begun, self._clock.now())
        self._scanned = source.revision
        self._due = self._clock.monotonic() + SCAN_EVERY
        _log.info(
            "held %s against the policy of revision %s: %d of them break a rule",
            ", ".join(f"{count} of {kind}" for kind, count in tally.counts.items()) or "nothing",
            source.revision,
            len(tally.broken),
        )

    async def _policy(self) -> Source:
        """Read the policy as the webhook does: the last good one, if it cannot be gone by."""
        for name in (names.POLICY_CONFIG, names.KEPT_POLICY_CONFIG):
            try:
                found = await self._client.get(CONFIGMAPS, _Config, name, self._namespace)
                text = (found.data or {}).get(names.POLICY_KEY)
                if text is not None:
                    return policy_source.read(name, text)
            except (NotFound, BadPolicyError):
                continue
        return BUILT_IN_SOURCE

    async def _scan(self, source: Source) -> Tally | None:
        tally = Tally(source.revision)
        policy = source.policy
        if not (policy.queues or policy.rules):
            return tally
        known, left_out = await self._known(), await self._left_out()
        for resource, scope in self._kinds:
            for meta in await self._list(resource, scope):
                if meta.namespace in left_out:
                    continue
                if self._fenced() is None:
                    return None
                looked = await self._looked(resource, meta, policy, known)
                if looked is not None:
                    tally.add(looked)
                    self.meter.judged(looked.kind)
                await self._clock.sleep(PAUSE)
        return tally

    async def _known(self) -> Snapshot:
        try:
            listed = await self._client.list_with(TOPOLOGY_BINDINGS, _json, Scope())
        except NotFound:
            return Snapshot()
        # Items of a list need not say what they are.
        kind: JsonObject = {"kind": TOPOLOGY_BINDINGS.kind}
        return trying.known_from({**kind, **each} for each in listed.items)

    async def _left_out(self) -> set[str]:
        """Give the namespaces that admission is never asked about, as the chart was told."""
        found = {*ALWAYS_LEFT_OUT, self._namespace}
        try:
            configuration = await self._client.get(
                MUTATING_WEBHOOKS, _Configuration, names.WEBHOOK_CONFIGURATION
            )
        except NotFound:
            return found
        for webhook in configuration.webhooks:
            for each in webhook.namespace_selector.match_expressions:
                if (each.key, each.operator) == (NAMESPACE_LABEL, "NotIn"):
                    found.update(each.values)
        return found

    async def _list(self, resource: Resource, scope: Scope) -> list[LabelledMeta]:
        """Give names only: the objects of a large cluster would not fit into memory."""
        decoder = msgspec.json.Decoder(LabelledObject)
        try:
            listed = await self._client.list_with(resource, decoder.decode, scope)
        except NotFound:
            return []
        return [each.metadata for each in listed.items]

    async def _looked(
        self, resource: Resource, meta: LabelledMeta, policy: Policy, known: Snapshot
    ) -> Looked | None:
        try:
            text = await self._client.raw_get(resource.path(meta.namespace, meta.name))
        except NotFound:
            return None  # gone meanwhile
        # Beside the loop, which renews the lease: the largest sets take a while.
        by = By(policy, known, self._clock.now())
        return await asyncio.to_thread(look_at, text, resource, by)

    async def _write(self, tally: Tally) -> None:
        await self._reporter.report(tally)
        text = scan_results.summary(tally, self._clock.now())
        body: JsonObject = {"data": {names.SCAN_KEY: text}}
        try:
            await self._client.merge_patch(CONFIGMAPS, names.SCAN_CONFIG, body, self._namespace)
        except NotFound:
            _log.warning(
                "there is no ConfigMap %s to say it in: install the chart again", names.SCAN_CONFIG
            )


@dataclass(frozen=True)
class By:
    """What objects are held against."""

    policy: Policy
    known: Snapshot
    now: datetime


def look_at(text: bytes, resource: Resource, by: By) -> Looked | None:
    """Hold one object against the policy; None if admission would not be asked about it."""
    raw = cast("JsonObject", orjson.loads(text))
    tried = trying.asked({**raw, "kind": resource.kind}, Submitter(), by.now)
    if tried is None:
        return None
    meta = msgspec.convert(raw.get("metadata"), LabelledMeta)
    found = trying.judged(by.policy, by.known, tried).findings[:MOST_FINDINGS]
    where = (resource.api_version, resource.kind, meta.namespace, meta.name, meta.uid)
    return Looked(*where, findings=found)


def _json(raw: msgspec.Raw) -> JsonObject:
    return cast("JsonObject", orjson.loads(bytes(raw)))

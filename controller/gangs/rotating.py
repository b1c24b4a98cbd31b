"""Keeps the webhook's certificate good: looks, decides purely, writes one thing, and looks again.

It looks whenever one of its objects changes, and from time to time.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from api import names
from api.jsons import JsonObject
from certs import issue, ledger, rotation
from certs.ledger import Ledger, Pair
from controller.gangs import replicas, trusting
from controller.gangs.replicas import Replicas
from controller.gangs.trusting import Bundles
from kube.cache import Cache, Change
from kube.client import Client, Scope
from kube.clock import Clock
from kube.errors import ApiError, NotFound
from kube.objects import BareObject, ObjectMeta
from kube.resources import API_SERVICES, SECRETS, Resource

_log = logging.getLogger(__name__)

LOOK_EVERY: Final = 10.0  # seconds, should a change have been missed
RETRY_AFTER: Final = 2.0
# More than any way back takes; beyond it somebody works against us, so others get to run.
STEPS_AT_ONCE: Final = 20


class _Meta(ObjectMeta, frozen=True, rename="camel"):
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class _Secret(msgspec.Struct, frozen=True):
    metadata: _Meta
    data: dict[str, bytes] | None = None  # msgspec takes the base64 off

    def part(self, key: str) -> bytes:
        return (self.data or {}).get(key, b"")


@dataclass(frozen=True)
class Absent:
    """There is no such Secret."""


@dataclass(frozen=True)
class Care:
    """What certificates are for, who serves them, and how long phases wait."""

    namespace: str
    hosts: tuple[str, ...]
    replicas: Replicas
    waits: rotation.Waits

    @property
    def wanted(self) -> issue.Names:
        """Give the names the leaf must be for."""
        service = names.WEBHOOK_SERVICE
        inside = (service, f"{service}.{self.namespace}", f"{service}.{self.namespace}.svc")
        return issue.Names.of(*inside, *self.hosts)


@dataclass(frozen=True)
class _Look:
    """What was found, and the objects it was found in."""

    seen: rotation.Seen
    ca: _Secret | Absent
    tls: _Secret | Absent
    bundles: Bundles


class Rotator:
    """Issues and renews, and has the API server trust what is served."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        care: Care,
        fenced: Callable[[], int | None],
        source: issue.Source = issue.FRESH,
    ) -> None:
        self._client = client
        self._clock = clock
        self._care = care
        self._fenced = fenced
        self._source = source
        self._changed = asyncio.Event()
        self._waiting_for = ""

    async def run(self) -> None:
        """Look again and again until cancelled; what fails is logged and tried again."""
        while True:
            self._changed.clear()
            try:
                pause = await self.look() if self._leads() else LOOK_EVERY
            except (ApiError, OSError) as error:
                _log.warning("the certificates cannot be kept now: %s", error)
                await self._clock.sleep(RETRY_AFTER)
            else:
                await self._pause(pause)

    async def follow(self, rng: random.Random) -> None:
        """Look as soon as one of the objects changes; runs until cancelled."""
        secrets = ((SECRETS, self._care.namespace, n) for n in (names.CA_SECRET, names.TLS_SECRET))
        configurations = (
            (kind, None, names.WEBHOOK_CONFIGURATION) for kind in trusting.CONFIGURATIONS
        )
        registration = (API_SERVICES, None, names.AUDIT_SERVICE)
        async with asyncio.TaskGroup() as group:
            for kind, namespace, name in (*secrets, *configurations, registration):
                group.create_task(self._watch(kind, Scope(namespace, "", _named(name)), rng))

    def wake(self, _change: Change[BareObject]) -> None:
        """Look now, and not when the pause is over."""
        self._changed.set()

    async def look(self) -> float:
        """Do step by step what is due; return after how many seconds to look again."""
        for _ in range(STEPS_AT_ONCE):
            if not self._leads():
                return LOOK_EVERY
            look = await self._read()
            step = self._decide(look.seen)
            # Before anything rests on its being trusted; what is about to change is no example.
            if not isinstance(step, rotation.Trust) and await look.bundles.follow(
                self._client, self._leads
            ):
                continue
            if isinstance(step, rotation.AskReplicas):
                addresses = await self._care.replicas.addresses()
                served = rotation.Served(await replicas.served(addresses))
                step = self._decide(replace(look.seen, served=served))
            match step:
                case rotation.Rest():
                    return self._rest(step)
                case rotation.AskReplicas():
                    raise AssertionError("they were asked")
                case _:
                    await self._do(step, look)
        # Not to be woken from: whoever works against us changes things all the time.
        _log.warning("certificates: still not at rest after %d steps", STEPS_AT_ONCE)
        await self._clock.sleep(RETRY_AFTER)
        return 0.0

    def _decide(self, seen: rotation.Seen) -> rotation.Step:
        return rotation.decide(seen, self._care.wanted, self._clock.now(), self._care.waits)

    def _rest(self, step: rotation.Rest) -> float:
        if step.waiting_for != self._waiting_for:
            _log.info("the certificates wait for %s", step.waiting_for)
            self._waiting_for = step.waiting_for
        seconds = (step.until - self._clock.now()).total_seconds()
        return max(0.0, min(LOOK_EVERY, seconds))

    def _leads(self) -> bool:
        return self._fenced() is not None

    async def _pause(self, seconds: float) -> None:
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        woken = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait({sleeping, woken}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            woken.cancel()

    async def _watch(self, kind: Resource, scope: Scope, rng: random.Random) -> None:
        cache = Cache(self._client, kind, BareObject, rng, scope)
        cache.subscribe(self.wake)
        await cache.run()

    async def _read(self) -> _Look:
        ca, tls = await self._secret(names.CA_SECRET), await self._secret(names.TLS_SECRET)
        found = Ledger()
        if isinstance(ca, _Secret):
            found = ledger.read(ca.data or {}, ca.metadata.annotations)
        leaf = Pair()
        if isinstance(tls, _Secret):
            leaf = Pair(tls.part("tls.crt"), tls.part("tls.key"))
        bundles = await trusting.read(self._client)
        return _Look(rotation.Seen(found, leaf, bundles.every), ca, tls, bundles)

    async def _secret(self, name: str) -> _Secret | Absent:
        try:
            return await self._client.get(SECRETS, _Secret, name, self._care.namespace)
        except NotFound:
            return Absent()

    async def _do(self, step: rotation.Write, look: _Look) -> None:
        level = logging.WARNING if step.alarming else logging.INFO
        _log.log(level, "certificates: %s: %s", type(step).__name__, step.reason)
        now = self._clock.now()
        match step:
            case rotation.Introduce(kept):
                fresh = issue.issue_authority(now, self._source)
                await self._write_ledger(look.ca, kept.introduced(fresh))
            case rotation.Store(kept):
                await self._write_ledger(look.ca, kept)
            case rotation.Trust(bundle):
                await look.bundles.write(self._client, bundle, self._leads)
            case rotation.IssueLeaf():
                await self._issue(look)
        if step.alarming:
            await self._raise(step.reason)

    async def _issue(self, look: _Look) -> None:
        pair = look.seen.ledger.authority
        signer = issue.Authority(pair.certificate, pair.key)
        leaf = issue.issue_leaf(signer, self._care.wanted, self._clock.now(), self._source)
        data: dict[str, bytes | None] = {
            "tls.crt": leaf.certificate_pem,
            "tls.key": leaf.key_pem,
            "ca.crt": signer.certificate_pem,
        }
        await self._write(names.TLS_SECRET, look.tls, data, {})

    async def _write_ledger(self, ca: _Secret | Absent, kept: Ledger) -> None:
        await self._write(names.CA_SECRET, ca, ledger.data(kept), ledger.annotations(kept))

    async def _write(
        self,
        name: str,
        seen: _Secret | Absent,
        data: dict[str, bytes | None],
        annotations: dict[str, str | None],
    ) -> None:
        """Write a Secret as it was seen; one that somebody deleted is made again."""
        if isinstance(seen, Absent):
            _log.warning("certificates: the Secret %s is gone: making it again", name)
            meta = {"name": name, "labels": _LABELS, "annotations": _without_none(annotations)}
            body = {
                "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                "metadata": meta, "data": _without_none(data),
            }  # fmt: skip
            await self._client.create(SECRETS, body, self._care.namespace)
            await self._raise(f"the Secret {name} was gone")
        else:
            version = seen.metadata.resource_version
            meta = {"resourceVersion": version, "annotations": annotations}
            await self._merge(name, {"metadata": meta, "data": data})

    async def _raise(self, alarm: str) -> None:
        """Leave the last alarm where people look; the log has all of them."""
        with suppress(NotFound):
            text = f"{self._clock.now():%Y-%m-%dT%H:%M:%SZ} {alarm}"
            body = {"metadata": {"annotations": {names.CERTIFICATE_ALARM: text}}}
            await self._merge(names.CA_SECRET, body)

    async def _merge(self, name: str, body: object) -> None:
        await self._client.merge_patch(SECRETS, name, body, self._care.namespace)


_LABELS: Final[JsonObject] = {
    names.NAME_LABEL: "penstock",
    names.PART_OF_LABEL: "penstock",
    names.COMPONENT_LABEL: "gangs",
}


def _named(name: str) -> str:
    return f"metadata.name={name}"


def _without_none(parts: dict[str, str | None] | dict[str, bytes | None]) -> dict[str, object]:
    return {key: part for key, part in parts.items() if part is not None}

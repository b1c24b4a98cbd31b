"""The rotator against a pretend API server: what others do in between, and who may write."""

import asyncio
import base64
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from aiohttp import web

from api import names
from api.jsons import Json, JsonObject
from certs import rotation
from controller.gangs.replicas import Address
from controller.gangs.rotating import LOOK_EVERY, RETRY_AFTER, Care, Rotator
from kube.cache import Added
from kube.errors import Conflict, Invalid
from kube.objects import BareObject, ObjectMeta
from kube.resources import API_SERVICES, MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS
from tests.support.manualclock import LeapingClock, ManualClock
from tests.support.patchapi import PatchApi, patching
from tests.support.polling import eventually

CA = SECRETS.path("ours", names.CA_SECRET)
TLS = SECRETS.path("ours", names.TLS_SECRET)
VALIDATING = VALIDATING_WEBHOOKS.path(None, names.WEBHOOK_CONFIGURATION)
MUTATING = MUTATING_WEBHOOKS.path(None, names.WEBHOOK_CONFIGURATION)
REGISTRATION = API_SERVICES.path(None, names.AUDIT_SERVICE)
FIRST_ISSUE = [names.CA_SECRET, "penstock", "penstock", names.CA_SECRET, names.TLS_SECRET]


class Nowhere:
    """No replica is ready."""

    async def addresses(self) -> list[Address]:
        return []


@dataclass
class Stand:
    api: PatchApi
    rotator: Rotator
    clock: LeapingClock
    term: list[int | None]

    def part(self, path: str, key: str) -> bytes:
        data = self.api.objects[path]["data"]
        assert isinstance(data, dict)
        return base64.b64decode(str(data[key]))

    def annotation(self, key: str) -> Json:
        meta = self.api.objects[CA]["metadata"]
        assert isinstance(meta, dict)
        found = meta.get("annotations", {})
        assert isinstance(found, dict)
        return found.get(key)

    def bundles(self) -> set[bytes]:
        found: set[bytes] = set()
        for path in (VALIDATING, MUTATING):
            webhooks = self.api.objects[path]["webhooks"]
            assert isinstance(webhooks, list)
            for webhook in webhooks:
                assert isinstance(webhook, dict)
                config = webhook["clientConfig"]
                assert isinstance(config, dict)
                found.add(base64.b64decode(str(config.get("caBundle", ""))))
        return found


def configuration(*webhooks: str) -> JsonObject:
    return {"webhooks": [{"name": name, "clientConfig": {}} for name in webhooks]}


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    """A cluster in which the chart was just installed."""
    async with patching() as (api, client, clock):
        for path in (CA, TLS):
            api.put(path, {"metadata": {}})
        api.put(VALIDATING, configuration("a"))
        api.put(MUTATING, configuration("b", "c"))
        term: list[int | None] = [1]
        care = Care("ours", ("127.0.0.1",), Nowhere(), rotation.Waits())
        yield Stand(api, Rotator(client, clock, care, lambda: term[0]), clock, term)


async def test_the_first_look_issues_everything_and_the_next_writes_nothing(stand: Stand) -> None:
    assert await stand.rotator.look() == LOOK_EVERY
    assert stand.api.writes == FIRST_ISSUE
    assert stand.bundles() == {stand.part(CA, "ca.crt")}
    assert stand.part(TLS, "ca.crt") == stand.part(CA, "ca.crt")
    assert await stand.rotator.look() == LOOK_EVERY
    assert stand.api.writes == FIRST_ISSUE
    assert stand.annotation(names.CERTIFICATE_ALARM) is None


async def test_who_does_not_lead_looks_at_nothing(stand: Stand) -> None:
    stand.term[0] = None
    await stand.rotator.look()
    assert stand.api.writes == []


async def test_who_loses_the_lead_in_the_middle_writes_no_more(stand: Stand) -> None:
    def lose(write: str) -> None:
        if write.endswith("/penstock"):
            stand.term[0] = None

    stand.api.before = lose
    await stand.rotator.look()
    assert stand.api.writes == FIRST_ISSUE[:2]


@pytest.mark.parametrize(("path", "error"), [(CA, Conflict), (VALIDATING, Invalid)])
async def test_what_somebody_changed_meanwhile_is_not_written_over(
    path: str, error: type[Exception], stand: Stand
) -> None:
    def meddle(write: str) -> None:
        if write == f"PATCH {path}":
            stand.api.touch(path)

    stand.api.before = meddle
    with pytest.raises(error):
        await stand.rotator.look()
    stand.api.before = lambda _: None
    await stand.rotator.look()
    assert stand.bundles() == {stand.part(CA, "ca.crt")}
    assert stand.part(TLS, "tls.crt")


async def test_a_deleted_secret_is_made_again_and_that_is_said(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    await stand.rotator.look()
    del stand.api.objects[TLS]
    with caplog.at_level(logging.WARNING):
        await stand.rotator.look()
    assert stand.part(TLS, "tls.crt")
    assert f"the Secret {names.TLS_SECRET} is gone: making it again" in caplog.text
    assert f"the Secret {names.TLS_SECRET} was gone" in str(
        stand.annotation(names.CERTIFICATE_ALARM)
    )


async def test_a_deleted_configuration_is_said_and_the_other_is_kept(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    del stand.api.objects[MUTATING]
    with caplog.at_level(logging.WARNING):
        await stand.rotator.look()
    assert stand.api.writes == [each for i, each in enumerate(FIRST_ISSUE) if i != 2]
    assert "there is no MutatingWebhookConfiguration penstock" in caplog.text


async def test_an_alarm_is_left_on_the_secret_with_its_instant(stand: Stand) -> None:
    await stand.rotator.look()
    stand.api.put(VALIDATING, configuration("a"))
    await stand.rotator.look()
    alarm = str(stand.annotation(names.CERTIFICATE_ALARM))
    assert (
        alarm
        == f"{stand.clock.now():%Y-%m-%dT%H:%M:%SZ} a webhook's CA bundle was empty or not ours"
    )


async def test_a_wish_takes_the_wait_it_is_told_and_ends_retiring(stand: Stand) -> None:
    await stand.rotator.look()
    first = stand.part(CA, "ca.crt")
    meta = stand.api.objects[CA]["metadata"]
    assert isinstance(meta, dict)
    assert isinstance(meta["annotations"], dict)
    meta["annotations"][names.ROTATE] = "please"
    assert await stand.rotator.look() == LOOK_EVERY  # of a minute
    assert stand.part(CA, "ca.crt") == first
    assert first in next(iter(stand.bundles()))
    stand.clock.skip(60)
    await stand.rotator.look()
    assert stand.part(CA, "ca.crt") != first
    assert stand.part(TLS, "ca.crt") == stand.part(CA, "ca.crt")
    assert stand.annotation(names.ROTATION_PHASE) == "Retiring"
    stand.clock.skip(86_400)
    await stand.rotator.look()
    assert stand.bundles() == {stand.part(CA, "ca.crt")}
    assert stand.annotation(names.ROTATION_PHASE) == "Steady"
    assert stand.annotation(names.ROTATION_SINCE) is None


@pytest.mark.parametrize("path", [CA, VALIDATING], ids=["between writes", "during a write"])
async def test_whoever_works_against_us_all_the_time_has_us_write_so_much_and_pause(
    path: str,
) -> None:
    async with patching() as (api, client, _):
        clock = ManualClock()
        care = Care("ours", (), Nowhere(), rotation.Waits())
        rotator = Rotator(client, clock, care, lambda: 1)
        for secret in (CA, TLS):
            api.put(secret, {"metadata": {}})
        tried: list[str] = []

        def clear(write: str) -> None:
            tried.append(write)
            if write.endswith(path):
                api.put(VALIDATING, configuration("a"))
            rotator.wake(Added(BareObject(ObjectMeta("penstock"))))

        clear(path)
        api.before = clear
        running = asyncio.ensure_future(rotator.run())
        for _ in range(2):
            await eventually(lambda: clock.next_wake() == RETRY_AFTER, "a pause", 10)
            before = len(tried)
            for _ in range(20):
                await client.raw_get(VALIDATING)
            assert len(tried) == before > 1
            await clock.advance(RETRY_AFTER)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def registered(stand: Stand) -> bytes:
    """Look whom API servers trust to tell of the audit log."""
    spec = stand.api.objects[REGISTRATION]["spec"]
    assert isinstance(spec, dict)
    return base64.b64decode(str(spec.get("caBundle", "")))


async def test_the_audit_logs_registration_trusts_what_the_webhooks_do(stand: Stand) -> None:
    stand.api.put(REGISTRATION, {"spec": {"group": "audit.penstock.dev"}})
    await stand.rotator.look()
    assert {registered(stand)} == stand.bundles() == {stand.part(CA, "ca.crt")}
    assert stand.annotation(names.CERTIFICATE_ALARM) is None
    before = len(stand.api.writes)
    await stand.rotator.look()
    assert stand.api.writes[before:] == []


async def test_a_registration_that_comes_later_or_is_spoilt_is_no_alarm(stand: Stand) -> None:
    await stand.rotator.look()
    spoilt_ones: tuple[JsonObject, ...] = ({}, {"caBundle": "QUJD"})
    for spoilt in spoilt_ones:
        stand.api.put(REGISTRATION, {"spec": spoilt})
        before = len(stand.api.writes)
        await stand.rotator.look()
        assert stand.api.writes[before:] == [names.AUDIT_SERVICE]
        assert registered(stand) == stand.part(CA, "ca.crt")
    assert stand.annotation(names.CERTIFICATE_ALARM) is None


async def test_it_trusts_a_new_authority_before_that_signs_and_the_former_as_long(
    stand: Stand,
) -> None:
    """At each write of a rotation, who serves is trusted by it."""
    stand.api.put(REGISTRATION, {"spec": {}})
    await stand.rotator.look()
    stand.api.put(CA, {**stand.api.objects[CA], "metadata": {"annotations": {names.ROTATE: "1"}}})
    held: list[tuple[bytes, bytes]] = []

    def look(_: str) -> None:
        held.append((stand.part(TLS, "ca.crt"), registered(stand)))

    stand.api.before = look
    for _ in range(10):
        await stand.rotator.look()
        await stand.clock.sleep(61.0)
    assert len({signer for signer, _ in held}) == 2, "it was rotated"
    for signer, trusted in held:
        assert signer in trusted


async def test_one_that_is_not_to_be_looked_through_is_left_alone(stand: Stand) -> None:
    stand.api.put(REGISTRATION, {"spec": {"insecureSkipTLSVerify": True}})
    await stand.rotator.look()
    assert names.AUDIT_SERVICE not in stand.api.writes


async def test_a_registration_that_cannot_be_written_holds_up_no_certificate(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    stand.api.put(REGISTRATION, {"spec": {}})

    def refuse(write: str) -> None:
        if write.endswith(names.AUDIT_SERVICE):
            raise web.HTTPForbidden

    stand.api.before = refuse
    with caplog.at_level(logging.WARNING):
        await stand.rotator.look()
    assert stand.api.writes == FIRST_ISSUE
    assert "audit log's CA bundle cannot be kept" in caplog.text

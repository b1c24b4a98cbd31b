"""Whether this process answers at its own address, and until when its certificate is good."""

import asyncio
import logging
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from kube.clock import Clock
from webhook import tls

LOG: Final = logging.getLogger(__name__)

DIAL_SECONDS: Final = 5.0
EVERY: Final = 5.0
EVERY_AT_FIRST: Final = 0.1
# How soon after the certificate has changed it is looked at.
LOOK_EVERY: Final = 0.5
STALE: Final = 3 * EVERY
"""An answer this old counts no longer; one that comes late does no harm."""

# OpenSSL's flags, of which Python names only some. Times are ours to judge, by our own clock; and
# the certificate that is shown is known, so no authority above it is asked for.
NO_CHECK_TIME: Final = 0x200000
PARTIAL_CHAIN: Final = ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
WILDCARDS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - they stand for any


@dataclass(frozen=True)
class Validity:
    """From when until when a certificate is good."""

    since: datetime
    until: datetime


class SelfCheck:
    """Dials the address every few seconds; asked from any thread what came of it."""

    def __init__(self, address: tuple[str, int], contexts: tls.Contexts, clock: Clock) -> None:
        host, self._port = address
        self._host = WILDCARDS.get(host, host)
        self._contexts = contexts
        self._clock = clock
        self._answered_at: float | None = None
        self._complaint = "not dialled yet"
        self.validity: Validity | None = None

    def reasons(self) -> tuple[str, ...]:
        """Give what keeps this process from being of use now."""
        answered, validity = self._answered_at, self.validity
        if answered is None or validity is None:
            return (f"a TLS dial to itself: {self._complaint}",)
        if self._clock.monotonic() - answered > STALE:
            return (f"a TLS dial to itself has failed for {STALE:g} s: {self._complaint}",)
        now = self._clock.now()
        if now > validity.until:
            return (f"the certificate has ended at {validity.until:%Y-%m-%dT%H:%M:%SZ}",)
        if now < validity.since:
            return (f"the certificate is not good before {validity.since:%Y-%m-%dT%H:%M:%SZ}",)
        return ()

    async def run(self) -> None:
        """Dial until cancelled."""
        while True:
            await self.dial()
            await self._until_due()

    async def _until_due(self) -> None:
        if self._answered_at is None:
            return await self._clock.sleep(EVERY_AT_FIRST)
        dialled, shown = self._clock.monotonic(), self._contexts.certificate()
        while self._clock.monotonic() - dialled < EVERY:
            await self._clock.sleep(LOOK_EVERY)
            if self._contexts.certificate() != shown:
                return None
        return None

    async def dial(self) -> None:
        """Dial once and note what came of it."""
        try:
            async with asyncio.timeout(DIAL_SECONDS):
                self.validity = await self._dialled()
        except (OSError, ValueError) as error:  # ssl's errors and time-outs are OSErrors
            self._complaint = str(error) or "no answer"
            LOG.debug("a dial to %s port %d failed: %s", self._host, self._port, error)
        else:
            self._answered_at = self._clock.monotonic()

    async def _dialled(self) -> Validity:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_flags |= PARTIAL_CHAIN | NO_CHECK_TIME
        context.load_verify_locations(cadata=self._contexts.certificate())
        _, writer = await asyncio.open_connection(self._host, self._port, ssl=context)
        try:
            shown: dict[str, str] = writer.get_extra_info("peercert")
        finally:
            writer.close()
        return Validity(_instant(shown["notBefore"]), _instant(shown["notAfter"]))


def _instant(written: str) -> datetime:
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(written), UTC)

"""Follows the policy that the webhook goes by, to tell which pods it would let in as they are.

A good one in the ConfigMap counts. In place of one that is bad or gone, the last good one does, as
for the webhook; before there was any, the built-in one. While that cannot be told, the webhook is
asked about every pod.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Final

import msgspec

from api import names
from controller.workloads.making.judging import GoesBy
from kube.cache import Cache, Change
from kube.client import Client, Scope
from kube.errors import ApiError
from kube.objects import ObjectMeta
from kube.resources import CONFIGMAPS
from policies import policy_source
from policies.policy_source import BUILT_IN_SOURCE, BadPolicyError, Source

_log = logging.getLogger(__name__)

RETRY_SECONDS: Final = 30.0


class Config(msgspec.Struct, frozen=True):
    """A ConfigMap with a policy."""

    metadata: ObjectMeta
    data: dict[str, str] | None = None

    @property
    def text(self) -> str | None:
        """The policy in it."""
        return (self.data or {}).get(names.POLICY_KEY)


class Following:
    """Tells `go_by` what the webhook goes by, whenever that may be another."""

    def __init__(self, go_by: Callable[[GoesBy | None], None]) -> None:
        self._go_by = go_by
        self._held: Source | None = None

    def take(self, written: Config | None, kept: Config | None) -> None:
        """Go by what is written, if that can be gone by, else by what was kept."""
        good = _source(written.text if written is not None else None)
        self._held = good or self._held
        begun = good or _kept(kept.text if kept is not None else None)
        # Those webhooks that run hold what was good last, and one that begins goes by what is kept.
        sure = begun is not None and (self._held or begun).policy == begun.policy
        # A candidate is tried on what the webhook is asked about.
        tried = written is not None and names.CANDIDATE_KEY in (written.data or {})
        self._go_by(GoesBy(begun.policy, begun.revision) if begun and sure and not tried else None)

    async def run(self, client: Client, namespace: str, rng: random.Random) -> None:
        """Follow both ConfigMaps until cancelled; nothing else waits for this."""
        while True:
            try:
                await self._follow(client, namespace, rng)
            except* ApiError as failed:
                self._go_by(None)
                _log.warning(
                    "the webhook is asked about every pod, as the policy cannot be read: %s",
                    failed.exceptions[0],
                )
            await client.clock.sleep(RETRY_SECONDS)

    async def _follow(self, client: Client, namespace: str, rng: random.Random) -> None:
        written, kept = (
            Cache(client, CONFIGMAPS, Config, rng, Scope(namespace, fields=f"metadata.name={name}"))
            for name in (names.POLICY_CONFIG, names.KEPT_POLICY_CONFIG)
        )

        def look(_: Change[Config] | None = None) -> None:
            if written.is_synced and kept.is_synced:
                self.take(
                    written.get(namespace, names.POLICY_CONFIG),
                    kept.get(namespace, names.KEPT_POLICY_CONFIG),
                )

        async with asyncio.TaskGroup() as group:
            group.create_task(written.run())
            group.create_task(kept.run())
            await written.synced()
            await kept.synced()
            look()
            written.subscribe(look)
            kept.subscribe(look)


def _kept(text: str | None) -> Source | None:
    """Give what is gone by where no good policy is written."""
    return BUILT_IN_SOURCE if text is None else _source(text)


def _source(text: str | None) -> Source | None:
    """Read a policy; one that is bad is its authors' business, who are told by others."""
    if text is None:
        return None
    try:
        return policy_source.read(names.POLICY_CONFIG, text)
    except BadPolicyError:
        return None

"""What a kubelet does for our components: tokens and the TLS Secret become files, and stay fresh.

It acts as an account of its own that may do this and nothing else.
"""

import asyncio
import base64
import binascii
import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from api.jsons import Json
from penstock.lab import projected, tokens
from penstock.lab.layout import ACCOUNTS, KUBELET_ACCOUNT, Layout

LOG = logging.getLogger(__name__)

CHECK_SECONDS = 5.0
RETRY_SECONDS = 1.0
SECRET_SECONDS = 1.0
FIRST_SECRET_SECONDS = 0.25
TLS_FILES = ("tls.crt", "tls.key", "ca.crt")


class ClusterError(Exception):
    """The API server did not do what was asked; the message is one line."""


class Cluster(Protocol):
    """The two things the keeper asks of the API server; both raise ClusterError."""

    async def token(self, account: str, seconds: int) -> str:
        """Return a new token for an account."""
        ...

    async def tls_secret(self) -> Json:
        """Return the Secret with the webhook's certificate."""
        ...


class Kubelet:
    """Keeps the files of one lab fresh until cancelled."""

    def __init__(self, layout: Layout, cluster: Cluster, now: Callable[[], float]) -> None:
        self._layout = layout
        self._cluster = cluster
        self._now = now
        self._suspect: set[str] = set()

    def suspect(self, account: str) -> None:
        """Renew this account's token at the next turn, whatever its life: it was refused."""
        self._suspect.add(account)

    async def first_tokens(self) -> None:
        """Write a new token for every component; tries until the API server gives them."""
        self._suspect.update(ACCOUNTS)
        while not await self.renew_due():  # noqa: ASYNC110  (nobody tells when a server is back)
            await asyncio.sleep(RETRY_SECONDS)

    async def keep_tokens(self) -> None:
        """Renew tokens, its own among them, when two thirds of their life are over."""
        while True:
            done = await self.renew_due()
            await asyncio.sleep(CHECK_SECONDS if done else RETRY_SECONDS)

    async def renew_due(self) -> bool:
        """Renew every token that is due and return whether all could be had."""
        done = True
        for account in (KUBELET_ACCOUNT, *ACCOUNTS):
            if account not in self._suspect and not tokens.due(self._read(account), self._now()):
                continue
            try:
                await self._renew(account)
            except ClusterError as error:
                LOG.warning("no new token for %s: %s", account, error)
                done = False
        return done

    async def keep_certificate(self) -> None:
        """Project the TLS Secret whenever it changes; until it is filled, nothing is written."""
        while True:
            there = await self.project_certificate()
            await asyncio.sleep(SECRET_SECONDS if there else FIRST_SECRET_SECONDS)

    async def project_certificate(self) -> bool:
        """Bring the TLS files up to date once and return whether a whole set is there."""
        try:
            files = certificate_files(await self._cluster.tls_secret())
        except ClusterError as error:
            LOG.warning("cannot read the webhook's certificate: %s", error)
            return bool(projected.current(self._layout.tls))
        if files and projected.project(self._layout.tls, files):
            LOG.info("the webhook's certificate is new")
        return bool(files)

    def _read(self, account: str) -> tokens.Token | None:
        files = projected.current(self._layout.token_directory(account))
        return tokens.parse(files.get("token", b"").decode(errors="replace"))

    async def _renew(self, account: str) -> None:
        own = account == KUBELET_ACCOUNT
        seconds = tokens.KUBELET_SECONDS if own else tokens.COMPONENT_SECONDS
        text = await self._cluster.token(account, seconds)
        projected.project(self._layout.token_directory(account), {"token": text.encode()})
        self._suspect.discard(account)
        LOG.info("new token for %s", account)


def certificate_files(secret: Json) -> Mapping[str, bytes]:
    """Return the TLS files a Secret holds; none unless both certificate and key are there."""
    data = secret.get("data") if isinstance(secret, dict) else None
    if not isinstance(data, dict):
        return {}
    files: dict[str, bytes] = {}
    for name in TLS_FILES:
        value = data.get(name)
        if isinstance(value, str) and value:
            try:
                files[name] = base64.b64decode(value, validate=True)
            except binascii.Error:
                return {}
    return files if {"tls.crt", "tls.key"} <= files.keys() else {}

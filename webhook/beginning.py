"""What there must be before serving begins: a policy, and an API server that lets us in.

All of it is looked at before the first connection is taken, so that what is wrong is said in one
line by a process that ends.
"""

import asyncio
import logging
import os
from dataclasses import dataclass, field
from typing import Final

import msgspec

from api import exits, names
from kube import accounts
from kube.access import Credentials
from kube.client import Client
from kube.clock import Clock
from kube.errors import ApiError, BadCredentials, Forbidden, NotFound
from kube.resources import CONFIGMAPS
from kube.startup import StartupFailure, preflight
from policies import policy_source
from policies.policy_source import BUILT_IN_SOURCE, BadPolicyError, Source
from webhook import audit_making, knowledge
from webhook.settings import Settings

LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class Foundation:
    """What everything is judged by. Without credentials, nothing is known of any cluster."""

    source: Source
    credentials: Credentials | None
    audit_secret: bytes = field(default=b"", repr=False, compare=False)


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


def lay(settings: Settings, clock: Clock) -> Foundation:
    """Look at all there must be; raises StartupFailure with the line to end with."""
    try:
        secret = audit_making.secret_of(settings)
        written = _from_file(settings)
        if settings.no_cluster:
            return Foundation(written or BUILT_IN_SOURCE, None, secret)
        found = accounts.load(settings.kubeconfig, clock, os.environ)
        stored = asyncio.run(_look(settings, found, clock))
        return Foundation(written or stored, found, secret)
    except BadPolicyError as error:
        raise StartupFailure(exits.BAD_POLICY, str(error)) from error
    except BadCredentials as error:
        raise StartupFailure(exits.BAD_CREDENTIALS, str(error)) from error


def _from_file(settings: Settings) -> Source | None:
    path = settings.policy_file
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            # One byte more than is taken, so that too much is seen and never read.
            text = file.read(policy_source.LARGEST + 1).decode()
    except OSError as error:
        raise BadPolicyError(f"policy {path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadPolicyError(f"policy {path}: it is not text") from error
    return policy_source.read(str(path), text)


async def _look(settings: Settings, found: Credentials, clock: Clock) -> Source:
    """See that the API server lets us follow what we must know, and get the policy from it."""
    LOG.debug("asking the API server at %s what there is", found.server)
    async with Client(found, "webhook", clock) as client:
        # Beside another maker of gangs they are the other's, which may come later.
        kinds = () if settings.companion else knowledge.KINDS
        await preflight(client, kinds, settings.wait)
        text = await _config(client, settings.namespace, names.POLICY_CONFIG, names.POLICY_KEY)
        kept = await _config(client, settings.namespace, names.KEPT_POLICY_CONFIG, names.POLICY_KEY)
        # Only to see that it may be read.
        await _config(client, settings.namespace, names.CAPACITY_CONFIG, names.CAPACITY_KEY)
    return _chosen(settings.namespace, text, kept)


def _chosen(namespace: str, text: str | None, kept: str | None) -> Source:
    """Read the policy; if it is gone or cannot be gone by, the last one that could be, if any."""
    if text is None and kept is None:
        return BUILT_IN_SOURCE
    last = f"ConfigMap {namespace}/{names.KEPT_POLICY_CONFIG} key {names.POLICY_KEY}"
    if text is None:
        LOG.warning("there is no policy any more; going by the last one, from %s", last)
        return policy_source.read(last, kept or "")
    origin = f"ConfigMap {namespace}/{names.POLICY_CONFIG} key {names.POLICY_KEY}"
    try:
        return policy_source.read(origin, text)
    except BadPolicyError as error:
        if kept is None:
            raise
        LOG.error("%s; going by the last good one, from %s", error, last)  # noqa: TRY400 - the error says it all
        return policy_source.read(last, kept)


async def _config(client: Client, namespace: str, name: str, key: str) -> str | None:
    try:
        found = await client.get(CONFIGMAPS, _ConfigMap, name, namespace)
    except NotFound:
        return None
    except Forbidden as error:
        line = f"a right is missing: {error}; install the chart's RBAC for this account"
        raise StartupFailure(exits.BAD_CREDENTIALS, line) from error
    except ApiError as error:
        line = f"cannot read ConfigMap {namespace}/{name}: {error}"
        raise StartupFailure(exits.NO_API_SERVER, line) from error
    return found.data.get(key)

"""Keeps the last policy that could be gone by, and says on the policy what became of it.

The webhook only reads; what must outlive it is written here, by the one process that leads.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from api import names
from api.jsons import JsonObject
from controller.voicing import Tell
from kube.cache import Cache
from kube.client import Client, Scope
from kube.errors import ApiError, NotFound
from kube.objects import ObjectMeta
from kube.resources import CONFIGMAPS
from policies import policy_source
from policies.policy import Policy
from policies.policy_source import BadPolicyError

_log = logging.getLogger(__name__)

RETRY_SECONDS: Final = 2.0
TAKEN: Final = "PolicyTaken"
NOT_TAKEN: Final = "PolicyNotTaken"
CANDIDATE_NOT_TRIED: Final = "CandidateNotTried"


class _Meta(ObjectMeta, frozen=True, rename="camel"):
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class Config(msgspec.Struct, frozen=True):
    """A ConfigMap of ours."""

    metadata: _Meta
    data: dict[str, str] | None = None

    @property
    def candidate(self) -> str | None:
        """What is only tried beside it."""
        return (self.data or {}).get(names.CANDIDATE_KEY)

    @property
    def text(self) -> str | None:
        """The policy in it."""
        return (self.data or {}).get(names.POLICY_KEY)


class PolicyStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What became of a policy, as its annotation says."""

    valid: bool
    revision: str
    """Of what is gone by: of this policy, or of the last good one."""
    fault: str = ""
    candidate_revision: str = ""
    """Of what is tried beside it."""
    candidate_fault: str = ""


@dataclass(frozen=True)
class Kept:
    """A good policy: it is to be kept from now on."""

    text: str
    status: PolicyStatus


@dataclass(frozen=True)
class Rejected:
    """A bad one: what was kept stays."""

    status: PolicyStatus


def judged(text: str, kept: str | None) -> Kept | Rejected:
    """Decide whether a policy is to be kept, and what its owners are to be told."""
    origin = f"key {names.POLICY_KEY}"
    try:
        revision = policy_source.read(origin, text).revision
        return Kept(text, PolicyStatus(valid=True, revision=revision))
    except BadPolicyError as error:
        fault = str(error)
    try:
        revision = policy_source.read(names.KEPT_POLICY_CONFIG, kept).revision if kept else ""
    except BadPolicyError:
        revision = ""  # kept by an older version, which knew other words
    return Rejected(PolicyStatus(valid=False, revision=revision, fault=fault))


def with_candidate(status: PolicyStatus, text: str | None) -> PolicyStatus:
    """Say too what became of a candidate, if there is one."""
    if text is None:
        return status
    try:
        found = policy_source.read(f"key {names.CANDIDATE_KEY}", text)
    except BadPolicyError as error:
        return msgspec.structs.replace(status, candidate_fault=str(error))
    return msgspec.structs.replace(status, candidate_revision=found.revision)


class Telling(Protocol):
    """Who has Events written."""

    def tell(self, tell: Tell, namespace: str, *, news: bool = False) -> None:
        """Have one written soon."""
        ...


class PolicyKeeper:
    """Follows the policy from the start; writes while leading."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        fenced: Callable[[], int | None],
        voice: Telling,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """Call `changed` whenever the policy may be another."""
        self._client = client
        self._clock = client.clock
        self._namespace = namespace
        self._fenced = fenced
        self._voice = voice
        self._told = changed
        self._changed = asyncio.Event()
        self.goes_by: Callable[[Policy], None] = lambda _: None  # told of the policy in force

    async def run(self, rng: random.Random) -> None:
        """Look at the policy at every change, until cancelled."""
        scope = Scope(self._namespace, fields=f"metadata.name={names.POLICY_CONFIG}")
        cache = Cache(self._client, CONFIGMAPS, Config, rng, scope)
        cache.subscribe(lambda _: self._changed.set())
        cache.subscribe(lambda _: self._told())
        self._changed.set()  # the last good one may be in force, with none there
        async with asyncio.TaskGroup() as group:
            group.create_task(cache.run())
            group.create_task(self._look_always())

    async def _look_always(self) -> None:
        """Keep and tell what is new; what fails is logged and tried again."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                if self._fenced() is not None:
                    await self.look()
            except ApiError as error:
                _log.warning("the policy cannot be kept now: %s", error)
                await self._clock.sleep(RETRY_SECONDS)
                self._changed.set()

    async def look(self) -> None:
        """Keep the policy if it is good, and say on it what became of it."""
        try:
            policy = await self._config(names.POLICY_CONFIG)
        except NotFound:
            policy = None
        if policy is None or policy.text is None:
            # What was kept stays: who takes it away by mistake loses nothing.
            with suppress(NotFound):
                self._go_by((await self._config(names.KEPT_POLICY_CONFIG)).text)
            return
        kept = (await self._config(names.KEPT_POLICY_CONFIG)).text
        verdict = judged(policy.text, kept)
        self._go_by(verdict.text if isinstance(verdict, Kept) else kept)
        if isinstance(verdict, Kept) and kept != verdict.text:
            await self._patch(names.KEPT_POLICY_CONFIG, {"data": {names.POLICY_KEY: verdict.text}})
            _log.info("kept the policy of revision %s", verdict.status.revision)
        status = with_candidate(verdict.status, policy.candidate)
        told = msgspec.json.encode(status).decode()
        before = policy.metadata.annotations.get(names.POLICY_STATUS)
        if before != told:
            # Of this very text: a newer one is looked at next.
            metadata: JsonObject = {
                "resourceVersion": policy.metadata.resource_version,
                "annotations": {names.POLICY_STATUS: told},
            }
            await self._patch(names.POLICY_CONFIG, {"metadata": metadata})
            self._say(policy, status, status_told(policy.metadata.annotations))

    def _go_by(self, text: str | None) -> None:
        with suppress(BadPolicyError):  # kept by an older version
            if text is not None:
                self.goes_by(policy_source.read(names.KEPT_POLICY_CONFIG, text).policy)

    def _say(self, policy: Config, status: PolicyStatus, before: PolicyStatus | None) -> None:
        known = before.candidate_fault if before else ""
        if status.candidate_fault not in ("", known):
            self._tell(policy, CANDIDATE_NOT_TRIED, status.candidate_fault, warning=True)
        if before is not None and _alone(before) == _alone(status):
            return
        note = status.fault or f"gone by from now on, as revision {status.revision}"
        reason = TAKEN if status.valid else NOT_TAKEN
        self._tell(policy, reason, note, warning=not status.valid)
        if not status.valid:
            _log.error("%s; revision %s still holds", status.fault, status.revision or "built-in")

    def _tell(self, policy: Config, reason: str, note: str, *, warning: bool) -> None:
        uid = policy.metadata.uid
        tell = Tell(CONFIGMAPS, names.POLICY_CONFIG, uid, reason, note, warning=warning)
        self._voice.tell(tell, self._namespace, news=True)

    async def _config(self, name: str) -> Config:
        return await self._client.get(CONFIGMAPS, Config, name, self._namespace)

    async def _patch(self, name: str, body: JsonObject) -> None:
        await self._client.merge_patch(CONFIGMAPS, name, body, self._namespace)


def _alone(status: PolicyStatus) -> PolicyStatus:
    """Leave the candidate out of it."""
    return msgspec.structs.replace(status, candidate_revision="", candidate_fault="")


def status_told(annotations: Mapping[str, str]) -> PolicyStatus | None:
    """Read what was said of a policy; None if nothing, or by a version with other words."""
    told = annotations.get(names.POLICY_STATUS)
    try:
        return msgspec.json.decode(told, type=PolicyStatus) if told else None
    except msgspec.MsgspecError:
        return None

"""Whether admission works as API servers see it, told by dry runs; closing webhooks that do.

A webhook that fails closed and was never reached would refuse every set. So the chart makes them
open, and they are closed once one set was refused in our words and others were let in. A refusal is
proof that API servers reach us; that nothing is refused would be none, with open webhooks.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import msgspec

from api import exits, names
from api.jsons import JsonObject
from kube.client import Client
from kube.clock import Clock
from kube.errors import ApiError, NotFound
from kube.resources import (
    MUTATING_WEBHOOKS,
    PODCLIQUESETS,
    TOPOLOGY_BINDINGS,
    VALIDATING_WEBHOOKS,
    Resource,
)

NAMESPACE: Final = "default"
NAME: Final = "penstock-proof"
OF_SETS: Final = "podcliquesets.penstock.dev"
OPEN: Final = "Ignore"
CLOSED: Final = "Fail"
# Until all API servers go by what was just written.
SETTLING_SECONDS: Final = 2.0
POLL_SECONDS: Final = 1.0
# What answered while it was open does so at once when it is closed, or something is wrong.
AFTER_CLOSING_SECONDS: Final = 30.0
# Definitions that were made a moment ago are served after a second or two, on a busy machine later.
SERVING_SECONDS: Final = 20.0

Say = Callable[[str], None]


class _Meta(msgspec.Struct, frozen=True):
    annotations: dict[str, str] = {}


class _Webhook(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    failure_policy: str = CLOSED


class Configuration(msgspec.Struct, frozen=True):
    """A webhook configuration, as far as it says what is open."""

    metadata: _Meta = _Meta()
    webhooks: list[_Webhook] = []


@dataclass(frozen=True)
class Opening:
    """A webhook that fails open and is to be closed: where it stands in its configuration."""

    kind: Resource
    index: int
    name: str

    def patch(self, policy: str) -> list[JsonObject]:
        """Write another failure policy, if it still stands there."""
        path = f"/webhooks/{self.index}"
        return [
            {"op": "test", "path": f"{path}/name", "value": self.name},
            {"op": "replace", "path": f"{path}/failurePolicy", "value": policy},
        ]


def openings(kind: Resource, found: Configuration) -> list[Opening]:
    """List those of a configuration that are open and should not stay so."""
    closing = found.metadata.annotations.get(names.CLOSES_ANNOTATION, "").split(",")
    return [
        Opening(kind, index, each.name)
        for index, each in enumerate(found.webhooks)
        if each.name in closing and each.failure_policy != CLOSED
    ]


@dataclass(frozen=True)
class Proof:
    """What is missing, if anything is, how a command ends with that, and what was closed."""

    missing: str = ""
    code: int = exits.OK
    closed: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether admission answers."""
        return not self.missing


class _NotServedError(Exception):
    """The API server has no such kind."""


async def asked(client: Client, namespace: str = NAMESPACE) -> Proof:
    """Ask what keeps admission from being proven. Nothing is stored."""
    try:
        for ask in (_binding_passes, _set_is_judged, _cycle_is_refused):
            if said := await ask(client, namespace):
                return Proof(said, exits.UNEXPECTED)
    except _NotServedError as error:
        return Proof(str(error), exits.MISSING_KIND)
    return Proof()


async def missing(client: Client, namespace: str = NAMESPACE) -> str:
    """Ask what keeps admission from being proven; empty if nothing does."""
    return (await asked(client, namespace)).missing


async def _tried(client: Client, kind: Resource, body: JsonObject, namespace: str | None) -> None:
    try:
        await client.create(kind, body, namespace, dry_run=True)
    except NotFound as error:
        # A namespace that is not there is not found either, but by its name.
        if error.details.name:
            raise
        raise _NotServedError(
            f"the cluster serves no {kind.full_name}: Penstock is not installed there"
        ) from error


async def _binding_passes(client: Client, _: str) -> str:
    try:
        await _tried(client, TOPOLOGY_BINDINGS, a_binding(), None)
    except ApiError as error:
        return f"a valid topology binding is not admitted: {error.message}"
    return ""


async def _set_is_judged(client: Client, namespace: str) -> str:
    """The policy may have reasons against this one; then it was judged all the same."""
    valid = a_set({"leader": [], "worker": ["leader"]})
    try:
        await _tried(client, PODCLIQUESETS, valid, namespace)
    except ApiError as error:
        return "" if _is_ours(error) else f"a valid set is not admitted: {error.message}"
    return ""


async def _cycle_is_refused(client: Client, namespace: str) -> str:
    cycle = a_set({"a": ["b"], "b": ["a"]})
    try:
        await _tried(client, PODCLIQUESETS, cycle, namespace)
    except ApiError as error:
        # A webhook that cannot be reached refuses too, but in other words.
        if _is_ours(error):
            return ""
        return f"a set with a cycle is refused for another reason: {error.message}"
    return "a set with a cycle in startsAfter is admitted, so no webhook was asked"


def _is_ours(error: ApiError) -> bool:
    return OF_SETS in error.message and "denied the request" in error.message


class Doors(Protocol):
    """The webhooks that are to be closed."""

    async def opened(self) -> list[Opening]:
        """List all that is open and should not stay so."""
        ...

    async def turn(self, which: Sequence[Opening], policy: str) -> None:
        """Have webhooks fail closed, or open again."""
        ...


@dataclass(frozen=True)
class ServedDoors:
    """Those of the chart's two configurations."""

    client: Client

    async def opened(self) -> list[Opening]:
        """List all that is open and should not stay so."""
        found: list[Opening] = []
        for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS):
            there = await self.client.get(kind, Configuration, names.WEBHOOK_CONFIGURATION)
            found += openings(kind, there)
        return found

    async def turn(self, which: Sequence[Opening], policy: str) -> None:
        """Have webhooks fail closed, or open again."""
        for each in which:
            patch = each.patch(policy)
            await self.client.json_patch(each.kind, names.WEBHOOK_CONFIGURATION, patch)


async def closed(client: Client) -> str:
    """Close what is open, and say whether admission still answers; for what was proven before."""
    doors = ServedDoors(client)
    await doors.turn(await doors.opened(), CLOSED)
    return await missing(client)


@dataclass(frozen=True)
class Prover:
    """Asks what is missing until nothing is, then closes; `say` is told what happens."""

    ask: Callable[[], Awaitable[Proof]]
    doors: Doors
    clock: Clock
    say: Say

    async def close_when_proven(self, seconds: float) -> Proof:
        """Close what is open once all is proven; if it never was, it stays open.

        What was closed before is never opened here: only what this very run has closed is, if
        closing it turns out to stop what it let in.
        """
        proof = await self.proven(seconds)
        if not proof.holds:
            return proof
        found = await self.doors.opened()
        if not found:
            self.say("All webhooks that should fail closed do.")
            return proof
        await self.doors.turn(found, CLOSED)
        await self.clock.sleep(SETTLING_SECONDS)
        proof = await self.proven(AFTER_CLOSING_SECONDS)
        if not proof.holds:
            await self.doors.turn(found, OPEN)
            self.say("What was closed is open again.")
            return proof
        closed = tuple(sorted({each.name for each in found}))
        self.say(f"Closed: {', '.join(closed)}.")
        return replace(proof, closed=closed)

    async def proven(self, seconds: float) -> Proof:
        """Ask until nothing is missing, or for so long; less where our kinds are not served."""
        begun = self.clock.monotonic()
        told = ""
        while not (proof := await self._asked()).holds:
            if proof.missing != told:
                self.say(f"Not yet: {proof.missing}")
                told = proof.missing
            served = proof.code != exits.MISSING_KIND
            patience = seconds if served else min(seconds, SERVING_SECONDS)
            if self.clock.monotonic() >= begun + patience:
                return proof
            await self.clock.sleep(POLL_SECONDS)
        self.say("Admission answers: one set was refused in our words, and what is valid passes.")
        return proof

    async def _asked(self) -> Proof:
        try:
            return await self.ask()
        except ApiError as error:
            return Proof(error.message, exits.UNEXPECTED)


def a_binding() -> JsonObject:
    """Return a small topology binding."""
    return {
        "apiVersion": TOPOLOGY_BINDINGS.api_version,
        "kind": TOPOLOGY_BINDINGS.kind,
        "metadata": {"name": NAME},
        "spec": {"levels": [{"domain": "rack", "key": names.RACK_KEY}]},
    }


def a_set(starts_after: dict[str, list[str]]) -> JsonObject:
    """Return a small set whose cliques start after each other in the given way."""
    return {
        "apiVersion": PODCLIQUESETS.api_version,
        "kind": PODCLIQUESETS.kind,
        "metadata": {"name": NAME},
        "spec": {
            "replicas": 1,
            "template": {
                "cliqueStartupType": "CliqueStartupTypeExplicit",
                "cliques": [
                    {
                        "name": name,
                        "spec": {
                            "roleName": name,
                            "replicas": 1,
                            "startsAfter": [*others],
                            "podSpec": {"containers": [{"name": "main", "image": "none"}]},
                        },
                    }
                    for name, others in starts_after.items()
                ],
            },
        },
    }

"""Whether admission works as API servers see it, told by dry runs; closing webhooks that do.

A webhook that fails closed and was never reached would refuse every set. So the chart makes them
open, and they are closed once one set was refused in our words and others were let in. A refusal is
proof that API servers reach us; that nothing is refused would be none, with open webhooks.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from api import names
from api.jsons import JsonObject
from kube.client import Client
from kube.clock import Clock
from kube.errors import ApiError
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


async def missing(client: Client, namespace: str = NAMESPACE) -> str:
    """Ask what keeps admission from being proven; empty if nothing does. Nothing is stored."""
    for ask in (_binding_passes, _set_is_judged, _cycle_is_refused):
        if said := await ask(client, namespace):
            return said
    return ""


async def _binding_passes(client: Client, _: str) -> str:
    try:
        await client.create(TOPOLOGY_BINDINGS, a_binding(), dry_run=True)
    except ApiError as error:
        return f"a valid topology binding is not admitted: {error.message}"
    return ""


async def _set_is_judged(client: Client, namespace: str) -> str:
    """The policy may have reasons against this one; then it was judged all the same."""
    valid = a_set({"leader": [], "worker": ["leader"]})
    try:
        await client.create(PODCLIQUESETS, valid, namespace, dry_run=True)
    except ApiError as error:
        return "" if _is_ours(error) else f"a valid set is not admitted: {error.message}"
    return ""


async def _cycle_is_refused(client: Client, namespace: str) -> str:
    cycle = a_set({"a": ["b"], "b": ["a"]})
    try:
        await client.create(PODCLIQUESETS, cycle, namespace, dry_run=True)
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

    ask: Callable[[], Awaitable[str]]
    doors: Doors
    clock: Clock
    say: Say

    async def close_when_proven(self, seconds: float) -> bool:
        """Close what is open once all is proven; False if it never was, and then it stays open.

        What was closed before is never opened here: only what this very run has closed is, if
        closing it turns out to stop what it let in.
        """
        if not await self.proven(seconds):
            return False
        found = await self.doors.opened()
        if not found:
            self.say("All webhooks that should fail closed do.")
            return True
        await self.doors.turn(found, CLOSED)
        await self.clock.sleep(SETTLING_SECONDS)
        if not await self.proven(AFTER_CLOSING_SECONDS):
            await self.doors.turn(found, OPEN)
            self.say("What was closed is open again.")
            return False
        self.say(f"Closed: {', '.join(sorted({each.name for each in found}))}.")
        return True

    async def proven(self, seconds: float) -> bool:
        """Ask until nothing is missing, or for so long."""
        deadline = self.clock.monotonic() + seconds
        told = ""
        while said := await self._tried():
            if said != told:
                self.say(f"Not yet: {said}")
                told = said
            if self.clock.monotonic() >= deadline:
                return False
            await self.clock.sleep(POLL_SECONDS)
        self.say("Admission answers: one set was refused in our words, and what is valid passes.")
        return True

    async def _tried(self) -> str:
        try:
            return await self.ask()
        except ApiError as error:
            return error.message


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

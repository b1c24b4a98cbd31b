"""What people do while things go wrong: sets made, scaled, deleted and made again."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from api import names
from api.jsons import Json, JsonObject
from kube.client import Client
from kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from kube.resources import (
    PODCLIQUES,
    PODCLIQUESETS,
    PODS,
    SCALING_GROUPS,
    TOPOLOGY_BINDINGS,
    Resource,
)
from tests.support.living import engine_set
from tests.support.ordered import clique, ordered

NETWORK: Final = "chaos"
BINDING: Final[JsonObject] = {
    "apiVersion": TOPOLOGY_BINDINGS.api_version,
    "kind": TOPOLOGY_BINDINGS.kind,
    "metadata": {"name": NETWORK},
    "spec": {
        "levels": [
            {"domain": "zone", "key": names.ZONE_KEY},
            {"domain": "block", "key": names.BLOCK_KEY},
            {"domain": "rack", "key": names.RACK_KEY},
        ]
    },
}
RETRY_SECONDS: Final = 0.3
OUTAGE_SECONDS: Final = 60.0  # as long as a person tries again


@dataclass(frozen=True)
class Drawn:
    """A set as it was drawn, and the most GPUs it can come to ask for."""

    name: str
    body: JsonObject
    gpus: int
    grows: str = ""  # the scaling group whose copies can change
    resizes: str = ""  # the clique whose pods can change, and
    least: int = 0  # how few they may be


def flat(name: str, chance: random.Random) -> Drawn:
    """One clique, of which some pods may be extras."""
    pods, gpus = chance.randint(2, 6), chance.choice((1, 2, 4, 8))
    least = chance.choice((pods, max(1, pods - 1)))
    body = engine_set(name, pods=pods, gpus=gpus, minimum=least)
    return Drawn(name, body, (pods + 2) * gpus, resizes=f"{name}-0-engine", least=least)


def racked(name: str, chance: random.Random) -> Drawn:
    """One clique that must be in one rack."""
    pods, gpus = chance.choice(((2, 8), (4, 4), (3, 4), (2, 4)))
    body = engine_set(name, pods=pods, gpus=gpus)
    template = _template(body)
    template["topologyConstraint"] = {"topologyName": NETWORK, "pack": {"required": "rack"}}
    return Drawn(name, body, pods * gpus)


def waves(name: str, chance: random.Random) -> Drawn:
    """A clique that starts once another one is up."""
    size = chance.randint(1, 3)
    parts: list[Json] = [clique("tip", gpus=4), clique("last", "tip", replicas=size, gpus=4)]
    return Drawn(name, ordered(name, "CliqueStartupTypeExplicit", parts), 4 + 4 * size)


def copies(name: str, chance: random.Random) -> Drawn:
    """A scaling group of one to three copies, the first of which makes the base gang."""
    many = chance.randint(1, 3)
    parts: list[Json] = [clique("tip", gpus=1), clique("part", replicas=2, gpus=4)]
    group: JsonObject = {
        "name": "team", "cliqueNames": ["part"], "replicas": many, "minAvailable": 1
    }  # fmt: skip
    body = ordered(name, "CliqueStartupTypeAnyOrder", parts, [group])
    return Drawn(name, body, 1 + 8 * 4, grows=f"{name}-0-team")


SHAPES: Final[tuple[Callable[[str, random.Random], Drawn], ...]] = (flat, racked, waves, copies)


def _template(body: JsonObject) -> JsonObject:
    spec = body["spec"]
    assert isinstance(spec, dict)
    template = spec["template"]
    assert isinstance(template, dict)
    return template


@dataclass
class People:
    """Somebody who makes sets in a namespace and changes them; tries again where that fails."""

    client: Client
    space: str
    chance: random.Random
    most_gpus: int = 160
    sets: dict[str, Drawn] = field(default_factory=dict)
    acts: list[str] = field(default_factory=list)
    small: dict[str, Drawn] = field(default_factory=dict)
    _made: int = 0
    _few: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(32))

    async def act(self, sets: int, acts: int, seconds: float) -> None:
        """Make some sets, then do so many things to them within some seconds."""
        for _ in range(sets):
            await self.make()
        for _ in range(acts):
            await asyncio.sleep(self.chance.uniform(0, 2 * seconds / max(acts, 1)))
            await self._something()

    async def make(self) -> None:
        """Make a set, if there is room for it in any case."""
        self._made += 1
        drawn = self.chance.choice(SHAPES)(f"s{self._made}", self.chance)
        if drawn.gpus + sum(each.gpus for each in self.sets.values()) > self.most_gpus:
            return
        self.sets[drawn.name] = drawn
        await self._make(drawn)

    async def make_small(self, count: int) -> None:
        """Make so many sets of one small pod each, at once."""
        names_of = [f"m{number}" for number in range(count)]
        self.acts.append(f"make {count} small sets")
        bodies = {name: engine_set(name, pods=1, gpus=0) for name in names_of}
        for name, body in bodies.items():
            self.small[name] = Drawn(name, body, 0)
        await asyncio.gather(*(self._create_small(body) for body in bodies.values()))

    async def _create_small(self, body: JsonObject) -> None:
        async with self._few:
            await self.insist(
                lambda: self.client.create(PODCLIQUESETS, body, self.space), AlreadyExists
            )

    async def scale_small(self, replicas: int) -> None:
        """Give all of them another number of replicas, at once."""
        self.acts.append(f"scale {len(self.small)} small sets to {replicas}")
        await asyncio.gather(*(self._scale_small(name, replicas) for name in self.small))

    async def _scale_small(self, name: str, replicas: int) -> None:
        async with self._few:
            await self._patch(PODCLIQUESETS, name, replicas)

    async def _something(self) -> None:
        doings = [self.make, self._scale, self._resize, self._delete, self._again, self.lose]
        await self.chance.choice(doings)()

    async def _make(self, drawn: Drawn) -> None:
        self.acts.append(f"make {drawn.name}")
        await self.insist(
            lambda: self.client.create(PODCLIQUESETS, drawn.body, self.space), AlreadyExists
        )

    async def _scale(self) -> None:
        """Give a scaling group another number of copies."""
        found = [each for each in self.sets.values() if each.grows]
        if not found:
            return
        name, count = self.chance.choice(found).grows, self.chance.randint(1, 4)
        self.acts.append(f"scale {name} to {count}")
        await self._patch(SCALING_GROUPS, name, count)

    async def _resize(self) -> None:
        """Give a clique another number of pods."""
        found = [each for each in self.sets.values() if each.resizes]
        if not found:
            return
        drawn = self.chance.choice(found)
        count = self.chance.randint(drawn.least, drawn.least + 2)
        self.acts.append(f"resize {drawn.resizes} to {count}")
        await self._patch(PODCLIQUES, drawn.resizes, count)

    async def _patch(self, kind: Resource, name: str, count: int) -> None:
        body: JsonObject = {"spec": {"replicas": count}}
        await self.insist(
            lambda: self.client.merge_patch(kind, name, body, self.space, subresource="scale"),
            NotFound,
            Conflict,
        )

    async def _delete(self) -> None:
        """Delete a set for good."""
        if len(self.sets) > 1:
            name = self.chance.choice(sorted(self.sets))
            del self.sets[name]
            self.acts.append(f"delete {name}")
            await self.insist(lambda: self.client.delete(PODCLIQUESETS, name, self.space), NotFound)

    async def _again(self) -> None:
        """Delete a set and make it anew under its name."""
        if not self.sets:
            return
        drawn = self.sets[self.chance.choice(sorted(self.sets))]
        self.acts.append(f"again {drawn.name}")
        await self.insist(
            lambda: self.client.delete(PODCLIQUESETS, drawn.name, self.space), NotFound
        )
        async with asyncio.timeout(OUTAGE_SECONDS):
            while await self._is_there(drawn.name):
                await asyncio.sleep(RETRY_SECONDS)
        await self._make(drawn)

    async def _is_there(self, name: str) -> bool:
        try:
            await self.client.raw_get(PODCLIQUESETS.path(self.space, name))
        except NotFound:
            return False
        except ApiError:
            return True
        return True

    async def lose(self) -> None:
        """Delete a pod, as an eviction would."""
        found: list[msgspec.Raw] = []

        async def look() -> None:
            found[:] = (await self.client.list_pages(PODS, msgspec.Raw, self.space)).items

        await self.insist(look)
        pods = [msgspec.json.decode(each, type=_Named).metadata.name for each in found]
        if pods:
            name = self.chance.choice(sorted(pods))
            self.acts.append(f"lose {name}")
            await self.insist(lambda: self.client.delete(PODS, name, self.space), NotFound)

    async def insist(
        self,
        request: Callable[[], Awaitable[object]],
        *enough: type[ApiError],
    ) -> None:
        """Make a request until it succeeds, or is refused in one of these ways."""
        async with asyncio.timeout(OUTAGE_SECONDS):
            while True:
                try:
                    await request()
                except enough:
                    return
                except ApiError:
                    await asyncio.sleep(RETRY_SECONDS)
                else:
                    return


class _Meta(msgspec.Struct):
    name: str


class _Named(msgspec.Struct):
    metadata: _Meta

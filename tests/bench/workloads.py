"""`make bench-workloads`: how fast sets become objects, beside a bare client that makes the same.

The floor is measured in the same run: the objects that `workloads` made are read back, and an async
client with nothing to decide makes them once more in another namespace, as fast as it can, while
`workloads` does not run. Both use one core, and the control plane the other. Nothing places or
binds the pods here.

Writes are those the API server counts, whoever makes them, until nobody writes any more. Events
are none of them: they follow in their own time.
"""

import argparse
import asyncio
import os
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import msgspec

from api import names
from api.jsons import JsonObject
from controller import pace
from controller.workloads.caches import NEEDED, OPTIONAL
from kube.client import Client, Deletion
from kube.resources import PODCLIQUES, PODCLIQUESETS, PODGANGS, PODS, SERVICES, Resource
from penstock.lab import cluster
from penstock.lab.install import InstallOptions, install, stop
from penstock.lab.installation import Installation
from penstock.lab.progress import Silence
from penstock.lab.spec import LabSpec
from tests.bench.harness import Budget, Row, report
from tests.bench.workloads_looking import looks
from tests.support.living import connect, engine_set, namespace

# In the order in which they can be made. Services wait for addresses of pods, which none gets here.
MADE: Final = (PODGANGS, PODCLIQUES, PODS)
ALL: Final = (SERVICES, *MADE)
COUNTED: Final = {kind.plural for kind in (*NEEDED, *OPTIONAL)}
READS: Final = {"GET", "LIST", "WATCH"}
AT_ONCE: Final = 32  # more does not make the bare client faster
WARM_SETS: Final = 20
PATIENCE: Final = 600.0
POLL_SECONDS: Final = 0.05
SETTLED_SECONDS: Final = 3.0  # longer than any status is held back
HALF_MORE: Final = Budget(1.5, of_ratio=True)
TWO_SECONDS: Final = Budget(2.0)
NOTHING: Final = Budget(0.0)
OUR_CORE: Final = {0}
METADATA_OF_OURS: Final = ("name", "labels", "annotations", "generateName", "finalizers")
FREED: Final[JsonObject] = {"metadata": {"finalizers": None}}

Objects: TypeAlias = dict[Resource, list[JsonObject]]


class _Count(msgspec.Struct, rename="camel"):
    remaining_item_count: int = 0


class _Page(msgspec.Struct):
    metadata: _Count
    items: list[msgspec.Raw] | None = None


@dataclass(frozen=True)
class Taken:
    """What something took: seconds until all was there or gone, and writes until it was quiet."""

    seconds: float
    writes: int


@dataclass(frozen=True)
class Site:
    """A lab with Penstock in it, of which only `workloads` and the webhooks run."""

    client: Client
    account: Client  # of `workloads`, who alone may make some of these objects
    installation: Installation

    @asynccontextmanager
    async def space(self) -> AsyncIterator[str]:
        async with namespace(self.client, f"bench-{secrets.token_hex(3)}") as name:
            yield name

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Stop `workloads` for a while; afterwards it has made something and is warm again."""
        await self.settled()
        await asyncio.to_thread(self.installation.stop_component, "workloads")
        yield
        await asyncio.to_thread(self.installation.start_component, "workloads")
        os.sched_setaffinity(self.installation.pid("workloads"), OUR_CORE)
        await many_sets(self, WARM_SETS, 2)

    async def count(self, resource: Resource, space: str) -> int:
        """Ask how many objects there are; costs the API server next to nothing."""
        body = await self.client.raw_get(resource.path(space) + "?limit=1")
        page = msgspec.json.decode(body, type=_Page)
        return len(page.items or []) + page.metadata.remaining_item_count

    async def until(self, wanted: dict[Resource, int], space: str) -> None:
        async with asyncio.timeout(PATIENCE):
            for resource, number in wanted.items():
                while await self.count(resource, space) != number:
                    await asyncio.sleep(POLL_SECONDS)

    async def writes(self) -> int:
        """Ask how many writes there were of the kinds that `workloads` may write."""
        found = 0.0
        for line in (await self.client.raw_get("/metrics")).decode().splitlines():
            if line.startswith("apiserver_request_total{"):
                said = dict(re.findall(r'(\w+)="([^"]*)"', line))
                of_pods = said["resource"] == PODS.plural and said["subresource"]
                if said["verb"] not in READS and said["resource"] in COUNTED and not of_pods:
                    found += float(line.rsplit(" ", 1)[1])
        return int(found)

    async def settled(self) -> int:
        """Wait until nobody writes any more; returns how many writes there were."""
        async with asyncio.timeout(PATIENCE):
            before = await self.writes()
            while True:
                await asyncio.sleep(SETTLED_SECONDS)
                now = await self.writes()
                if now == before:
                    return now
                before = now

    async def taken(self, work: Awaitable[None], rest: Awaitable[None] | None = None) -> Taken:
        """Take the time of some work, and count all that was written for it, the rest too."""
        before = await self.settled()
        begun = time.perf_counter()
        await work
        seconds = time.perf_counter() - begun
        if rest is not None:
            await rest
        return Taken(seconds, await self.settled() - before)

    async def objects(self, space: str) -> Objects:
        found: Objects = {}
        for resource in ALL:
            listed = await self.client.list_pages(resource, dict, space)
            found[resource] = [bare(resource, body) for body in listed.items]
        return found

    async def make(self, resource: Resource, bodies: Iterable[object], space: str) -> None:
        """Make objects with nothing in the way: the least that making them can cost."""
        await sound([partial(self._create, resource, body, space) for body in bodies])

    async def _create(self, resource: Resource, body: object, space: str) -> None:
        await self._who(resource).create(resource, body, space)

    async def unmake(self, resource: Resource, names: Sequence[str], space: str) -> None:
        await sound([partial(self._delete, resource, name, space) for name in names])

    async def let_go(self, resource: Resource, name: str, space: str) -> None:
        """Take an object's finalizers off."""
        await self._who(resource).merge_patch(resource, name, FREED, space)

    async def _delete(self, resource: Resource, name: str, space: str) -> None:
        if resource is PODCLIQUES:
            # They have a finalizer, and whoever deletes one has to take it off.
            await self.let_go(resource, name, space)
        await self._who(resource).delete(resource, name, space, Deletion())

    def _who(self, resource: Resource) -> Client:
        return self.client if resource is PODCLIQUESETS else self.account

    async def scale(self, name: str, replicas: int, space: str) -> None:
        body = {"spec": {"replicas": replicas}}
        await self.client.merge_patch(PODCLIQUESETS, name, body, space)


async def sound(requests: Sequence[Callable[[], Awaitable[None]]]) -> None:
    for error in await pace.all_of(requests, AT_ONCE):
        raise error


def bare(resource: Resource, body: JsonObject) -> JsonObject:
    """Leave of an object what its maker wrote; without owners, as it goes to another namespace."""
    metadata = body.get("metadata")
    assert isinstance(metadata, dict)
    kept: JsonObject = {key: metadata[key] for key in METADATA_OF_OURS if key in metadata}
    spec = body.get("spec")
    if resource is SERVICES and isinstance(spec, dict):
        spec = {key: value for key, value in spec.items() if key != "clusterIPs"}
    if resource is PODS and isinstance(spec, dict):
        # What admission adds, it adds again.
        spec = {k: v for k, v in spec.items() if k not in {"tolerations", "priority"}}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": kept,
        "spec": spec,
    }


async def seconds(work: Awaitable[object]) -> float:
    begun = time.perf_counter()
    await work
    return time.perf_counter() - begun


def expected(gangs: int, pods: int) -> dict[Resource, int]:
    """What as many gangs of one clique consist of; pods last, since they are made last."""
    return {PODGANGS: gangs, PODCLIQUES: gangs, PODS: gangs * pods}


def whole(gangs: int, pods: int) -> dict[Resource, int]:
    """The same, with what comes a while later."""
    return {SERVICES: gangs, **expected(gangs, pods)}


def small_sets(number: int, pods: int) -> dict[str, JsonObject]:
    called = [f"s{index}" for index in range(number)]
    return {name: engine_set(name, pods=pods, gpus=1) for name in called}


async def create_sets(site: Site, sets: dict[str, JsonObject], pods: int, space: str) -> None:
    await site.make(PODCLIQUESETS, sets.values(), space)
    await site.until(expected(len(sets), pods), space)


async def many_sets(site: Site, number: int, pods: int) -> tuple[Taken, Objects]:
    """Make many small sets, and take them away again."""
    sets = small_sets(number, pods)
    async with site.space() as space:
        rest = site.until(whole(number, pods), space)
        taken = await site.taken(create_sets(site, sets, pods, space), rest)
        made = await site.objects(space)
        await site.unmake(PODCLIQUESETS, [*sets], space)
        await site.until({**whole(0, 0), PODCLIQUESETS: 0}, space)
        return taken, made


async def one_set(site: Site, replicas: int, pods: int) -> tuple[list[Taken], Objects]:
    """Scale one set up, halfway down, and to nothing."""
    async with site.space() as space:
        await site.make(PODCLIQUESETS, [engine_set("s", pods=pods, gpus=1, replicas=0)], space)

        async def to(number: int, what: Callable[[int, int], dict[Resource, int]] = whole) -> None:
            await site.scale("s", number, space)
            await site.until(what(number, pods), space)

        up = await site.taken(to(replicas, expected), site.until(whole(replicas, pods), space))
        made = await site.objects(space)
        down = await site.taken(to(replicas // 2))
        out = await site.taken(to(0))
        await site.unmake(PODCLIQUESETS, ["s"], space)
        return [up, down, out], made


async def bare_sets(site: Site, number: int, pods: int, made: Objects) -> float:
    """Make many small sets, and all that came of them, with nothing to decide."""
    sets = small_sets(number, pods)

    async def everything(space: str) -> None:
        await site.make(PODCLIQUESETS, sets.values(), space)
        for resource in MADE:
            await site.make(resource, made[resource], space)

    async with site.space() as space:
        least = await seconds(everything(space))
        await clear(site, space, {**made, SERVICES: []})
        # Born with a finalizer, which nobody else takes off now.
        await sound([partial(site.let_go, PODCLIQUESETS, name, space) for name in sets])
        await site.unmake(PODCLIQUESETS, [*sets], space)
    return least


async def bare_scaling(site: Site, replicas: int, made: Objects) -> list[float]:
    """Make what one set consisted of, delete half of it, and the rest."""
    half = replicas // 2

    async def floor(space: str) -> None:
        for resource in MADE:
            await site.make(resource, made[resource], space)

    async with site.space() as space:
        up = await seconds(floor(space))
        await site.make(SERVICES, made[SERVICES], space)
        cut = {resource: half * len(bodies) // replicas for resource, bodies in made.items()}
        upper = {resource: bodies[cut[resource] :] for resource, bodies in made.items()}
        lower = {resource: bodies[: cut[resource]] for resource, bodies in made.items()}
        down = await seconds(clear(site, space, upper))
        return [up, down, await seconds(clear(site, space, lower))]


async def clear(site: Site, space: str, made: Objects) -> None:
    """Delete what the bare client made."""
    for resource in reversed(ALL):
        await site.unmake(resource, [name_of(body) for body in made[resource]], space)


def name_of(body: JsonObject) -> str:
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    return str(metadata["name"])


async def resync(site: Site, number: int, pods: int) -> list[Row]:
    """Look at many settled sets, in this process, where nothing is to be done.

    `workloads` is stopped for it, and stays so.
    """
    sets = small_sets(number, pods)
    async with site.space() as space:
        await create_sets(site, sets, pods, space)
        await site.until(whole(number, pods), space)
        await site.settled()
        await asyncio.to_thread(site.installation.stop_component, "workloads")
        before = await site.settled()
        first, again = await looks(site.account, {(space, name) for name in sets})
        writes = await site.settled() - before
        await site.unmake(PODCLIQUESETS, [*sets], space)
    return [
        Row(f"{number} settled sets looked at after a start", first, "s"),
        Row(f"{number} settled sets looked at again", again, "s", budget=TWO_SECONDS),
        Row("writes of both", writes, "writes", budget=NOTHING),
    ]


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    spec = LabSpec(f"bench-{os.getpid()}-{secrets.token_hex(3)}", nodes=1)
    lab = await cluster.up(spec, Silence())
    try:
        helm = lab.binaries["helm"]
        installation = await install(
            lab.directory, lab.kubeconfig, helm, InstallOptions(), lambda _: None
        )
        await asyncio.to_thread(installation.stop_component, "gangs")
        os.sched_setaffinity(installation.pid("workloads"), OUR_CORE)
        os.sched_setaffinity(0, OUR_CORE)
        token = installation.kubeconfig(names.WORKLOADS_ACCOUNT)
        async with connect(lab.kubeconfig, "bench") as client, connect(token, "bench") as account:
            yield Site(client, account, installation)
        stop(lab.directory)
    finally:
        await cluster.down(spec.name, Silence())


async def measure(options: argparse.Namespace) -> list[Row]:
    sets, replicas, pods = options.sets, options.replicas, 2
    async with site() as there:
        await many_sets(there, WARM_SETS, pods)
        many, of_many = await many_sets(there, sets, pods)
        async with there.alone():
            least = await bare_sets(there, sets, pods, of_many)
        scaled, of_one = await one_set(there, replicas, pods)
        async with there.alone():
            least_scaled = await bare_scaling(there, replicas, of_one)
        resynced = await resync(there, options.resynced, pods)
    half = replicas // 2
    a_gang = sum(whole(1, pods).values())
    figures = (
        (f"{sets} sets of {pods} pods created", many, least, sets * (a_gang + 1)),
        (f"1 set scaled 0 to {replicas} replicas", scaled[0], least_scaled[0], replicas * a_gang),
        (f"scaled {replicas} to {half}", scaled[1], least_scaled[1], (replicas - half) * a_gang),
        (f"scaled {half} to 0", scaled[2], least_scaled[2], half * a_gang),
    )
    times = [Row(what, took.seconds, "s", floor, HALF_MORE) for what, took, floor, _ in figures]
    writes = [
        Row(f"writes an object, {what}", took.writes / objects, "writes", 1.0)
        for what, took, _, objects in figures
    ]
    return [*times, *resynced, *writes]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=500)
    parser.add_argument("--replicas", type=int, default=500)
    parser.add_argument("--resynced", type=int, default=1000)
    options = parser.parse_args()
    rows = asyncio.run(measure(options))
    settings: JsonObject = {
        "sets": options.sets, "replicas": options.replicas, "resynced": options.resynced
    }  # fmt: skip
    report("workloads", rows, settings)


if __name__ == "__main__":
    main()

"""`make bench-workloads`: how fast sets become objects, beside a bare client that makes the same.

The floor is measured in the same run: the objects that `workloads` made are read back, and an async
client with nothing to decide makes them once more in another namespace, as fast as it can. Both use
one core, and the control plane the other. Nothing places or binds the pods here.
"""

import argparse
import asyncio
import os
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import msgspec

from api import names
from api.jsons import JsonObject
from controller import pace
from kube.client import Client, Deletion
from kube.resources import (
    PODCLIQUES,
    PODCLIQUESETS,
    PODGANGS,
    PODS,
    SERVICES,
    Resource,
)
from penstock.lab import cluster
from penstock.lab.install import InstallOptions, install, stop
from penstock.lab.progress import Silence
from penstock.lab.spec import LabSpec
from tests.bench.harness import Budget, Row, report
from tests.support.living import connect, engine_set, namespace

# In the order in which they can be made.
MADE: Final = (SERVICES, PODGANGS, PODCLIQUES, PODS)
AT_ONCE: Final = 32  # more does not make the bare client faster
PATIENCE: Final = 600.0
POLL_SECONDS: Final = 0.05
HALF_MORE: Final = Budget(1.5, of_ratio=True)
OUR_CORE: Final = {0}
METADATA_OF_OURS: Final = ("name", "labels", "annotations", "generateName")


class _Count(msgspec.Struct, rename="camel"):
    remaining_item_count: int = 0


class _Page(msgspec.Struct):
    metadata: _Count
    items: list[msgspec.Raw] | None = None


@dataclass
class Site:
    """A lab with Penstock in it, of which only `workloads` and the webhooks run."""

    client: Client
    account: Client  # of `workloads`, who alone may make some of these objects
    rows: list[Row] = field(default_factory=list)

    @asynccontextmanager
    async def space(self) -> AsyncIterator[str]:
        async with namespace(self.client, f"bench-{secrets.token_hex(3)}") as name:
            yield name

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

    async def objects(self, resource: Resource, space: str) -> list[JsonObject]:
        found = await self.client.list_pages(resource, dict, space)
        return [bare(resource, body) for body in found.items]

    async def make(self, resource: Resource, bodies: Iterable[object], space: str) -> None:
        """Make objects with nothing in the way: the least that making them can cost."""
        requests = [partial(self._create, resource, body, space) for body in bodies]
        await sound(requests)

    async def _create(self, resource: Resource, body: object, space: str) -> None:
        await self._who(resource).create(resource, body, space)

    async def unmake(self, resource: Resource, names: Sequence[str], space: str) -> None:
        await sound([partial(self._delete, resource, name, space) for name in names])

    async def _delete(self, resource: Resource, name: str, space: str) -> None:
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
    return {SERVICES: gangs, PODGANGS: gangs, PODCLIQUES: gangs, PODS: gangs * pods}


async def many_sets(site: Site, sets: int, pods: int) -> None:
    """Make many small sets, and then all that came of them once more."""
    called = [f"s{number}" for number in range(sets)]
    bodies = [engine_set(name, pods=pods, gpus=1) for name in called]

    async def ours(space: str) -> None:
        await site.make(PODCLIQUESETS, bodies, space)
        await site.until(expected(sets, pods), space)

    async with site.space() as space:
        taken = await seconds(ours(space))
        made = {resource: await site.objects(resource, space) for resource in MADE}
        await site.unmake(PODCLIQUESETS, called, space)
        await site.until(expected(0, 0), space)
    # Sets that want nothing, so that only the bare client makes something.
    paused = [engine_set(name, pods=pods, gpus=1, replicas=0) for name in called]

    async def floor(space: str) -> None:
        await site.make(PODCLIQUESETS, paused, space)
        for resource in MADE:
            await site.make(resource, made[resource], space)

    async with site.space() as space:
        least = await seconds(floor(space))
        await site.until(expected(sets, pods), space)
        await clear(site, space, made)
    site.rows.append(Row(f"{sets} sets of {pods} pods created", taken, "s", least, HALF_MORE))


async def clear(site: Site, space: str, made: dict[Resource, list[JsonObject]]) -> float:
    """Delete what the bare client made; returns how long that took."""
    begun = time.perf_counter()
    for resource in reversed(MADE):
        await site.unmake(resource, [name_of(body) for body in made[resource]], space)
    return time.perf_counter() - begun


def name_of(body: JsonObject) -> str:
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    return str(metadata["name"])


async def one_set(site: Site, replicas: int, pods: int) -> None:
    """Scale one set up, halfway down, and to nothing."""
    half = replicas // 2
    async with site.space() as space:
        await site.make(PODCLIQUESETS, [engine_set("s", pods=pods, gpus=1, replicas=0)], space)

        async def to(number: int) -> None:
            await site.scale("s", number, space)
            await site.until(expected(number, pods), space)

        up = await seconds(to(replicas))
        made = {resource: await site.objects(resource, space) for resource in MADE}
        down = await seconds(to(half))
        out = await seconds(to(0))

    async def floor(space: str) -> None:
        for resource in MADE:
            await site.make(resource, made[resource], space)

    async with site.space() as space:
        least_up = await seconds(floor(space))
        halves = [
            {
                resource: bodies[half * len(bodies) // replicas :]
                for resource, bodies in made.items()
            },
            {
                resource: bodies[: half * len(bodies) // replicas]
                for resource, bodies in made.items()
            },
        ]
        least_down = await clear(site, space, halves[0])
        least_out = await clear(site, space, halves[1])
    site.rows += [
        Row(f"1 set scaled 0 to {replicas} replicas of {pods} pods", up, "s", least_up, HALF_MORE),
        Row(f"scaled {replicas} to {half}", down, "s", least_down, HALF_MORE),
        Row(f"scaled {half} to 0", out, "s", least_out, HALF_MORE),
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
            yield Site(client, account)
        stop(lab.directory)
    finally:
        await cluster.down(spec.name, Silence())


async def measure(options: argparse.Namespace) -> list[Row]:
    sets: int = options.sets
    async with site() as there:
        await many_sets(there, 20, 2)  # warms everybody up
        there.rows.clear()
        await many_sets(there, sets, 2)
        await one_set(there, options.replicas, 2)
        return there.rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=500)
    parser.add_argument("--replicas", type=int, default=500)
    options = parser.parse_args()
    rows = asyncio.run(measure(options))
    report("workloads", rows, {"sets": options.sets, "replicas": options.replicas})


if __name__ == "__main__":
    main()

"""A warm lab with the controllers under test, and what a run needs of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from api import names
from api.jsons import JsonObject
from controller import pace
from kube.client import Client, Deletion
from kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from kube.resources import (
    CONFIGMAPS,
    LEASES,
    NAMESPACES,
    NODES,
    PODCLIQUES,
    PODCLIQUESETS,
    PODGANGS,
    PODS,
    RESERVATIONS,
    SCALING_GROUPS,
    TOPOLOGY_BINDINGS,
    Resource,
)
from penstock.lab.folders import Folder
from penstock.lab.installation import Installation
from penstock.lab.spec import LabSpec, Setting
from penstock.lab.state import Lab
from tests.chaos.actors import Actor, Actors, acting
from tests.chaos.audit_log import part
from tests.chaos.daemons import Daemons
from tests.chaos.load import BINDING, NETWORK
from tests.chaos.meddling import Meddler
from tests.support.living import connect

KINDS: Final[tuple[Resource, ...]] = (
    PODS, RESERVATIONS, PODGANGS, PODCLIQUESETS, PODCLIQUES, SCALING_GROUPS, NODES
)  # fmt: skip
AUDIT: Final = Setting("kube-apiserver", "audit-log-maxsize", "100000")
"""MiB before the log is put aside; a run must find all of its own in one file."""
PREFIX: Final = "chaos-"
ROOM: Final = 40  # nodes for each of the runs that are made at the same time
PATIENCE: Final = 120.0
AT_ONCE: Final = 16


def spec(name: str, nodes: int = ROOM) -> LabSpec:
    """The lab that runs are made on: racks of two nodes, and everything is recorded."""
    return LabSpec(name, nodes=nodes, audit=True, settings=(AUDIT,))


async def lists(client: Client, *spaces: str) -> dict[str, list[JsonObject]]:
    """Give all objects of namespaces that gangs are made of, and nodes, by plural."""
    found: dict[str, list[JsonObject]] = {}
    for kind in KINDS:
        there = found.setdefault(kind.plural, [])
        for where in spaces if kind.namespaced else (None,):
            listing = await client.list_pages(kind, msgspec.Raw, where)
            there += [msgspec.json.decode(each) for each in listing.items]
    return found


@dataclass(frozen=True)
class Stage:
    """Where runs are made."""

    lab: Lab
    installation: Installation
    client: Client
    folder: Folder
    actors: Actors
    daemons: Daemons
    meddler: Meddler

    async def leader(self, lease: str = names.GANGS_LEASE) -> Actor | None:
        """Which controller holds the lease, as far as it can be told."""
        with suppress(ApiError, ValueError, IndexError):
            raw = await self.client.raw_get(LEASES.path(names.NAMESPACE, lease))
            holder = msgspec.json.decode(raw, type=_Lease).spec.holder
            return self.actors.by_pid(int(holder.rsplit("_", 2)[1]))
        return None

    async def ready(self) -> None:
        """Return once the API server answers that it is."""
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(ApiError):
                    if await self.client.raw_get("/readyz") == b"ok":
                        return
                await asyncio.sleep(0.1)

    async def led(self) -> None:
        """Return once both kinds of controllers lead."""
        async with asyncio.timeout(PATIENCE):
            for lease in (names.GANGS_LEASE, names.WORKLOADS_LEASE):
                while await self.leader(lease) is None:
                    await asyncio.sleep(0.1)

    def webhooks(self) -> list[str]:
        """Name the lab's webhooks."""
        every = self.installation.settings.components()
        return [each for each in every if each.startswith("webhook")]

    async def reviewed(self) -> None:
        """Return once all webhooks answer."""
        async with asyncio.timeout(PATIENCE):
            while True:
                ready = await asyncio.to_thread(self.installation.layout.addresses.read_text)
                if len(ready.split()) == len(self.webhooks()):
                    return
                await asyncio.sleep(0.2)

    async def lists(self, *spaces: str) -> dict[str, list[JsonObject]]:
        """Give all objects that gangs are made of, as they are now."""
        return await lists(self.client, *spaces)

    async def mark(self, space: str, name: str) -> None:
        """Leave a mark in the audit log; waits for an API server that takes it."""
        body: JsonObject = {"metadata": {"name": name}}
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await self.client.create(CONFIGMAPS, body, space)
                except AlreadyExists:
                    return
                except ApiError:
                    await asyncio.sleep(0.2)
                else:
                    return

    @asynccontextmanager
    async def space(self, name: str) -> AsyncIterator[str]:
        """Make a namespace for a run; it is emptied in the end, and left to go by itself."""
        body: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await self.client.create(NAMESPACES, body)
        try:
            yield name
        finally:
            await self.client.delete(NAMESPACES, name)

    async def cleared(self, space: str) -> bool:
        """Delete every set and wait until nothing is left of it; whether that came about."""
        sets = (await self.client.list_pages(PODCLIQUESETS, _Object, space)).items
        deletions = [partial(self._delete, each.metadata.name, space) for each in sets]
        for error in await pace.all_of(deletions, AT_ONCE):
            raise error
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while True:
                    left = await self.lists(space)
                    left.pop("nodes")
                    await self._delete_strangers(left["pods"], space)
                    if not any(left.values()):
                        return True
                    await asyncio.sleep(0.3)
        return False

    async def _delete(self, name: str, space: str) -> None:
        with suppress(NotFound):
            await self.client.delete(PODCLIQUESETS, name, space)

    async def _delete_strangers(self, pods: list[JsonObject], space: str) -> None:
        """Delete pods that nobody made a set for: nobody else will."""
        for pod in pods:
            if not part(pod, "metadata").get("ownerReferences"):
                name = str(part(pod, "metadata").get("name"))
                with suppress(NotFound):
                    await self.client.delete(PODS, name, space, Deletion(grace_seconds=0))

    async def sweep(self) -> None:
        """Clear what a run left that was broken off."""
        for each in (await self.client.list_pages(NAMESPACES, _Object)).items:
            name = each.metadata.name
            if name.startswith(PREFIX):
                await self.cleared(name)
                with suppress(NotFound, Conflict):
                    await self.client.delete(NAMESPACES, name)


class _Spec(msgspec.Struct):
    holder: str = msgspec.field(name="holderIdentity", default="")


class _Lease(msgspec.Struct):
    spec: _Spec


class _Meta(msgspec.Struct):
    name: str


class _Object(msgspec.Struct):
    metadata: _Meta


@asynccontextmanager
async def staged(lab: Lab, installation: Installation, logs: Path) -> AsyncIterator[Stage]:
    """Take a lab over, in which Penstock is installed; it is as it was afterwards."""
    folder, meddler = Folder(lab.name, lab.directory), Meddler()
    daemons = Daemons(folder)
    daemons.learn()
    async with (
        connect(lab.kubeconfig, "chaos") as client,
        acting(installation, logs, meddler) as actors,
    ):
        stage = Stage(lab, installation, client, folder, actors, daemons, meddler)
        with suppress(AlreadyExists):
            await client.create(TOPOLOGY_BINDINGS, BINDING)
        keeping = asyncio.create_task(daemons.keep())
        try:
            await stage.led()
            await stage.sweep()
            yield stage
        finally:
            keeping.cancel()
            # Others may go by there being just one, or none.
            with suppress(ApiError):
                await client.delete(TOPOLOGY_BINDINGS, NETWORK)

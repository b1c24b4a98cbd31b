"""A real cluster with many sets for a webhook to follow, and nothing of Penstock at work in it."""

import asyncio
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from api import names
from api.jsons import JsonObject
from kube.client import Client
from kube.resources import PODCLIQUESETS
from penstock.lab import cluster
from penstock.lab.install import InstallOptions, install, stop
from penstock.lab.progress import Silence
from penstock.lab.spec import LabSpec
from penstock.lab.state import Lab
from tests.bench.webhook_reviews import pod_clique_set
from tests.support.living import connect

AT_ONCE: Final = 8
SPACE: Final = "default"


@contextmanager
def followed(sets: int) -> Iterator[Path]:
    """Bring a lab with so many sets up; gives the kubeconfig of the webhook's own account."""
    name = f"bench-{os.getpid()}-{secrets.token_hex(3)}"
    lab = asyncio.run(cluster.up(LabSpec(name, nodes=3), Silence()))
    try:
        yield asyncio.run(_filled(lab, sets))
    finally:
        stop(lab.directory)
        asyncio.run(cluster.down(name, Silence()))


async def _filled(lab: Lab, sets: int) -> Path:
    options = InstallOptions(webhooks=1, workloads=False)
    helm = lab.binaries["helm"]
    found = await install(lab.directory, lab.kubeconfig, helm, options, lambda _: None)
    async with connect(lab.kubeconfig) as person:
        numbers = iter(range(sets))
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(_make(person, numbers))
    # Its token outlives it, and the sets stay.
    await asyncio.to_thread(stop, lab.directory)
    return found.kubeconfig(names.WEBHOOK_ACCOUNT)


async def _make(person: Client, numbers: Iterator[int]) -> None:
    for number in numbers:
        whole = pod_clique_set(2)
        body: JsonObject = {
            "apiVersion": PODCLIQUESETS.api_version,
            "kind": PODCLIQUESETS.kind,
            "metadata": {"name": f"chat-{number}", "annotations": {"example.com/team": "serving"}},
            "spec": whole["spec"],
        }
        await person.create(PODCLIQUESETS, body, SPACE)

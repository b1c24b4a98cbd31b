"""Penstock into a lab with a real node: the chart's own Deployments, from an image made here."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from api import names
from api.jsons import JsonObject
from kube import credentials
from kube.client import Client
from kube.clock import Clock
from kube.errors import AlreadyExists, ApiError
from kube.resources import NAMESPACES, Resource
from penstock import proving
from penstock.lab import helm, readiness
from penstock.lab.commands import Run
from penstock.lab.errors import LabError
from penstock.lab.folders import Cache, Folder, write_whole
from penstock.lab.helm import Helm
from penstock.lab.images import penstock as images
from penstock.lab.images.penstock import Made
from penstock.lab.progress import Reporter
from penstock.lab.readiness import Check
from penstock.lab.realnode import node
from penstock.lab.realnode.addresses import KIND_LABEL, REAL

DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment", namespaced=True)
POLL_SECONDS: Final = 0.3

Report = Callable[[str], None]


class _Progress(msgspec.Struct, rename="camel"):
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0


class _Wanted(msgspec.Struct):
    replicas: int = 1


class _Named(msgspec.Struct):
    name: str
    generation: int = 0


class Deployment(msgspec.Struct):
    """What is told from whether a Deployment has come to what was asked for."""

    metadata: _Named
    spec: _Wanted
    status: _Progress = msgspec.field(default_factory=_Progress)

    def missing(self) -> str:
        """Return what is not so yet, or an empty text."""
        now, wanted = self.status, self.spec.replicas
        if now.observed_generation < self.metadata.generation:
            return f"{self.metadata.name} is not looked at yet"
        if (now.replicas, now.updated_replicas, now.available_replicas) == (wanted,) * 3:
            return ""
        return (
            f"{self.metadata.name}: {now.available_replicas} of {wanted} pods available, "
            f"{now.updated_replicas} new, {now.replicas} in all"
        )


@dataclass(frozen=True)
class Site:
    """The lab to install into, and what of this machine it takes."""

    folder: Folder
    helm: Path
    cache: Cache
    run: Run
    clock: Clock
    reporter: Reporter


def values(made: Made, webhooks: int) -> JsonObject:
    """Return the chart's values by which its pods land on the real node with our image."""
    repository, _, tag = made.image.rpartition(":")
    return {
        "image": {"repository": repository, "tag": tag, "pullPolicy": "Never"},
        "pods": {
            "nodeSelector": {KIND_LABEL: REAL},
            "tolerations": [{"key": KIND_LABEL, "operator": "Exists"}],
        },
        "webhook": {"replicas": webhooks},
        "workloads": {"waiterImage": made.waiter},
    }


async def install(
    site: Site, webhooks: int, further: Sequence[str], seconds: float, report: Report
) -> Made:
    """Install or upgrade, and return when all of it works; raises LabError.

    `further` are settings of the chart, as helm takes them.
    """
    made = await images.make(images.checkout(), site.cache, site.run, site.reporter)
    report(f"image: {made.image} into the node")
    await node.load_image(site.folder, made.archive, site.run)
    own = credentials.load(site.folder.kubeconfig, None, site.clock, {})
    try:
        async with Client(own, "lab-install", site.clock) as client:
            await _apply(site, client, values(made, webhooks), further, report)
            await _wait(client, site.clock, seconds, report)
    except ApiError as error:
        raise LabError(f"the lab's API server: {error.message}") from error
    return made


async def _apply(
    site: Site, client: Client, chosen: JsonObject, further: Sequence[str], report: Report
) -> None:
    labels: JsonObject = {
        f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")
    }
    body: JsonObject = {"metadata": {"name": names.NAMESPACE, "labels": labels}}
    try:
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", **body})
    except AlreadyExists:
        await client.merge_patch(NAMESPACES, names.NAMESPACE, body)
    report("chart: helm upgrade --install")
    home = site.folder.root / "penstock" / "helm"
    file = home / "values.json"
    write_whole(file, json.dumps(chosen, indent=2))
    tool = Helm(site.helm, site.folder.kubeconfig, home)
    await helm.apply_chart(tool, "", client, lambda _: None, further, [file])


async def _wait(client: Client, clock: Clock, seconds: float, report: Report) -> None:
    deadline = clock.monotonic() + seconds
    for check in checks(client):
        report(f"waiting: {check.step}")
        missing = check.step
        while True:
            try:
                missing = await check.ask()
            except ApiError as error:
                missing = error.message
            if not missing:
                break
            if clock.monotonic() > deadline:
                raise LabError(f"after {seconds:.0f} s: {missing}")
            await clock.sleep(POLL_SECONDS)


def checks(client: Client) -> list[Check]:
    """Return what must be true of an installation by Deployments, in order."""
    return [
        Check("certificate issued", [], lambda: readiness.ca_bundles(client)),
        Check("Deployments available", [], lambda: deployed(client)),
        Check("gangs leads", [], lambda: readiness.led(client, names.GANGS_LEASE)),
        Check("workloads leads", [], lambda: readiness.led(client, names.WORKLOADS_LEASE)),
        Check("admission answers", [], lambda: proving.missing(client)),
        Check("webhooks fail closed", [], lambda: proving.closed(client)),
    ]


async def deployed(client: Client) -> str:
    """Ask whether every Deployment of ours has all its pods, and only those of its last version."""
    found = (await client.list_pages(DEPLOYMENTS, Deployment, names.NAMESPACE)).items
    missing = [text for each in found if (text := each.missing())]
    return "; ".join(missing) if found else "no Deployment is there"

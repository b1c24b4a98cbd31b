"""The examples of docs/guide.md, applied in a lab: each does what its text says it is there for."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import replace
from traceback import format_exception
from typing import Final

import pytest
import yaml

from api import names
from api.jsons import JsonObject
from api.keep import State
from api.streams import Custom
from kube.client import Client
from kube.clock import SystemClock
from kube.resources import CONFIGMAPS, PODCLIQUESETS, RESERVATIONS
from penstock.plugin import judging, queueing
from penstock.plugin.scenes import scene
from tests.cluster.test_shared_devices import links
from tests.support import guidelives, guideplaces, guiderooms, policies
from tests.support.guiderooms import EXAMPLES, FEATURES, JOB, KEPT, NVLINK, QUEUED, part
from tests.support.installed import Installed
from tests.support.living import Cluster, Kubectl, namespace

pytestmark = pytest.mark.cluster

NETWORK: Final = EXAMPLES / "network.yaml"
PLAIN: Final = EXAMPLES / "reservation.yaml"
APPLIED: Final = [*sorted(set(FEATURES.glob("*.yaml")) - {KEPT, NVLINK, QUEUED}), JOB]

PROMISES: Final[dict[str, Callable[[Cluster], Awaitable[None]]]] = {
    "apart": guideplaces.apart,
    "autoscaled": guidelives.autoscaled,
    "budget": guidelives.budget,
    "by-hand": guidelives.by_hand,
    "close": guideplaces.close,
    "extras": guideplaces.extras,
    "first-in-line": guideplaces.first_in_line,
    "from-repository": guidelives.from_repository,
    "host-names": guidelives.host_names,
    "in-init-container": guidelives.in_init_container,
    "in-kept-room": guideplaces.in_kept_room,
    "in-order": guidelives.in_order,
    "labelled-deployment": guideplaces.labelled_deployment,
    "labelled-job": guideplaces.labelled_job,
    "labelled-statefulset": guideplaces.labelled_statefulset,
    "made-anew": guidelives.made_anew,
    "on-delete": guidelives.on_delete,
    "ready-together": guidelives.ready_together,
    "shared-claim": guideplaces.shared_claim,
    "timeout": guideplaces.timeout,
    "zone": guideplaces.zone,
}


def test_every_example_has_a_promise_that_is_looked_at() -> None:
    assert PROMISES.keys() == {path.stem for path in APPLIED}


async def kept(cluster: Cluster, name: str, state: State) -> None:
    async def attempt() -> bool | None:
        found = await cluster.client.get(RESERVATIONS, Custom, name, cluster.namespace)
        return b'"state":"%s"' % state.value.encode() in bytes(found.status) or None

    await cluster.until(attempt, f"the room {name} is {state}")


def applied(kubectl: Kubectl, *made: JsonObject) -> None:
    kubectl.run("apply", "-f", "-", text=yaml.safe_dump_all(made), check=True)


async def test_each_example_does_what_it_is_there_for(cluster: Cluster, kubectl: Kubectl) -> None:
    here = cluster.client
    files = [arg for path in (NETWORK, KEPT) for arg in ("-f", str(path))]
    kubectl.run("apply", *files, check=True)
    try:
        await kept(cluster, "evening", State.AVAILABLE)
        as_they_are = [arg for path in APPLIED for arg in ("-f", str(path))]
        kubectl.run("apply", "--dry-run=server", *as_they_are, check=True)
        async with links(here, 1), guiderooms.rooms(here):
            applied(kubectl, guideplaces.lower("running"))
            await guideplaces.started(cluster, "running-0", 2, 2)
            applied(kubectl, guideplaces.lower("second"))
            await guideplaces.waits(cluster, "second-0")
            applied(kubectl, *(each for path in APPLIED for each in guiderooms.staged(path)))
            found = await asyncio.gather(
                *(look(cluster) for look in PROMISES.values()), return_exceptions=True
            )
        broken = [(name, said) for name, said in zip(PROMISES, found, strict=True) if said]
        assert not broken, "\n".join(
            f"{name}: {''.join(format_exception(e))}" for name, e in broken
        )
        await kept(cluster, "evening", State.SUCCEEDED)
    finally:
        kubectl.run("delete", "-f", str(NETWORK), "--ignore-not-found")
        kubectl.run("delete", "priorityclass", "inference", "--ignore-not-found")


async def test_room_is_kept_for_a_time_and_for_one_set(cluster: Cluster, kubectl: Kubectl) -> None:
    async with guiderooms.rack(cluster.client):
        kubectl.apply_file(PLAIN)
        for name in ("night", "next-version"):
            await kept(cluster, name, State.AVAILABLE)
        kubectl.run("delete", "-f", str(PLAIN), check=True)


async def test_a_set_stands_in_the_queue_that_it_names_or_in_its_namespaces(
    installed: Installed, person: Client, kubectl: Kubectl
) -> None:
    policy = EXAMPLES / "policies" / "queues.yaml"
    (named,) = guiderooms.manifests(QUEUED)
    (unnamed,) = guiderooms.manifests(QUEUED)
    part(unnamed, "metadata").update(name="unnamed", labels={})
    body: JsonObject = {"metadata": {"name": names.POLICY_CONFIG}}
    data: JsonObject = {names.POLICY_KEY: policy.read_text(encoding="utf-8")}
    async with namespace(person, f"lab-{secrets.token_hex(4)}") as space:
        here = Cluster(person, space)
        in_lab = replace(kubectl, namespace=space)
        await person.create(CONFIGMAPS, {**body, "data": data}, names.NAMESPACE)
        try:

            async def refused() -> bool | None:
                asked = kubectl.run("apply", "--dry-run=server", "-f", str(QUEUED))
                return "queue" in asked.stderr or None

            await here.until(refused, "no other namespace may name that queue")
            applied(in_lab, named, unnamed)
            await here.running("queued")
            await here.running("unnamed")
            label = part(await guideplaces.stored(here, PODCLIQUESETS, "unnamed"), "metadata")
            assert part(label, "labels")[names.QUEUE_LABEL] == "research"
            seen = await scene(person, SystemClock().now())
            lines = queueing.queued(seen, judging.look(seen).values())
            assert sorted(each.key for each, _ in lines["research"].gangs) == [
                (space, "queued-0"),
                (space, "unnamed-0"),
            ]
        finally:
            await policies.take_back(person)


def test_what_takes_more_than_a_lab_has_is_refused(kubectl: Kubectl) -> None:
    refused = kubectl.run("apply", "-f", str(NVLINK))
    assert refused.returncode != 0
    assert "mnnvl.enabled" in refused.stderr


def test_a_statefulset_that_makes_one_pod_after_the_other_is_refused(kubectl: Kubectl) -> None:
    (made,) = guiderooms.manifests(FEATURES / "labelled-statefulset.yaml")
    del guiderooms.part(made, "spec")["podManagementPolicy"]
    refused = kubectl.run("apply", "-f", "-", text=yaml.safe_dump(made))
    assert refused.returncode != 0
    assert "podManagementPolicy must be Parallel" in refused.stderr

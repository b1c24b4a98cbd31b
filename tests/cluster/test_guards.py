"""What the guards leave to everybody: a tenant's own words, Grove's operator, the tidying up."""

import asyncio
from collections.abc import AsyncIterator
from secrets import token_hex

import msgspec
import pytest
import yaml

from api import names
from api.jsons import Json, JsonObject
from kube.client import Client
from kube.errors import Forbidden, NotFound
from kube.resources import PODCLIQUESETS, PODS
from tests.support.attempts import ONLY_LIFT, ONLY_MAKERS, changed, labels, look, part
from tests.support.installed import Installed
from tests.support.living import Cluster, Kubectl
from tests.support.tenants import (
    EDITOR,
    GROVE,
    JSON_PATCH,
    MERGE_PATCH,
    WAITING_SET,
    Estate,
    a_pod,
)

pytestmark = pytest.mark.cluster

GATED: list[Json] = [{"name": names.GATE}]
LIFT: list[JsonObject] = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
NOMINATED: JsonObject = {"status": {"nominatedNodeName": "nowhere"}}


def member(name: str, **metadata: Json) -> JsonObject:
    """A pod of a gang that has a custom resource somewhere, as Grove's operator would make it."""
    meta: JsonObject = {"name": name, "labels": {names.PODGANG_LABEL: "grove-0"}, **metadata}
    return changed(a_pod(name, schedulingGates=GATED), "metadata", to=meta)


@pytest.fixture
async def pod(person: Client, estate: Estate) -> AsyncIterator[str]:
    name = f"member-{token_hex(3)}"
    await person.create(PODS, member(name), estate.namespace)
    yield name
    await gone(person, estate, name, delete=True)


async def gone(person: Client, estate: Estate, name: str, *, delete: bool = False) -> None:
    async def attempt() -> bool | None:
        try:
            if delete:
                await person.delete(PODS, name, estate.namespace)
            await look(person, estate, name)
        except NotFound:
            return True
        return None

    await Cluster(person, estate.namespace).until(attempt, f"pod {name} gone")


async def test_gangs_nominates_and_lifts_a_gangs_pod(
    installed: Installed, person: Client, estate: Estate, pod: str
) -> None:
    async with installed.acting(names.GANGS_ACCOUNT) as gangs:
        await gangs.merge_patch(PODS, pod, NOMINATED, estate.namespace, subresource="status")
        selector = {"spec": {"nodeSelector": {"pinned": "here"}}}
        await gangs.merge_patch(PODS, pod, selector, estate.namespace)
        await gangs.json_patch(PODS, pod, LIFT, estate.namespace)
    assert part(await look(person, estate, pod), "spec", "schedulingGates") is None


async def test_kube_scheduler_nominates_as_it_likes(
    installed: Installed, person: Client, estate: Estate, pod: str
) -> None:
    kubectl = Kubectl(installed.lab.binaries["kubectl"], installed.lab.kubeconfig, estate.namespace)
    body: JsonObject = {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {"name": pod},
        **NOMINATED,
    }
    apply = ("apply", "--server-side", "--subresource=status", "-f", "-")
    scheduler = "--as=system:kube-scheduler"
    await asyncio.to_thread(kubectl.run, scheduler, *apply, text=yaml.safe_dump(body), check=True)
    assert part(await look(person, estate, pod), "status", "nominatedNodeName") == "nowhere"


async def test_anybody_may_write_words_of_their_own_on_a_gangs_pod(
    estate: Estate, pod: str
) -> None:
    path = estate.path(PODS, pod)
    async with estate.acting(EDITOR) as editor:
        for value in ("blue", "green", None):
            words: JsonObject = {"team.example/colour": value, "app": value}
            body: JsonObject = {"metadata": {"labels": words, "annotations": words}}
            found = await editor.ask("PATCH", path, body, MERGE_PATCH)
            assert ("blue" in str(found), "green" in str(found)) == (
                value == "blue",
                value == "green",
            )


async def test_anybody_may_make_a_gang_of_pods_by_labels_and_it_waits(
    person: Client, estate: Estate
) -> None:
    words: JsonObject = {
        names.GANG_LABEL: "mine",
        names.GANG_SIZE_LABEL: "1000",
        names.QUEUE_LABEL: "research",
    }
    body = changed(a_pod("plain"), "metadata", to={"name": "plain", "labels": words})
    async with estate.acting(EDITOR) as editor:
        made = await editor.ask("POST", estate.path(PODS), body)
        assert names.GATE in str(made["spec"])
        await editor.ask("DELETE", estate.path(PODS, "plain"))
    await gone(person, estate, "plain")


async def test_pods_of_other_schedulers_are_nobodys_business(
    person: Client, estate: Estate
) -> None:
    words: JsonObject = {names.PODGANG_LABEL: "theirs"}
    body = changed(
        a_pod("theirs", schedulerName="volcano"), "metadata", to={"name": "theirs", "labels": words}
    )
    async with estate.acting(EDITOR) as editor:
        await editor.ask("POST", estate.path(PODS), body)
        path = estate.path(PODS, "theirs")
        await editor.ask("PATCH", path, labels(grove__podgang=None), MERGE_PATCH)
        await editor.ask("DELETE", path)
    await gone(person, estate, "theirs")


async def test_pods_of_a_set_for_another_scheduler_are_made_by_workloads(
    installed: Installed, person: Client, estate: Estate
) -> None:
    """As the policy may map a set's schedulerName elsewhere; such a pod has no gate of ours."""
    owner: JsonObject = {
        "apiVersion": PODCLIQUESETS.api_version,
        "kind": PODCLIQUESETS.kind,
        "name": WAITING_SET,
        "uid": estate.set_uid,
        "controller": True,
    }
    body = changed(member("mapped", ownerReferences=[owner]), "spec", "schedulerName", to="volcano")
    async with installed.acting(names.WORKLOADS_ACCOUNT) as workloads:
        made: JsonObject = msgspec.json.decode(await workloads.create(PODS, body, estate.namespace))
    assert part(made, "spec", "schedulerName") == "volcano"
    assert part(made, "spec", "schedulingGates") is None
    await gone(person, estate, "mapped", delete=True)


async def test_groves_operator_makes_gangs_pods_and_keeps_them_but_never_lifts_one(
    person: Client, estate: Estate
) -> None:
    # A reference to what is not there would have the pod collected at once.
    owner: JsonObject = {
        "apiVersion": PODCLIQUESETS.api_version,
        "kind": PODCLIQUESETS.kind,
        "name": WAITING_SET,
        "uid": estate.set_uid,
    }
    async with estate.acting(GROVE) as grove:
        made = await grove.ask("POST", estate.path(PODS), member("groves"))
        assert names.GATE in str(made["spec"])
        path = estate.path(PODS, "groves")
        changes: list[JsonObject] = [
            {"labels": {names.POD_INDEX_LABEL: "1"}},
            {"finalizers": ["grove.io/hold"]},
            {"ownerReferences": [owner]},
            {"finalizers": None, "ownerReferences": None},
        ]
        for change in changes:
            await grove.ask("PATCH", path, {"metadata": change}, MERGE_PATCH)
        with pytest.raises(Forbidden, match=ONLY_LIFT):
            await grove.ask("PATCH", path, [*LIFT], JSON_PATCH)
    async with estate.acting(EDITOR) as editor:
        with pytest.raises(Forbidden, match=ONLY_MAKERS):
            await editor.ask("POST", estate.path(PODS), member("editors"))
    await gone(person, estate, "groves", delete=True)


async def test_a_foreign_finalizer_comes_off_a_gangs_pod_that_goes(
    person: Client, estate: Estate
) -> None:
    hold = "team.example/hold"
    await person.create(PODS, member("held", finalizers=[hold]), estate.namespace)
    path = estate.path(PODS, "held")
    async with estate.acting(EDITOR) as editor:
        nothing: JsonObject = {"metadata": {"finalizers": None}}
        with pytest.raises(Forbidden, match=hold):
            await editor.ask("PATCH", path, nothing, MERGE_PATCH)
        await editor.ask("DELETE", path)
        await editor.ask("PATCH", path, nothing, MERGE_PATCH)
    await gone(person, estate, "held")


async def test_a_gangs_pod_can_be_evicted_and_deleted_by_whoever_may(
    person: Client, estate: Estate, pod: str
) -> None:
    eviction: JsonObject = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod},
    }
    async with estate.acting(EDITOR) as editor:
        await editor.ask("POST", estate.path(PODS, pod, "eviction"), eviction)
        await gone(person, estate, pod)
        await person.create(PODS, member(pod), estate.namespace)
        await editor.ask("DELETE", estate.path(PODS, pod))
    await gone(person, estate, pod)

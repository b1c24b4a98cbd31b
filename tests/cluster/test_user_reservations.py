"""Room that people keep: for whom it is meant and nobody else, until it is used or time is over."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest
import yaml

from api import names
from api.jsons import Json, JsonObject
from api.keep import State
from api.streams import Custom, Node, Pod
from controller.gangs.keeps import views
from controller.gangs.keeps.views import Keep
from kube.errors import ApiError, Forbidden, NotFound
from kube.resources import NODES, PODGANGS, PODS, RESERVATIONS
from penstock.lab.installation import Installation
from scheduler import needs
from tests.support.controllers import running, without
from tests.support.installed import Installed
from tests.support.killing import KillingProxy, through
from tests.support.living import Cluster, Kubectl, engine_set, namespace, tls_of
from tests.support.tenants import ADMIN, EDITOR, OWNER, RUNNING_SET, Estate

pytestmark = pytest.mark.cluster

GPU = "nvidia.com/gpu"
ANYBODY: Json = [{"labelSelector": {}}]


def for_set(name: str) -> Json:
    return [{"object": {"kind": "PodCliqueSet", "name": name}}]


def room(
    name: str, label: str, *, gpus: int = 8, owners: Json = ANYBODY, **spec: Json
) -> JsonObject:
    """A reservation of so many GPUs on nodes that are labelled so."""
    resources: JsonObject = {"limits": {GPU: gpus}}
    container: Json = {"name": "main", "image": "none", "resources": resources}
    template: Json = {"spec": {"containers": [container], "nodeSelector": {label: "yes"}}}
    return {
        "apiVersion": RESERVATIONS.api_version,
        "kind": RESERVATIONS.kind,
        "metadata": {"name": name},
        "spec": {"owners": owners, "template": template, **spec},
    }


def asking(body: JsonObject, reference: str) -> JsonObject:
    """A set that names the reservation it wants to use."""
    meta = body["metadata"]
    assert isinstance(meta, dict)
    return {**body, "metadata": {**meta, "annotations": {names.RESERVATION_REF: reference}}}


async def kept(cluster: Cluster, name: str) -> Keep | None:
    try:
        found = await cluster.client.get(RESERVATIONS, Custom, name, cluster.namespace)
    except NotFound:
        return None
    return views.read(found)


async def comes_to(cluster: Cluster, name: str, *states: State) -> Keep:
    """Wait until the reservation is in one of these states."""

    async def attempt() -> Keep | None:
        found = await kept(cluster, name)
        told = found is not None and bool(found.status.expires_at)
        return found if told and found is not None and found.status.state in states else None

    return await cluster.until(attempt, f"reservation {name} {'/'.join(states)}")


async def check_rooms(cluster: Cluster, label: str) -> None:
    """No node is promised beyond what it has: pods there, the ledger's slots, and what is kept."""
    every = (await cluster.client.list_pages(NODES, Node)).items
    nodes = [node for node in every if label in node.metadata.labels]
    pods = (await cluster.client.list_pages(PODS, Pod)).items
    entries = {r.spec.gang.name: r for r in await cluster.reservations()}
    found = (await cluster.client.list_pages(RESERVATIONS, Custom, cluster.namespace)).items
    keeps = [keep for each in found if (keep := views.read(each))]
    for node in nodes:
        name = node.metadata.name
        there = [pod for pod in pods if pod.spec.node_name == name and not pod.finished]
        taken = sum(needs.of_pod(pod).get(GPU, 0) for pod in there)
        bound = {pod.metadata.labels.get(names.PODGANG_LABEL) for pod in there}
        for entry in entries.values():
            if entry.spec.gang.name not in bound:
                slots = [r for _, slot, r in entry.slots() if slot.node == name]
                taken += sum(int(requests.get(GPU, "0")) for requests in slots)
        for keep in keeps:
            users = [
                entry
                for entry in entries.values()
                if entry.spec.uses is not None and entry.spec.uses.uid == keep.metadata.uid
            ]
            taken += views.rest(keep, users).get(name, {}).get(GPU, 0)
        assert taken <= int(node.status.allocatable[GPU]), f"{name} is promised {taken} times"


async def test_room_is_kept_from_others_and_given_to_the_set_it_is_for(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    label = "keep-test"
    (node,) = await cluster.label_nodes(label, count=1)
    kubectl.apply(room("room", label, owners=for_set("welcome")))
    found = await comes_to(cluster, "room", State.AVAILABLE)
    assert [slot.node for slot in found.status.slots] == [node]
    kubectl.apply(asking(engine_set("stranger", pods=1, gpus=1, selector=label), "room"))
    await cluster.gang("stranger-0", reason=names.REASON_INSUFFICIENT)
    kubectl.apply(engine_set("welcome", pods=2, gpus=4, selector=label))
    await cluster.running("welcome")
    served = await comes_to(cluster, "room", State.SUCCEEDED)
    assert [(user.gang, user.pods) for user in served.status.users] == [("welcome-0", 2)]
    assert served.status.used[GPU] == "8"
    await check_rooms(cluster, label)
    await cluster.gang("stranger-0", reason=names.REASON_INSUFFICIENT)


async def test_a_set_gets_the_room_that_it_names(cluster: Cluster, kubectl: Kubectl) -> None:
    label = "named-test"
    await cluster.label_nodes(label, count=2)
    for name in ("a", "b"):
        kubectl.apply(room(name, label))
    (one,) = (await comes_to(cluster, "a", State.AVAILABLE)).status.slots
    (other,) = (await comes_to(cluster, "b", State.AVAILABLE)).status.slots
    assert one.node != other.node
    kubectl.apply(asking(engine_set("chooser", pods=1, gpus=8, selector=label), "b"))
    seen = await cluster.running("chooser")
    assert [pod.spec.node_name for pod in seen.pods.values()] == [other.node]
    await comes_to(cluster, "b", State.SUCCEEDED)
    assert (await comes_to(cluster, "a", State.AVAILABLE)).status.users == []


async def test_a_gang_gets_the_room_that_it_refers_to(cluster: Cluster, kubectl: Kubectl) -> None:
    """Whoever writes that; here a person, which a set has to allow."""
    label, later = "reuse-test", "reuse-test-later"
    await cluster.label_nodes(label, count=2)
    kubectl.apply(room("a", label))
    (older,) = (await comes_to(cluster, "a", State.AVAILABLE)).status.slots
    body = engine_set("reuser", pods=1, gpus=8, selector=later)
    body["metadata"] = {"name": "reuser", "annotations": {names.UNPROTECTED_ANNOTATION: "true"}}
    kubectl.apply(body)
    await cluster.gang("reuser-0", reason=names.REASON_NEVER_FITS)
    reference: JsonObject = {"reuseReservationRef": {"namespace": cluster.namespace, "name": "b"}}
    await cluster.client.merge_patch(PODGANGS, "reuser-0", {"spec": reference}, cluster.namespace)

    async def read() -> bool | None:
        said = await cluster.gang("reuser-0", reason=names.REASON_NEVER_FITS)
        return "reservation b" in said.message or None

    await cluster.until(read, "it is said that there is none of that name")
    kubectl.apply(room("b", label))
    (named,) = (await comes_to(cluster, "b", State.AVAILABLE)).status.slots
    cluster.marks.add(later)
    fits: JsonObject = {"metadata": {"labels": {later: "yes"}}}
    await cluster.client.merge_patch(NODES, older.node, fits)  # which it would get
    await cluster.gang("reuser-0", reason=names.REASON_INSUFFICIENT)
    await cluster.client.merge_patch(NODES, named.node, fits)
    seen = await cluster.running("reuser")
    assert [pod.spec.node_name for pod in seen.pods.values()] == [named.node]
    await comes_to(cluster, "b", State.SUCCEEDED)


async def test_room_of_another_namespace_is_out_of_reach(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    label = "theirs-test"
    await cluster.label_nodes(label, count=1)
    async with namespace(cluster.client, f"{cluster.namespace}-theirs") as space:
        theirs = Cluster(cluster.client, space)
        replace(kubectl, namespace=space).apply(room("room", label))
        await comes_to(theirs, "room", State.AVAILABLE)
        kubectl.apply(asking(engine_set("thief", pods=1, gpus=1, selector=label), f"{space}/room"))
        told = await cluster.gang("thief-0", reason=names.REASON_INSUFFICIENT)
        assert "reservation room is in namespace" in told.message
        found = await comes_to(theirs, "room", State.AVAILABLE)
        assert found.status.users == []
        await cluster.client.delete(RESERVATIONS, "room", space)
    seen = await cluster.running("thief")
    (gang,) = seen.gangs
    said = [c.message for c in gang.status.conditions if c.type == names.PLACED]
    assert "reservation room is in namespace" in said[0]


async def test_when_its_time_is_over_the_room_is_free(cluster: Cluster, kubectl: Kubectl) -> None:
    label = "brief-test"
    await cluster.label_nodes(label, count=1)
    kubectl.apply(room("brief", label, owners=for_set("nobody"), ttl="1h"))
    await comes_to(cluster, "brief", State.AVAILABLE)
    kubectl.apply(engine_set("next", pods=1, gpus=8, selector=label))
    await cluster.gang("next-0", reason=names.REASON_INSUFFICIENT)
    patch: JsonObject = {"spec": {"ttl": "1s"}}
    await cluster.client.merge_patch(RESERVATIONS, "brief", patch, cluster.namespace)
    await comes_to(cluster, "brief", State.EXPIRED)
    await cluster.running("next")


@pytest.mark.long
async def test_room_for_many_is_kept_again_when_a_gang_has_left_it(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    label = "many-test"
    await cluster.label_nodes(label, count=1)
    kubectl.apply(room("many", label, owners=for_set("one"), allocateOnce=False))
    await comes_to(cluster, "many", State.AVAILABLE)
    kubectl.apply(engine_set("outside", pods=1, gpus=1, selector=label))
    kubectl.apply(engine_set("one", pods=1, gpus=6, selector=label))
    await cluster.running("one")
    used = await comes_to(cluster, "many", State.ALLOCATED)
    assert [user.gang for user in used.status.users] == ["one-0"]
    assert used.status.used[GPU] == "6"
    await check_rooms(cluster, label)
    kubectl.delete("one")
    await comes_to(cluster, "many", State.AVAILABLE)
    await cluster.gang("outside-0", reason=names.REASON_INSUFFICIENT)
    await cluster.client.delete(RESERVATIONS, "many", cluster.namespace)
    await cluster.running("outside")


async def test_one_that_finds_no_room_waits_whole_and_says_why(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    label = "pending-test"
    await cluster.label_nodes(label, count=1)
    kubectl.apply(room("large", label, replicas=2))
    found = await comes_to(cluster, "large", State.PENDING)
    assert found.status.slots == []
    assert found.status.message
    kubectl.apply(engine_set("small", pods=1, gpus=8, selector=label))
    await cluster.running("small")
    kubectl.delete("small")
    await cluster.label_nodes(label, count=2)
    held = await comes_to(cluster, "large", State.AVAILABLE)
    assert len({slot.node for slot in held.status.slots}) == 2


def refused(kubectl: Kubectl, body: JsonObject) -> str:
    done = kubectl.run("apply", "-f", "-", text=yaml.safe_dump(body))
    assert done.returncode != 0
    return done.stderr


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"owners": None}, "spec.owners"),
        ({"owners": []}, "spec.owners"),
        ({"owners": [{}]}, "spec.owners[0]"),
        ({"requests": {"cpu": "1"}}, "spec.requests"),
        ({"replicas": 1001}, "spec.replicas"),
        ({"ttl": "soon"}, "spec.ttl"),
        ({"ttl": "9000h"}, "spec.ttl"),
        ({"ttl": "1h", "expires": "2099-01-01T00:00:00Z"}, "spec.ttl"),
        ({"deadline": "2099-01-01T00:00:00Z"}, "spec.deadline"),
        ({"gang": {"name": "a", "uid": "b"}}, "spec.owners"),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused_with_its_path(
    spec: JsonObject, said: str, kubectl: Kubectl, installed: Installed
) -> None:
    body = room("wrong", "nowhere")
    there = body["spec"]
    assert isinstance(there, dict)
    merged = {**there, **spec}
    body["spec"] = {key: value for key, value in merged.items() if value is not None}
    assert said in refused(kubectl, body)


async def test_what_was_placed_cannot_be_made_larger(cluster: Cluster, kubectl: Kubectl) -> None:
    kubectl.apply(room("fixed", "no-such-test"))
    other: JsonObject = {"template": None, "requests": {"a": "1"}}
    for spec in ({"replicas": 5}, {"allocateOnce": False}, other):
        with pytest.raises(ApiError, match="cannot be changed"):
            await cluster.client.merge_patch(
                RESERVATIONS, "fixed", {"spec": {**spec}}, cluster.namespace
            )
    patch: JsonObject = {"spec": {"ttl": "2h", "owners": for_set("other")}}
    await cluster.client.merge_patch(RESERVATIONS, "fixed", patch, cluster.namespace)


async def test_only_those_make_one_whom_a_role_lets(estate: Estate) -> None:
    path = estate.path(RESERVATIONS)
    for tenant in (EDITOR, ADMIN):
        async with estate.acting(tenant) as asked:
            with pytest.raises(Forbidden, match="cannot create resource"):
                await asked.ask("POST", path, room("mine", "nowhere"))
    async with estate.acting(OWNER) as asked:
        await asked.ask("POST", path, room("mine", "nowhere"))
        one = estate.path(RESERVATIONS, "mine")
        patch: JsonObject = {"spec": {"ttl": "1h"}}
        await asked.ask("PATCH", one, patch, "application/merge-patch+json")
        await asked.ask("DELETE", one)


async def test_nobody_makes_one_of_the_other(estate: Estate) -> None:
    """A person writes no entry of the ledger, says nothing of what became of his own, nor room."""
    merge = "application/merge-patch+json"
    gang: JsonObject = {"gang": {"name": "a", "uid": "b"}}
    entry: JsonObject = {
        **gang, "owners": None, "template": None,
        "deadline": "2099-01-01T00:00:00Z", "groups": [],
    }  # fmt: skip
    there = estate.path(RESERVATIONS, f"{RUNNING_SET}-0")
    person: JsonObject = {
        "gang": None, "deadline": None, "groups": None, "owners": ANYBODY,
        "requests": {"cpu": "1"},
    }  # fmt: skip
    async with estate.acting(OWNER) as asked:
        await asked.ask("POST", estate.path(RESERVATIONS), room("own", "nowhere"))
        own = estate.path(RESERVATIONS, "own")
        try:
            status: JsonObject = {"state": "Available", "slots": [{"index": 0, "node": "n"}]}
            tries: list[tuple[str, JsonObject]] = [
                (own, {"spec": entry}),
                (f"{own}/status", {"status": status}),
                (there, {"spec": person}),
                (there, {"spec": {"owners": ANYBODY}}),
            ]
            for path, patch in tries:
                with pytest.raises(ApiError) as answer:
                    await asked.ask("PATCH", path, patch, merge)
                assert answer.value.status in {403, 422}
            await asked.ask("PATCH", own, {"status": status}, merge)  # which takes no status
            found = await asked.ask("GET", own)
            assert '"node"' not in msgspec.json.encode(found.get("status", {})).decode()
        finally:
            await asked.ask("DELETE", own)


@pytest.fixture
def without_gangs(installed: Installed) -> Iterator[Installation]:
    """Penstock with `gangs` stopped, so that a test can run its own."""
    with without("gangs", installed.installation) as installation:
        yield installation


@dataclass(frozen=True)
class Instant:
    """The n-th write to reservations that `gangs` dies right after."""

    what: str
    part: str
    count: int = 1

    def counts(self, write: str) -> bool:
        return self.part in write


OF_A_KEEP = (
    Instant("the room is kept", "/reservations/room/status"),
    Instant("a gang draws on it", "/reservations 201"),
    Instant("its users are told", "/reservations/room/status", 2),
    Instant("it has served", "/reservations/room/status", 3),
)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("instant", OF_A_KEEP, ids=lambda each: each.what)
async def test_killed_at_any_write_its_successor_keeps_the_room_and_gives_it_once(
    instant: Instant,
    without_gangs: Installation,
    cluster: Cluster,
    kubectl: Kubectl,
    tmp_path: Path,
) -> None:
    label = f"dying-{OF_A_KEEP.index(instant)}-test"
    await cluster.label_nodes(label, count=1)
    kubeconfig = without_gangs.kubeconfig(names.GANGS_ACCOUNT)
    server, tls = tls_of(kubeconfig)
    flags = ("--webhook-host", "127.0.0.1", "--lease", "8")  # which a busy machine can renew
    kubectl.apply(room("room", label, owners=for_set("owner")))
    async with KillingProxy(server, tls, instant.count, instant.counts) as proxy:
        config = through(proxy, kubeconfig, tmp_path / "through.yaml")
        while not proxy.fired:  # it may lose its lease all the same
            async with running("gangs", config, tmp_path / "first.log", *flags) as process:
                proxy.pid = process.pid
                if instant.count > 1 or instant.part.endswith("201"):
                    await comes_to(cluster, "room", *State)
                    kubectl.apply(engine_set("owner", pods=1, gpus=8, selector=label))
                await asyncio.wait_for(process.wait(), 60)
    await check_rooms(cluster, label)
    async with running("gangs", kubeconfig, tmp_path / "second.log", *flags):
        kubectl.apply(engine_set("stranger", pods=1, gpus=1, selector=label))
        kubectl.apply(engine_set("owner", pods=1, gpus=8, selector=label))
        await cluster.running("owner")
        await comes_to(cluster, "room", State.SUCCEEDED)
        await cluster.gang("stranger-0", reason=names.REASON_INSUFFICIENT)
        await check_rooms(cluster, label)
        for name in ("owner", "stranger"):
            kubectl.delete(name)
            await cluster.pods(name, 0)
            await cluster.gone("reservation", f"{name}-0")

"""The guards while every webhook is down: what they still refuse, and what goes on all the same."""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Final

import pytest

from api import names
from api.jsons import Json, JsonObject
from kube.client import Client
from kube.errors import AlreadyExists, ApiError, NotFound
from kube.resources import NAMESPACES, PODCLIQUESETS, PODS, RESERVATIONS, Resource
from penstock.lab.balancer import https_readyz
from penstock.lab.ports import LOOPBACK
from tests.support.attempts import (
    BELONGING,
    KEPT,
    ONLY_LIFT,
    ONLY_MAKERS,
    PLACE,
    Ask,
    Attempt,
    Seen,
    carry_out,
    changed,
    each,
    labels,
    look,
    merge,
    part,
)
from tests.support.installed import Installed
from tests.support.living import Cluster, engine_set
from tests.support.tenants import (
    ADMIN,
    EDITOR,
    JSON_PATCH,
    MERGE_PATCH,
    OWNER,
    RUNNING_SET,
    Estate,
    Tenant,
    a_pod,
)

pytestmark = pytest.mark.cluster

REPLICASETS: Final = Resource("apps", "v1", "replicasets", "ReplicaSet", namespaced=True)
STATEFULSETS: Final = Resource("apps", "v1", "statefulsets", "StatefulSet", namespaced=True)
JOBS: Final = Resource("batch", "v1", "jobs", "Job", namespaced=True)
EVERYBODY: Final = (EDITOR, ADMIN, OWNER)
GATED: Final[list[Json]] = [{"name": names.GATE}]
LIFT: Final[list[Json]] = [{"op": "remove", "path": "/spec/schedulingGates/0"}]

BOOKED: Final[JsonObject] = {
    "apiVersion": RESERVATIONS.api_version,
    "kind": RESERVATIONS.kind,
    "metadata": {"name": "booked"},
    "spec": {
        "gang": {"name": "booked", "uid": "nobody"},
        "deadline": "2100-01-01T00:00:00Z",
        "groups": [],
    },
}


@pytest.fixture(scope="module", autouse=True)
def alone(installed: Installed, estate: Estate) -> Iterator[str]:
    """Kill all webhooks; they are back and ready when the module is done.

    Gives a namespace with gangs in it that is being deleted from then on, which takes a while.
    """
    installation = installed.installation
    webhooks = [f"webhook-{i}" for i in range(installation.settings.webhooks)]
    for name in webhooks:
        installation.kill_component(name)
    space = f"{estate.namespace}-leaving"
    asyncio.run(_leave(installed, space))
    yield space
    for name in webhooks:
        installation.start_component(name)
    asyncio.run(_ready(installation.settings.balancer_port))


async def _leave(installed: Installed, space: str) -> None:
    async with installed.person() as person:
        await person.create(NAMESPACES, {"metadata": {"name": space}})
        for kind in (REPLICASETS, JOBS):
            await person.create(kind, herd(kind, "all"), space)
        await person.create(RESERVATIONS, BOOKED, space)
        await Shepherd(person, space, "all").owners("all", "all", "all", "all")
        await person.delete(NAMESPACES, space)


async def _ready(port: int) -> None:
    async with asyncio.timeout(30):
        while not await https_readyz(LOOPBACK, port):
            await asyncio.sleep(0.1)


def new(name: str, words: JsonObject, **spec: Json) -> JsonObject:
    return changed(a_pod(name, **spec), "metadata", to={"name": name, "labels": words})


def plain(name: str) -> JsonObject:
    return {names.GANG_LABEL: name, names.GANG_SIZE_LABEL: "4"}


def create(seen: Seen, words: JsonObject, **spec: Json) -> list[Ask]:
    return [Ask("POST", seen.estate.path(PODS), new("slipped-in", words, **spec))]


@each(
    Attempt(
        "takes the gate off",
        EVERYBODY,
        lambda seen: [Ask("PATCH", seen.gated(), LIFT, JSON_PATCH)],
        ONLY_LIFT,
    ),
    Attempt(
        "says where a gated pod goes",
        EVERYBODY,
        lambda seen: merge(seen.gated(), {"spec": {"nodeSelector": {"my": "node"}}}),
        PLACE,
    ),
    Attempt(
        "makes a pod of a set's gang",
        EVERYBODY,
        lambda seen: create(seen, {names.PODGANG_LABEL: "stuck-0"}),
        ONLY_MAKERS,
    ),
    Attempt(
        "makes a gang's pod without the gate",
        EVERYBODY,
        lambda seen: create(seen, plain("mine")),
        "waits behind the scheduling gate penstock.dev/gang, and this one lacks it",
    ),
    Attempt(
        "makes one under a scheduler's other name",
        (EDITOR,),
        lambda seen: create(seen, plain("mine"), schedulerName="kai-scheduler"),
        "this one lacks it",
    ),
    Attempt(
        "makes a gang's pod that is on a node already",
        (EDITOR,),
        lambda seen: create(seen, plain("mine"), nodeName="mine"),
        "spec.nodeName cannot be set on a pod that claims a gang",
    ),
    Attempt(
        "makes a gang that is never whole",
        (EDITOR,),
        lambda seen: create(seen, {names.GANG_LABEL: "mine"}, schedulingGates=GATED),
        "add one of them",
    ),
    Attempt(
        "makes a gang of more pods than one may have",
        (EDITOR,),
        lambda seen: create(
            seen, {**plain("mine"), names.GANG_SIZE_LABEL: "10001"}, schedulingGates=GATED
        ),
        "whole numbers from 1 to 10000",
    ),
    Attempt(
        "makes a gang that never reaches its minimum",
        (EDITOR,),
        lambda seen: create(
            seen, {**plain("mine"), names.GANG_MINIMUM_LABEL: "5"}, schedulingGates=GATED
        ),
        "must not exceed penstock.dev/gang-size",
    ),
    Attempt(
        "labels a pod into a set's gang",
        (EDITOR, OWNER),
        lambda seen: merge(seen.loose(), labels(grove__podgang="stuck-0")),
        BELONGING,
    ),
    Attempt(
        "takes a gang's pod from its owner",
        (EDITOR, OWNER),
        lambda seen: merge(seen.gated(), {"metadata": {"ownerReferences": None}}),
        KEPT,
    ),
)
async def test_the_guards_need_no_webhook(
    person: Client, estate: Estate, attempt: Attempt, tenant: str
) -> None:
    await carry_out(person, estate, attempt, tenant)


async def test_pods_of_no_gang_and_gated_pods_of_a_plain_one_are_let_in(estate: Estate) -> None:
    async with estate.acting(EDITOR) as editor:
        for body in (a_pod("free"), new("free", plain("free"), schedulingGates=GATED)):
            await editor.ask("POST", estate.path(PODS), body)
            await editor.ask("DELETE", estate.path(PODS, "free"))


async def test_a_set_is_refused_in_readable_words(estate: Estate) -> None:
    async with estate.acting(OWNER) as owner:
        with pytest.raises(ApiError, match=r"podcliquesets\.penstock\.dev"):
            await owner.ask("POST", estate.path(PODCLIQUESETS), engine_set("late", pods=1, gpus=1))


def herd(kind: Resource, name: str, **spec: Json) -> JsonObject:
    """An owner of two pods of a gang that is never whole."""
    words: JsonObject = {"herd": name, **plain(name), names.GANG_MINIMUM_LABEL: "2"}
    pod: JsonObject = {
        "containers": [{"name": "main", "image": "none"}],
        "schedulingGates": [{"name": "team.example/hold"}, *GATED],
        "terminationGracePeriodSeconds": 0,
    }
    whole: JsonObject = {"template": {"metadata": {"labels": words}, "spec": pod}, **spec}
    if kind == JOBS:
        pod["restartPolicy"] = "Never"
        whole["parallelism"] = 2
    else:
        whole["selector"] = {"matchLabels": {"herd": name}}
        whole["replicas"] = 2
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name},
        "spec": whole,
    }


class Shepherd:
    """Waits for what the pods of a herd have come to."""

    def __init__(self, person: Client, space: str, name: str) -> None:
        self._person, self._space, self._name = person, space, name

    async def owners(self, *wanted: str) -> list[str]:
        """Wait until the pods are owned so ("" for nobody), in any order; gives their names."""

        async def attempt() -> list[str] | None:
            listing = await self._person.list_pages(
                PODS, dict[str, object], self._space, labels=f"herd={self._name}"
            )
            found = [_owner(pod) for pod in listing.items]
            if sorted(owner for _, owner in found) != sorted(wanted):
                return None
            return [name for name, _ in found]

        what = f"pods of {self._name} owned by {wanted}"
        return await Cluster(self._person, self._space).until(attempt, what)


def _owner(pod: dict[str, object]) -> tuple[str, str]:
    meta = pod["metadata"]
    assert isinstance(meta, dict)
    references = meta.get("ownerReferences") or [{"name": ""}]
    return meta["name"], references[0]["name"]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [(REPLICASETS, {}), (STATEFULSETS, {"podManagementPolicy": "Parallel"}), (JOBS, {})],
    ids=["ReplicaSet", "StatefulSet", "Job"],
)
@pytest.mark.parametrize("how", ["Foreground", "Background"])
async def test_pods_of_a_gang_go_with_their(
    person: Client, estate: Estate, kind: Resource, spec: JsonObject, how: str
) -> None:
    name = f"{kind.kind}-{how}".lower()
    flock = Shepherd(person, estate.namespace, name)
    async with estate.acting(EDITOR) as editor:
        await editor.ask("POST", estate.path(kind), herd(kind, name, **spec))
        first, _ = await flock.owners(name, name)
        # A Job's pods have a finalizer that its controller takes off.
        await editor.ask("DELETE", estate.path(PODS, first))
        await flock.owners(name, name)
        options: JsonObject = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": how,
        }
        await editor.ask("DELETE", estate.path(kind, name), options)
    await flock.owners()


async def made(tenant: Tenant, path: str, body: JsonObject) -> bool | None:
    """Make an object, unless its namesake is not quite gone yet."""
    try:
        await tenant.ask("POST", path, body)
    except AlreadyExists:
        return None
    return True


@pytest.mark.parametrize(
    ("kind", "spec"),
    [(REPLICASETS, {}), (STATEFULSETS, {"podManagementPolicy": "Parallel"})],
    ids=["ReplicaSet", "StatefulSet"],
)
async def test_pods_of_a_gang_are_orphaned_adopted_and_released_by_a(
    person: Client, estate: Estate, kind: Resource, spec: JsonObject
) -> None:
    name = f"{kind.kind}-orphans".lower()
    flock = Shepherd(person, estate.namespace, name)
    body = herd(kind, name, **spec)
    orphan: JsonObject = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Orphan",
    }
    async with estate.acting(EDITOR) as editor:
        await editor.ask("POST", estate.path(kind), body)
        pods = await flock.owners(name, name)
        await editor.ask("DELETE", estate.path(kind, name), orphan)
        assert sorted(await flock.owners("", "")) == sorted(pods)
        await Cluster(person, estate.namespace).until(
            partial(made, editor, estate.path(kind), body), f"{name} made again"
        )
        assert sorted(await flock.owners(name, name)) == sorted(pods)
        stray = estate.path(PODS, pods[0])
        await editor.ask("PATCH", stray, {"metadata": {"labels": {"herd": "no"}}}, MERGE_PATCH)

        async def released() -> bool | None:
            found = await look(person, estate, pods[0])
            return True if not part(found, "metadata", "ownerReferences") else None

        await Cluster(person, estate.namespace).until(released, f"{pods[0]} is released")
        await editor.ask("DELETE", stray)
        await editor.ask("DELETE", estate.path(kind, name))
    await flock.owners()


async def test_a_namespace_goes_with_the_gangs_in_it(
    person: Client, estate: Estate, alone: str
) -> None:
    async def attempt() -> bool | None:
        try:
            await person.raw_get(NAMESPACES.path(None, alone))
        except NotFound:
            return True
        return None

    await Cluster(person, estate.namespace).until(attempt, f"namespace {alone} gone")


async def test_a_sets_pod_comes_back_is_lifted_bound_and_run(
    person: Client, estate: Estate
) -> None:
    uid = part(await look(person, estate, estate.bound), "metadata", "uid")
    assert isinstance(uid, str)
    async with estate.acting(EDITOR) as editor:
        await editor.ask("DELETE", estate.path(PODS, estate.bound))
    await Cluster(person, estate.namespace).running(RUNNING_SET, without=uid)

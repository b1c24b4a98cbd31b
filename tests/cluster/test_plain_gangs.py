"""Labelled pods of any owner are a gang: bound as a whole, and followed as they come and go."""

import asyncio
from dataclasses import dataclass

import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from api.objects import condition_of
from api.streams import Custom, Pod
from controller.gangs import plain_slots
from controller.podgang import Gang, read_gang
from kube.errors import Forbidden, NotFound
from kube.resources import EVENTS, PODGANGS, PODS
from tests.support.installed import Installed
from tests.support.living import Cluster, Kubectl, engine_set

pytestmark = pytest.mark.cluster

RUN_SECONDS = "lab.penstock.dev/run-seconds"


@dataclass(frozen=True)
class Crew:
    """A plain gang as its author writes it; `only` keeps it to nodes labelled so."""

    name: str
    size: int
    gpus: int = 1
    minimum: int = 0
    only: str = ""
    seconds: float = 600  # how long a pod works that is not restarted

    def template(self, image: str = "one", **spec: Json) -> JsonObject:
        labels: JsonObject = {
            "app": self.name,
            names.GANG_LABEL: self.name,
            names.GANG_SIZE_LABEL: str(self.size),
        }
        if self.minimum:
            labels[names.GANG_MINIMUM_LABEL] = str(self.minimum)
        limits: JsonObject = {"nvidia.com/gpu": str(self.gpus)}
        main: Json = {"name": "main", "image": image, "resources": {"limits": limits}}
        selector: JsonObject = {self.only: "yes"} if self.only else {}
        rest: JsonObject = {"nodeSelector": selector, "terminationGracePeriodSeconds": 0, **spec}
        meta: JsonObject = {"labels": labels, "annotations": {RUN_SECONDS: str(self.seconds)}}
        return {"metadata": meta, "spec": {"containers": [main], **rest}}

    def pod(self, index: int) -> JsonObject:
        template = self.template()
        named: JsonObject = {**as_object(template["metadata"]), "name": f"{self.name}-{index}"}
        return {"apiVersion": "v1", "kind": "Pod", **template, "metadata": named}

    def owned(self, kind: str, **spec: Json) -> JsonObject:
        version = "batch/v1" if kind == "Job" else "apps/v1"
        whole: JsonObject = {"template": self.template(), **spec}
        if kind == "Job":
            whole["template"] = self.template(restartPolicy="Never")
        else:
            whole["selector"] = {"matchLabels": {"app": self.name}}
            whole.setdefault("replicas", self.size)
        meta: JsonObject = {"name": self.name}
        return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": whole}


async def pods_of(cluster: Cluster, name: str) -> list[Pod]:
    found = await cluster.client.list_pages(PODS, Pod, cluster.namespace, labels=f"app={name}")
    return [pod for pod in found.items if pod.metadata.deletion_timestamp is None]


async def bound(cluster: Cluster, name: str, count: int, *, but: str = "") -> list[Pod]:
    """Wait until the gang has so many pods, all on nodes, none of them of this name."""

    async def attempt() -> list[Pod] | None:
        found = await pods_of(cluster, name)
        there = all(pod.spec.node_name and pod.metadata.name != but for pod in found)
        return found if len(found) == count and there else None

    return await cluster.until(attempt, f"{count} bound pods of {name}")


async def gang_of(cluster: Cluster, name: str) -> Gang | None:
    try:
        found = await cluster.client.get(PODGANGS, Custom, name, cluster.namespace)
    except NotFound:
        return None
    return read_gang(found)


OWNERS: dict[str, JsonObject] = {
    "Deployment": {},
    "StatefulSet": {"podManagementPolicy": "Parallel", "serviceName": "none"},
    "Job": {"parallelism": 3, "completions": 3, "completionMode": "Indexed"},
}


async def test_pods_of_deployments_statefulsets_jobs_and_of_nobody_start_as_gangs(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    for kind, spec in OWNERS.items():
        kubectl.apply(Crew(kind.lower(), 3).owned(kind, **spec))
    for index in range(3):
        # Pods of one gang need not be alike.
        kubectl.apply(Crew("nobody", 3, gpus=1 + index).pod(index))
    crews = [*map(str.lower, OWNERS), "nobody"]
    await asyncio.gather(*(bound(cluster, crew, 3) for crew in crews))
    for crew in crews:
        await cluster.gang(crew, reason=names.REASON_BOUND)
        gang = await gang_of(cluster, crew)
        assert gang is not None
        assert gang.initialized
        assert gang.metadata.annotations[names.SLOTS_ANNOTATION] == "0-2"
    booked = {r.metadata.name: r for r in await cluster.reservations()}
    assert {(name, r.state.value, r.size) for name, r in booked.items()} == {
        (crew, "Bound", 3) for crew in crews
    }
    kubectl.run("delete", "deployment", "deployment", check=True)
    kubectl.run("delete", "pods", "-l", "app=nobody", "--wait=false", check=True)
    for crew in ("deployment", "nobody"):
        await cluster.gone("podgang", crew)
        await cluster.gone("reservation", crew)


async def test_the_gang_of_a_job_goes_when_the_work_is_done(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    crew = Crew("brief", 3, seconds=0.2)
    kubectl.apply(crew.owned("Job", parallelism=3, completions=3))
    kubectl.run("wait", "job/brief", "--for=condition=Complete", "--timeout=30s", check=True)
    await cluster.gone("podgang", "brief")
    await cluster.gone("reservation", "brief")


async def test_a_gang_short_of_its_size_waits_whole_until_the_next_pod_completes_it(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    for index in range(2):
        kubectl.apply(Crew("short", 3).pod(index))
    said = await cluster.gang("short", reason=names.REASON_WAITING_FOR_PODS)
    assert said.message == "short has 2 of 3 pods"
    assert all(pod.gates == (names.GATE,) for pod in await pods_of(cluster, "short"))
    assert await cluster.reservations() == []
    kubectl.apply(Crew("short", 3).pod(2))
    await bound(cluster, "short", 3)


async def test_a_rollouts_surge_pods_join_singly_and_the_gang_ends_as_it_was(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    crew = Crew("surge", 3, minimum=3)
    surge: JsonObject = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}
    kubectl.apply(crew.owned("Deployment", strategy=surge))
    before = {pod.metadata.uid for pod in await bound(cluster, "surge", 3)}
    kubectl.run("set", "image", "deployment/surge", "main=two", check=True)

    async def replaced() -> bool | None:
        found = await pods_of(cluster, "surge")
        fresh = before.isdisjoint(pod.metadata.uid for pod in found)
        return (len(found) == 3 and fresh and all(pod.spec.node_name for pod in found)) or None

    await cluster.until(replaced, "three new pods of surge")
    gang = await gang_of(cluster, "surge")
    assert gang is not None
    said = condition_of(gang.status.conditions, names.SCHEDULED)
    assert said is not None
    assert said.status == "True"


async def test_of_two_gangs_with_room_for_one_one_is_whole_and_the_other_has_nothing(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    await cluster.label_nodes("plain-test", count=2)
    crews = [Crew(name, 2, gpus=8, only="plain-test") for name in ("left", "right")]
    for index in range(2):
        for crew in crews:
            kubectl.apply(crew.pod(index))

    async def decided() -> tuple[str, str] | None:
        gangs = {name: await gang_of(cluster, name) for name in ("left", "right")}
        told = {
            condition.reason: name
            for name, gang in gangs.items()
            if gang and (condition := condition_of(gang.status.conditions, names.SCHEDULED))
        }
        whole, without = (
            told.get(names.REASON_BOUND),
            told.get(names.REASON_INSUFFICIENT),
        )
        return (whole, without) if whole and without else None

    whole, without = await cluster.until(decided, "one gang bound, one refused")
    assert all(pod.spec.node_name for pod in await pods_of(cluster, whole))
    assert all(pod.gates == (names.GATE,) for pod in await pods_of(cluster, without))
    kubectl.run("delete", "pods", "-l", f"app={whole}", "--wait=false", check=True)
    await bound(cluster, without, 2)


async def test_a_name_that_a_podgang_of_others_has_is_waited_for_and_told(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    group: Json = {"name": "x", "minReplicas": 0, "podReferences": []}
    theirs: JsonObject = {
        "apiVersion": PODGANGS.api_version,
        "kind": PODGANGS.kind,
        "metadata": {"name": "mine"},
        "spec": {"podgroups": [group]},
    }
    kubectl.apply(theirs)
    kubectl.apply(Crew("mine", 1).pod(0))

    async def told() -> str | None:
        body = await cluster.client.raw_get(EVENTS.path(cluster.namespace))
        notes = [each["note"] for each in msgspec.json.decode(body)["items"]]
        return next((note for note in notes if "has the name of its gang" in note), None)

    await cluster.until(told, "an Event")
    (pod,) = await pods_of(cluster, "mine")
    assert pod.gates == (names.GATE,)
    kubectl.run("delete", "podgang", "mine", check=True)
    await bound(cluster, "mine", 1)


async def test_a_set_whose_gang_would_have_a_plain_gangs_name_says_so_and_waits_until_it_is_gone(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    kubectl.apply(Crew("both-0", 1).pod(0))
    await bound(cluster, "both-0", 1)
    body = engine_set("both", pods=1, gpus=1)
    body["metadata"] = {"name": "both", "annotations": {names.SLOTS_ANNOTATION: "0"}}
    kubectl.apply(body)

    async def told() -> str | None:
        body = await cluster.client.raw_get(EVENTS.path(cluster.namespace))
        found = msgspec.json.decode(body)["items"]
        notes = [e["note"] for e in found if e["regarding"]["kind"] == "PodCliqueSet"]
        return next((note for note in notes if '"both-0" already exists' in note), None)

    await cluster.until(told, "an Event on the set")

    async def in_its_status() -> bool | None:
        path = "jsonpath={.status.lastErrors[*].description}"
        return (
            '"both-0" already exists' in kubectl.run("get", "pcs", "both", "-o", path).stdout
            or None
        )

    await cluster.until(in_its_status, "lastErrors of the set")
    gang = await gang_of(cluster, "both-0")
    assert gang is not None
    assert plain_slots.is_plain(gang.metadata)
    (pod,) = await pods_of(cluster, "both-0")
    assert pod.spec.node_name
    kubectl.run("delete", "pods", "-l", "app=both-0", "--wait=false", check=True)
    await cluster.running("both")
    gang = await gang_of(cluster, "both-0")
    assert gang is not None
    assert not plain_slots.is_plain(gang.metadata)


@pytest.mark.long
async def test_the_slot_of_a_pod_that_nobody_follows_is_given_back(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    """It is kept for ten seconds."""
    crew = Crew("left", 3, minimum=2)
    for index in range(3):
        kubectl.apply(crew.pod(index))
    await bound(cluster, "left", 3)
    kubectl.run("delete", "pod", "left-1", "--wait=false", check=True)
    await bound(cluster, "left", 2)
    (booked,) = await cluster.reservations()
    assert booked.size == 3

    async def given_back() -> bool | None:
        (booked,) = await cluster.reservations()
        return sorted(slot.index for _, slot, _ in booked.slots()) == [0, 2] or None

    await cluster.until(given_back, "a reservation of two")
    gang = await gang_of(cluster, "left")
    assert gang is not None
    assert gang.metadata.annotations[names.SLOTS_ANNOTATION] == "0,2"


def a_podgang(name: str, *, marked: bool) -> JsonObject:
    annotations: JsonObject = {names.SLOTS_ANNOTATION: ""} if marked else {}
    group: Json = {"name": name, "minReplicas": 0, "podReferences": []}
    return {
        "apiVersion": PODGANGS.api_version,
        "kind": PODGANGS.kind,
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"podgroups": [group]},
    }


async def test_nobody_else_writes_the_podgang_of_labelled_pods(
    cluster: Cluster, kubectl: Kubectl, installed: Installed
) -> None:
    space, name = cluster.namespace, "owner"
    every = ("--verb=*", "--resource=podgangs.scheduler.grove.io")
    kubectl.run("create", "role", name, *every, check=True)
    kubectl.run("create", "rolebinding", name, "--role=owner", "--user=owner", check=True)

    def tried(*arguments: str, body: JsonObject | None = None) -> str:
        text = msgspec.json.encode(body).decode() if body else None
        done = kubectl.run(*arguments, "--dry-run=server", "--as=owner", text=text)
        return "" if done.returncode == 0 else done.stderr

    async def heard_of() -> bool | None:
        return not tried("create", "-f", "-", body=a_podgang("free", marked=False)) or None

    await cluster.until(heard_of, "the owner's rights")
    refused = "is written by Penstock for pods with the label"
    assert refused in tried("create", "-f", "-", body=a_podgang("forged", marked=True))
    kubectl.apply(a_podgang("others", marked=False))
    mark = f"{names.SLOTS_ANNOTATION}=0"
    assert refused in tried("annotate", "podgang", "others", mark)
    async with installed.acting(names.GANGS_ACCOUNT) as gangs:
        with pytest.raises(Forbidden, match="PodGangs of labelled pods only"):
            await gangs.create(PODGANGS, a_podgang("more", marked=False), space)
        with pytest.raises(Forbidden, match="PodGangs of labelled pods only"):
            await gangs.delete(PODGANGS, "others", space)


async def test_a_gang_whose_name_or_size_is_none_is_refused(
    cluster: Cluster, kubectl: Kubectl
) -> None:
    for crew, told in ((Crew("Bad_Name", 2), "a-z, 0-9"), (Crew("much", 10_001), "10000")):
        template = crew.pod(0)
        template["metadata"] = {**as_object(template["metadata"]), "name": "refused"}
        done = kubectl.run("create", "-f", "-", text=msgspec.json.encode(template).decode())
        assert told in done.stderr


def as_object(found: Json) -> JsonObject:
    assert isinstance(found, dict)
    return found

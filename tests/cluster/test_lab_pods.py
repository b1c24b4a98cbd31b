"""The life of pods on the lab's pretend nodes, as a kubelet would have them live it."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import datetime

import msgspec
import pytest

from api.jsons import Json, JsonObject
from kube.client import Client, Deletion
from kube.clock import SystemClock
from kube.errors import NotFound
from kube.resources import NODES, PODS, Resource

pytestmark = pytest.mark.cluster

JOBS = Resource("batch", "v1", "jobs", "Job", namespaced=True)
LAB = "lab.penstock.dev/"
GATE = "example.com/linked"
PATIENCE = 30.0


class Ended(msgspec.Struct, rename="camel"):
    exit_code: int
    reason: str
    started_at: datetime
    finished_at: datetime


class Reason(msgspec.Struct):
    reason: str


class Ran(msgspec.Struct, rename="camel"):
    started_at: datetime


class State(msgspec.Struct):
    waiting: Reason | None = None
    running: Ran | None = None
    terminated: Ended | None = None


class Container(msgspec.Struct, rename="camel"):
    name: str
    ready: bool
    restart_count: int
    state: State
    started: bool = False
    last_state: State = msgspec.field(default_factory=State)


class Condition(msgspec.Struct):
    type: str
    status: str
    reason: str = ""


class Status(msgspec.Struct, rename="camel"):
    phase: str
    conditions: list[Condition] = []
    container_statuses: list[Container] = []
    init_container_statuses: list[Container] = []
    pod_ip: str = msgspec.field(name="podIP", default="")
    host_ip: str = msgspec.field(name="hostIP", default="")

    def condition(self, kind: str) -> Condition:
        empty = Condition(kind, "absent")
        return next((each for each in self.conditions if each.type == kind), empty)

    @property
    def ready(self) -> bool:
        return self.condition("Ready").status == "True"


class PodView(msgspec.Struct):
    status: Status


def pod(
    name: str, notes: dict[str, str] | None = None, spec: JsonObject | None = None
) -> JsonObject:
    annotations: JsonObject = {LAB + key: value for key, value in (notes or {}).items()}
    containers: list[Json] = [container("main"), container("helper")]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": containers, "terminationGracePeriodSeconds": 30, **(spec or {})},
    }


def container(name: str, **more: Json) -> JsonObject:
    return {"name": name, "image": "example.com/pretend", **more}


class Space:
    """Pods in the namespace of one test."""

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.name = name

    async def make(self, body: JsonObject) -> None:
        await self.client.create(PODS, body, self.name)

    async def status(self, name: str) -> Status:
        return (await self.client.get(PODS, PodView, name, self.name)).status

    async def until(
        self, name: str, wanted: Callable[[Status], bool], what: str, seconds: float = PATIENCE
    ) -> Status:
        """Return the status as soon as it is as wanted."""
        status = await self.status(name)
        try:
            async with asyncio.timeout(seconds):
                while not wanted(status):
                    await asyncio.sleep(0.05)
                    status = await self.status(name)
        except TimeoutError:
            pytest.fail(f"{name}: not within {seconds} s: {what}; it is {status}")
        return status

    async def ready(self, name: str) -> Status:
        return await self.until(name, lambda status: status.ready, "ready")

    async def annotate(self, name: str, **notes: str | None) -> None:
        marks = {LAB + key.replace("_", "-"): value for key, value in notes.items()}
        body = {"metadata": {"annotations": marks}}
        await self.client.merge_patch(PODS, name, body, self.name)

    async def set_condition(self, name: str, kind: str, status: str) -> None:
        """Write a condition beside the others, as its owner does."""
        pod_now = msgspec.json.decode(await self.client.raw_get(PODS.path(self.name, name)))
        others = [each for each in pod_now["status"]["conditions"] if each["type"] != kind]
        conditions = [*others, {"type": kind, "status": status}]
        body = {
            "metadata": {"resourceVersion": pod_now["metadata"]["resourceVersion"]},
            "status": {"conditions": conditions},
        }
        await self.client.merge_patch(PODS, name, body, self.name, subresource="status")

    async def gone(self, name: str) -> bool:
        try:
            await self.status(name)
        except NotFound:
            return True
        return False


@pytest.fixture
def pods(person: Client, space: str) -> Space:
    return Space(person, space)


async def take(seconds: float, done: Callable[[], Awaitable[bool]]) -> float:
    """Return how long it took until something is done."""
    clock = SystemClock()
    started = clock.monotonic()
    async with asyncio.timeout(seconds):
        while not await done():
            await asyncio.sleep(0.02)
    return clock.monotonic() - started


async def test_a_plain_pod_runs_at_once_with_addresses(pods: Space) -> None:
    await pods.make(pod("plain"))
    status = await pods.ready("plain")
    assert status.phase == "Running"
    assert [each.name for each in status.container_statuses] == ["main", "helper"]
    assert all(each.ready and each.started for each in status.container_statuses)
    assert status.condition("Initialized").status == "True"
    assert re.match(r"10\.", status.pod_ip)
    assert re.match(r"172\.16\.", status.host_ip)


async def test_init_containers_run_one_by_one_for_their_time(pods: Space) -> None:
    spec: JsonObject = {
        "initContainers": [
            container("first"),
            container("proxy", restartPolicy="Always"),
            container("second"),
        ]
    }
    await pods.make(pod("init", {"init-seconds.first": "2", "init-seconds.second": "2"}, spec))
    early = await pods.until(
        "init", lambda status: bool(status.init_container_statuses), "its first init container"
    )
    first, proxy, second = early.init_container_statuses
    assert first.state.running
    assert proxy.state.waiting
    assert second.state.waiting
    assert all(each.state.waiting for each in early.container_statuses)
    assert early.condition("Initialized").status == "False"
    assert early.phase == "Pending"
    later = await pods.until(
        "init",
        lambda status: status.init_container_statuses[2].state.running is not None,
        "its last init container",
    )
    assert later.init_container_statuses[0].state.terminated
    assert later.init_container_statuses[1].state.running
    assert not later.ready
    end = await pods.ready("init")
    first, proxy, second = end.init_container_statuses
    assert first.state.terminated
    assert second.state.terminated
    assert proxy.state.running
    assert proxy.ready
    assert second.state.terminated.started_at >= first.state.terminated.finished_at
    lasted = second.state.terminated.finished_at - second.state.terminated.started_at
    assert 2 <= lasted.total_seconds() <= 12
    main = end.container_statuses[0].state.running
    assert main
    assert main.started_at >= second.state.terminated.finished_at


async def test_init_goes_on_while_others_write_to_the_pod(pods: Space) -> None:
    spec: JsonObject = {"initContainers": [container("load")]}
    await pods.make(pod("busy", {"init-seconds": "3"}, spec))

    async def restless() -> None:
        for count in range(1_000):
            await pods.annotate("busy", beat=str(count))
            await asyncio.sleep(0.3)

    writing = asyncio.create_task(restless())
    try:
        await pods.until("busy", lambda status: status.ready, "ready all the same", 15)
    finally:
        writing.cancel()


async def test_readiness_gates_are_left_to_their_owner_and_followed(pods: Space) -> None:
    await pods.make(pod("gated", spec={"readinessGates": [{"conditionType": GATE}]}))
    held = await pods.until(
        "gated",
        lambda status: status.condition("Ready").reason == "ReadinessGatesNotReady",
        "held by its gate",
    )
    assert held.condition("ContainersReady").status == "True"
    assert held.condition(GATE).status == "absent"
    await pods.set_condition("gated", GATE, "True")
    await pods.ready("gated")
    await pods.set_condition("gated", GATE, "False")
    held = await pods.until("gated", lambda status: not status.ready, "held again")
    assert held.condition("ContainersReady").status == "True"


async def test_start_takes_the_time_asked_for(pods: Space) -> None:
    await pods.make(pod("slow", {"start-seconds": "2"}))
    early = await pods.until("slow", lambda status: bool(status.pod_ip), "its address")
    assert early.phase == "Pending"
    assert await take(PATIENCE, lambda: _is_ready(pods, "slow")) > 1.0


async def _is_ready(pods: Space, name: str) -> bool:
    return (await pods.status(name)).ready


async def test_a_pod_can_be_made_to_fail(pods: Space) -> None:
    await pods.make(pod("fails", {"behaviour": "fail", "exit-code": "7"}))
    status = await pods.until("fails", lambda status: status.phase == "Failed", "failed")
    codes = [each.state.terminated and each.state.terminated.exit_code
             for each in status.container_statuses]  # fmt: skip
    assert codes == [7, 7]
    assert not status.ready


async def test_a_running_pod_can_be_made_to_fail(pods: Space) -> None:
    await pods.make(pod("turns"))
    await pods.ready("turns")
    await pods.annotate("turns", behaviour="fail")
    await pods.until("turns", lambda status: status.phase == "Failed", "failed")


async def test_a_pod_can_be_made_to_crash_again_and_again(pods: Space) -> None:
    def down_beyond(count: int) -> Callable[[Status], bool]:
        return lambda status: any(
            each.state.waiting is not None and each.restart_count > count
            for each in status.container_statuses
        )

    await pods.make(pod("crashes", {"behaviour": "crash", "backoff-seconds": "0.1"}))
    restarts = -1
    while restarts < 2:
        what = f"down after more than {restarts} restarts"
        status = await pods.until("crashes", down_beyond(restarts), what)
        main = status.container_statuses[0]
        assert main.state.waiting
        assert main.state.waiting.reason == "CrashLoopBackOff"
        assert main.last_state.terminated
        assert main.last_state.terminated.exit_code == 1
        assert status.phase == "Running"
        assert not status.ready
        restarts = main.restart_count
    await pods.annotate("crashes", behaviour=None)
    healed = await pods.until("crashes", lambda status: status.ready, "up again")
    assert healed.container_statuses[0].restart_count >= 3


async def test_a_pod_can_be_kept_from_being_ready_and_let_go(pods: Space) -> None:
    await pods.make(pod("never", {"behaviour": "never-ready"}))
    status = await pods.until("never", lambda status: status.phase == "Running", "running")
    assert status.condition("ContainersReady").status == "False"
    assert not any(each.ready for each in status.container_statuses)
    await pods.annotate("never", behaviour=None)
    await pods.ready("never")
    await pods.annotate("never", behaviour="never-ready")
    await pods.until("never", lambda status: not status.ready, "unready")


async def test_pods_of_jobs_complete_and_the_job_with_them(pods: Space, person: Client) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [container("work")]}}
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job"},
        "spec": {"completions": 2, "template": template},
    }
    await person.create(JOBS, body, pods.name)
    async with asyncio.timeout(PATIENCE):
        while True:
            job = msgspec.json.decode(await person.raw_get(JOBS.path(pods.name, "job")))
            if job.get("status", {}).get("succeeded") == 2:
                break
            await asyncio.sleep(0.1)


async def test_a_deleted_pod_goes_soon_within_its_grace_period(pods: Space) -> None:
    await pods.make(pod("heeds", {"stop-seconds": "2"}))
    await pods.ready("heeds")
    await pods.client.delete(PODS, "heeds", pods.name)
    assert not await pods.gone("heeds")
    assert await take(PATIENCE, lambda: pods.gone("heeds")) < 10


async def test_a_pod_that_ignores_sigterm_takes_its_whole_grace_period(pods: Space) -> None:
    await pods.make(pod("stays", {"ignore-sigterm": "true"}, {"terminationGracePeriodSeconds": 3}))
    await pods.ready("stays")
    await pods.client.delete(PODS, "stays", pods.name)
    spent = await take(PATIENCE, lambda: pods.gone("stays"))
    assert 2.9 <= spent < 18


async def test_a_deletion_without_grace_is_at_once(pods: Space) -> None:
    await pods.make(pod("now", {"ignore-sigterm": "true"}))
    await pods.ready("now")
    await pods.client.delete(PODS, "now", pods.name, Deletion(grace_seconds=0))
    assert await pods.gone("now")


async def test_a_pod_deleted_during_init_goes_too(pods: Space) -> None:
    spec: JsonObject = {"initContainers": [container("load")]}
    await pods.make(pod("waits", {"init-seconds": "600"}, spec))
    await pods.until("waits", lambda status: bool(status.init_container_statuses), "in init")
    await pods.client.delete(PODS, "waits", pods.name)
    await take(PATIENCE, lambda: pods.gone("waits"))


async def test_a_node_can_be_made_not_ready_and_comes_back(person: Client) -> None:
    async def becomes(status: str) -> bool:
        node = msgspec.json.decode(await person.raw_get(NODES.path(None, "node-39")))
        ready = [each for each in node["status"]["conditions"] if each["type"] == "Ready"]
        return bool(ready[0]["status"] == status)

    async def behave(behaviour: str | None) -> None:
        body = {"metadata": {"annotations": {f"{LAB}behaviour": behaviour}}}
        await person.merge_patch(NODES, "node-39", body)

    await behave("not-ready")
    try:
        await take(PATIENCE, lambda: becomes("False"))
    finally:
        await behave(None)
    await take(PATIENCE, lambda: becomes("True"))

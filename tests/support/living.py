"""A real cluster as tests see it: kubectl for what people do, and a reader that waits."""

import asyncio
import os
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import yaml

from api import names
from api.jsons import JsonObject
from api.models import Condition
from api.objects import condition_of
from api.streams import Custom, Node, Pod
from controller.gangs.entries import read_reservation
from controller.gangs.views import Reservation
from controller.podgang import read_gang
from kube import credentials
from kube.client import Client
from kube.clock import SystemClock
from kube.errors import NotFound
from kube.objects import BareObject
from kube.resources import NAMESPACES, NODES, PODGANGS, PODS, RESERVATIONS, SERVICES, Resource
from penstock.looking import look
from penstock.tree import SetSeen

T = TypeVar("T")

WRITES = ("POST", "PATCH", "APPLY")  # as the API server calls them
PATIENCE = 90.0  # seconds; a wait that ends well takes one or two


@dataclass(frozen=True)
class Kubectl:
    """kubectl as the person, in one namespace."""

    binary: Path
    kubeconfig: Path
    namespace: str

    def run(
        self, *arguments: str, text: str | None = None, check: bool = False
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [self.binary, "--kubeconfig", self.kubeconfig, "-n", self.namespace, *arguments],
            input=text, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stderr
        return done

    def apply(self, body: JsonObject) -> None:
        self.run("apply", "-f", "-", text=yaml.safe_dump(body), check=True)

    def apply_file(self, path: Path) -> None:
        self.run("apply", "-f", str(path), check=True)

    def delete(self, name: str) -> None:
        self.run("delete", "pcs", name, "--wait=false", check=True)


def engine_set(
    name: str,
    *,
    pods: int,
    gpus: int,
    minimum: int | None = None,
    replicas: int = 1,
    gates: list[str] | None = None,
    selector: str = "",
) -> JsonObject:
    """A set with one clique `engine`; `selector` keeps it to nodes labelled so."""
    pod_spec: JsonObject = {
        "containers": [
            {
                "name": "engine",
                "image": "registry.example/engine:1.0",
                "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
            }
        ],
        "terminationGracePeriodSeconds": 1,
    }
    if gates:
        pod_spec["schedulingGates"] = [{"name": gate} for gate in gates]
    if selector:
        pod_spec["nodeSelector"] = {selector: "yes"}
    clique: JsonObject = {"roleName": "engine", "replicas": pods, "podSpec": pod_spec}
    if minimum is not None:
        clique["minAvailable"] = minimum
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "template": {"cliques": [{"name": "engine", "spec": clique}]},
        },
    }


def _told(last: Sequence[SetSeen]) -> str:
    """Say of what was seen of a set last how its gangs and pods stand."""
    gangs = [f"{g.metadata.name} {g.status.model_dump_json()}" for s in last for g in s.gangs]
    pods = [
        f"{p.metadata.name} on {p.spec.node_name or p.gates} {p.status.phase}"
        f" {[(c.type, c.status, c.reason, c.message) for c in p.status.conditions]}"
        for s in last
        for p in s.pods.values()
    ]
    return "; ".join(gangs + pods) or "nothing was seen of it"


@dataclass(frozen=True)
class Cluster:
    """Reads one namespace as the person and waits until it is as expected."""

    client: Client
    namespace: str
    marks: set[str] = field(default_factory=set)  # labels of the test's own nodes

    async def until(
        self,
        attempt: Callable[[], Awaitable[T | None]],
        what: str,
        patience: float = PATIENCE,
        instead: Callable[[], str] = str,
    ) -> T:
        """Try until the attempt gives something; fail saying what was waited for, and what came.

        It is tried less often the longer it takes, since to look takes work, too.
        """
        pause = 0.1
        try:
            async with asyncio.timeout(patience):
                while (found := await attempt()) is None:
                    await asyncio.sleep(pause)
                    pause = min(1.3 * pause, 0.4)
        except TimeoutError:
            raise AssertionError(f"not within {patience:.0f} s: {what}; {instead()}") from None
        return found

    async def running(self, name: str, *, gangs: int = 0, without: str = "") -> SetSeen:
        """Wait until every pod of the set is bound and runs, none of them the given one."""
        last: list[SetSeen] = []

        async def attempt() -> SetSeen | None:
            seen = await look(self.client, self.namespace, name)
            last[:] = [seen]
            gone = without not in {pod.metadata.uid for pod in seen.pods.values()}
            bound = all(gang.status.phase.value == "Running" for gang in seen.gangs)
            enough = gangs in (0, len(seen.gangs))
            going = any(pod.metadata.deletion_timestamp for pod in seen.pods.values())
            return seen if seen.running and bound and gone and enough and not going else None

        return await self.until(attempt, f"set {name} running", instead=lambda: _told(last))

    async def service(self, name: str) -> BareObject:
        """Wait for a replica's service: it comes when pods have addresses, or after a while."""

        async def attempt() -> BareObject | None:
            try:
                return await self.client.get(SERVICES, BareObject, name, self.namespace)
            except NotFound:
                return None

        return await self.until(attempt, f"service {name}")

    async def gang(self, name: str, *, reason: str) -> Condition:
        """Wait until the gang is said to be scheduled or not for this reason."""

        seen = ["no such gang"]

        async def attempt() -> Condition | None:
            try:
                found = await self.client.get(PODGANGS, Custom, name, self.namespace)
            except NotFound:
                return None
            gang = read_gang(found)
            assert gang is not None
            seen.append(f"its status: {gang.status.model_dump_json(exclude_none=True)}")
            condition = condition_of(gang.status.conditions, names.SCHEDULED)
            return condition if condition and condition.reason == reason else None

        what = f"gang {name} with reason {reason}"
        return await self.until(attempt, what, instead=lambda: seen[-1])

    async def pods(self, set_name: str, count: int) -> list[Pod]:
        """Wait until the set has this many pods."""
        label = f"{names.PART_OF_LABEL}={set_name}"

        async def attempt() -> list[Pod] | None:
            found = await self.client.list_pages(PODS, Pod, self.namespace, labels=label)
            return found.items if len(found.items) == count else None

        return await self.until(attempt, f"{count} pods of {set_name}")

    async def reservations(self) -> list[Reservation]:
        found = await self.client.list_pages(RESERVATIONS, Custom, self.namespace)
        read = [read_reservation(item) for item in found.items]
        return [reservation for reservation in read if reservation is not None]

    async def writes(self, verb: str, resource: str, *, seconds: float) -> int:
        """Count the requests that the API server sees in so many seconds, from anybody."""
        before = await self._requests((verb,), (resource,))
        await asyncio.sleep(seconds)
        return await self._requests((verb,), (resource,)) - before

    async def quiet(self, *resources: str) -> None:
        """Wait until nobody writes these kinds for a second and a half."""

        async def attempt() -> bool | None:
            before = await self._requests(WRITES, resources)
            await asyncio.sleep(1.5)
            return await self._requests(WRITES, resources) == before or None

        await self.until(attempt, f"no writes of {', '.join(resources)}")

    async def _requests(self, verbs: Sequence[str], resources: Sequence[str]) -> int:
        """Count them all at one look: there are megabytes of metrics."""
        metrics = (await self.client.raw_get("/metrics")).decode()
        return sum(
            int(float(line.rsplit(" ", 1)[1]))
            for line in metrics.splitlines()
            if line.startswith("apiserver_request_total{")
            and any(f'resource="{resource}"' in line for resource in resources)
            and any(f'verb="{verb}"' in line for verb in verbs)
        )

    async def gone(self, kind: str, name: str) -> None:
        """Wait until the object is no more."""
        resource: Resource = {"podgang": PODGANGS, "reservation": RESERVATIONS}[kind]

        async def attempt() -> bool | None:
            try:
                await self.client.get(resource, Custom, name, self.namespace)
            except NotFound:
                return True
            return None

        await self.until(attempt, f"{kind} {name} gone")

    async def label_nodes(self, label: str, *, count: int) -> list[str]:
        """Label this many nodes that nobody uses, once there are so many; returns their names.

        The cluster's fixture takes the label from them when the test is over.
        """
        self.marks.add(label)

        async def attempt() -> list[str] | None:
            nodes = (await self.client.list_pages(NODES, Node)).items
            pods = (await self.client.list_pages(PODS, Pod)).items
            busy = {pod.spec.node_name for pod in pods}
            marked = [n.metadata.name for n in nodes if label in n.metadata.labels]
            free = [
                n.metadata.name
                for n in sorted(nodes, key=lambda n: n.metadata.name, reverse=True)
                if n.metadata.name not in busy and _for_anybody(n)
            ]
            chosen = free[: count - len(marked)]
            return [*marked, *chosen] if len(marked) + len(chosen) >= count else None

        chosen = await self.until(attempt, f"{count} nodes for {label}")
        for name in chosen:
            await self.client.merge_patch(NODES, name, {"metadata": {"labels": {label: "yes"}}})
        return chosen

    async def unlabel_nodes(self) -> None:
        """Give all nodes back that were labelled for the test."""
        for node in (await self.client.list_pages(NODES, Node)).items:
            if labels := self.marks & node.metadata.labels.keys():
                body: JsonObject = {"metadata": {"labels": dict.fromkeys(labels)}}
                await self.client.merge_patch(NODES, node.metadata.name, body)


def _for_anybody(node: Node) -> bool:
    """Whether pods may go there, and no other test has marked it for its own."""
    marked = any("-test" in label for label in node.metadata.labels)
    return node.ready and not node.spec.unschedulable and not node.spec.taints and not marked


def connect(kubeconfig: Path, component: str = "tests") -> Client:
    """Make a client from a kubeconfig."""
    clock = SystemClock()
    return Client(credentials.load(kubeconfig, None, clock, os.environ), component, clock)


@asynccontextmanager
async def namespace(client: Client, name: str) -> AsyncIterator[str]:
    """Make a namespace for one test; it is left to go by itself afterwards."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await client.create(NAMESPACES, body)
    try:
        yield name
    finally:
        await client.delete(NAMESPACES, name)


def tls_of(kubeconfig: Path) -> tuple[str, ssl.SSLContext]:
    """Give the server's address and what is needed to trust it."""
    found = credentials.load(kubeconfig, None, SystemClock(), os.environ)
    assert found.ssl_context is not None
    return found.server, found.ssl_context

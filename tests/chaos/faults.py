"""What is done to a cluster. Each fault returns once it is healed, as far as that is up to us."""

import asyncio
import random
import re
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

import msgspec

from api.jsons import JsonObject
from kube.client import Deletion
from kube.errors import ApiError, NotFound
from kube.resources import NODES, PODS
from penstock.lab.errors import LabError
from tests.chaos import audit_things as things
from tests.chaos.actors import Actor
from tests.chaos.audit_log import part
from tests.chaos.load import People
from tests.chaos.meddling import KINDS, Act, Ambush
from tests.chaos.proxy import OF_WATCHES, Trouble
from tests.chaos.results import Done
from tests.chaos.stage import Stage

# Seconds until people give cause for a write that an act is to meet. Without a leader none comes.
SOON: Final = 4.0
OFTEN: Final = 5
DEPOSED: Final = 15.0  # seconds; longer than a lease
AT_ONCE: Final = Deletion(grace_seconds=0)
_NODE: Final = re.compile(rb'"(node-\d+)"')
_GPU: Final = "nvidia.com/gpu"
_RACK: Final = "topology.kubernetes.io/rack"
_BEHAVIOUR: Final = "lab.penstock.dev/behaviour"
TOLD: Final = {
    Trouble.CONFLICT: Done.CONFLICT, Trouble.BUSY: Done.BUSY,
    Trouble.BROKEN: Done.BROKEN, Trouble.CUT: Done.CUT,
}  # fmt: skip


@dataclass(frozen=True)
class Scene:
    """One run's stage, people and dice."""

    stage: Stage
    space: str
    people: People
    chance: random.Random
    done: Counter[Done] = field(default_factory=Counter)
    """What really came about, by its kind: an ambush may wait in vain."""

    async def on_write(
        self, component: str, kinds: tuple[str, ...], act: Act, *, early: bool
    ) -> bool:
        """Act on some write that comes soon, to the act's end; whether one came."""
        kind = self.chance.choice(kinds)
        count = self.chance.randint(1, 12 if kind == "write" else 4)
        ambush = Ambush(component, KINDS[kind], count, act, early)
        with self.stage.meddler.ambush(ambush):
            for _ in range(OFTEN):
                with suppress(TimeoutError):
                    await asyncio.wait_for(ambush.met.wait(), SOON)
                    await ambush.sprung.wait()
                    return True
                await self.people.lose()
        return False

    async def pause(self, least: float, most: float) -> None:
        await asyncio.sleep(self.chance.uniform(least, most))

    async def insist(self, request: Callable[[], Awaitable[object]]) -> None:
        """Do what must be done, also while the API server is away; what is gone is done."""
        await self.people.insist(request, NotFound)


Deed: TypeAlias = Callable[[Scene], Awaitable[None]]


async def _kill(scene: Scene, component: str) -> None:
    async def kill(actor: Actor, _body: bytes) -> None:
        scene.done[Done(f"kill {component}")] += actor.kill()

    for _ in range(scene.chance.randint(1, 3)):
        if not await scene.on_write(component, ("write", "lift"), kill, early=False):
            for actor in scene.stage.actors.of(component):
                await kill(actor, b"")
        await scene.pause(0, 1.5)


async def kill_gangs(scene: Scene) -> None:
    """`kill -9` of a leader right after one of its writes, a few times."""
    await _kill(scene, "gangs")


async def kill_workloads(scene: Scene) -> None:
    """The same with `workloads`."""
    await _kill(scene, "workloads")


async def kill_webhooks(scene: Scene) -> None:
    """`kill -9` of all webhooks at once, which are away for a while."""
    stage = scene.stage
    try:
        for each in stage.webhooks():
            with suppress(LabError):  # it is down already, by another run beside this one
                await asyncio.to_thread(stage.installation.kill_component, each)
                scene.done[Done.KILL_WEBHOOK] += 1
        await scene.pause(0, 3)
    finally:
        for each in stage.webhooks():
            await asyncio.to_thread(stage.installation.start_component, each)
    await stage.reviewed()


async def _restart(scene: Scene, daemon: str) -> None:
    await scene.stage.daemons.restart(daemon, scene.chance.uniform(0, 1.5))
    scene.done[Done(f"restart {daemon}")] += 1
    await scene.stage.ready()


async def restart_api(scene: Scene) -> None:
    """`kill -9` of the API server, and its start."""
    await _restart(scene, "kube-apiserver")


async def restart_etcd(scene: Scene) -> None:
    """`kill -9` of etcd, and its start."""
    await _restart(scene, "etcd")


async def restart_scheduler(scene: Scene) -> None:
    """`kill -9` of kube-scheduler, and its start."""
    await _restart(scene, "kube-scheduler")


async def pause_leader(scene: Scene) -> None:
    """Stop a leader after a write until another leads, then let it go on."""
    stopped: list[Actor] = []

    async def stop(actor: Actor, _body: bytes) -> None:
        actor.signal(signal.SIGSTOP)
        stopped.append(actor)

    await scene.on_write("gangs", ("write", "lift"), stop, early=False)
    if not stopped:
        leader = await scene.stage.leader()
        if leader is not None:
            await stop(leader, b"")
    for actor in stopped:
        scene.done[Done.PAUSED] += await _until_another_leads(scene, actor)
        actor.signal(signal.SIGCONT)


async def late_write(scene: Scene) -> None:
    """Stop a leader, and have one of its writes arrive only when another leads."""

    held: list[Actor] = []

    async def hold(actor: Actor, _body: bytes) -> None:
        actor.signal(signal.SIGSTOP)
        held.append(actor)
        scene.done[Done.LATE] += await _until_another_leads(scene, actor)

    try:
        await scene.on_write("gangs", ("lift", "reserve", "begin"), hold, early=True)
        await scene.pause(0.2, 1.0)
    finally:
        for actor in held:
            actor.signal(signal.SIGCONT)


async def _until_another_leads(scene: Scene, actor: Actor) -> bool:
    """Wait until another leads, or for long; whether it came to that."""
    with suppress(TimeoutError):
        async with asyncio.timeout(DEPOSED):
            while (leader := await scene.stage.leader()) is None or leader is actor:
                await asyncio.sleep(0.1)
            await scene.pause(0, 1.0)  # it may have begun by then, or not
            return True
    return False


async def lose_node(scene: Scene) -> None:
    """Between verification and binding, take a node away on which a pod is about to go."""
    how = scene.chance.choice((_cordon, _silence, _remove))

    async def lose(_actor: Actor, body: bytes) -> None:
        for name in sorted({found.decode() for found in _NODE.findall(body)})[:1]:
            undo.append(await how(scene, name))
            scene.done[Done.NODE] += 1

    undo: list[Deed] = []
    await scene.on_write("gangs", ("lift", "lift", "reserve"), lose, early=True)
    await scene.pause(1, 5)
    for deed in undo:
        await deed(scene)


async def _cordon(scene: Scene, name: str) -> Deed:
    async def patch(there: Scene, *, shut: bool) -> None:
        body: JsonObject = {"spec": {"unschedulable": shut or None}}
        await there.insist(lambda: there.stage.client.merge_patch(NODES, name, body))

    await patch(scene, shut=True)

    async def undo(there: Scene) -> None:
        await patch(there, shut=False)

    return undo


async def _silence(scene: Scene, name: str) -> Deed:
    await _behave(scene, name, "not-ready")

    async def undo(there: Scene) -> None:
        await _behave(there, name, None)

    return undo


async def _behave(scene: Scene, name: str, how: str | None) -> None:
    body: JsonObject = {"metadata": {"annotations": {_BEHAVIOUR: how}}}
    await scene.insist(lambda: scene.stage.client.merge_patch(NODES, name, body))


async def _remove(scene: Scene, name: str) -> Deed:
    client = scene.stage.client
    body: JsonObject = msgspec.json.decode(await client.raw_get(NODES.path(None, name)))
    meta = part(body, "metadata")
    for each in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        meta.pop(each, None)
    # It comes back whole: who shut or silenced it meanwhile cannot mend one that is away.
    part(meta, "annotations").pop(_BEHAVIOUR, None)
    for each in ("unschedulable", "taints"):
        part(body, "spec").pop(each, None)
    await scene.insist(lambda: client.delete(NODES, name))

    async def undo(there: Scene) -> None:
        await there.insist(lambda: client.create(NODES, body))
        await _end_pods(there, name)

    return undo


async def _end_pods(scene: Scene, node: str) -> None:
    """End pods that were told to while their node was away, as its kubelet would.

    The lab's stand-in for kubelets never looks at those again: their sets would hang for ever.
    """
    client = scene.stage.client
    told: list[_Meta] = []

    async def look() -> None:
        # In all namespaces: runs beside this one lost the node too.
        found = await client.list_pages(PODS, _Labelled, fields=f"spec.nodeName={node}")
        told[:] = [each.metadata for each in found.items if each.metadata.deletion_timestamp]

    await scene.insist(look)
    for each in told:
        await scene.insist(partial(client.delete, PODS, each.name, each.namespace, AT_ONCE))


async def rack_down(scene: Scene) -> None:
    """A whole rack stops reporting, and comes back."""
    racks: dict[str, list[str]] = {}

    async def look() -> None:
        for node in (await scene.stage.client.list_pages(NODES, _Labelled)).items:
            racks.setdefault(node.metadata.labels[_RACK], []).append(node.metadata.name)

    await scene.insist(look)
    there = racks[scene.chance.choice(sorted(racks))]
    await asyncio.gather(*(_behave(scene, name, "not-ready") for name in there))
    scene.done[Done.RACK] += 1
    await scene.pause(4, 9)
    await asyncio.gather(*(_behave(scene, name, None) for name in there))


async def thieves(scene: Scene) -> None:
    """Pods of others take the room that a gang was given, before it is used."""

    async def steal(_actor: Actor, body: bytes) -> None:
        for name in sorted({found.decode() for found in _NODE.findall(body)})[:2]:
            with suppress(ApiError):
                free = await _free_gpus(scene, name)
                # Half of it may be what the gang needs as well; more would wait for ever.
                gpus = max(1, free // scene.chance.choice((1, 1, 2)))
                await _stranger(scene, gpus, name)
        await scene.pause(0.2, 0.8)

    for _ in range(scene.chance.randint(1, 2)):
        await scene.on_write("gangs", ("reserve", "lift"), steal, early=True)
    for _ in range(scene.chance.randint(2, 8)):
        await _stranger(scene, scene.chance.choice((1, 4, 8)), "")
        await scene.pause(0, 0.3)
    await scene.pause(1, 6)
    await _send_strangers_away(scene)


async def _free_gpus(scene: Scene, node: str) -> int:
    client = scene.stage.client
    body: JsonObject = msgspec.json.decode(await client.raw_get(NODES.path(None, node)))
    found = await client.list_pages(PODS, msgspec.Raw, fields=f"spec.nodeName={node}")
    pods = [things.pod(msgspec.json.decode(each)) for each in found.items]
    taken = sum(pod.takes.get(_GPU, 0) for pod in pods if pod.at)
    return things.allocatable(body).get(_GPU, 0) - taken


async def _stranger(scene: Scene, gpus: int, node: str) -> None:
    container: JsonObject = {
        "name": "other", "image": "registry.example/other:1",
        "resources": {"limits": {_GPU: str(gpus)}},
    }  # fmt: skip
    spec: JsonObject = {"containers": [container], "terminationGracePeriodSeconds": 0}
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    name = f"stranger-{scene.chance.randrange(10**9)}"
    body: JsonObject = {
        "metadata": {"name": name, "labels": {"chaos": "stranger"}}, "spec": spec
    }  # fmt: skip
    with suppress(ApiError):
        await scene.stage.client.create(PODS, body, scene.space)
        scene.done[Done.STRANGER] += 1


async def _send_strangers_away(scene: Scene) -> None:
    found: list[str] = []

    async def look() -> None:
        pods = await scene.stage.client.list_pages(
            PODS, _Labelled, scene.space, labels="chaos=stranger"
        )
        found[:] = [each.metadata.name for each in pods.items]

    while True:
        await scene.insist(look)
        if not found:
            return
        for name in found:
            await scene.insist(partial(scene.stage.client.delete, PODS, name, scene.space, AT_ONCE))


async def bad_answers(scene: Scene) -> None:
    """Conflicts, 429, 500 and answers that are cut, some of each."""
    kinds = (Trouble.CONFLICT, Trouble.BUSY, Trouble.BROKEN, Trouble.CUT)
    share = scene.chance.choice((0.1, 0.3, 0.5))
    async with scene.stage.meddler.weather(share, kinds, scene.chance) as met:
        await scene.pause(3, 8)
    for trouble, count in met.items():
        scene.done[TOLD[trouble]] += count


async def lost_watches(scene: Scene) -> None:
    """Watches that are cut, have expired, or stall without a word."""
    for _ in range(scene.chance.randint(1, 4)):
        for actor in scene.stage.actors.cast:
            actor.proxy.inflict(scene.chance.choice(OF_WATCHES))
            scene.done[Done.WATCHES] += 1
        await scene.pause(0.2, 2.0)
        for actor in scene.stage.actors.cast:
            actor.proxy.heal()
        await scene.pause(0, 1.0)


async def burst(scene: Scene) -> None:
    """Many sets at once, and all of them scaled at once."""
    await scale_many(scene, scene.chance.randint(10, 20))


async def scale_many(scene: Scene, count: int) -> None:
    """Make so many sets of one pod, and double each as soon as they are made."""
    people = scene.people
    await people.make_small(count)
    await scene.pause(0, 2.0)
    await people.scale_small(2)
    scene.done[Done.SCALED] += len(people.small)


FAULTS: Final[dict[str, Deed]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        kill_gangs, kill_workloads, kill_webhooks, restart_api, restart_etcd, restart_scheduler,
        pause_leader, late_write, lose_node, rack_down, thieves, bad_answers, lost_watches, burst,
    )
}  # fmt: skip


class _Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    labels: dict[str, str] = {}
    deletion_timestamp: str = ""


class _Labelled(msgspec.Struct):
    metadata: _Meta

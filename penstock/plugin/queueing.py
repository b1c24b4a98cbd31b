"""`penstock queues`: what the policy says of each, and how the gangs in it are doing. Pure."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from api import names
from api.jsons import Json, JsonObject
from controller.gangs import patience
from controller.gangs.views import GangView
from penstock.ending import AskedWronglyError
from penstock.plugin import judging, reports
from penstock.plugin.judging import Said, Standing
from penstock.plugin.reports import Report
from penstock.plugin.scenes import Scene
from penstock.plugin.status import age
from policies import standing
from policies.policy import Policy
from policies.policy_queues import Queue
from scheduler import needs

NONE = "(none)"


@dataclass
class Line:
    """One queue, and the gangs that stand in it; `queue` is None where the policy has none."""

    name: str
    queue: Queue | None
    gangs: list[tuple[Standing, Said]] = field(default_factory=list)
    devices: dict[str, int] = field(default_factory=dict)  # of pods on nodes
    pods: int = 0  # on nodes

    @property
    def waiting(self) -> list[tuple[Standing, Said]]:
        """Those that have not got their minimum bound."""
        return [(each, said) for each, said in self.gangs if not said.scheduled]


async def report(scene: Scene, namespace: str, *, name: str = "") -> Report:
    """Show the queues, or one of them with its gangs."""
    del namespace  # queues are the cluster's
    lines = queued(scene, judging.look(scene).values())
    if name:
        if name not in lines:
            known = sorted(line for line in lines if line != NONE)
            like = difflib.get_close_matches(name, known, 3) or known
            said = f"there is no queue {name}"
            meant = f"; there is {', '.join(like)}" if like else ": the policy has none"
            raise AskedWronglyError(f"{said}{meant}", judging.NOT_FOUND)
        lines = {name: lines[name]}
    data: JsonObject = {"queues": [_written(line) for line in lines.values()]}
    one = bool(name)
    return Report(
        data, lambda wide: _drawn([*lines.values()], scene.now, listed=one or wide, wide=wide)
    )


def queued(scene: Scene, standings: Iterable[Standing]) -> dict[str, Line]:
    """Put every gang into its queue."""
    lines = {queue.name: Line(queue.name, queue) for queue in scene.policy.queues}
    for each in standings:
        found = queue_of(scene.policy, each.view)
        line = lines.setdefault(found or NONE, Line(found or NONE, None))
        line.gangs.append((each, each.said(scene.now)))
        for member in each.view.members:
            if member.bound and not member.pod.finished:
                line.pods += 1
                for resource, amount in needs.of_pod(member.pod).items():
                    if "/" in resource:
                        line.devices[resource] = line.devices.get(resource, 0) + amount
    return lines


def queue_of(policy: Policy, view: GangView) -> str:
    """Name the queue that the gang stands in; "" for none."""
    written = judging.queue_of(view)
    labels: JsonObject = {names.QUEUE_LABEL: written} if written else {}
    return standing.of(policy, view.gang.metadata.namespace, labels).name


def _written(line: Line) -> Json:
    return {
        "name": line.name if line.name != NONE else None,
        "inPolicy": line.queue is not None,
        "policy": line.queue.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        if line.queue
        else None,
        "gangs": len(line.gangs),
        "waiting": [
            {
                "namespace": each.key[0], "name": each.key[1],
                "reason": said.reason, "message": said.message,
            }
            for each, said in line.waiting
        ],
        "podsOnNodes": line.pods,
        "devices": {**line.devices},
    }  # fmt: skip


def _drawn(
    lines: Sequence[Line], now: datetime, *, listed: bool, wide: bool
) -> Iterator[RenderableType]:
    if not lines:
        yield Text("the policy has no queues, and no gang names one")
        return
    head = ("QUEUE", "GANGS", "WAITING", "PODS", "DEVICES", "NAMESPACES", "LIMITS")
    yield reports.table(head, [_row(line) for line in lines], right="GANGS,WAITING,PODS")
    for line in lines if listed else ():
        if line.gangs:
            yield Text("")
            rows = list(_gangs(line, now, wide=wide))
            yield reports.table((f"GANGS OF {line.name}", "FOR", "REASON", "MESSAGE"), rows)


def _row(line: Line) -> tuple[str | Text, ...]:
    queue = line.queue
    default = " (default)" if queue is not None and queue.default else ""
    name = Text.assemble(line.name, (default, "dim"))
    if queue is None and line.name != NONE:
        name.append(" not in the policy", "yellow")
    waiting = len(line.waiting)
    return (
        name,
        str(len(line.gangs)),
        Text(str(waiting), "yellow" if waiting else ""),
        str(line.pods),
        ", ".join(f"{amount} {name}" for name, amount in sorted(line.devices.items())) or "-",
        ", ".join(queue.namespaces) if queue else "-",
        "; ".join(limits(queue)) if queue else "-",
    )


def limits(queue: Queue) -> Iterator[str]:
    """Say in few words what a queue asks of gangs."""
    asked = queue.limits
    counts: Mapping[str, int | None] = {
        "gangs a set": asked.gangs,
        "GPUs a gang": asked.gpus_per_gang,
        "pods a gang": asked.pods_per_gang.max,
        "pods a clique": asked.replicas_per_clique,
    }
    said = [f"at most {most} {what}" for what, most in counts.items() if most is not None]
    yield from said
    if asked.pods_per_gang.min:
        yield f"at least {asked.pods_per_gang.min} pods a gang"
    if asked.priority_classes is not None:
        yield f"priorities {', '.join(asked.priority_classes) or 'none'}"
    if queue.topology is not None:
        many = queue.topology.when_pods_at_least
        yield f"{queue.topology.required} required from {many} pods on"
    if not queue.submitters.are_all:
        yield "some submitters only"


def _gangs(line: Line, now: datetime, *, wide: bool) -> Iterator[tuple[str | Text, ...]]:
    for each, said in line.gangs if wide else line.waiting or line.gangs:
        since = patience.waits_since(each.view.gang)
        yield (
            "/".join(each.key),
            age(now - since) if since is not None and not said.scheduled else "-",
            Text(said.reason, "" if said.scheduled else "yellow"),
            said.message,
        )

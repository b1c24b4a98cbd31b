"""Clusters as the plugin has read them, made up by tests."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
from rich.console import Console

from api.jsons import Json, JsonObject
from api.streams import Custom, Node, Pod, PodClique
from kube.objects import KubeObject
from kube.resources import (
    DAEMONSETS,
    NODES,
    PODCLIQUES,
    PODCLIQUESETS,
    PODGANGS,
    PODS,
    RESERVATIONS,
    SCALING_GROUPS,
    TOPOLOGY_BINDINGS,
    Resource,
)
from penstock.plugin import reports
from penstock.plugin.reports import Report
from penstock.plugin.scenes import Kept, Scene, scene
from tests.support.clusters import pod, racks
from tests.support.manualclock import LeapingClock
from tests.support.sets import NOW, OWNER, owned_by, pod_clique

GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Stage:
    """Two blocks of two racks with two nodes of 8 GPUs each, and nobody there."""

    nodes: Sequence[Node] = field(default_factory=lambda: racks(1, 2, 2, 2))
    pods: Sequence[Pod] = ()
    gangs: Sequence[Custom] = ()
    cliques: Sequence[PodClique] = ()
    reservations: Sequence[Custom] = ()
    sets: Sequence[Custom] = ()
    bindings: Sequence[Custom] = ()

    def beside(self, *others: "Stage") -> "Stage":
        """Put gangs of others there too."""
        found = self
        for each in others:
            found = replace(
                found,
                pods=(*found.pods, *each.pods),
                gangs=(*found.gangs, *each.gangs),
                cliques=(*found.cliques, *each.cliques),
                reservations=(*found.reservations, *each.reservations),
            )
        return found

    async def scene(self) -> Scene:
        """Read it."""
        contents: dict[Resource, Sequence[KubeObject]] = {
            NODES: self.nodes, PODS: self.pods, PODGANGS: self.gangs,
            PODCLIQUES: self.cliques, RESERVATIONS: self.reservations, SCALING_GROUPS: (),
            PODCLIQUESETS: self.sets, TOPOLOGY_BINDINGS: self.bindings, DAEMONSETS: (),
        }  # fmt: skip
        numbered = {kind: [_numbered(each) for each in every] for kind, every in contents.items()}
        return await scene(Kept(LeapingClock(), numbered), NOW)


def gang(
    name: str,
    pods: int,
    gpus: int,
    *,
    minimum: int | None = None,
    at: Sequence[str] = (),
    level: str = "",
    made: bool = True,
    labels: Mapping[str, str] | None = None,
) -> Stage:
    """A gang of one clique `NAME-a`, gated; its first pods are bound `at` nodes."""
    clique = f"{name}-a"
    every = [_pod(name, clique, i, gpus, at[i] if i < len(at) else "") for i in range(pods)]
    references: list[Json] = [
        {"namespace": "default", "name": each.metadata.name} for each in every
    ]
    least = pods if minimum is None else minimum
    group: JsonObject = {"name": clique, "minReplicas": least, "podReferences": references}
    spec: JsonObject = {"podgroups": [group]}
    if level:
        spec["topologyConstraint"] = {"packConstraint": {"required": level}}
    initialized: JsonObject = {
        "type": "Initialized", "status": "True" if made else "False", "reason": "x",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    phase = "Running" if at else "Pending"
    body = _body(name, spec, {"conditions": [initialized], "phase": phase}, labels)
    booked = [_reservation(name, clique, gpus, at)] if at else []
    template = [pod_clique(clique, least)]
    return Stage((), every if made else (), [custom(body)], template, booked)


def custom(body: JsonObject) -> Custom:
    """Read it as one of our kinds."""
    return msgspec.json.decode(msgspec.json.encode(body), type=Custom)


def shown(report: Report, *, wide: bool = False, width: int = 200) -> str:
    """What a person sees."""
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, highlight=False)
    reports.written(report, "wide" if wide else "", console)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _body(
    name: str, spec: JsonObject, status: JsonObject, labels: Mapping[str, str] | None = None
) -> JsonObject:
    owner: Json = msgspec.to_builtins(OWNER)
    return {
        "metadata": {
            "name": name, "namespace": "default", "uid": f"uid-{name}",
            "ownerReferences": [owner], "labels": {**(labels or {})},
            "creationTimestamp": "2026-01-02T03:00:00Z",
        },
        "spec": spec,
        "status": status,
    }  # fmt: skip


def _pod(gang_name: str, clique: str, index: int, gpus: int, node: str) -> Pod:
    gates: Json = [] if node else [{"name": "penstock.dev/gang"}]
    owner: Json = msgspec.to_builtins(owned_by(clique))
    spec: JsonObject = {
        "hostname": f"{clique}-{index}", "schedulingGates": gates, "nodeName": node,
    }  # fmt: skip
    labels: JsonObject = {"grove.io/podgang": gang_name}
    return pod(
        f"{clique}-{index}", {GPU: str(gpus)},
        spec=spec, status={"phase": "Running" if node else "Pending"},
        metadata={"ownerReferences": [owner], "labels": labels},
    )  # fmt: skip


def _reservation(name: str, clique: str, gpus: int, at: Sequence[str]) -> Custom:
    slots: list[Json] = [{"index": i, "node": node} for i, node in enumerate(at)]
    spec: JsonObject = {
        "gang": {"name": name, "uid": f"uid-{name}"},
        "deadline": "2026-01-02T03:00:00Z",
        "groups": [{"name": clique, "requests": {GPU: str(gpus), "pods": "1"}, "slots": slots}],
        "score": 1.0,
        "domain": "z0/z0-b0",
    }
    return custom(_body(name, spec, {"state": "Bound"}))


def _numbered(thing: KubeObject) -> KubeObject:
    found: JsonObject = msgspec.json.decode(msgspec.json.encode(thing))
    metadata = found["metadata"]
    if isinstance(metadata, dict):
        metadata["resourceVersion"] = "1"
    return msgspec.json.decode(msgspec.json.encode(found), type=type(thing))

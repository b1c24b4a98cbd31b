"""Manifests as the objects that would come of them: gangs, with their cliques and gated pods. Pure.

Admission judges them as if they were applied, and the planners of `workloads` and of plain gangs
make what they would make; nothing of it goes anywhere.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Final, TypeVar, cast

import jsonpatch
import msgspec

from api import names
from api.claims import DeviceClaim
from api.jsons import Json, JsonObject
from api.objects import timestamp
from api.streams import Custom, Pod, PodClique
from controller.gangs import plain_deciding, templates
from controller.gangs.plain_deciding import Confirm, Levels, Make, PlainView
from controller.gangs.plain_slots import Ledger
from controller.podgang import read_gang
from kube.objects import Key, KubeObject
from kube.resources import (
    PODCLIQUES,
    PODGANGS,
    PODS,
    RESOURCE_CLAIMS,
    SCALING_GROUPS,
    TOPOLOGY_BINDINGS,
    Resource,
)
from penstock.plugin import unfolding_sets
from policies import podcliqueset_admission, reading, trying
from policies.answers import Refuse
from policies.known import Known
from policies.policy import Policy
from policies.trying import Submitter, Tried

MOST_PODS: Final = 10_000  # of one maker; more is no gang
_COPIES: Final = ("replicas", "parallelism", "completions")

T = TypeVar("T", bound=KubeObject)


@dataclass(frozen=True)
class Surroundings:
    """What the cluster says that bears on it."""

    namespace: str
    now: datetime
    policy: Policy
    known: Known
    levels: Mapping[str, Levels]  # of each topology binding
    priorities: Mapping[str, int]  # of priority classes
    default_priority: int = 0


@dataclass(frozen=True)
class Unfolded:
    """What would be stored; what admission refuses, and warns of; what is nobody's business."""

    objects: Mapping[Resource, tuple[KubeObject, ...]] = field(default_factory=dict)
    gangs: tuple[Key, ...] = ()
    refused: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


class _Making:
    """Collects objects, each with an identity of its own."""

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.objects: dict[Resource, list[KubeObject]] = {}
        self.refused: list[str] = []
        self.warnings: list[str] = []
        self.left_out: list[str] = []
        self._uids = count(1)

    def put(self, resource: Resource, thing: KubeObject) -> None:
        self.objects.setdefault(resource, []).append(thing)

    def identified(self, body: JsonObject, namespace: str) -> JsonObject:
        """Give it what the API server would have given it."""
        number = next(self._uids)
        metadata = reading.mapping(body.get("metadata"))
        told: JsonObject = {
            "namespace": namespace, "uid": f"to-come-{number}", "resourceVersion": "1",
            "generation": 1, "creationTimestamp": timestamp(self.around.now), **metadata,
        }  # fmt: skip
        if not told.get("name"):
            prefix = reading.text(metadata.get("generateName")) or "pod-"
            told["name"] = f"{prefix}{number}"
        return {**body, "metadata": told}

    def pod(self, body: JsonObject) -> Pod:
        """Read a pod as the API server would have stored it."""
        pod = templates.pod(body)
        name = pod.spec.priority_class_name
        around = self.around
        priority = around.priorities.get(name, 0) if name else around.default_priority
        spec = msgspec.structs.replace(pod.spec, priority=priority)
        return msgspec.structs.replace(pod, spec=spec)


def unfold(manifests: Iterable[JsonObject], around: Surroundings) -> Unfolded:
    """Work out what the manifests come to, one after the other as kubectl applies them."""
    making = _Making(around)
    pods: list[JsonObject] = []
    gangs: list[JsonObject] = []
    for manifest in manifests:
        kind = reading.text(manifest.get("kind")) or ""
        if kind == TOPOLOGY_BINDINGS.kind:
            making.put(TOPOLOGY_BINDINGS, _read(making.identified(manifest, ""), Custom))
        elif kind == PODGANGS.kind:
            gangs.append(making.identified(manifest, _namespace(manifest, around)))
        else:
            _admit(making, manifest, pods)
    _put_gangs(making, gangs, pods)
    _put_plain(making, pods)
    found = {kind: tuple(every) for kind, every in making.objects.items()}
    keys = [(each.metadata.namespace or "", each.metadata.name) for each in found.get(PODGANGS, ())]
    return Unfolded(
        found, tuple(keys), tuple(making.refused), tuple(making.warnings), tuple(making.left_out)
    )


def _admit(making: _Making, manifest: JsonObject, pods: list[JsonObject]) -> None:
    """Have admission judge it, and make what it comes to."""
    around = making.around
    tried = trying.asked(_placed(manifest, around), Submitter(), around.now)
    kind = reading.text(manifest.get("kind")) or "object without a kind"
    if tried is None and kind == "Pod":
        pods.append(making.identified(manifest, _namespace(manifest, around)))  # of a PodGang here
        return
    if tried is None or tried.request.object is None:
        name = reading.text(reading.mapping(manifest.get("metadata")).get("name")) or ""
        making.left_out.append(f"{kind} {name}".strip())
        return
    answer = trying.judged(around.policy, around.known, tried)
    if isinstance(answer, Refuse):
        making.refused.append(f"{tried.title}: {answer.message}")
        return
    making.warnings += [f"{tried.title}: {line}" for line in answer.warnings]
    stored = _patched(tried.request.object, answer.patch)
    if tried.kind == podcliqueset_admission.KIND:
        _put_set(making, stored, tried)
        return
    pods += [making.identified(stored, tried.namespace) for _ in range(_copies(manifest, tried))]


def _put_set(making: _Making, stored: JsonObject, tried: Tried) -> None:
    around = making.around
    body = making.identified(stored, tried.namespace)
    made = unfolding_sets.made_of(body, around.now, around.levels, making.identified)
    kinds: Mapping[Resource, type[KubeObject]] = {
        PODCLIQUES: PodClique, SCALING_GROUPS: Custom, RESOURCE_CLAIMS: DeviceClaim,
        PODGANGS: Custom,
    }  # fmt: skip
    for resource, each in made:
        if resource is PODS:
            making.put(PODS, making.pod(each))
        elif resource is PODGANGS:
            making.put(PODGANGS, _read(_initialized(each, around.now), Custom))
        elif resource in kinds:
            making.put(resource, _read(each, kinds[resource]))


def _put_gangs(making: _Making, gangs: Sequence[JsonObject], pods: list[JsonObject]) -> None:
    """Make PodGangs of the file, with those of its pods that they refer to."""
    for body in gangs:
        gang = read_gang(_read(_initialized(body, making.around.now), Custom))
        if gang is None:
            name = reading.text(reading.mapping(body.get("metadata")).get("name"))
            making.refused.append(f"PodGang {name}: it cannot be read")
            continue
        owner = _owner("PodCliqueSet", f"{gang.metadata.name}-owner")
        there = {_key(pod): pod for pod in pods}
        for group in gang.spec.pod_groups:
            clique = making.identified(
                {
                    "metadata": {"name": group.name, "ownerReferences": [owner]},
                    "spec": {"replicas": len(group.pod_references)},
                },
                gang.metadata.namespace,
            )
            making.put(PODCLIQUES, _read(clique, PodClique))
            uid = str(reading.mapping(clique["metadata"])["uid"])
            for index, reference in enumerate(group.pod_references):
                found = there.get((reference.namespace, reference.name))
                if found is not None:
                    pods.remove(found)
                    named = f"{group.name}-{index}"
                    making.put(PODS, making.pod(_owned(found, uid, group.name, named)))
        told = _with_owner(_initialized(body, making.around.now), owner)
        making.put(PODGANGS, _read(told, Custom))


def _put_plain(making: _Making, pods: Sequence[JsonObject]) -> None:
    """Make the PodGangs of labelled pods, as `gangs` does once they are there."""
    by_gang: dict[Key, list[Pod]] = {}
    for body in pods:
        pod = making.pod(body)
        label = pod.metadata.labels.get(names.GANG_LABEL, "")
        if names.GATE not in pod.gates or not label:
            making.left_out.append(f"Pod {pod.metadata.name}")
            continue
        making.put(PODS, pod)
        by_gang.setdefault((pod.metadata.namespace, label), []).append(pod)
    for key, members in by_gang.items():
        view = PlainView(key, tuple(members), None, Ledger({}, {}), making.around.levels)
        step = plain_deciding.decide(view)
        if not isinstance(step, Make):
            continue
        body = making.identified(step.wanted.body(), key[0])
        gang = read_gang(_read(body, Custom))
        view = PlainView(key, tuple(members), gang, Ledger({}, {}), making.around.levels)
        confirmed = plain_deciding.decide(view)
        whole = isinstance(confirmed, Confirm) and confirmed.whole
        if isinstance(confirmed, Confirm) and confirmed.message:
            making.warnings.append(f"gang {key[1]}: {confirmed.message}")
        told = _initialized(body, making.around.now) if whole else body
        making.put(PODGANGS, _read(told, Custom))


def _copies(manifest: JsonObject, tried: Tried) -> int:
    """How many pods a maker makes at once; a Pod is one."""
    if tried.kind == "Pod":
        return 1
    spec = reading.mapping(manifest.get("spec"))
    if tried.kind == "CronJob":
        spec = reading.mapping(reading.mapping(spec.get("jobTemplate")).get("spec"))
    told = [spec[key] for key in _COPIES if isinstance(spec.get(key), int)]
    return min(MOST_PODS, max(0, int(str(told[0])))) if told else 1


def _initialized(body: JsonObject, now: datetime) -> JsonObject:
    said: JsonObject = {
        "type": names.INITIALIZED, "status": "True", "reason": "Planned",
        "lastTransitionTime": timestamp(now),
    }  # fmt: skip
    return {**body, "status": {"conditions": [said]}}


def _owned(pod: JsonObject, uid: str, clique: str, hostname: str) -> JsonObject:
    """Give a pod of a PodGang what whoever makes such pods would have given it."""
    owner = _owner(PODCLIQUES.kind, clique, uid)
    spec = reading.mapping(pod.get("spec"))
    gates: list[Json] = [{"name": names.GATE}]
    return _with_owner(
        {**pod, "spec": {**spec, "hostname": hostname, "schedulingGates": gates}}, owner
    )


def _with_owner(body: JsonObject, owner: JsonObject) -> JsonObject:
    metadata = reading.mapping(body.get("metadata"))
    return {**body, "metadata": {**metadata, "ownerReferences": [owner]}}


def _owner(kind: str, name: str, uid: str = "") -> JsonObject:
    return {"kind": kind, "name": name, "uid": uid or f"uid-{name}", "controller": True}


def _patched(body: JsonObject, patch: Sequence[JsonObject]) -> JsonObject:
    return cast("JsonObject", jsonpatch.apply_patch(body, list(patch)))


def _placed(manifest: JsonObject, around: Surroundings) -> JsonObject:
    metadata = reading.mapping(manifest.get("metadata"))
    return {
        **manifest, "metadata": {**metadata, "namespace": _namespace(manifest, around)},
    }  # fmt: skip


def _namespace(manifest: JsonObject, around: Surroundings) -> str:
    metadata = reading.mapping(manifest.get("metadata"))
    return reading.text(metadata.get("namespace")) or around.namespace


def _key(body: JsonObject) -> Key:
    metadata = reading.mapping(body.get("metadata"))
    return str(metadata.get("namespace")), str(metadata.get("name"))


def _read(body: JsonObject, kind: type[T]) -> T:
    return msgspec.json.decode(msgspec.json.encode(body), type=kind)

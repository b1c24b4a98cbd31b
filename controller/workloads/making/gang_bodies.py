"""PodGangs as they are written: their cliques, minima, pods and closeness. Pure.

A gang refers to all its pods from its making on, since their names are known before they are made;
the condition Initialized says when all of them are. What `gangs` writes of a gang is left alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Final

from api import names
from api.jsons import Json, JsonObject
from api.models import Condition
from api.objects import condition_of, timestamp
from api.podcliqueset import ScalingGroupTemplate
from api.podgang import PodGangSpec
from controller.podgang import Gang
from controller.workloads import belonging
from controller.workloads.making import closeness, slots, waiting
from controller.workloads.making.closeness import Nearness
from controller.workloads.quota import withdrawing
from controller.workloads.stepping import Change, Create, Remove, Say, Step
from controller.workloads.views import SetView
from controller.workloads.wants import Wanted, WantedClique, WantedGang
from kube.resources import PODCLIQUESETS, PODGANGS

COMPONENT: Final = "podgang"

# Neither mirrored from the set nor taken off a gang.
_KEPT: Final = (f"{names.GROVE_GROUP}/", names.QUOTA_ANNOTATION)
# What kubectl notes of the set's own manifest would make it take the gang for one that was applied,
# and a guard refuses the mark of a plain gang.
_NOT_MIRRORED: Final = (
    *_KEPT,
    names.SLOTS_ANNOTATION,
    "kubectl.kubernetes.io/last-applied-configuration",
)
_OLDER_SPELLINGS: Final = ("podGroups", "networkPackGroupConfigs")


@dataclass(frozen=True)
class _Part:
    """One clique of a gang, as its spec says it."""

    name: str
    pods: tuple[str, ...]
    minimum: int
    near: Nearness

    def written(self, namespace: str) -> JsonObject:
        """Write it as a gang carries it."""
        body: JsonObject = {
            "name": self.name,
            "minReplicas": self.minimum,
            "podReferences": [{"namespace": namespace, "name": pod} for pod in self.pods],
        }
        return body | ({"topologyConstraint": self.near.written()} if self.near else {})


@dataclass(frozen=True)
class _Pack:
    """Cliques of a gang that are to be close together: those of one copy of a group."""

    name: str
    cliques: tuple[str, ...]
    near: Nearness

    def written(self) -> Json:
        """Write it as a gang carries it."""
        return {
            "name": self.name,
            "podGroupNames": [*self.cliques],
            "topologyConstraint": self.near.written(),
        }


@dataclass(frozen=True)
class _Shape:
    """All of a gang's spec that is decided here."""

    parts: tuple[_Part, ...]
    near: Nearness
    packs: tuple[_Pack, ...]
    priority: str

    @property
    def is_near(self) -> bool:
        """Whether it says anything of closeness."""
        return bool(self.near or self.packs or any(part.near for part in self.parts))

    def written(self, namespace: str) -> JsonObject:
        """Write it as a gang carries it; null where nothing is to be."""
        return {
            "podgroups": [part.written(namespace) for part in self.parts],
            "topologyConstraint": self.near.written() if self.near else None,
            "topologyConstraintGroupConfigs": [pack.written() for pack in self.packs],
            "priorityClassName": self.priority,
        }


def steps(view: SetView, wanted: Wanted, now: datetime) -> Iterator[Step]:
    """Make the gangs that are missing, put right those there are, remove those not wanted."""
    drafts = _Drafts(view)
    keep = {gang.name for gang in wanted.gangs}
    for gang in wanted.gangs:
        there = view.gangs.get(gang.name)
        if there is None:
            yield Create(PODGANGS, drafts.body(gang))
        elif there.metadata.deletion_timestamp is None:
            yield from drafts.mending(gang, there)
            yield from _initialized(view, gang, there, now)
    for name, there in view.gangs.items():
        if name not in keep and there.metadata.deletion_timestamp is None:
            yield Remove(PODGANGS, name, there.metadata.uid)


class _Drafts:
    """Writes the gangs of one set as they should be."""

    def __init__(self, view: SetView) -> None:
        self._view = view
        self._levels = closeness.levels_of(view)
        template = view.spec.template
        self._groups: Mapping[str, ScalingGroupTemplate] = {
            group.name: group for group in template.pod_clique_scaling_groups
        }

    def body(self, gang: WantedGang) -> JsonObject:
        """Write a gang as it is made."""
        owner = self._view.metadata
        shape = self._shape(gang)
        spec = shape.written(owner.namespace)
        return {
            "apiVersion": PODGANGS.api_version,
            "kind": PODGANGS.kind,
            "metadata": {
                "name": gang.name,
                "namespace": owner.namespace,
                "labels": {**self._labels(gang)},
                "annotations": {**self._annotations(shape)},
                "ownerReferences": [belonging.owned_by(PODCLIQUESETS, owner)],
            },
            "spec": {key: value for key, value in spec.items() if value is not None},
        }

    def mending(self, gang: WantedGang, there: Gang) -> Iterator[Step]:
        """Change what a gang says that it should not, all in one write."""
        shape, meta = self._shape(gang), there.metadata
        patch: JsonObject = {}
        metadata: JsonObject = {}
        if labels := _corrected(meta.labels, self._labels(gang)):
            metadata["labels"] = labels
        if annotations := _corrected(meta.annotations, self._annotations(shape)):
            metadata["annotations"] = annotations
        if metadata:
            patch["metadata"] = metadata
        namespace = self._view.metadata.namespace
        if _shape_of(there.spec, namespace) != shape:
            patch["spec"] = shape.written(namespace) | dict.fromkeys(_OLDER_SPELLINGS)
        if patch:
            yield Change(PODGANGS, gang.name, meta.uid, patch)

    def _shape(self, gang: WantedGang) -> _Shape:
        template = self._view.spec.template
        whole = closeness.nearness(template.topology_constraint, self._levels)
        packs = tuple(self._packs(gang))
        if gang.base and not whole and packs:
            # The whole of a scaled gang is one copy of its group.
            whole, packs = packs[0].near, ()
        return _Shape(
            tuple(self._part(clique) for clique in gang.cliques),
            whole,
            packs,
            template.priority_class_name,
        )

    def _part(self, clique: WantedClique) -> _Part:
        return _Part(
            clique.name,
            tuple(sorted(slots.slots(self._view, clique).referred)),
            clique.minimum,
            closeness.nearness(clique.template.topology_constraint, self._levels),
        )

    def _packs(self, gang: WantedGang) -> Iterator[_Pack]:
        members: dict[tuple[str, int], list[WantedClique]] = {}
        for clique in gang.cliques:
            if clique.place.group:
                members.setdefault((clique.place.group, clique.place.copy), []).append(clique)
        for (group, copy), cliques in members.items():
            constraint = self._groups[group].topology_constraint
            near = closeness.nearness(constraint, self._levels)
            if near:
                name = f"{cliques[0].place.group_name}-{copy}"
                yield _Pack(name, tuple(clique.name for clique in cliques), near)

    def _labels(self, gang: WantedGang) -> dict[str, str]:
        own = belonging.labels_of_set(self._view.metadata.name, gang.name, COMPONENT, gang.replica)
        base = {names.BASE_PODGANG_LABEL: gang.base} if gang.base else {}
        return {**self._shared_labels, **own, **base}

    def _annotations(self, shape: _Shape) -> dict[str, str]:
        # As a gang's pods may go anywhere without it, it is told only where something is asked.
        binding = closeness.binding_name(self._view.spec) if shape.is_near else ""
        topology = {names.TOPOLOGY_NAME_ANNOTATION: binding} if binding else {}
        return {**self._shared_annotations, **topology}

    @cached_property
    def _shared_labels(self) -> dict[str, str]:
        mirrored = _mirrored(self._view.metadata.labels)
        return {**mirrored, names.SCHEDULER_NAME_LABEL: self._scheduler}

    @cached_property
    def _shared_annotations(self) -> dict[str, str]:
        mirrored = _mirrored(self._view.metadata.annotations)
        return {**mirrored, names.STARTUP_ANNOTATION: waiting.way(self._view).value}

    @property
    def _scheduler(self) -> str:
        # All cliques of a set go to one.
        cliques = self._view.spec.template.cliques
        written = cliques[0].spec.pod_spec.get("schedulerName") if cliques else None
        return str(written or names.DEFAULT_SCHEDULER)


def _mirrored(of_set: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in of_set.items() if not key.startswith(_NOT_MIRRORED)}


def _corrected(there: Mapping[str, str], wanted: Mapping[str, str]) -> JsonObject:
    """Give what must be written so that a gang mirrors its set; null for what is to go."""
    told: JsonObject = {key: v for key, v in wanted.items() if there.get(key) != v}
    topology = names.TOPOLOGY_NAME_ANNOTATION
    gone: JsonObject = {
        key: None
        for key in there
        if key not in wanted and (key == topology or not key.startswith(_KEPT))
    }
    return told | gone


def _shape_of(spec: PodGangSpec, namespace: str) -> _Shape:
    """Read what a gang says; a pod of another namespace counts as a name that is never wanted."""
    parts = tuple(
        _Part(
            group.name,
            tuple(
                ref.name if ref.namespace == namespace else f"{ref.namespace}/{ref.name}"
                for ref in group.pod_references
            ),
            group.min_replicas,
            closeness.read(group.topology_constraint),
        )
        for group in spec.pod_groups
    )
    packs = tuple(
        _Pack(pack.name, tuple(pack.pod_group_names), closeness.read(pack.topology_constraint))
        for pack in spec.topology_constraint_group_configs
    )
    near = closeness.read(spec.topology_constraint)
    return _Shape(parts, near, packs, spec.priority_class_name)


def _initialized(view: SetView, gang: WantedGang, there: Gang, now: datetime) -> Iterator[Step]:
    """Say whether all pods of a gang are made. Once true it stays true, as in Grove.

    That they are not is said only where it will not be otherwise in a moment: when the last pass
    had trouble, or where predecessors must go first.
    """
    if there.initialized:
        return
    wanted, made, leaving = _counts(view, gang)
    quota = withdrawing.told(view, gang)
    before = condition_of(there.status.conditions, names.INITIALIZED)
    if made == wanted or (quota and withdrawing.is_enough(view, gang)):
        message = f"{made} of {wanted} pods are made: {quota}" if made < wanted else ""
        said = _saying(there, "True", names.PODS_CREATED, message, now)
        # Of a gang that has all of its pods, others see so themselves, unless it says otherwise.
        yield replace(said, acts_on=bool(message) or before is not None)
        return
    ours = {clique.name for clique in gang.cliques}
    why = quota or next((t.description for t in view.troubles if _concerns(t.name, ours)), "")
    if why or leaving:
        reason = why or f"pods that are ending still have {leaving} of their names"
        message = f"{made} of {wanted} pods are made: {reason}"
        if before is None or (before.status, before.message) != ("False", message):
            kind = names.QUOTA_EXCEEDED if quota else names.PODS_PENDING
            yield _saying(there, "False", kind, message, now)


def _counts(view: SetView, gang: WantedGang) -> tuple[int, int, int]:
    """Count a gang's pods: those wanted, those made, and those whose names are still taken."""
    wanted = made = leaving = 0
    for clique in gang.cliques:
        referred = set(slots.slots(view, clique).referred)
        wanted += len(referred)
        for pod in view.pods_of(clique.name):
            if pod.metadata.name in referred:
                gone = pod.metadata.deletion_timestamp is not None
                leaving += gone
                made += not gone
    return wanted, made, leaving


def _concerns(name: str, cliques: set[str]) -> bool:
    """Tell whether an object is one of these cliques or a pod of one."""
    return name in cliques or name.rpartition("-")[0] in cliques


def _saying(there: Gang, status: str, reason: str, message: str, now: datetime) -> Say:
    condition = Condition(
        type=names.INITIALIZED,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=timestamp(now),
        observed_generation=there.metadata.generation,
    )
    body = condition.model_dump(mode="json", by_alias=True)
    return Say(PODGANGS, there.metadata.name, there.metadata.uid, {"conditions": [body]})

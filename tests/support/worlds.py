"""A set and all that is made for it, as raw objects that whole plans are carried out on."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Final, TypeAlias, TypeVar

import msgspec

from api.jsons import JsonObject
from api.objects import timestamp
from api.podclique import PodCliqueSpec, PodCliqueStatus
from api.podcliqueset import PodCliqueSetSpec, PodCliqueSetStatus
from api.podgang import PodGangSpec, PodGangStatus
from api.scalinggroup import PodCliqueScalingGroupSpec, PodCliqueScalingGroupStatus
from api.sharing import ResourceSharing
from api.streams import Meta, Pod
from controller.podgang import Gang
from controller.voicing import Tell
from controller.workloads.making import services
from controller.workloads.planning import plan
from controller.workloads.stepping import Again, Change, Create, Remove, Say, Step
from controller.workloads.views import Choices, Clique, Group, SetView, Thing
from kube.objects import Key
from kube.resources import (
    PODCLIQUES,
    PODCLIQUESETS,
    PODGANGS,
    PODS,
    SCALING_GROUPS,
    SECRETS,
    SERVICES,
    Resource,
)
from tests.support.fleets import merged
from tests.support.sets import NOW, set_meta

T = TypeVar("T")

PLACING: Final = ("hostname", "nodeName", "schedulerName", "schedulingGates")

Name: TypeAlias = tuple[Resource, str]


@dataclass
class World:
    """Steps change it as they would change a cluster; pods that are deleted linger if told to."""

    spec: PodCliqueSetSpec
    now: datetime = NOW
    lingering: bool = False
    uid: str = "set-uid"
    templates: dict[Key, JsonObject] = field(default_factory=dict)
    choices: Choices = field(default_factory=Choices)
    annotations: JsonObject = field(default_factory=dict)
    objects: dict[Name, JsonObject] = field(default_factory=dict)
    told: list[Tell] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._uids = count(1)
        self._versions = count(1)
        meta = set_meta()
        body: JsonObject = {
            "metadata": {
                "name": meta.name, "namespace": meta.namespace, "uid": self.uid,
                "annotations": {**self.annotations},
            },
            "spec": self.spec.model_dump(mode="json", by_alias=True, exclude_none=True),
        }  # fmt: skip
        self._put((PODCLIQUESETS, meta.name), _merged(body, {"metadata": {"generation": 1}}))

    def edit(self, spec: PodCliqueSetSpec) -> None:
        """Change the set's spec."""
        self.spec = spec
        body = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
        self.patch(PODCLIQUESETS, set_meta().name, {"spec": body})

    def patch(self, resource: Resource, name: str, patch: JsonObject) -> None:
        """Change an object as a person would."""
        self._put((resource, name), _merged(self.objects[resource, name], patch))

    def plan(self) -> list[Step]:
        """What is to be done now."""
        view = self.view()
        return plan(view, self.now) if view else []

    def apply(self, step: Step) -> None:
        """Carry out one step."""
        match step:
            case Create(resource, body):
                key = (resource, str(_metadata(body)["name"]))
                if resource is not SECRETS:
                    assert key not in self.objects, f"{key} is made twice"
                told: JsonObject = {
                    "uid": f"uid-{next(self._uids)}", "generation": 1,
                    "creationTimestamp": timestamp(self.now),
                }  # fmt: skip
                self._put(key, _merged(copy.deepcopy(body), {"metadata": told}))
            case Change(resource, name, uid, patch):
                assert _metadata(self.objects[resource, name])["uid"] == uid
                self.patch(resource, name, patch)
            case Remove(resource, name, uid):
                assert _metadata(self.objects[resource, name])["uid"] == uid
                self.delete(resource, name)
            case Say(resource, name, _, status):
                there = self.objects[resource, name]
                self._put((resource, name), {**there, "status": status})
            case Tell():
                self.told.append(step)
            case Again():
                pass

    def delete(self, resource: Resource, name: str) -> None:
        """Have an object deleted: gone at once, or when its last finalizer is."""
        there = self.objects[resource, name]
        stamp: JsonObject = {"metadata": {"deletionTimestamp": timestamp(self.now)}}
        held = resource is PODS and self.lingering and "deletionTimestamp" not in _metadata(there)
        if held:
            self.objects[resource, name] = _merged(there, stamp)
        else:
            self._put((resource, name), _merged(there, stamp))

    def delete_pod(self, name: str) -> None:
        """Have a pod deleted."""
        self.delete(PODS, name)

    def gone(self) -> None:
        """Let the pods end that are going away."""
        for (resource, name), there in [*self.objects.items()]:
            if resource is PODS and "deletionTimestamp" in _metadata(there):
                del self.objects[resource, name]

    def settle(self, rounds: int = 20) -> list[Create]:
        """Carry plans out until there is nothing more to do; give what was made, as it was."""
        made: list[Create] = []
        waited = False
        for _ in range(rounds):
            todo = [step for step in self.plan() if not isinstance(step, Again | Tell)]
            if not todo and (waited or self._is_served()):
                return made
            if not todo:
                # Pods here have no addresses, for which services do not wait for ever.
                self.now += services.LATEST
                waited = True
            for step in todo:
                self.apply(step)
            made += [step for step in todo if isinstance(step, Create)]
        raise AssertionError(f"still to do: {self.plan()}")

    def _is_served(self) -> bool:
        view = self.view()
        return view is None or len(self.of(SERVICES)) >= view.spec.replicas

    def of(self, resource: Resource) -> dict[str, JsonObject]:
        """The objects of a kind, by name."""
        return {name: body for (kind, name), body in self.objects.items() if kind is resource}

    def summary(self) -> dict[str, list[str]]:
        """What there is, but for what tells one making from another."""
        found: dict[str, list[str]] = {}
        for resource, name in sorted(self.objects, key=lambda key: (key[0].plural, key[1])):
            found.setdefault(resource.plural, []).append(name)
        return found

    def pods(self) -> dict[str, Pod]:
        return {name: _pod(raw) for name, raw in self.of(PODS).items()}

    def view(self) -> SetView | None:
        """The set as `workloads` sees it; None if it is gone."""
        raw = self.of(PODCLIQUESETS).get(set_meta().name)
        if raw is None:
            return None
        cliques = self._read(PODCLIQUES, _clique)
        everybody = self.pods().values()
        pods: dict[str, tuple[Pod, ...]] = {}
        for name, clique in cliques.items():
            held = [pod for pod in everybody if pod.metadata.controller_uid == clique.metadata.uid]
            if held:
                pods[name] = tuple(held)
        things: dict[Resource, dict[str, Thing]] = {}
        for (kind, name), body in self.objects.items():
            if kind not in (PODCLIQUESETS, SCALING_GROUPS, PODCLIQUES, PODGANGS, PODS, SECRETS):
                things.setdefault(kind, {})[name] = Thing(_meta(body), body)
        return SetView(
            _meta(raw),
            PodCliqueSetSpec.model_validate(raw["spec"]),
            PodCliqueSetStatus.model_validate(raw.get("status", {})),
            cliques,
            self._read(SCALING_GROUPS, _group),
            self._read(PODGANGS, _gang),
            pods,
            {**things},
            claim_templates=self.templates,
            choices=self.choices,
        )

    def _read(self, kind: Resource, read: Callable[[JsonObject], T]) -> dict[str, T]:
        return {name: read(body) for name, body in self.of(kind).items()}

    def _put(self, key: Name, body: JsonObject) -> None:
        metadata = _metadata(body)
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            self.objects.pop(key, None)
            return
        version: JsonObject = {"metadata": {"resourceVersion": str(next(self._versions))}}
        self.objects[key] = _merged(body, version)


def admitted(
    stored: JsonObject,
    template: JsonObject,
    choices: Choices = Choices(),  # noqa: B008
) -> World:
    """A new set as admission has stored it; every template of claims that it names is like this."""
    metadata = _metadata(stored)
    annotations = metadata.get("annotations")
    spec = PodCliqueSetSpec.model_validate(stored["spec"])
    shared: list[ResourceSharing] = [*spec.template.resource_sharing]
    for clique in spec.template.cliques:
        shared += clique.resource_sharing
    for group in spec.template.pod_clique_scaling_groups:
        shared += group.resource_sharing
    return World(
        spec,
        templates={(s.namespace or set_meta().namespace, s.name): template for s in shared},
        choices=choices,
        annotations=annotations if isinstance(annotations, dict) else {},
    )


def _merged(body: JsonObject, patch: JsonObject) -> JsonObject:
    found = merged(body, patch)
    assert isinstance(found, dict)
    return found


def _metadata(body: JsonObject) -> JsonObject:
    found = body["metadata"]
    assert isinstance(found, dict)
    return found


def _meta(body: JsonObject) -> Meta:
    return msgspec.convert(body["metadata"], Meta)


def _pod(body: JsonObject) -> Pod:
    spec = body["spec"]
    assert isinstance(spec, dict)
    # An API server would have written amounts as text.
    told = {key: value for key, value in spec.items() if key in PLACING}
    return msgspec.convert({**body, "spec": told}, Pod)


def _clique(body: JsonObject) -> Clique:
    return Clique(
        _meta(body),
        PodCliqueSpec.model_validate(body["spec"]),
        PodCliqueStatus.model_validate(body.get("status", {})),
    )


def _group(body: JsonObject) -> Group:
    return Group(
        _meta(body),
        PodCliqueScalingGroupSpec.model_validate(body["spec"]),
        PodCliqueScalingGroupStatus.model_validate(body.get("status", {})),
    )


def _gang(body: JsonObject) -> Gang:
    return Gang(
        _meta(body),
        PodGangSpec.model_validate(body["spec"]),
        PodGangStatus.model_validate(body.get("status", {})),
    )

"""A set as all that `workloads` would make of it, by its own planners. Pure."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from api.jsons import JsonObject
from api.podclique import PodCliqueSpec, PodCliqueStatus
from api.podcliqueset import PodCliqueSetSpec, PodCliqueSetStatus
from api.podgang import PodGangSpec, PodGangStatus
from api.scalinggroup import PodCliqueScalingGroupSpec, PodCliqueScalingGroupStatus
from api.streams import Meta, Pod
from controller.gangs import templates
from controller.podgang import Gang
from controller.workloads import planning
from controller.workloads.stepping import Create
from controller.workloads.views import Clique, Group, SetView, Thing
from kube.resources import PODCLIQUES, PODGANGS, PODS, SCALING_GROUPS, Resource

_ROUNDS: Final = 10  # of looking again; each makes what could not be made before its owner was
_SEEN: Final = (PODCLIQUES, SCALING_GROUPS, PODGANGS, PODS)

T = TypeVar("T")
Made = dict[tuple[Resource, str], JsonObject]


def made_of(
    body: JsonObject,
    now: datetime,
    levels: Mapping[str, Mapping[str, str]],
    identified: Callable[[JsonObject, str], JsonObject],
) -> Iterator[tuple[Resource, JsonObject]]:
    """Make all that the set wants; `body` is the set as admission has stored it."""
    meta = msgspec.convert(body["metadata"], Meta)
    made: Made = {}
    for _ in range(_ROUNDS):
        steps = planning.plan(_view(body, meta, made, levels), now, silent=True)
        todo = [step for step in steps if isinstance(step, Create)]
        fresh = {
            (step.resource, str(_metadata(step.body)["name"])): step.body
            for step in todo
            if (step.resource, str(_metadata(step.body)["name"])) not in made
        }
        if not fresh:
            break
        made |= {key: identified(each, meta.namespace) for key, each in fresh.items()}
    for (resource, _), each in made.items():
        yield resource, each


def _view(
    body: JsonObject, meta: Meta, made: Made, levels: Mapping[str, Mapping[str, str]]
) -> SetView:
    cliques = {name: _clique(each) for name, each in _of(made, PODCLIQUES)}
    pods: dict[str, list[Pod]] = {}
    names_by_uid = {clique.metadata.uid: name for name, clique in cliques.items()}
    for _, each in _of(made, PODS):
        pod = templates.pod(each)
        pods.setdefault(names_by_uid[pod.metadata.controller_uid], []).append(pod)
    things: dict[Resource, dict[str, Thing]] = {}
    for (kind, name), each in made.items():
        if kind not in _SEEN:
            things.setdefault(kind, {})[name] = Thing(_meta(each), each)
    return SetView(
        meta,
        PodCliqueSetSpec.model_validate(body["spec"]),
        PodCliqueSetStatus(),
        cliques,
        {name: _group(each) for name, each in _of(made, SCALING_GROUPS)},
        {name: _gang(each) for name, each in _of(made, PODGANGS)},
        {name: tuple(each) for name, each in pods.items()},
        {**things},
        levels,
    )


def _of(made: Made, resource: Resource) -> Iterator[tuple[str, JsonObject]]:
    return ((name, each) for (kind, name), each in made.items() if kind is resource)


def _metadata(body: JsonObject) -> JsonObject:
    found = body["metadata"]
    return found if isinstance(found, dict) else {}


def _meta(body: JsonObject) -> Meta:
    return msgspec.convert(body["metadata"], Meta)


def _clique(body: JsonObject) -> Clique:
    spec = PodCliqueSpec.model_validate(body["spec"])
    return Clique(_meta(body), spec, PodCliqueStatus())


def _group(body: JsonObject) -> Group:
    spec = PodCliqueScalingGroupSpec.model_validate(body["spec"])
    return Group(_meta(body), spec, PodCliqueScalingGroupStatus())


def _gang(body: JsonObject) -> Gang:
    return Gang(_meta(body), PodGangSpec.model_validate(body["spec"]), PodGangStatus())

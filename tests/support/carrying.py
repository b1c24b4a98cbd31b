"""What becomes of a set when steps are carried out, without an API server: enough for planners."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from api.jsons import JsonObject
from api.podclique import PodCliqueStatus
from api.scalinggroup import PodCliqueScalingGroupStatus
from api.streams import Meta, Pod
from controller.workloads.expansion import expand
from controller.workloads.stepping import Change, Remove, Say, Step
from controller.workloads.story import statuses
from controller.workloads.views import SetView
from kube.resources import PODCLIQUES, PODGANGS, PODS, SCALING_GROUPS


def carried(view: SetView, steps: Iterable[Step]) -> SetView:
    """The set after removals, notes on PodCliques and PodGangs, and statuses."""
    for step in steps:
        match step:
            case Remove(resource, _, uid):
                view = _removed(view, resource is PODS, uid)
            case Change(resource, name, _, patch) if resource is PODCLIQUES:
                there = view.cliques[name]
                there = replace(there, metadata=_noted(there.metadata, patch))
                view = replace(view, cliques={**view.cliques, name: there})
            case Change(resource, name, _, patch) if resource is PODGANGS:
                gang = view.gangs[name]
                gang = replace(gang, metadata=_noted(gang.metadata, patch))
                view = replace(view, gangs={**view.gangs, name: gang})
            case Say(resource, name, _, status) if resource is PODCLIQUES:
                of_clique = PodCliqueStatus.model_validate(status)
                there = replace(view.cliques[name], status=of_clique)
                view = replace(view, cliques={**view.cliques, name: there})
            case Say(resource, name, _, status) if resource is SCALING_GROUPS:
                of_group = PodCliqueScalingGroupStatus.model_validate(status)
                group = replace(view.groups[name], status=of_group)
                view = replace(view, groups={**view.groups, name: group})
            case _:
                pass
    return view


def observed(view: SetView, now: datetime) -> SetView:
    """The set with the statuses that it has at an instant, once all is said."""
    later = now + timedelta(seconds=3)
    for instant in (now, later):
        wanted = expand(view)
        view = carried(view, statuses.steps(view, wanted, instant if instant is now else later))
    return view


def made_at(view: SetView, when: datetime) -> SetView:
    """The same, its pods made at an instant."""
    return replace(
        view,
        pods={name: tuple(_dated(pod, when) for pod in pods) for name, pods in view.pods.items()},
    )


def _dated(pod: Pod, when: datetime) -> Pod:
    meta = msgspec.structs.replace(pod.metadata, creation_timestamp=when)
    return msgspec.structs.replace(pod, metadata=meta)


def _removed(view: SetView, is_pod: bool, uid: str) -> SetView:  # noqa: FBT001
    if is_pod:
        left = {
            name: tuple(pod for pod in pods if pod.metadata.uid != uid)
            for name, pods in view.pods.items()
        }
        return replace(view, pods=left)
    gangs = {name: gang for name, gang in view.gangs.items() if gang.metadata.uid != uid}
    return replace(view, gangs=gangs)


def _noted(meta: Meta, patch: JsonObject) -> Meta:
    metadata = patch["metadata"]
    assert isinstance(metadata, dict)
    told = metadata["annotations"]
    assert isinstance(told, dict)
    notes = {**meta.annotations, **told}
    kept = {key: str(text) for key, text in notes.items() if text is not None}
    return msgspec.structs.replace(meta, annotations=kept)

"""PodGangs as `workloads` sees them once steps about them were carried out."""

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from api.jsons import Json, JsonObject
from api.objects import condition_of
from api.podgang import PodGangSpec, PodGangStatus
from api.streams import Meta
from controller.podgang import Gang
from controller.workloads.expansion import expand
from controller.workloads.making import gang_bodies
from controller.workloads.stepping import Change, Create, Remove, Say, Step
from controller.workloads.views import SetView
from kube.resources import PODGANGS
from tests.support.fleets import merged
from tests.support.sets import NOW


def planned(view: SetView) -> list[Step]:
    """What is to be done about the set's gangs now."""
    return list(gang_bodies.steps(view, expand(view), NOW))


def settled(view: SetView) -> SetView:
    """The set once all is done about its gangs; that must take no more than two looks."""
    for _ in range(2):
        view = done(view, planned(view))
    assert planned(view) == []
    return view


def done(view: SetView, steps: Iterable[Step]) -> SetView:
    """The set after steps about its gangs."""
    gangs = dict(view.gangs)
    for step in steps:
        match step:
            case Create(kind, body) if kind is PODGANGS:
                made = _gang(body)
                assert made.metadata.name not in gangs
                gangs[made.metadata.name] = made
            case Change(kind, name, uid, patch) if kind is PODGANGS:
                there = gangs[name]
                assert there.metadata.uid == uid
                gangs[name] = replace(_gang(merged(body_of(there), patch)), status=there.status)
            case Say(kind, name, uid, status) if kind is PODGANGS:
                assert gangs[name].metadata.uid == uid
                said = PodGangStatus.model_validate(status)
                gangs[name] = replace(gangs[name], status=said)
            case Remove(kind, name, uid) if kind is PODGANGS:
                assert gangs.pop(name).metadata.uid == uid
            case _:
                raise AssertionError(f"not expected here: {step}")
    return replace(view, gangs=gangs)


def body_of(gang: Gang) -> JsonObject:
    """A gang as the API server would show it."""
    meta = gang.metadata
    labels: JsonObject = {**meta.labels}
    annotations: JsonObject = {**meta.annotations}
    return {
        "metadata": {"name": meta.name, "labels": labels, "annotations": annotations},
        "spec": gang.spec.model_dump(mode="json", by_alias=True, exclude_none=True),
    }


def by_hand(view: SetView, name: str, patch: JsonObject) -> SetView:
    """The set after somebody has patched one of its gangs."""
    there = view.gangs[name]
    changed = replace(_gang(merged(body_of(there), patch)), status=there.status)
    return replace(view, gangs={**view.gangs, name: changed})


def initialized(view: SetView, name: str) -> tuple[str, str, str] | None:
    """What the gang's condition Initialized says: status, reason, message."""
    found = condition_of(view.gangs[name].status.conditions, "Initialized")
    return None if found is None else (found.status, found.reason, found.message)


def _gang(body: Json) -> Gang:
    assert isinstance(body, dict)
    told = body["metadata"]
    assert isinstance(told, dict)
    meta = msgspec.convert({**told, "namespace": "default", "uid": f"uid-{told['name']}"}, Meta)
    return Gang(meta, PodGangSpec.model_validate(body["spec"]), PodGangStatus())

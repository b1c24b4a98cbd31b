"""Objects made for a set as `workloads` sees them, from the bodies they were made with."""

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from api.jsons import JsonObject
from api.objects import timestamp
from api.streams import Meta
from controller.workloads.stepping import Change, Create, Remove, Step
from controller.workloads.views import SetView, Thing
from kube.resources import Resource
from tests.support.fleets import merged
from tests.support.sets import NOW


def thing(body: JsonObject, *, leaving: bool = False) -> Thing:
    """What there is once a body was made."""
    told = body["metadata"]
    assert isinstance(told, dict)
    going: JsonObject = {"deletionTimestamp": timestamp(NOW)} if leaving else {}
    metadata: JsonObject = {**told, "uid": f"uid-{told['name']}", **going}
    return Thing(msgspec.convert(metadata, Meta), {**body, "metadata": metadata})


def done(view: SetView, resource: Resource, steps: Iterable[Step]) -> SetView:
    """The set after steps about objects of one kind."""
    there = dict(view.things_of(resource))
    for step in steps:
        match step:
            case Create(kind, body) if kind is resource:
                made = thing(body)
                assert made.metadata.name not in there
                there[made.metadata.name] = made
            case Change(kind, name, uid, patch) if kind is resource:
                assert there[name].metadata.uid == uid
                patched = merged(there[name].body, patch)
                assert isinstance(patched, dict)
                there[name] = thing(patched)
            case Remove(kind, name, uid) if kind is resource:
                assert there.pop(name).metadata.uid == uid
            case _:
                raise AssertionError(f"not expected here: {step}")
    return replace(view, things={**view.things, resource: there})

"""Who may use what a person has kept."""

from dataclasses import replace

import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from api.podgang import ObjectReference
from api.streams import Meta, Owner, Pod
from controller.gangs.keeps import owners
from controller.podgang import Gang
from tests.support.clusters import pod
from tests.support.keeping import keep
from tests.support.sets import gang

GANG = gang({"a": (2, 2)})
EVERYBODY: JsonObject = {"labelSelector": {}}
JOB = Owner(kind="Job", name="night", uid="job-uid", controller=True)


def pods(*names_: str, **meta: Json) -> list[Pod]:
    owner: Json = msgspec.to_builtins(JOB)
    return [
        pod(name, metadata={"ownerReferences": [owner], "labels": {"team": "red"}, **meta})
        for name in names_
    ]


def may(*rules: JsonObject, of: Gang = GANG, with_pods: list[Pod] | None = None) -> bool:
    given: Json = [*rules]
    return owners.meant(
        keep(owners=given), of, pods("p0", "p1") if with_pods is None else with_pods
    )


def named(kind: str, name: str, **more: Json) -> JsonObject:
    return {"object": {"kind": kind, "name": name, **more}}


@pytest.mark.parametrize(
    ("rule", "meant"),
    [
        (named("PodGang", "demo-0"), True),
        (named("PodGang", "demo-1"), False),
        (named("PodGang", "demo-0", uid="uid-demo-0"), True),
        (named("PodGang", "demo-0", uid="older"), False),
        (named("PodCliqueSet", "demo"), True),
        (named("PodCliqueSet", "other"), False),
        (named("Pod", "p0"), False),  # not all of its pods
        ({"controller": {"kind": "PodCliqueSet", "name": "demo"}}, True),
        ({"controller": {"kind": "Job", "name": "night"}}, True),
        ({"controller": {"kind": "Job", "name": "night", "uid": "another"}}, False),
        ({"controller": {"kind": "Deployment", "name": "night"}}, False),
        ({"labelSelector": {"matchLabels": {"team": "red"}}}, True),
        ({"labelSelector": {"matchLabels": {"team": "blue"}}}, False),
        ({"labelSelector": {}}, True),
        (
            {
                "labelSelector": {
                    "matchExpressions": [{"key": "team", "operator": "In", "values": ["red"]}]
                }
            },
            True,
        ),
        # All of one rule must hold of the same: the gang, or each of its pods.
        (
            {
                "controller": {"kind": "Job", "name": "night"},
                "labelSelector": {"matchLabels": {"team": "red"}},
            },
            True,
        ),
        (
            {
                "controller": {"kind": "PodCliqueSet", "name": "demo"},
                "labelSelector": {"matchLabels": {"team": "red"}},
            },
            False,
        ),
    ],
)
def test_a_rule_means_objects_controllers_and_labels(rule: JsonObject, *, meant: bool) -> None:
    assert may(rule) is meant


def test_any_rule_is_enough() -> None:
    assert may(named("PodGang", "other"), named("PodGang", "demo-0"))


def test_labels_must_be_on_each_pod() -> None:
    odd = pods("p1", labels={"team": "blue"})
    rule: JsonObject = {"labelSelector": {"matchLabels": {"team": "red"}}}
    assert not may(rule, with_pods=[*pods("p0"), *odd])


def test_a_single_pod_is_meant_by_its_name() -> None:
    assert may(named("Pod", "p0"), with_pods=pods("p0"))
    assert not may(named("Pod", "p0"), with_pods=[])


def test_gangs_of_other_namespaces_are_never_meant() -> None:
    meta = msgspec.structs.replace(GANG.metadata, namespace="elsewhere")
    assert not may({"labelSelector": {}}, of=replace(GANG, metadata=meta))


def annotated(value: str) -> Meta:
    return msgspec.structs.replace(GANG.metadata, annotations={names.RESERVATION_REF: value})


def test_a_gang_asks_in_its_spec_before_its_annotation_before_its_pods() -> None:
    told = pods("p0", annotations={names.RESERVATION_REF: "by-pod"})
    assert owners.asked_for(GANG, []) is None
    assert owners.asked_for(GANG, told) == ("default", "by-pod")
    by_gang = replace(GANG, metadata=annotated("by-gang"))
    assert owners.asked_for(by_gang, told) == ("default", "by-gang")
    reference = ObjectReference(namespace="default", name="by-spec")
    spec = GANG.spec.model_copy(update={"reuse_reservation_ref": reference})
    assert owners.asked_for(replace(by_gang, spec=spec), told) == ("default", "by-spec")


def test_an_annotation_may_name_a_namespace() -> None:
    assert owners.asked_for(replace(GANG, metadata=annotated("far/away")), []) == ("far", "away")


def test_only_objects_meant_by_uid_can_be_gone_for_good() -> None:
    rule = named("PodGang", "demo-0", uid="u")
    assert [each.name for each in owners.named(keep(owners=[rule]))] == ["demo-0"]
    for other in (named("PodGang", "x"), EVERYBODY, named("PodCliqueSet", "s", uid="u")):
        assert owners.named(keep(owners=[rule, other])) == []

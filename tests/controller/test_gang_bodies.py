"""PodGangs as they are made and kept: cliques, minima, pods, closeness, and what is mirrored."""

from dataclasses import replace

import msgspec
import pytest

from api import names
from api.jsons import Json, JsonObject
from api.podcliqueset import PodCliqueSetSpec
from controller.workloads import naming
from controller.workloads.expansion import expand
from controller.workloads.stepping import Change, Create, Remove, Say
from controller.workloads.views import SetView, Trouble
from kube.resources import PODGANGS
from tests.support.gangs_made import body_of, by_hand, done, initialized, planned, settled
from tests.support.sets import clique
from tests.support.setviews import made, pod_in

LEVELS = {"net": {"zone": "ex/zone", "block": "ex/block", "rack": "ex/rack"}}
ZONE, BLOCK, RACK = ({"packConstraint": {"required": f"ex/{n}"}} for n in ("zone", "block", "rack"))


def constraint(level: str) -> Json:
    return {"topologyName": "net", "pack": {"required": level}} if level else None


def spec(
    *, of_set: str = "", of_group: str = "", of_clique: str = "", copies: int = 3, **more: Json
) -> PodCliqueSetSpec:
    """A router of 3 pods, 2 of them needed, beside an engine of two cliques, 2 copies needed."""
    return PodCliqueSetSpec.model_validate(
        {
            "replicas": 1,
            "template": {
                "cliques": [
                    clique("router", 3, 2),
                    clique("leader", 1),
                    {**clique("worker", 2), "topologyConstraint": constraint(of_clique)},
                ],
                "podCliqueScalingGroups": [
                    {
                        "name": "engine",
                        "cliqueNames": ["leader", "worker"],
                        "replicas": copies,
                        "minAvailable": 2,
                        "topologyConstraint": constraint(of_group),
                    }
                ],
                "topologyConstraint": constraint(of_set),
                **more,
            },
        }
    )


def view_of(given: PodCliqueSetSpec, **labels: str) -> SetView:
    view = replace(made(given), gangs={}, levels=LEVELS)
    return replace(view, metadata=msgspec.structs.replace(view.metadata, labels=labels))


def annotated(view: SetView, **annotations: str) -> SetView:
    keyed = {key.replace("__", "/").replace("_", "."): v for key, v in annotations.items()}
    return replace(view, metadata=msgspec.structs.replace(view.metadata, annotations=keyed))


def written(view: SetView, name: str) -> JsonObject:
    body = body_of(settled(view).gangs[name])["spec"]
    assert isinstance(body, dict)
    return body


def pods_of(name: str, count: int) -> Json:
    found = sorted(naming.pod("set-uid", name, index) for index in range(count))
    return [{"namespace": "default", "name": pod} for pod in found]


def test_a_gang_is_made_with_its_cliques_their_minima_and_all_their_pods() -> None:
    view = replace(view_of(spec(priorityClassName="urgent")), pods={})
    steps = planned(view)
    assert [type(step) for step in steps] == [Create, Create]
    made_view = done(view, steps)
    assert {name: gang.spec.priority_class_name for name, gang in made_view.gangs.items()} == {
        "demo-0": "urgent",
        "demo-0-engine-0": "urgent",
    }
    base = body_of(made_view.gangs["demo-0"])["spec"]
    assert isinstance(base, dict)
    assert base["podgroups"] == [
        {"name": name, "minReplicas": minimum, "podReferences": pods_of(name, count)}
        for name, minimum, count in (
            ("demo-0-router", 2, 3),
            ("demo-0-engine-0-leader", 1, 1),
            ("demo-0-engine-0-worker", 2, 2),
            ("demo-0-engine-1-leader", 1, 1),
            ("demo-0-engine-1-worker", 2, 2),
        )
    ]
    scaled = made_view.gangs["demo-0-engine-0"]
    assert [g.name for g in scaled.spec.pod_groups] == [
        "demo-0-engine-2-leader",
        "demo-0-engine-2-worker",
    ]
    assert scaled.metadata.labels[names.BASE_PODGANG_LABEL] == "demo-0"
    assert names.BASE_PODGANG_LABEL not in made_view.gangs["demo-0"].metadata.labels


def test_constraints_of_all_three_levels_reach_the_base_gang() -> None:
    base = written(view_of(spec(of_set="zone", of_group="block", of_clique="rack")), "demo-0")
    assert base["topologyConstraint"] == ZONE
    assert base["topologyConstraintGroupConfigs"] == [
        {
            "name": f"demo-0-engine-{copy}",
            "podGroupNames": [f"demo-0-engine-{copy}-leader", f"demo-0-engine-{copy}-worker"],
            "topologyConstraint": BLOCK,
        }
        for copy in (0, 1)
    ]
    groups = base["podgroups"]
    assert isinstance(groups, list)
    assert [g.get("topologyConstraint") for g in groups if isinstance(g, dict)] == [
        None, None, RACK, None, RACK,
    ]  # fmt: skip


def test_a_scaled_gang_keeps_the_sets_constraint_beside_its_groups() -> None:
    scaled = written(
        view_of(spec(of_set="zone", of_group="block", of_clique="rack")), "demo-0-engine-0"
    )
    assert scaled["topologyConstraint"] == ZONE
    assert scaled["topologyConstraintGroupConfigs"] == [
        {
            "name": "demo-0-engine-2",
            "podGroupNames": ["demo-0-engine-2-leader", "demo-0-engine-2-worker"],
            "topologyConstraint": BLOCK,
        }
    ]


@pytest.mark.parametrize(
    ("given", "whole"), [(spec(of_group="block"), BLOCK), (spec(of_set="zone"), ZONE)]
)
def test_a_scaled_gang_with_one_constraint_carries_it_as_its_own(
    given: PodCliqueSetSpec, whole: Json
) -> None:
    scaled = written(view_of(given), "demo-0-engine-0")
    assert scaled["topologyConstraint"] == whole
    assert scaled["topologyConstraintGroupConfigs"] == []


def test_the_binding_is_named_where_something_is_asked_and_goes_when_it_cannot_be_said() -> None:
    view = settled(view_of(spec(of_group="rack")))
    key = names.TOPOLOGY_NAME_ANNOTATION
    assert {name: gang.metadata.annotations.get(key) for name, gang in view.gangs.items()} == {
        "demo-0": "net",
        "demo-0-engine-0": "net",
    }
    lost = settled(replace(view, levels={}))
    for gang in lost.gangs.values():
        assert key not in gang.metadata.annotations
        assert gang.spec.topology_constraint is None
        assert gang.spec.topology_constraint_group_configs == []
    back = settled(replace(lost, levels=LEVELS))
    assert [body_of(g) for g in back.gangs.values()] == [body_of(g) for g in view.gangs.values()]


def test_labels_and_annotations_mirror_the_sets() -> None:
    view = annotated(view_of(spec(), team="a"), note="b", grove_io__reconcile_trigger="1")
    view = settled(view)
    meta = view.gangs["demo-0"].metadata
    assert meta.labels == {
        "team": "a",
        names.MANAGED_BY_LABEL: "grove-operator",
        names.PART_OF_LABEL: "demo",
        names.NAME_LABEL: "demo-0",
        names.COMPONENT_LABEL: "podgang",
        names.SET_REPLICA_LABEL: "0",
        names.SCHEDULER_NAME_LABEL: "default-scheduler",
    }
    assert meta.annotations == {"note": "b", names.STARTUP_ANNOTATION: "gate"}
    without = replace(
        view, metadata=msgspec.structs.replace(view.metadata, labels={}, annotations={})
    )
    after = settled(without).gangs["demo-0"].metadata
    assert "team" not in after.labels
    assert after.annotations == {names.STARTUP_ANNOTATION: "gate"}


def test_words_of_groves_that_others_wrote_on_a_gang_stay() -> None:
    view = settled(view_of(spec()))
    told = by_hand(view, "demo-0", {"metadata": {"annotations": {"grove.io/seen": "yes"}}})
    assert planned(told) == []


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"podgroups": []}},
        {"spec": {"priorityClassName": "stolen"}},
        {"spec": {"topologyConstraint": RACK}},
        {"metadata": {"labels": {names.PART_OF_LABEL: None}}},
        {"metadata": {"annotations": {names.STARTUP_ANNOTATION: "init"}}},
    ],
)
def test_what_was_changed_by_hand_is_put_right_in_one_write(patch: JsonObject) -> None:
    view = settled(view_of(spec(of_group="block")))
    spoilt = by_hand(view, "demo-0", patch)
    steps = planned(spoilt)
    assert [type(step) for step in steps] == [Change]
    assert body_of(done(spoilt, steps).gangs["demo-0"]) == body_of(view.gangs["demo-0"])


def test_what_the_placing_side_says_of_a_gang_is_not_touched() -> None:
    view = settled(view_of(spec()))
    reuse: JsonObject = {"spec": {"reuseReservationRef": {"namespace": "default", "name": "old"}}}
    assert planned(by_hand(view, "demo-0", reuse)) == []


def test_gangs_of_copies_that_are_gone_are_removed() -> None:
    view = settled(view_of(spec()))
    group = view.groups["demo-0-engine"]
    fewer = replace(group, spec=group.spec.model_copy(update={"replicas": 2}))
    steps = planned(replace(view, groups={"demo-0-engine": fewer}))
    assert steps == [Remove(PODGANGS, "demo-0-engine-0", "uid-demo-0-engine-0")]


def test_a_group_scaled_to_nothing_leaves_its_base_gang_to_the_others() -> None:
    view = settled(view_of(spec()))
    group = view.groups["demo-0-engine"]
    none = replace(group, spec=group.spec.model_copy(update={"replicas": 0}))
    view = settled(replace(view, groups={"demo-0-engine": none}))
    assert [g.name for g in view.gangs["demo-0"].spec.pod_groups] == ["demo-0-router"]


def test_a_clique_scaled_to_nothing_holds_up_nobody() -> None:
    view = settled(view_of(spec()))
    there = view.cliques["demo-0-router"]
    none = replace(there, spec=there.spec.model_copy(update={"replicas": 0}))
    scaled = replace(
        view,
        cliques={**view.cliques, "demo-0-router": none},
        pods={**view.pods, "demo-0-router": ()},
    )
    router = settled(scaled).gangs["demo-0"].spec.pod_groups[0]
    assert (router.name, router.min_replicas, router.pod_references) == ("demo-0-router", 0, [])


def test_a_gang_is_initialized_once_all_its_pods_are_made_and_stays_so() -> None:
    made = view_of(spec())
    made = done(made, planned(made))
    news = [step for step in planned(made) if isinstance(step, Say)]
    assert news
    assert not any(each.acts_on for each in news), "others see so themselves"
    view = settled(view_of(spec()))
    assert initialized(view, "demo-0") == ("True", "PodGangPodsCreated", "")
    assert planned(replace(view, pods={**view.pods, "demo-0-engine-0-leader": ()})) == []


def test_nothing_is_said_of_pods_that_are_about_to_be_made() -> None:
    view = replace(view_of(spec()), pods={})
    view = done(view, planned(view))
    assert planned(view) == []
    assert initialized(view, "demo-0") is None


def test_why_pods_could_not_be_made_is_said_once() -> None:
    view = view_of(spec())
    refused = Trouble("ERR_CREATE_POD", "admission is away", "demo-0-router-abcde")
    short = replace(view, pods={**view.pods, "demo-0-router": ()}, troubles=(refused,))
    short = done(short, planned(short))
    short = done(short, planned(short))
    message = "6 of 9 pods are made: admission is away"
    assert initialized(short, "demo-0") == ("False", "PodGangPodsCreationPending", message)
    assert initialized(short, "demo-0-engine-0") == ("True", "PodGangPodsCreated", "")
    assert planned(short) == []
    whole = replace(short, pods=view.pods, troubles=())
    (said,) = planned(whole)
    assert isinstance(said, Say)
    assert said.acts_on, "what is said otherwise is put right while other sets are at work too"
    whole = settled(whole)
    assert initialized(whole, "demo-0") == ("True", "PodGangPodsCreated", "")


def test_predecessors_that_still_have_a_pods_name_are_counted() -> None:
    view = view_of(spec())
    want = expand(view).cliques["demo-0-engine-0-leader"]
    leaving = replace(view, pods={**view.pods, want.name: (pod_in("leaving ready", want),)})
    leaving = done(leaving, planned(leaving))
    leaving = done(leaving, planned(leaving))
    found = initialized(leaving, "demo-0")
    assert found is not None
    assert found[2].startswith("8 of 9 pods are made: pods that are ending still have 1")

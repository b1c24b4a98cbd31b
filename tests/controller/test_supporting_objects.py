"""The services and autoscalers of a set: all that are wanted, as wanted, and no others."""

from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from api.jsons import Json, JsonObject
from api.podcliqueset import PodCliqueSetSpec
from controller.workloads.expansion import expand
from controller.workloads.making import autoscalers, services
from controller.workloads.stepping import Again, Create, Step
from controller.workloads.views import Group, SetView
from kube.resources import AUTOSCALERS, SERVICES, Resource
from tests.support.fleets import merged
from tests.support.sets import NOW, clique, set_spec
from tests.support.setviews import made, with_pods
from tests.support.things import done, thing

PLANNERS = {SERVICES: services.steps, AUTOSCALERS: autoscalers.steps}
QUEUE: JsonObject = {
    "type": "External",
    "external": {
        "metric": {"name": "queue"},
        "target": {"type": "AverageValue", "averageValue": "10"},
    },
}
SCALED: JsonObject = {"minReplicas": 2, "maxReplicas": 9, "metrics": [QUEUE]}
ALONE = clique("router", 2, 1, autoScalingConfig=SCALED)
GROUP: JsonObject = {
    "name": "engine",
    "cliqueNames": ["worker"],
    "replicas": 2,
    "scaleConfig": SCALED,
}


def spec(replicas: int = 2, **group: Json) -> PodCliqueSetSpec:
    return set_spec(ALONE, clique("worker", 1), replicas=replicas, groups=[{**GROUP, **group}])


def planned(view: SetView, resource: Resource) -> list[Step]:
    return list(PLANNERS[resource](view, expand(view), NOW))


def settled(view: SetView, resource: Resource) -> SetView:
    view = done(view, resource, planned(view, resource))
    assert planned(view, resource) == []
    return view


def names_of(view: SetView, resource: Resource) -> set[str]:
    return set(view.things_of(resource))


def test_each_replica_has_a_headless_service_for_its_pods_alone() -> None:
    view = settled(made(spec()), SERVICES)
    assert names_of(view, SERVICES) == {"demo-0", "demo-1"}
    body = view.things_of(SERVICES)["demo-1"].body
    selector = {
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": "demo",
        "grove.io/podcliqueset-replica-index": "1",
    }
    assert body["spec"] == {
        "clusterIP": "None",
        "selector": selector,
        "publishNotReadyAddresses": True,
    }
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["labels"] == {
        **selector,
        "app.kubernetes.io/name": "demo-1",
        "app.kubernetes.io/component": "pcs-headless-service",
    }


def test_whether_names_resolve_before_readiness_is_the_authors_choice() -> None:
    view = settled(made(spec(1)), SERVICES)
    template = view.spec.template.model_copy(
        update={
            "headless_service_config": PodCliqueSetSpec.model_validate(
                {
                    "template": {
                        "cliques": [],
                        "headlessServiceConfig": {"publishNotReadyAddresses": False},
                    }
                }
            ).template.headless_service_config
        }
    )
    changed = replace(view, spec=view.spec.model_copy(update={"template": template}))
    changed = settled(changed, SERVICES)
    service = changed.things_of(SERVICES)["demo-0"].body["spec"]
    assert isinstance(service, dict)
    # A wish that the API server leaves out of what it stores would be made for ever.
    assert "publishNotReadyAddresses" not in service


def test_a_selector_that_somebody_narrowed_is_put_right() -> None:
    view = settled(made(spec(1)), SERVICES)
    there = view.things_of(SERVICES)["demo-0"]
    hurt = merged(there.body, {"spec": {"selector": {"only": "mine"}}})
    assert isinstance(hurt, dict)
    spoilt = replace(view, things={SERVICES: {"demo-0": thing(hurt)}})
    assert settled(spoilt, SERVICES).things_of(SERVICES)["demo-0"].body == there.body


def test_a_service_is_made_when_the_pods_that_were_let_go_have_addresses() -> None:
    """Before, Kubernetes would look in vain for addresses, with each of them."""

    def made_with(*states: str, workers: str = "gated") -> bool:
        view = young(with_pods(made(spec(1), workers), "demo-0-router", *states))
        return any(isinstance(step, Create) for step in planned(view, SERVICES))

    assert not made_with("gated", "gated")
    assert not made_with("gated", "lifted")
    assert not made_with("bound", "bound")
    assert not made_with("started", "bound")
    assert made_with("started", "started")
    assert made_with("started", "gated"), "others may have to wait for it to be ready"
    assert made_with("started", "started", workers="lifted"), "and look for it when they start"


def test_a_service_is_made_after_a_while_whatever_becomes_of_the_pods() -> None:
    view = young(made(spec(2), "gated"))
    assert planned(view, SERVICES) == [Again(NOW + services.LATEST)] * 2
    late = NOW + services.LATEST
    assert all(isinstance(each, Create) for each in services.steps(view, expand(view), late))
    assert planned(replace(view, cliques={}), SERVICES) == [], "there is nothing to serve yet"
    behind = NOW - timedelta(minutes=5)
    assert all(isinstance(each, Create) for each in services.steps(view, expand(view), behind))
    alone = made(set_spec(clique("worker", 1), groups=[GROUP]))
    none = replace(alone, groups={n: scaled_to(g, 0) for n, g in alone.groups.items()}, cliques={})
    assert [isinstance(each, Create) for each in planned(none, SERVICES)] == [True]


def test_in_a_crowd_a_service_waits_for_others_but_no_longer_than_that() -> None:
    view = young(with_pods(made(spec(1), "gated"), "demo-0-router", "started", "started"))
    assert any(isinstance(step, Create) for step in planned(view, SERVICES))
    view = replace(view, in_a_crowd=True)
    late = NOW + services.LATEST_IN_CROWD
    assert planned(view, SERVICES) == [Again(late)]
    assert any(isinstance(each, Create) for each in services.steps(view, expand(view), late))


def scaled_to(group: Group, copies: int) -> Group:
    return replace(group, spec=group.spec.model_copy(update={"replicas": copies}))


def young(view: SetView) -> SetView:
    """The same set, whose cliques were made now."""
    return replace(
        view,
        cliques={
            name: replace(
                each, metadata=msgspec.structs.replace(each.metadata, creation_timestamp=NOW)
            )
            for name, each in view.cliques.items()
        },
    )


@pytest.mark.parametrize("resource", [SERVICES, AUTOSCALERS], ids=lambda r: r.kind)
def test_what_a_replica_had_goes_with_it(resource: Resource) -> None:
    view = settled(made(spec(2)), resource)
    smaller = replace(view, spec=view.spec.model_copy(update={"replicas": 1}), cliques={})
    left = names_of(settled(smaller, resource), resource)
    assert left
    assert all(name.startswith("demo-0") for name in left)


def test_a_service_serves_until_the_last_clique_of_its_replica_is_gone() -> None:
    view = settled(made(spec(2)), SERVICES)
    smaller = replace(view, spec=view.spec.model_copy(update={"replicas": 1}))
    assert names_of(settled(smaller, SERVICES), SERVICES) == {"demo-0", "demo-1"}
    last = {name: each for name, each in smaller.cliques.items() if name != "demo-1-router"}
    assert names_of(settled(replace(smaller, cliques=last), SERVICES), SERVICES) == {
        "demo-0",
        "demo-1",
    }
    left = {name: each for name, each in last.items() if name.startswith("demo-0")}
    assert names_of(settled(replace(smaller, cliques=left), SERVICES), SERVICES) == {"demo-0"}


def test_cliques_that_stand_alone_and_groups_get_the_autoscaler_they_ask_for() -> None:
    view = settled(made(spec(1)), AUTOSCALERS)
    found = {name: thing.body["spec"] for name, thing in view.things_of(AUTOSCALERS).items()}
    shared: JsonObject = {"minReplicas": 2, "maxReplicas": 9, "metrics": [QUEUE]}
    assert found == {
        "demo-0-router": {
            "scaleTargetRef": {
                "apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": "demo-0-router",
            },
            **shared,
        },
        "demo-0-engine": {
            "scaleTargetRef": {
                "apiVersion": "grove.io/v1alpha1",
                "kind": "PodCliqueScalingGroup",
                "name": "demo-0-engine",
            },
            **shared,
        },
    }  # fmt: skip


def test_an_autoscaler_is_labelled_as_grove_does_it_and_is_the_sets() -> None:
    view = settled(made(spec(1)), AUTOSCALERS)
    metadata = view.things_of(AUTOSCALERS)["demo-0-engine"].body["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["labels"] == {
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": "demo",
        "app.kubernetes.io/name": "demo-0-engine",
        "app.kubernetes.io/component": "pcs-hpa",
    }
    owners = metadata["ownerReferences"]
    assert isinstance(owners, list)
    assert isinstance(owners[0], dict)
    assert (owners[0]["kind"], owners[0]["controller"]) == ("PodCliqueSet", True)


def test_no_autoscaler_is_made_for_what_is_not_there_yet() -> None:
    assert planned(replace(made(spec(1)), cliques={}, groups={}), AUTOSCALERS) == []


def test_an_autoscaler_goes_with_its_config() -> None:
    view = settled(made(spec(1)), AUTOSCALERS)
    plain = replace(view, spec=spec(1, scaleConfig=None))
    assert names_of(settled(plain, AUTOSCALERS), AUTOSCALERS) == {"demo-0-router"}


def test_without_a_minimum_the_templates_replicas_are_the_least() -> None:
    view = settled(made(spec(1, scaleConfig={"maxReplicas": 5})), AUTOSCALERS)
    body = view.things_of(AUTOSCALERS)["demo-0-engine"].body["spec"]
    assert isinstance(body, dict)
    assert body["minReplicas"] == 2


def test_metrics_that_were_taken_back_give_way_to_the_api_servers_default() -> None:
    view = settled(made(spec(1)), AUTOSCALERS)
    without = replace(view, spec=spec(1, scaleConfig={**SCALED, "metrics": []}))
    after = settled(without, AUTOSCALERS).things_of(AUTOSCALERS)["demo-0-engine"].body["spec"]
    assert isinstance(after, dict)
    assert after["metrics"] == [
        {
            "type": "Resource",
            "resource": {
                "name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 80},
            },
        }
    ]


@pytest.mark.parametrize(
    ("change", "is_free"),
    [
        ({"spec": {"maxReplicas": 99}}, False),
        ({"metadata": {"labels": {"app.kubernetes.io/component": "mine"}}}, False),
        ({"spec": {"behavior": {"scaleDown": {"selectPolicy": "Disabled"}}}}, True),
        ({"metadata": {"labels": {"team": "mine"}}}, True),
    ],
)
def test_a_hand_may_add_to_an_autoscaler_but_not_overrule_the_set(
    change: JsonObject,
    is_free: bool,  # noqa: FBT001
) -> None:
    view = settled(made(spec(1)), AUTOSCALERS)
    before = view.things_of(AUTOSCALERS)["demo-0-engine"]
    by_hand = merged(before.body, change)
    assert isinstance(by_hand, dict)
    there = {**view.things_of(AUTOSCALERS), "demo-0-engine": thing(by_hand)}
    after = settled(replace(view, things={AUTOSCALERS: there}), AUTOSCALERS)
    left = after.things_of(AUTOSCALERS)["demo-0-engine"].body
    assert left == (by_hand if is_free else before.body)

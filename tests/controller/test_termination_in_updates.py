"""While an update replaces what runs, nothing is made anew for lacking its minimum."""

from dataclasses import replace
from datetime import timedelta

import pytest

from api import names
from api.jsons import JsonObject
from api.objects import condition_of
from controller.workloads.expansion import expand
from controller.workloads.stepping import Change
from controller.workloads.termination import terminating
from tests.controller.test_statuses import heard
from tests.controller.test_updating import spec_of
from tests.support.fleets import Fleet
from tests.support.sets import clique

GROUP: JsonObject = {
    "name": "engine", "cliqueNames": ["leader", "worker"], "replicas": 3, "minAvailable": 2,
}  # fmt: skip
ALONE = (clique("router", 2),)
GROUPED = (clique("router", 1), clique("leader", 1), clique("worker", 1))


def begun(fleet: Fleet) -> bool:
    """Whether something is to be made anew."""
    found = terminating.steps(fleet.view, expand(fleet.view), fleet.now)
    return any(isinstance(step, Change) for step in found)


def breach(fleet: Fleet, name: str) -> str:
    said = condition_of(fleet.view.cliques[name].status.conditions, names.MIN_AVAILABLE_BREACHED)
    return said.status if said else ""


def failing(fleet: Fleet, looks: int = 20) -> None:
    """Go on for five hours in which new pods get a node, and crash."""
    for _ in range(looks):
        fleet.bound()
        fleet.crash(lambda pod: not pod.containers_ready)
        fleet.now += timedelta(hours=5) / looks
        fleet.look()


@pytest.mark.parametrize("how", ["going on", "paused"])
def test_a_clique_whose_new_pods_fail_is_not_made_anew(how: str) -> None:
    fleet = Fleet.running(spec_of(*ALONE))
    fleet.edit(spec_of(*ALONE, image="broken"))
    fleet.look()
    failing(fleet, 2)
    assert fleet.images() == {"demo-0-router": ["new", "old"]}
    fleet.edit(spec_of(*ALONE, image="broken", paused=how == "paused"))
    failing(fleet)
    assert breach(fleet, "demo-0-router") == "Unknown"
    assert not begun(fleet)


def test_a_clique_that_fails_where_a_paused_update_has_not_begun_is_made_anew() -> None:
    fleet = Fleet.running(spec_of(*ALONE))
    fleet.edit(spec_of(*ALONE, image="two", paused=True))
    fleet.look()
    fleet.crash()
    fleet.look()
    failing(fleet)
    assert breach(fleet, "demo-0-router") == "True"
    assert begun(fleet)


@pytest.mark.parametrize("how", ["going on", "paused"])
def test_copies_whose_new_pods_fail_are_not_made_anew_though_their_group_could_spare_them(
    how: str,
) -> None:
    fleet = Fleet.running(spec_of(*GROUPED, groups=(GROUP,)))
    fleet.edit(spec_of(*GROUPED, groups=(GROUP,), image="broken"))
    fleet.look()
    failing(fleet, 2)
    fleet.edit(spec_of(*GROUPED, groups=(GROUP,), image="broken", paused=how == "paused"))
    failing(fleet)
    assert "new" in fleet.images()["demo-0-engine-0-leader"]
    assert {breach(fleet, f"demo-0-engine-{i}-leader") for i in range(3)} == {"Unknown"}
    assert not begun(fleet)


def test_once_the_update_is_over_it_is_judged_again() -> None:
    fleet = Fleet.running(spec_of(*GROUPED, groups=(GROUP,)))
    fleet.edit(spec_of(*GROUPED, groups=(GROUP,), image="two"))
    fleet.settle()
    fleet.crash(lambda pod: "engine-2" in pod.metadata.name)
    fleet.look()
    failing(fleet)
    assert begun(fleet)


def test_a_clique_that_was_scaled_up_from_nothing_and_finds_no_room_takes_nobody_along() -> None:
    parts = (clique("router", 1), clique("helper", 2))
    fleet = Fleet.running(spec_of(*parts))
    fleet.scale("demo-0-helper", 0)
    fleet.settle()
    fleet.now += timedelta(hours=1)
    fleet.scale("demo-0-helper", 2)
    for _ in range(5):
        fleet.now += timedelta(hours=5)
        fleet.look()
    assert breach(fleet, "demo-0-helper") == "True"
    status = fleet.view.cliques["demo-0-helper"].status
    said = condition_of(status.conditions, names.CLIQUE_SCHEDULED)
    assert said is not None
    assert (said.status, said.reason) == ("False", names.NEVER_SCHEDULED)
    assert not begun(fleet)
    # Once it has had its minimum, it can lose it.
    fleet.settle()
    fleet.crash(lambda pod: "helper" in pod.metadata.name)
    fleet.look()
    failing(fleet)
    assert begun(fleet)


def test_a_clique_that_waits_for_room_from_its_beginning_is_never_made_anew() -> None:
    """Also where a status was written late."""
    fleet = Fleet(spec_of(clique("router", 1), clique("helper", 2)))
    fleet.silent = True
    fleet.look()
    fleet.ready(lambda pod: "router" in pod.metadata.name)
    fleet.now += timedelta(seconds=30)
    fleet.silent = False
    for _ in range(5):
        fleet.look()
        fleet.now += timedelta(hours=5)
    assert breach(fleet, "demo-0-helper") == "True"
    assert not begun(fleet)


def test_statuses_count_the_replicas_and_copies_that_there_are() -> None:
    fleet = Fleet.running(spec_of(*GROUPED, groups=(GROUP,), replicas=2))
    (group,) = {g.status.replicas for g in fleet.view.groups.values()}
    assert (fleet.view.status.replicas, group) == (2, 3)
    left = {k: c for k, c in fleet.view.cliques.items() if not k.startswith("demo-1-")}
    begun = replace(fleet.view, cliques=left)
    seen = heard(begun, fleet.now + timedelta(hours=1))
    assert seen.status.replicas == 2, "its group is there"
    assert {name: g.status.replicas for name, g in seen.groups.items()} == {
        "demo-0-engine": 3, "demo-1-engine": 0,
    }  # fmt: skip
    groups = {"demo-0-engine": fleet.view.groups["demo-0-engine"]}
    seen = heard(replace(begun, groups=groups), fleet.now + timedelta(hours=1))
    assert seen.status.replicas == 1

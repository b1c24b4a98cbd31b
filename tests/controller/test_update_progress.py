"""What statuses say of an update: how far it is, whose turn it is, and whether it gets on."""

from datetime import datetime, timedelta

import pytest

from api.jsons import JsonObject
from api.objects import timestamp
from api.podcliqueset import SetUpdate
from controller.workloads.updates import updating
from tests.controller.test_updating import GROUP, spec_of
from tests.support.fleets import Fleet, of_clique
from tests.support.sets import clique

PARTS = (clique("router", 2), clique("leader", 1), clique("worker", 1))


def progress_of(fleet: Fleet) -> SetUpdate:
    progress = fleet.view.status.update_progress
    assert progress is not None
    return progress


def counts(fleet: Fleet) -> tuple[int, int, int, int]:
    progress = progress_of(fleet)
    return (
        progress.updated_pod_cliques_count,
        progress.total_pod_cliques_count,
        progress.updated_pod_clique_scaling_groups_count,
        progress.total_pod_clique_scaling_groups_count,
    )


def said(fleet: Fleet) -> tuple[str, str] | None:
    words = fleet.rollout().progressing
    return words[:2] if words else None


def update_begun(*, replicas: int = 2) -> Fleet:
    """A set whose update has begun."""
    fleet = Fleet.running(spec_of(*PARTS, replicas=replicas, groups=(GROUP,)))
    fleet.edit(spec_of(*PARTS, replicas=replicas, groups=(GROUP,), image="two"))
    return fleet


def on(fleet: Fleet, looks: int = 1) -> None:
    """Go on until statuses are written, and pods are ready."""
    for _ in range(looks):
        fleet.look()
        fleet.now += timedelta(seconds=3)
        fleet.look()
        fleet.ready()


def test_before_any_update_there_is_nothing_to_say() -> None:
    fleet = Fleet.running(spec_of(*PARTS, groups=(GROUP,)))
    assert fleet.view.status.update_progress is None
    assert fleet.rollout().progressing is None
    assert all(c.status.update_progress is None for c in fleet.view.cliques.values())


def test_the_replica_whose_turn_it_is_is_named_with_since_when() -> None:
    fleet = update_begun()
    began = timestamp(fleet.now)
    fleet.look()
    fleet.now += timedelta(seconds=9)
    fleet.look()
    turns = progress_of(fleet).currently_updating
    assert [turn.replica_index for turn in turns] == [0]
    started = progress_of(fleet).update_started_at
    assert started == turns[0].update_started_at
    assert started is not None
    assert started >= began
    assert counts(fleet) == (0, 2, 0, 2)


def test_counts_grow_until_the_end_is_told() -> None:
    fleet = update_begun()
    on(fleet, 3)
    assert counts(fleet) == (1, 2, 1, 2)
    fleet.settle()
    assert counts(fleet) == (2, 2, 2, 2)
    assert progress_of(fleet).update_ended_at
    assert progress_of(fleet).currently_updating == []
    assert fleet.view.status.updated_replicas == 2


def test_cliques_and_groups_say_what_is_replaced_now_and_what_was() -> None:
    fleet = update_begun(replicas=1)
    on(fleet)
    fleet.look()
    fleet.now += timedelta(seconds=3)
    fleet.look()
    router = fleet.view.cliques["demo-0-router"].status.update_progress
    assert router is not None
    assert router.pod_template_hash == fleet.rollout().newest["demo-0-router"]
    assert router.ready_pods_selected_to_update is not None
    pods = {pod.metadata.name: pod.containers_ready for pod in fleet.pods("demo-0-router")}
    assert pods[router.ready_pods_selected_to_update.current] is False
    assert [pods[name] for name in router.ready_pods_selected_to_update.completed] == [True]
    engine = fleet.view.groups["demo-0-engine"].status.update_progress
    assert engine is not None
    assert (engine.updated_pod_cliques_count, engine.total_pod_cliques_count) == (4, 6)
    assert engine.ready_replica_indices_selected_to_update is not None
    assert engine.ready_replica_indices_selected_to_update.current == 1
    assert engine.ready_replica_indices_selected_to_update.completed == [0]


def test_at_its_end_every_clique_and_group_says_so_and_what_it_follows() -> None:
    fleet = update_begun()
    fleet.settle()
    generation = fleet.rollout().generation_hash
    for group in fleet.view.groups.values():
        assert group.status.current_pod_clique_set_generation_hash == generation
        assert group.status.update_progress is not None
        assert group.status.update_progress.update_ended_at
    for name, there in fleet.view.cliques.items():
        assert there.status.current_pod_clique_set_generation_hash == generation
        assert there.status.updated_replicas == there.spec.replicas
        if name.endswith("router"):
            assert there.status.update_progress is not None
            assert there.status.update_progress.update_ended_at


def test_a_second_change_begins_the_bookkeeping_anew() -> None:
    fleet = update_begun()
    on(fleet, 3)
    first = progress_of(fleet).update_started_at
    fleet.now += timedelta(minutes=1)
    fleet.edit(spec_of(*PARTS, replicas=2, groups=(GROUP,), image="three"))
    on(fleet)
    assert progress_of(fleet).update_started_at != first
    assert counts(fleet)[0] == 0


def deadline(fleet: Fleet) -> datetime:
    """When the fleet is looked at again, though nothing changes."""
    again = fleet.rollout().again
    assert again is not None
    return again


def stuck(seconds: int) -> Fleet:
    rules: JsonObject = {"progressDeadlineSeconds": seconds}
    fleet = Fleet.running(spec_of(clique("decode", 3), rollingUpdate=rules))
    fleet.edit(spec_of(clique("decode", 3), image="broken", rollingUpdate=rules))
    fleet.look()
    fleet.now += timedelta(seconds=3)
    fleet.look()
    return fleet


def test_an_update_that_gets_on_no_more_is_told_at_its_deadline_and_goes_on_later() -> None:
    fleet = stuck(60)
    assert said(fleet) == ("True", "UpdateInProgress")
    due = deadline(fleet)
    fleet.now = due - timedelta(seconds=1)
    assert said(fleet) == ("True", "UpdateInProgress")
    fleet.now = due
    words = fleet.rollout().progressing
    assert words is not None
    assert words[:2] == ("False", "ProgressDeadlineExceeded")
    assert "no progress for more than 60 s" in words[2]
    fleet.look()
    assert fleet.images()["demo-0-decode"] == ["new", "old", "old"]
    fleet.settle()
    assert fleet.images()["demo-0-decode"] == ["new"] * 3
    assert said(fleet) == ("True", "UpdateComplete")


def test_each_pod_that_gets_ready_is_progress() -> None:
    fleet = stuck(60)
    due = deadline(fleet)
    fleet.now += timedelta(seconds=50)
    fleet.ready(of_clique("demo-0-decode"))
    fleet.look()
    assert deadline(fleet) == fleet.now + timedelta(seconds=60) > due


def test_without_a_deadline_no_update_is_ever_late() -> None:
    fleet = update_begun()
    fleet.look()
    fleet.now += timedelta(days=30)
    assert said(fleet) == ("True", "UpdateInProgress")
    assert fleet.rollout().again is None


def test_time_in_which_an_update_is_paused_does_not_count() -> None:
    fleet = stuck(60)
    rules: JsonObject = {"progressDeadlineSeconds": 60}
    fleet.edit(spec_of(clique("decode", 3), image="broken", rollingUpdate=rules, paused=True))
    fleet.look()
    fleet.now += timedelta(seconds=600)
    fleet.look()
    assert said(fleet) == ("Unknown", "UpdatePaused")
    fleet.edit(spec_of(clique("decode", 3), image="broken", rollingUpdate=rules))
    assert said(fleet) == ("True", "UpdateInProgress")
    assert deadline(fleet) == fleet.now + timedelta(seconds=60)


def test_nobody_waits_for_an_update_by_hand() -> None:
    fleet = Fleet.running(spec_of(clique("decode", 3), type="OnDelete"))
    fleet.edit(spec_of(clique("decode", 3), image="two", type="OnDelete"))
    fleet.settle()
    assert fleet.rollout().progressing is None
    assert progress_of(fleet).update_ended_at == progress_of(fleet).update_started_at


@pytest.mark.parametrize("kind", ["OnDelete", "RollingRecreate"])
def test_an_update_of_a_set_that_nothing_was_said_of_yet_is_told(kind: str) -> None:
    """People may change a set before its first status, which waits while others are being made."""
    fleet = Fleet(spec_of(clique("decode", 3), type=kind), silent=True)
    fleet.settle()
    fleet.edit(spec_of(clique("decode", 3), image="two", type=kind))
    assert updating.is_to_be_told(fleet.view)
    fleet.silent = False
    fleet.step()
    assert progress_of(fleet).update_started_at
    assert not updating.is_to_be_told(fleet.view)
    fleet.settle()
    assert progress_of(fleet).update_ended_at


def test_what_changes_no_template_need_not_be_told_at_once() -> None:
    early = Fleet(spec_of(clique("decode", 3)), silent=True)
    early.settle()
    early.edit(spec_of(clique("decode", 3), replicas=2))
    assert not updating.is_to_be_told(early.view)
    fleet = Fleet.running(spec_of(clique("decode", 3)))
    assert not updating.is_to_be_told(fleet.view)
    fleet.edit(spec_of(clique("decode", 3), replicas=2))
    assert not updating.is_to_be_told(fleet.view)
    fleet.edit(spec_of(clique("decode", 3), replicas=2, image="two"))
    assert updating.is_to_be_told(fleet.view)

"""A change of the templates reaches pods in turn, and never too many at once."""

import pytest

from api.jsons import Json, JsonObject
from api.podcliqueset import PodCliqueSetSpec
from tests.support.fleets import Fleet, of_clique
from tests.support.sets import clique

GROUP: JsonObject = {
    "name": "engine", "cliqueNames": ["leader", "worker"], "replicas": 3, "minAvailable": 1,
}  # fmt: skip


def spec_of(
    *cliques: JsonObject,
    image: str = "one",
    replicas: int = 1,
    groups: tuple[JsonObject, ...] = (),
    **strategy: Json,
) -> PodCliqueSetSpec:
    """A set whose pods run an image, updated by this strategy."""
    written: list[Json] = []
    for each in cliques:
        spec = each["spec"]
        assert isinstance(spec, dict)
        pod_spec: JsonObject = {"containers": [{"name": "main", "image": image}]}
        written.append({**each, "spec": {**spec, "podSpec": pod_spec}})
    body: JsonObject = {
        "replicas": replicas,
        "template": {"cliques": written, "podCliqueScalingGroups": [*groups]},
    }
    if strategy:
        body["updateStrategy"] = strategy
    return PodCliqueSetSpec.model_validate(body)


def budget(**written: Json) -> JsonObject:
    return {**written}


def test_one_pod_at_a_time_and_the_next_only_when_it_is_ready() -> None:
    fleet = Fleet.running(spec_of(clique("decode", 3)))
    fleet.edit(spec_of(clique("decode", 3), image="two"))
    first = fleet.look()
    assert len(first) == 1
    assert fleet.images() == {"demo-0-decode": ["new", "old", "old"]}
    assert fleet.look() == []
    fleet.ready()
    assert len(fleet.look()) == 1
    fleet.settle()
    assert fleet.images() == {"demo-0-decode": ["new"] * 3}
    assert len(fleet.removed) == 3


def test_a_pod_that_lingers_counts_until_its_successor_is_ready() -> None:
    fleet = Fleet.running(spec_of(clique("decode", 3)))
    fleet.lingering = True
    fleet.edit(spec_of(clique("decode", 3), image="two"))
    assert len(fleet.look()) == 1
    assert fleet.look() == []
    fleet.gone()
    assert fleet.look() == []
    fleet.ready()
    assert len(fleet.look()) == 1


def test_replicas_take_turns_from_the_first() -> None:
    fleet = Fleet.running(spec_of(clique("decode", 2), replicas=3))
    fleet.edit(spec_of(clique("decode", 2), image="two", replicas=3))
    order: list[str] = []
    for _ in range(12):
        order += [name.rsplit("-", 1)[0] for name in fleet.look()]
        fleet.ready()
    assert order == [f"demo-{i}-decode" for i in (0, 0, 1, 1, 2, 2)]


def test_replicas_without_a_node_come_first_then_those_that_lack_their_minimum() -> None:
    fleet = Fleet.running(spec_of(clique("decode", 1), replicas=2))
    fleet.edit(spec_of(clique("decode", 1), replicas=3))
    fleet.look()  # the third never gets a node
    fleet.unready(of_clique("demo-1-decode"))
    fleet.edit(spec_of(clique("decode", 1), image="two", replicas=3))
    order: list[str] = []
    for _ in range(8):
        order += [name.rsplit("-", 1)[0] for name in fleet.look()]
        fleet.ready()
    assert order == ["demo-2-decode", "demo-1-decode", "demo-0-decode"]


def test_the_next_replica_waits_until_the_last_has_its_minimum_again() -> None:
    fleet = Fleet.running(spec_of(clique("decode", 1), replicas=2))
    fleet.edit(spec_of(clique("decode", 1), image="two", replicas=2))
    assert len(fleet.look()) == 1
    for _ in range(3):
        assert fleet.look() == []
    fleet.ready()
    assert len(fleet.look()) == 1


def test_the_next_replica_waits_also_when_no_status_says_whose_turn_it_is() -> None:
    fleet = Fleet.running(spec_of(clique("decode", 1), replicas=3))
    fleet.silent = True
    fleet.edit(spec_of(clique("decode", 1), image="two", replicas=3))
    assert len(fleet.look()) == 1
    assert fleet.look() == []  # it has no node, but had one
    fleet.unready(of_clique("demo-0-decode"))
    assert fleet.look() == []  # it has a node, and is starting
    fleet.ready()
    assert len(fleet.look()) == 1


def test_a_fleet_that_starts_slowly_is_not_deleted() -> None:
    fleet = Fleet(spec_of(clique("decode", 8, 4)))
    fleet.look()
    fleet.bound()
    fleet.edit(spec_of(clique("decode", 8, 4), image="two"))
    assert len(fleet.look()) == 1
    assert fleet.look() == []


def test_pods_that_wait_behind_their_gate_are_replaced_at_once_and_hold_up_nobody() -> None:
    parts = (clique("router", 2), clique("leader", 1), clique("worker", 2))
    fleet = Fleet.running(spec_of(*parts, groups=(GROUP,)))
    fleet.edit(spec_of(*parts, groups=(GROUP,), replicas=2))
    fleet.look()  # the second replica finds no room
    fleet.edit(spec_of(*parts, groups=(GROUP,), replicas=2, image="two"))
    gone = fleet.look()
    waiting = [name for name in gone if name.startswith("demo-1-")]
    assert len(waiting) == 11
    # One router and one copy of the other replica, whose turn it is then.
    assert len(gone) - len(waiting) == 4
    fleet.ready(lambda pod: pod.metadata.name.startswith("demo-0-"))
    assert fleet.look()


def test_pods_that_are_broken_are_replaced_before_those_that_work() -> None:
    fleet = Fleet.running(spec_of(clique("decode", 4)))
    broken = fleet.pods()[2].metadata.name
    fleet.unready(lambda pod: pod.metadata.name == broken)
    fleet.edit(spec_of(clique("decode", 4), image="two"))
    assert fleet.look() == [broken]


def test_a_template_that_does_not_work_stops_after_one_pod_and_the_next_one_mends_it() -> None:
    fleet = Fleet.running(spec_of(clique("decode", 4), replicas=2))
    fleet.edit(spec_of(clique("decode", 4), image="broken", replicas=2))
    assert len(fleet.look()) == 1
    fleet.edit(spec_of(clique("decode", 4), image="two", replicas=2))
    assert len(fleet.look()) == 1
    fleet.settle()
    assert {image for found in fleet.images().values() for image in found} == {"new"}
    # Each pod once, and the one of the broken template once more.
    assert len(fleet.removed) == 9


def test_copies_of_a_group_are_replaced_as_wholes_one_at_a_time() -> None:
    parts = (clique("leader", 1), clique("worker", 2))
    fleet = Fleet.running(spec_of(*parts, groups=(GROUP,)))
    fleet.edit(spec_of(*parts, image="two", groups=(GROUP,)))
    kept = {name: each.metadata.uid for name, each in fleet.view.cliques.items()}
    gone = fleet.look()
    assert sorted(name.rsplit("-", 1)[0] for name in gone) == [
        "demo-0-engine-0-leader", "demo-0-engine-0-worker", "demo-0-engine-0-worker",
    ]  # fmt: skip
    assert fleet.look() == []
    fleet.ready(of_clique("demo-0-engine-0-leader"))
    assert fleet.look() == []  # the workers are not ready yet
    fleet.ready()
    assert {name.rsplit("-", 1)[0][:15] for name in fleet.look()} == {"demo-0-engine-1"}
    fleet.settle()
    assert len(fleet.removed) == 9
    assert {name: each.metadata.uid for name, each in fleet.view.cliques.items()} == kept


def test_a_copy_is_replaced_only_when_none_of_it_can_come_back_as_it_was() -> None:
    parts = (clique("leader", 1), clique("worker", 1))
    fleet = Fleet.running(spec_of(*parts, groups=(GROUP,)))
    fleet.edit(spec_of(*parts, image="two", groups=(GROUP,)))
    first = fleet.rollout()
    assert {change.name for change in first.changes} == {
        "demo-0-engine-0-leader", "demo-0-engine-0-worker",
    }  # fmt: skip
    assert first.removals == ()
    fleet.carry(first.changes[0])  # and the other is refused
    second = fleet.rollout()
    assert second.changes == first.changes[1:]
    assert second.removals == ()


def test_cliques_and_groups_of_a_replica_are_updated_side_by_side() -> None:
    parts = (clique("router", 2), clique("leader", 1), clique("worker", 1))
    fleet = Fleet.running(spec_of(*parts, groups=(GROUP,)))
    fleet.edit(spec_of(*parts, image="two", groups=(GROUP,)))
    assert sorted(name.rsplit("-", 1)[0] for name in fleet.look()) == [
        "demo-0-engine-0-leader", "demo-0-engine-0-worker", "demo-0-router",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "at_once"),
    [(2, 2), ("50%", 4), ("12%", 1), ("100%", 8), (20, 8)],
)
def test_a_budget_lets_so_many_pods_go_at_once(written: Json, at_once: int) -> None:
    rules = budget(maxUnavailable=written)
    fleet = Fleet.running(spec_of(clique("decode", 8), rollingUpdate=rules))
    fleet.edit(spec_of(clique("decode", 8), image="two", rollingUpdate=rules))
    assert len(fleet.look()) == at_once


def test_a_budget_counts_copies_of_groups() -> None:
    parts = (clique("leader", 1), clique("worker", 1))
    rules = budget(maxUnavailable="67%")
    fleet = Fleet.running(spec_of(*parts, groups=(GROUP,), rollingUpdate=rules))
    fleet.edit(spec_of(*parts, image="two", groups=(GROUP,), rollingUpdate=rules))
    assert len(fleet.look()) == 4


def test_old_pods_that_are_not_ready_count_against_the_budget() -> None:
    rules = budget(maxUnavailable=3)
    fleet = Fleet.running(spec_of(clique("decode", 6), rollingUpdate=rules))
    broken = {pod.metadata.name for pod in fleet.pods()[:2]}
    fleet.unready(lambda pod: pod.metadata.name in broken)
    fleet.edit(spec_of(clique("decode", 6), image="two", rollingUpdate=rules))
    gone = fleet.look()
    assert len(gone) == 3
    assert broken < set(gone)


def test_surplus_pods_are_ready_before_old_ones_go() -> None:
    rules = budget(maxSurge=1)
    fleet = Fleet.running(spec_of(clique("decode", 3), rollingUpdate=rules))
    fleet.edit(spec_of(clique("decode", 3), image="two", rollingUpdate=rules))
    for _ in range(20):
        fleet.look()
        assert sum(pod.containers_ready for pod in fleet.pods()) >= 3
        assert len(fleet.pods()) <= 4
        fleet.ready()
    assert fleet.images() == {"demo-0-decode": ["new"] * 3}
    # None was made only to be thrown away.
    assert len(fleet.removed) == 3


def test_a_paused_update_does_nothing_and_goes_on_where_it_was() -> None:
    fleet = Fleet.running(spec_of(clique("decode", 3)))
    fleet.edit(spec_of(clique("decode", 3), image="two", paused=True))
    assert fleet.look() == []
    assert fleet.rollout().progressing == (
        "Unknown", "UpdatePaused", "the update is paused; 0 of 1 replicas are updated",
    )  # fmt: skip
    fleet.edit(spec_of(clique("decode", 3), image="two"))
    assert len(fleet.look()) == 1
    fleet.ready()
    fleet.edit(spec_of(clique("decode", 3), image="two", paused=True))
    assert fleet.look() == []
    assert fleet.images() == {"demo-0-decode": ["new", "old", "old"]}


def test_a_podclique_without_pods_says_that_it_follows_only_what_it_was_given() -> None:
    def followed() -> str:
        there = fleet.view.cliques["demo-0-decode"].status
        return there.current_pod_clique_set_generation_hash

    fleet = Fleet.running(spec_of(clique("decode", 2)))
    before = followed()
    fleet.scale("demo-0-decode", 0)
    fleet.edit(spec_of(clique("decode", 2), image="two", paused=True))
    fleet.settle()
    assert fleet.view.status.current_generation_hash != before
    assert followed() == before
    fleet.edit(spec_of(clique("decode", 2), image="two"))
    fleet.settle()
    assert followed() == fleet.view.status.current_generation_hash


def test_on_delete_changes_templates_everywhere_and_deletes_nothing() -> None:
    parts = (clique("router", 2), clique("leader", 1), clique("worker", 1))
    fleet = Fleet.running(spec_of(*parts, groups=(GROUP,), type="OnDelete"))
    fleet.edit(spec_of(*parts, groups=(GROUP,), image="two", type="OnDelete"))
    assert fleet.look() == []
    assert {image for found in fleet.images().values() for image in found} == {"old"}
    progress = fleet.view.status.update_progress
    assert progress is not None
    assert progress.update_ended_at == progress.update_started_at is not None
    fleet.change(lambda pod: None if of_clique("demo-0-router")(pod) else pod)
    fleet.look()
    assert fleet.images()["demo-0-router"] == ["new", "new"]


def test_another_strategy_alone_begins_no_update() -> None:
    fleet = Fleet.running(spec_of(clique("decode", 3), type="OnDelete"))
    fleet.edit(spec_of(clique("decode", 3), image="two", type="OnDelete"))
    fleet.look()
    fleet.edit(spec_of(clique("decode", 3), image="two"))
    assert fleet.look() == []
    fleet.edit(spec_of(clique("decode", 3), image="three"))
    assert len(fleet.look()) == 1


def test_what_a_pause_kept_back_is_rolled_also_if_whoever_began_it_died_before_saying_so() -> None:
    fleet = Fleet.running(spec_of(clique("decode", 3), type="OnDelete"))
    fleet.edit(spec_of(clique("decode", 3), image="two", type="OnDelete", paused=True))
    assert fleet.look() == []
    fleet.edit(spec_of(clique("decode", 3), image="two"))
    fleet.silent = True
    fleet.step()
    fleet.silent = False
    fleet.settle()
    assert fleet.images() == {"demo-0-decode": ["new"] * 3}


def test_pods_of_a_scale_out_during_an_update_are_new_and_the_rest_follows() -> None:
    fleet = Fleet.running(spec_of(clique("decode", 3)))
    fleet.edit(spec_of(clique("decode", 3), image="two"))
    fleet.look()
    fleet.scale("demo-0-decode", 5)
    assert fleet.look() == []
    assert fleet.images() == {"demo-0-decode": ["new", "new", "new", "old", "old"]}
    fleet.settle()
    assert fleet.images() == {"demo-0-decode": ["new"] * 5}
    assert len(fleet.removed) == 3


def test_scale_in_during_an_update_takes_old_pods_first() -> None:
    fleet = Fleet.running(spec_of(clique("decode", 4, 1)))
    fleet.edit(spec_of(clique("decode", 4, 1), image="two"))
    fleet.look()
    fleet.ready()
    fleet.scale("demo-0-decode", 1)
    fleet.look()
    assert fleet.images() == {"demo-0-decode": ["new"]}
    fleet.settle()
    assert fleet.view.status.update_progress
    assert fleet.view.status.update_progress.update_ended_at


def test_a_replica_made_during_an_update_is_new_and_holds_up_nobody_before_it_runs() -> None:
    fleet = Fleet.running(spec_of(clique("decode", 1), replicas=2))
    fleet.edit(spec_of(clique("decode", 1), image="two", replicas=3))
    assert len(fleet.look()) == 1
    fleet.ready(of_clique("demo-0-decode"))
    assert [name.rsplit("-", 1)[0] for name in fleet.look()] == ["demo-1-decode"]


def test_a_change_that_is_taken_back_leaves_untouched_pods_alone() -> None:
    fleet = Fleet.running(spec_of(clique("decode", 4)))
    fleet.edit(spec_of(clique("decode", 4), image="two"))
    assert len(fleet.look()) == 1
    fleet.edit(spec_of(clique("decode", 4)))
    fleet.settle()
    assert fleet.images() == {"demo-0-decode": ["new"] * 4}
    assert len(fleet.removed) == 2


def test_a_change_before_any_status_was_written_is_not_forgotten() -> None:
    fleet = Fleet(spec_of(clique("decode", 3)))
    fleet.silent = True
    fleet.look()
    fleet.ready()
    fleet.edit(spec_of(clique("decode", 3), image="two"))
    assert len(fleet.look()) == 1
    fleet.silent = False
    fleet.settle()
    assert fleet.images() == {"demo-0-decode": ["new"] * 3}


def test_a_change_taken_back_before_any_status_told_of_it_leaves_no_pod_of_it() -> None:
    fleet = Fleet.running(spec_of(clique("decode", 3)))
    fleet.silent = True
    fleet.edit(spec_of(clique("decode", 3), image="two"))
    assert len(fleet.look()) == 1
    fleet.edit(spec_of(clique("decode", 3)))
    fleet.look()
    fleet.silent = False
    fleet.settle()
    assert fleet.images() == {"demo-0-decode": ["new"] * 3}


def test_labels_and_annotations_of_an_older_template_do_not_stay() -> None:
    before = spec_of({**clique("decode", 1), "annotations": {"a": "1"}})
    fleet = Fleet.running(before)
    fleet.edit(spec_of({**clique("decode", 1), "labels": {"tier": "b"}}))
    fleet.settle()
    labels, annotations = fleet.pods()[0].metadata.labels, fleet.pods()[0].metadata.annotations
    assert labels["tier"] == "b"
    assert "role" not in labels
    assert annotations == {}

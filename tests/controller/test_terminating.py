"""What lacks its minimum for too long is made anew: the right pods, once, and not at once again."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from msgspec import structs

from api import names
from api.models import Condition
from api.objects import timestamp
from controller.voicing import Tell
from controller.workloads.expansion import expand
from controller.workloads.stepping import Again, Change, Remove, Step
from controller.workloads.termination import terminating
from controller.workloads.views import Choices, SetView
from kube.resources import PODGANGS, PODS
from tests.support.carrying import carried, made_at, observed
from tests.support.setviews import LONG_AGO, NOW, clique, made, set_spec, with_pods

DELAY = timedelta(hours=4)
LOST = NOW  # when a minimum is lost
DUE = LOST + DELAY

ALONE = set_spec(clique("prefill", 2), clique("decode", 2), replicas=2)
GROUPED = set_spec(
    clique("router", 1),
    clique("leader", 1),
    clique("worker", 2),
    groups=[
        {"name": "engine", "cliqueNames": ["leader", "worker"], "replicas": 3, "minAvailable": 2}
    ],
)


def whole(spec_of: object = ALONE) -> SetView:
    spec = ALONE if spec_of is ALONE else GROUPED
    return observed(made_at(made(spec), LONG_AGO), LONG_AGO + timedelta(minutes=1))


def losing(view: SetView, clique_name: str, *states: str, at: datetime = LOST) -> SetView:
    """The set after pods of a clique have come into these states and it was said."""
    return observed(made_at(with_pods(view, clique_name, *states), LONG_AGO), at)


def steps(view: SetView, now: datetime) -> list[Step]:
    return list(terminating.steps(view, expand(view), now))


def removed(found: Iterable[Step], kind: object = PODS) -> set[str]:
    """Names of what goes; of pods, those of their cliques."""
    names_of = (s.name for s in found if isinstance(s, Remove) and s.resource is kind)
    return {name.rpartition("-")[0] if kind is PODS else name for name in names_of}


def begun(view: SetView, now: datetime) -> SetView:
    """The set after a termination was noted, which must be what is due."""
    found = steps(view, now)
    assert [type(step) for step in found] == [Change], found
    return carried(view, found)


def back(view: SetView, now: datetime, state: str = "ready") -> SetView:
    """The set with everything made anew."""
    fresh = made_at(made(view.spec, state), now)
    gangs = {
        name: replace(gang, metadata=structs.replace(gang.metadata, creation_timestamp=now))
        for name, gang in fresh.gangs.items()
    }
    return observed(replace(view, pods=fresh.pods, gangs=gangs), now)


def test_a_clique_that_stands_alone_takes_its_whole_replica_along_and_no_other() -> None:
    view = begun(losing(whole(), "demo-1-decode", "ready"), DUE)
    found = steps(view, DUE)
    assert removed(found) == {"demo-1-prefill", "demo-1-decode"}
    assert removed(found, PODGANGS) == {"demo-1"}
    assert sum(isinstance(step, Remove) for step in found) == 4


def test_while_gangs_are_switched_off_what_runs_in_part_is_left_alone() -> None:
    view = losing(whole(), "demo-1-decode", "ready")
    assert steps(replace(view, choices=Choices(gates=False)), DUE) == []
    assert steps(view, DUE) != []


def test_a_copy_that_its_group_can_spare_goes_alone() -> None:
    view = losing(whole(GROUPED), "demo-0-engine-2-worker", "ready", "crashed")
    found = steps(begun(view, DUE), DUE)
    assert removed(found) == {"demo-0-engine-2-leader", "demo-0-engine-2-worker"}
    assert removed(found, PODGANGS) == {"demo-0-engine-0"}


def test_a_copy_within_the_base_gang_goes_without_that_gang() -> None:
    view = losing(whole(GROUPED), "demo-0-engine-0-leader", "crashed")
    found = steps(begun(view, DUE), DUE)
    assert removed(found) == {"demo-0-engine-0-leader", "demo-0-engine-0-worker"}
    assert removed(found, PODGANGS) == set()


def test_a_group_below_its_own_minimum_takes_the_replica_along() -> None:
    view = losing(whole(GROUPED), "demo-0-engine-0-leader", "crashed")
    later = LOST + timedelta(hours=1)
    view = losing(view, "demo-0-engine-2-worker", "ready", at=later)
    assert steps(view, DUE) == [Again(later + DELAY)]
    found = steps(begun(view, later + DELAY), later + DELAY)
    assert removed(found, PODGANGS) == {"demo-0", "demo-0-engine-0"}
    assert len(removed(found)) == 7


def test_nothing_goes_before_the_delay_is_over() -> None:
    view = losing(whole(), "demo-0-decode", "ready")
    assert steps(view, DUE - timedelta(seconds=1)) == [Again(DUE)]


def test_the_delay_is_the_authors() -> None:
    view = losing(whole(), "demo-0-decode", "ready")
    template = view.spec.template.model_copy(update={"termination_delay": "90s"})
    view = replace(view, spec=view.spec.model_copy(update={"template": template}))
    assert steps(view, LOST) == [Again(LOST + timedelta(seconds=90))]


def test_who_reads_it_on_the_set_learns_what_was_made_anew_and_why() -> None:
    of_set = steps(begun(losing(whole(), "demo-0-decode", "ready"), DUE), DUE)
    of_group = begun(losing(whole(GROUPED), "demo-0-engine-2-leader", "crashed"), DUE)
    told = [s for s in (*of_set, *steps(of_group, DUE)) if isinstance(s, Tell)]
    assert [(each.reason, each.name) for each in told] == [
        ("PodCliqueSetReplicaDeleteSuccessful", "demo"),
        ("PodCliqueScalingGroupReplicaDeleteSuccessful", "demo"),
    ]
    assert told[0].note.startswith("replica 0 has lacked its minimum since 2026-03-04T05:06:07Z")
    assert told[1].note.startswith("copy 2 of demo-0-engine has lacked")


def test_what_never_had_its_minimum_is_not_made_anew() -> None:
    waiting = observed(made_at(made(ALONE, "gated"), LONG_AGO), LONG_AGO)
    assert steps(waiting, LONG_AGO + 9 * DELAY) == []
    # One clique of a gang waits for the others to be up, and they never are.
    waiting = observed(made_at(with_pods(waiting, "demo-0-prefill", "up", "up"), LONG_AGO), LOST)
    assert steps(waiting, 9 * DELAY + LOST) == []


def test_where_nothing_was_lifted_there_is_nothing_to_make_anew() -> None:
    view = losing(whole(), "demo-0-decode", "gated", "gated")
    view = losing(view, "demo-0-prefill", "gated", "gated")
    assert steps(view, DUE) == []


def test_while_parts_are_missing_nothing_is_made_anew() -> None:
    view = losing(whole(), "demo-0-decode", "ready")
    cliques = {name: c for name, c in view.cliques.items() if name != "demo-0-prefill"}
    assert steps(replace(view, cliques=cliques), DUE) == []


def test_an_update_suspends_it() -> None:
    view = losing(whole(), "demo-0-decode", "ready")
    there = view.cliques["demo-0-decode"]
    unknown = Condition(
        type=names.MIN_AVAILABLE_BREACHED, status="Unknown", reason=names.REASON_UPDATING,
        last_transition_time=timestamp(LOST),
    )  # fmt: skip
    status = there.status.model_copy(update={"conditions": [unknown, there.status.conditions[1]]})
    cliques = {**view.cliques, "demo-0-decode": replace(there, status=status)}
    assert steps(replace(view, cliques=cliques), DUE) == []


def test_pods_that_came_back_while_nobody_looked_count_more_than_an_old_condition() -> None:
    view = losing(whole(), "demo-0-decode", "ready")
    assert steps(made_at(with_pods(view, "demo-0-decode", "ready", "ready"), NOW), DUE) == []


@pytest.mark.parametrize("state", ["gated", "crashed"])
def test_it_happens_once_in_an_episode(state: str) -> None:
    """Whether its pods find no room or fail: what has not been well since is left alone."""
    view = begun(losing(whole(), "demo-0-decode", "crashed", "crashed"), DUE)
    view = carried(view, steps(view, DUE))
    view = back(view, DUE + timedelta(seconds=5), state)
    assert removed(steps(view, DUE + timedelta(days=30))) == set()


def test_a_copy_that_went_with_its_replica_does_not_go_alone_afterwards() -> None:
    view = whole(GROUPED)
    for name in ("demo-0-engine-0-leader", "demo-0-engine-1-leader"):
        view = losing(view, name, "crashed")
    due = DUE + timedelta(seconds=5)  # statuses are a moment behind
    view = begun(view, due)
    view = carried(view, steps(view, due))
    cured = back(view, DUE + timedelta(minutes=1))
    # The group has its minimum again; copy 1 has lacked a pod all the time.
    view = replace(cured, cliques={**cured.cliques, "demo-0-engine-1-leader":
                                   view.cliques["demo-0-engine-1-leader"]})  # fmt: skip
    view = replace(view, pods={**view.pods, "demo-0-engine-1-leader": ()})
    assert removed(steps(view, DUE + 9 * DELAY)) == set()


def test_each_time_in_a_row_it_waits_twice_as_long_up_to_eight_delays() -> None:
    view, lost = whole(), LOST
    for times in (1, 2, 4, 8, 8, 8):
        view = losing(view, "demo-0-decode", "ready", at=lost)
        due = lost + times * DELAY
        assert steps(view, due - timedelta(seconds=1)) == [Again(due)]
        view = begun(view, due)
        assert removed(steps(view, due)), "its pods go"
        view = carried(view, steps(view, due))
        # Back soon after, and gone again soon after that.
        view = back(view, due + timedelta(minutes=1))
        lost = due + timedelta(minutes=2)


def test_after_a_delay_of_health_what_was_is_forgotten() -> None:
    view = begun(losing(whole(), "demo-0-decode", "ready"), DUE)
    well = DUE + timedelta(minutes=1)
    view = back(carried(view, steps(view, DUE)), well)
    (wish,) = steps(view, well)
    assert isinstance(wish, Again)
    assert well + DELAY <= wish.at <= well + DELAY + timedelta(seconds=5)
    view = carried(view, steps(view, wish.at))
    assert steps(view, wish.at) == []
    lost = wish.at + timedelta(minutes=1)
    assert steps(losing(view, "demo-0-decode", "ready", at=lost), lost) == [Again(lost + DELAY)]


def test_who_died_after_any_write_is_followed_by_one_that_finishes_the_same_work() -> None:
    view = begun(losing(whole(), "demo-0-decode", "ready"), DUE)
    todo = [step for step in steps(view, DUE) if isinstance(step, Remove)]
    for done in range(len(todo)):
        after = observed(carried(view, todo[:done]), DUE + timedelta(seconds=1))
        again = steps(after, DUE + timedelta(minutes=2))
        assert [step for step in again if isinstance(step, Remove)] == todo[done:], done


def test_pods_made_after_it_began_stay() -> None:
    view = begun(losing(whole(), "demo-0-decode", "ready"), DUE)
    view = carried(view, steps(view, DUE))
    soon = DUE + timedelta(seconds=1)
    view = back(view, soon, "gated")
    assert steps(view, soon) == []


def test_groups_say_that_it_goes_on_until_they_have_their_minimum_again() -> None:
    view = begun(losing(whole(GROUPED), "demo-0-router", "crashed"), DUE)
    view = carried(view, steps(view, DUE))
    (name, said), *others = terminating.conditions(view, expand(view)).items()
    assert (name, said.reason, said.status) == ("demo-0-engine", "GangTerminationActive", "True")
    assert said.message == "replica 0 lacked its minimum and is made anew"
    assert others == []
    well = back(view, DUE)
    assert terminating.conditions(well, expand(well)) == {}


def test_in_a_set_without_groups_its_cliques_say_it() -> None:
    view = begun(losing(whole(), "demo-0-decode", "ready"), DUE)
    assert list(terminating.conditions(view, expand(view))) == ["demo-0-decode"]
    well = back(view, DUE)
    assert terminating.conditions(well, expand(well)) == {}


def test_a_set_that_is_well_costs_nothing() -> None:
    assert steps(whole(), NOW) == []
    assert terminating.conditions(whole(GROUPED), expand(whole(GROUPED))) == {}


@pytest.mark.parametrize("text", ["", "{}", "yesterday", '{"begun":"2026-01-01T00:00:00"}'])
def test_an_annotation_that_nobody_could_have_written_is_passed_over(text: str) -> None:
    view = losing(whole(), "demo-0-decode", "ready")
    there = view.cliques["demo-0-prefill"]
    there.metadata.annotations[names.REPLICA_TERMINATION] = text
    assert removed(steps(begun(view, DUE), DUE))

"""What is said of sets, groups and cliques: true, once, and with the times that conditions need."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec
import pytest

from api import names
from api.jsons import JsonObject
from api.models import Condition, OperationState
from api.objects import condition_of, timestamp
from api.podclique import PodCliqueStatus
from api.podcliqueset import PodCliqueSetSpec, PodCliqueSetStatus, StartupType
from api.scalinggroup import PodCliqueScalingGroupStatus
from controller.workloads.stepping import Say
from controller.workloads.story import statuses
from controller.workloads.views import SetView, Trouble
from kube.resources import PODCLIQUES, PODCLIQUESETS, SCALING_GROUPS
from tests.support.setviews import (
    NOW,
    clique,
    made,
    pod_in,
    set_spec,
    wanted,
    with_gang,
    with_pods,
)

LATER = NOW + timedelta(minutes=5)
PAIR = set_spec(clique("prefill", 3, 2), clique("decode", 2))
GROUPED = set_spec(
    clique("router", 1),
    clique("leader", 1),
    clique("worker", 2),
    groups=[
        {"name": "engine", "cliqueNames": ["leader", "worker"], "replicas": 3, "minAvailable": 2}
    ],
)


def said(view: SetView, now: datetime = NOW) -> Mapping[tuple[str, str], Say]:
    found = statuses.steps(view, wanted(view), now)
    return {(step.resource.kind, step.name): step for step in found if isinstance(step, Say)}


def heard(view: SetView, now: datetime = NOW) -> SetView:
    """The set after everything that is to be said was said."""
    cliques, groups, seen = dict(view.cliques), dict(view.groups), view
    for step in said(view, now).values():
        if step.resource is PODCLIQUES:
            status = PodCliqueStatus.model_validate(step.status)
            cliques[step.name] = replace(cliques[step.name], status=status)
        elif step.resource is SCALING_GROUPS:
            told = PodCliqueScalingGroupStatus.model_validate(step.status)
            groups[step.name] = replace(groups[step.name], status=told)
        else:
            assert step.resource is PODCLIQUESETS
            seen = replace(seen, status=PodCliqueSetStatus.model_validate(step.status))
    return replace(seen, cliques=cliques, groups=groups)


def clique_status(view: SetView, name: str = "demo-0-prefill") -> PodCliqueStatus:
    return heard(view).cliques[name].status


def test_what_was_said_is_not_said_again() -> None:
    for spec in (PAIR, GROUPED):
        view = heard(made(spec))
        assert said(view, LATER) == {}


def test_the_order_in_which_conditions_are_kept_says_nothing() -> None:
    view = heard(made(PAIR))
    turned = {
        name: replace(
            there,
            status=there.status.model_copy(
                update={"conditions": list(reversed(there.status.conditions))}
            ),
        )
        for name, there in view.cliques.items()
    }
    assert said(replace(view, cliques=turned), LATER) == {}


def test_a_condition_that_somebody_else_keeps_is_no_reason_to_speak() -> None:
    view = heard(made(PAIR))
    ours = view.cliques["demo-0-prefill"].status.conditions[0]
    other = ours.model_copy(update={"type": "example.com/Audited"})
    cliques = {
        name: replace(
            there,
            status=there.status.model_copy(
                update={"conditions": [*there.status.conditions, other]}
            ),
        )
        for name, there in view.cliques.items()
    }
    assert said(replace(view, cliques=cliques), LATER) == {}


def test_pods_are_counted_by_what_they_have_reached() -> None:
    view = with_pods(made(PAIR), "demo-0-prefill", "gated", "bound", "ready")
    status = clique_status(view)
    assert (status.replicas, status.ready_replicas, status.scheduled_replicas) == (3, 1, 2)
    assert (status.schedule_gated_replicas, status.updated_replicas) == (1, 3)


@pytest.mark.parametrize(
    ("state", "moves"),
    [("lifted", True), ("gated", False), ("bound", False), ("ready", False), ("failed", False)],
)
def test_pods_are_on_their_way_from_their_lift_until_they_have_a_node(
    state: str, *, moves: bool
) -> None:
    view = with_pods(made(PAIR), "demo-0-prefill", "ready", "gated", state)
    assert statuses.is_moving(view) is moves


@pytest.mark.parametrize("state", ["leaving ready", "failed"])
def test_a_pod_that_is_leaving_or_has_ended_is_neither_ready_nor_scheduled(state: str) -> None:
    status = clique_status(with_pods(made(PAIR), "demo-0-prefill", "ready", "ready", state))
    assert (status.ready_replicas, status.scheduled_replicas) == (2, 2)


def test_a_pod_of_an_older_template_is_not_an_updated_one() -> None:
    view = with_pods(made(PAIR), "demo-0-prefill", "ready", "ready", "ready", newest=False)
    status = clique_status(view)
    assert status.updated_replicas == 0
    assert status.current_pod_template_hash == ""
    set_status = heard(view).status
    assert (set_status.available_replicas, set_status.updated_replicas) == (1, 0)


@pytest.mark.parametrize(
    ("states", "status", "reason"),
    [
        (["ready", "ready", "gated"], "False", names.SUFFICIENT_READY),
        (["bound", "bound", "gated"], "False", names.SUFFICIENT_READY),
        (["ready", "lifted", "gated"], "True", names.SCHEDULED_BELOW_MINIMUM),
        (["ready", "failed", "failed"], "True", names.SCHEDULED_BELOW_MINIMUM),
        (["ready", "started", "crashed"], "True", names.INSUFFICIENT_READY),
        (["ready", "up", "started"], "False", names.SUFFICIENT_READY),
        ([], "True", names.SCHEDULED_BELOW_MINIMUM),
    ],
)
def test_a_breach_counts_pods_that_work_or_may_still_start(
    states: list[str], status: str, reason: str
) -> None:
    found = clique_status(with_pods(made(PAIR), "demo-0-prefill", *states))
    breach = condition_of(found.conditions, names.MIN_AVAILABLE_BREACHED)
    assert breach is not None
    assert (breach.status, breach.reason) == (status, reason)


def test_a_clique_scaled_to_nothing_lacks_nothing() -> None:
    view = made(PAIR)
    there = view.cliques["demo-0-prefill"]
    spec = there.spec.model_copy(update={"replicas": 0})
    view = replace(view, cliques={**view.cliques, "demo-0-prefill": replace(there, spec=spec)})
    view = with_pods(view, "demo-0-prefill")
    status = clique_status(view)
    assert [c.status for c in status.conditions] == ["False", "True"]
    assert status.last_operation is not None
    assert status.last_operation.description == "it is scaled to nothing"
    assert heard(view).status.available_replicas == 1


def test_a_condition_keeps_its_time_until_its_status_turns() -> None:
    view = heard(with_pods(made(PAIR), "demo-0-prefill", "ready", "lifted", "gated"))
    worse = heard(with_pods(view, "demo-0-prefill", "started", "crashed", "gated"), LATER)
    better = heard(with_pods(worse, "demo-0-prefill", "ready", "ready", "ready"), LATER)
    found = [
        condition_of(v.cliques["demo-0-prefill"].status.conditions, names.MIN_AVAILABLE_BREACHED)
        for v in (view, worse, better)
    ]
    assert [(c.status, c.last_transition_time) for c in found if c] == [
        ("True", timestamp(NOW)),
        ("True", timestamp(NOW)),
        ("False", timestamp(LATER)),
    ]


def test_autoscalers_find_exactly_the_pods_of_what_they_scale() -> None:
    view = heard(made(GROUPED))
    common = f"{names.MANAGED_BY_LABEL}=grove-operator,{names.PART_OF_LABEL}=demo"
    member = view.cliques["demo-0-engine-0-leader"].status
    assert view.status.hpa_pod_selector == common
    assert member.hpa_pod_selector == f"{common},grove.io/podclique=demo-0-engine-0-leader"
    group = view.groups["demo-0-engine"].status
    assert group.selector == f"{common},grove.io/podcliquescalinggroup=demo-0-engine"


def test_a_copy_is_what_all_of_its_cliques_are() -> None:
    view = made(GROUPED)
    view = with_pods(view, "demo-0-engine-0-worker", "ready", "started")
    view = with_pods(view, "demo-0-engine-2-leader", "gated")
    group = heard(view).groups["demo-0-engine"].status
    assert (group.replicas, group.scheduled_replicas, group.available_replicas) == (3, 2, 1)
    breach = condition_of(group.conditions, names.MIN_AVAILABLE_BREACHED)
    assert breach is not None
    assert (breach.status, breach.reason) == ("True", names.INSUFFICIENT_COPIES)
    assert heard(view).status.available_replicas == 0


def test_a_replica_needs_its_lone_cliques_and_the_minimum_of_each_group() -> None:
    spare = with_pods(made(GROUPED), "demo-0-engine-2-leader", "gated")
    assert heard(spare).status.available_replicas == 1
    alone = with_pods(made(GROUPED), "demo-0-router", "bound")
    assert heard(alone).status.available_replicas == 0


def test_a_generation_is_observed_only_when_all_of_it_is_made() -> None:
    whole = made(PAIR)
    half = with_pods(whole, "demo-0-prefill", "ready", "ready")
    assert clique_status(whole).observed_generation == 1
    assert clique_status(half).observed_generation == 0
    assert heard(whole).status.observed_generation == 1
    without = {k: v for k, v in whole.cliques.items() if k != "demo-0-decode"}
    assert heard(replace(whole, cliques=without)).status.observed_generation == 0


def test_a_changed_template_is_observed_when_its_update_begins() -> None:
    view = heard(made(PAIR))
    edited = msgspec.structs.replace(view.metadata, generation=2)
    label = {**view.spec.template.cliques[0].labels, "team": "b"}
    cliques = [view.spec.template.cliques[0].model_copy(update={"labels": label})]
    cliques += view.spec.template.cliques[1:]
    template = view.spec.template.model_copy(update={"cliques": cliques})
    changed = replace(
        view, metadata=edited, spec=view.spec.model_copy(update={"template": template})
    )
    status = heard(changed, LATER).status
    # Whoever waits for the generation must not find the old count of updated replicas with it.
    assert (status.observed_generation, status.updated_replicas) == (2, 0)
    assert status.update_progress is not None
    assert status.update_progress.update_ended_at is None


def test_an_order_that_never_completes_is_an_error_and_a_condition_until_it_can() -> None:
    spec = set_spec(clique("first", 1), clique("then", 1))
    in_order = {"clique_startup_type": StartupType.IN_ORDER}
    template = spec.template.model_copy(update=in_order)
    view = made(spec.model_copy(update={"template": template}), "gated")
    first = view.cliques["demo-0-first"]
    nothing = replace(first, spec=first.spec.model_copy(update={"replicas": 0}))
    stuck = heard(replace(view, cliques={**view.cliques, "demo-0-first": nothing}))
    said_so = condition_of(stuck.status.conditions, names.STARTUP_IMPOSSIBLE)
    assert said_so is not None
    assert (said_so.status, said_so.reason) == ("True", names.ORDER_NEVER_COMPLETES)
    assert "demo-0-then waits for demo-0-first" in said_so.message
    assert stuck.status.last_operation is not None
    assert stuck.status.last_operation.state is OperationState.ERROR
    mended = heard(replace(stuck, cliques={**stuck.cliques, "demo-0-first": first}), LATER)
    assert condition_of(mended.status.conditions, names.STARTUP_IMPOSSIBLE) is None


def test_a_refused_step_is_an_error_until_it_succeeds() -> None:
    pod = pod_in("gated", wanted(made(PAIR)).cliques["demo-0-prefill"], 2).metadata.name
    trouble = Trouble("ERR_CREATE_POD", "exceeded quota", pod, over_quota=True)
    view = with_pods(made(PAIR), "demo-0-prefill", "ready", "ready")
    failed = heard(replace(view, troubles=(trouble,)))
    for status in (failed.status, failed.cliques["demo-0-prefill"].status):
        (error,) = status.last_errors
        assert (error.code, error.description) == ("ERR_CREATE_POD", "exceeded quota")
        assert error.observed_at == timestamp(NOW)
        assert status.last_operation is not None
        assert status.last_operation.state is OperationState.ERROR
        assert "exceeded quota" in status.last_operation.description
    assert failed.cliques["demo-0-decode"].status.last_errors == []
    assert said(failed, LATER) == {}, "the error is as old as it was"
    mended = heard(replace(with_pods(failed, "demo-0-prefill", *["ready"] * 3), troubles=()), LATER)
    assert mended.status.last_errors == []
    assert mended.status.last_operation is not None
    assert mended.status.last_operation.state is OperationState.SUCCEEDED


def operation(view: SetView, name: str = "") -> str:
    seen = heard(view)
    status = seen.cliques[name].status if name else seen.status
    assert status.last_operation is not None
    return f"{status.last_operation.state}: {status.last_operation.description}"


def test_a_set_says_what_it_waits_for() -> None:
    view = made(PAIR, "gated")
    assert operation(with_pods(view, "demo-0-decode")) == "Processing: 3 of 5 pods are made"
    short = with_gang(view, "demo-0", names.REASON_INSUFFICIENT, "2 short")
    assert operation(short) == "Processing: gang demo-0 waits: InsufficientCapacity: 2 short"
    assert operation(made(PAIR, "bound")) == "Processing: 0 of 5 pods are ready"
    assert operation(made(PAIR)) == "Succeeded: 1 replicas are available"
    assert operation(made(set_spec(clique("a", 1), replicas=0))) == (
        "Succeeded: it is scaled to nothing"
    )


def test_a_clique_says_whom_its_gated_pods_wait_for() -> None:
    name = "demo-0-decode"
    view = made(PAIR, "gated")
    assert operation(with_gang(view, "demo-0", names.REASON_INSUFFICIENT, "2 short"), name) == (
        "Processing: 2 pods wait with their gang demo-0: InsufficientCapacity: 2 short"
    )
    template = PAIR.template.model_copy(update={"clique_startup_type": "CliqueStartupTypeInOrder"})
    ordered = PodCliqueSetSpec(replicas=1, template=template)
    waiting = with_pods(made(ordered), name, "gated", "gated")
    started = with_pods(waiting, "demo-0-prefill", "up", "started", "started")
    assert operation(started, name) == (
        "Processing: 2 pods wait for demo-0-prefill to have 2 pods up"
    )
    assert "demo-0-decode: 2 pods wait for demo-0-prefill" in operation(started)


def test_gangs_are_told_of_in_the_set() -> None:
    view = with_gang(made(GROUPED), "demo-0-engine-0", names.REASON_INSUFFICIENT, "full")
    base, scaled = heard(view).status.pod_gang_statuses
    assert (base.name, base.phase.value) == ("demo-0", "Running")
    assert (scaled.name, scaled.phase.value) == ("demo-0-engine-0", "Pending")
    scheduled = condition_of(scaled.conditions, names.SCHEDULED)
    assert scheduled is not None
    assert (scheduled.reason, scheduled.message) == (names.REASON_INSUFFICIENT, "full")


def test_what_is_in_flux_may_wait_and_what_has_settled_may_not() -> None:
    view = heard(made(PAIR, "gated"))
    moving = with_pods(view, "demo-0-prefill", "ready", "ready", "started")
    assert said(moving)["PodClique", "demo-0-prefill"].patience == 20.0
    settled = with_pods(view, "demo-0-prefill", "ready", "ready", "ready")
    assert said(settled)["PodClique", "demo-0-prefill"].patience == 0.0


def test_what_a_person_asked_for_of_a_clique_that_is_there_is_said_at_once() -> None:
    view = heard(made(PAIR, "gated"))
    there = view.cliques["demo-0-prefill"]
    newer = msgspec.structs.replace(there.metadata, generation=there.metadata.generation + 1)
    spec = there.spec.model_copy(update={"replicas": 4})
    asked = replace(
        view, cliques={**view.cliques, "demo-0-prefill": replace(there, metadata=newer, spec=spec)}
    )
    assert said(asked)["PodClique", "demo-0-prefill"].patience == 20.0
    whole = with_pods(asked, "demo-0-prefill", *["gated"] * 4)
    assert said(whole)["PodClique", "demo-0-prefill"].patience == 0.0


def test_a_minimum_that_is_lost_is_said_at_once() -> None:
    view = heard(made(PAIR))
    short = with_pods(view, "demo-0-prefill", "ready", "failed", "failed")
    assert said(short)["PodClique", "demo-0-prefill"].patience == 0.0


def test_words_are_the_same_at_any_time() -> None:
    view = made(PAIR, "gated")
    (first, then) = (said(view, at)["PodClique", "demo-0-prefill"] for at in (NOW, LATER))
    assert first.status != then.status
    assert first.words == then.words
    other = said(with_pods(view, "demo-0-prefill", "ready", "ready", "gated"))
    assert first.words != other["PodClique", "demo-0-prefill"].words


def test_statuses_are_such_as_the_definitions_take() -> None:
    for step in said(made(GROUPED)).values():
        body: JsonObject = step.status
        assert None not in body.values()
        assert isinstance(body["conditions"], list)


def test_a_set_has_settled_only_when_its_gangs_say_so_too() -> None:
    view = heard(made(PAIR, "gated"))
    ready = made(PAIR).pods
    early = with_gang(replace(view, pods=ready), "demo-0", names.REASON_LIFTING)
    assert said(early)["PodCliqueSet", "demo"].patience
    assert not said(replace(view, pods=ready))["PodCliqueSet", "demo"].patience


def test_a_minimum_that_is_lost_is_pressing_until_it_is_said() -> None:
    view = made(PAIR)
    assert not statuses.loses_minimum(view)
    name = next(iter(view.cliques))
    short = with_pods(view, name, "ready", "failed")
    assert not statuses.loses_minimum(short)  # nobody has said yet that it ever had it
    assert [
        statuses.loses_minimum(saying(short, name, status))
        for status in ("False", "True", "Unknown")
    ] == [True, False, False]
    assert not statuses.loses_minimum(saying(view, name, "False"))


def saying(view: SetView, name: str, status: str) -> SetView:
    there = view.cliques[name]
    told = Condition(
        type=names.MIN_AVAILABLE_BREACHED,
        status=status,
        reason="x",
        message="",
        last_transition_time=timestamp(NOW),
    )
    said = there.status.model_copy(update={"conditions": [told]})
    return replace(view, cliques={**view.cliques, name: replace(there, status=said)})

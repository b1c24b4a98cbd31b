"""Cliques start wave by wave, and whoever waits is told for whom."""

from collections.abc import Sequence

import msgspec
import pytest

from api import names
from api.jsons import Json
from api.reservation import State
from api.streams import Condition, Container, Pod, PodClique
from controller.gangs import startup
from controller.gangs.deciding import (
    Close,
    Lift,
    Place,
    Step,
    Wait,
    has_started,
    next_step,
)
from controller.gangs.views import GangView
from controller.podgang import Gang
from tests.support.sets import NOW, gang, member, pod_clique, reservation, slots_of, view

GANG = gang({"prefill": (2, 2), "decode": (1, 2), "router": (1, 1)})
# The router waits for both, decode for prefill.
CLIQUES = [
    pod_clique("prefill", 2),
    pod_clique("decode", 1, "prefill"),
    pod_clique("router", 1, "prefill", "decode"),
]
WHOLE = {
    ("prefill", 0): "n0",
    ("prefill", 1): "n1",
    ("decode", 0): "n2",
    ("decode", 1): "n3",
    ("router", 0): "n4",
}
PREFILL_WAITS = "waits for prefill: 1 of 2 pods ready"


def saying(pod: Pod, *conditions: Condition, phase: str = "Running") -> Pod:
    status = msgspec.structs.replace(pod.status, phase=phase, conditions=conditions)
    return msgspec.structs.replace(pod, status=status)


def up(clique: str, index: int) -> Pod:
    pod = member(clique, index, gated=False, node=WHOLE[clique, index])
    return saying(pod, Condition("ContainersReady", "True"))


def starting(clique: str, index: int) -> Pod:
    return member(clique, index, gated=False, node=WHOLE[clique, index])


def with_waiter(pod: Pod) -> Pod:
    spec = msgspec.structs.replace(pod.spec, init_containers=(Container(name=names.WAITER),))
    return msgspec.structs.replace(pod, spec=spec)


def waiting(*slots: tuple[str, int]) -> list[Pod]:
    return [member(clique, index) for clique, index in slots]


REST = waiting(("decode", 0), ("decode", 1), ("router", 0))


def seen(
    pods: Sequence[Pod],
    state: State = State.LIFTING,
    *,
    of: Gang = GANG,
    cliques: Sequence[PodClique] = CLIQUES,
    lost: frozenset[str] = frozenset(),
) -> GangView:
    return view(of, list(pods), reservation(WHOLE, state), cliques=cliques, lost=lost)


def lifted(step: Step) -> list[tuple[str, int]]:
    assert isinstance(step, Lift), step
    return [m.slot for m, _ in step.lifts]


def test_first_those_are_lifted_that_wait_for_nobody() -> None:
    pods = [*waiting(("prefill", 0), ("prefill", 1)), *REST]
    assert lifted(next_step(seen(pods), NOW)) == [("prefill", 0), ("prefill", 1)]


def test_a_clique_waits_for_as_many_ready_pods_as_its_parent_must_have() -> None:
    step = next_step(seen([up("prefill", 0), starting("prefill", 1), *REST]), NOW)
    assert step == Wait(
        names.REASON_WAITING_FOR_PARENTS,
        "decode waits for prefill: 1 of 2 pods ready; "
        "router waits for prefill: 1 of 2 pods ready and decode: 0 of 1 pods ready",
    )
    parents_up = [up("prefill", 0), up("prefill", 1)]
    assert lifted(next_step(seen([*parents_up, *REST]), NOW)) == [("decode", 0), ("decode", 1)]


def test_ready_is_what_the_containers_are_and_not_what_readiness_gates_say() -> None:
    gate_unmet = saying(
        starting("prefill", 0), Condition("ContainersReady", "True"), Condition("Ready", "False")
    )
    step = next_step(seen([gate_unmet, up("prefill", 1), *REST]), NOW)
    assert lifted(step) == [("decode", 0), ("decode", 1)]


def test_the_last_wave_closes_the_reservation_once_it_is_bound() -> None:
    decoders = [up("decode", 0), starting("decode", 1)]
    pods = [up("prefill", 0), up("prefill", 1), *decoders]
    assert lifted(next_step(seen([*pods, *waiting(("router", 0))]), NOW)) == [("router", 0)]
    step = next_step(seen([*pods, member("router", 0, gated=False)]), NOW)
    assert step == Wait(names.REASON_LIFTING, "1 lifted pods are not bound yet")
    assert isinstance(next_step(seen([*pods, starting("router", 0)]), NOW), Close)


def test_where_an_init_container_waits_nobody_is_held_by_the_gate() -> None:
    pods = [*waiting(("prefill", 0), ("prefill", 1)), *map(with_waiter, REST)]
    step = next_step(seen(pods), NOW)
    assert lifted(step) == list(WHOLE)[2:4] + list(WHOLE)[:2] + list(WHOLE)[4:]


def test_a_way_that_is_changed_in_mid_start_lets_no_pod_go_that_has_nobody_to_wait_in_it() -> None:
    """What the gang says of the way is about pods to come, and these were made before."""
    meta = msgspec.structs.replace(GANG.metadata, annotations={names.STARTUP_ANNOTATION: "init"})
    changed = Gang(meta, GANG.spec, GANG.status)
    started = [up("prefill", 0), starting("prefill", 1)]
    made_since = with_waiter(member("decode", 1))
    pods = [*started, member("decode", 0), made_since, member("router", 0)]
    assert lifted(next_step(seen(pods, of=changed), NOW)) == [("decode", 1)]
    rest = [*started, member("decode", 0), starting("decode", 1), member("router", 0)]
    step = next_step(seen(rest, of=changed), NOW)
    assert isinstance(step, Wait)
    assert step.reason == names.REASON_WAITING_FOR_PARENTS
    assert [name for name, _, _ in notices(seen(rest, of=changed))] == ["decode-0", "router-0"]


def test_a_way_that_is_changed_back_leaves_those_to_their_waiters_that_have_one() -> None:
    pods = [up("prefill", 0), starting("prefill", 1), *map(with_waiter, REST)]
    assert lifted(next_step(seen(pods), NOW)) == [("decode", 0), ("decode", 1), ("router", 0)]


def test_a_pod_that_is_replaced_waits_again_while_its_parents_are_down() -> None:
    """And those that have started are left alone."""
    down = [starting("prefill", 0), starting("prefill", 1)]
    others = [up("decode", 0), up("router", 0)]
    step = next_step(seen([*down, *others, member("decode", 1)], State.BOUND), NOW)
    # decode has its minimum of one.
    assert step == Wait(names.REASON_BOUND, "decode waits for prefill: 0 of 2 pods ready")
    short = [*down, *others[:1], starting("decode", 1), member("router", 0)]
    step = next_step(seen(short, State.BOUND), NOW)
    assert isinstance(step, Wait)
    assert step.reason == names.REASON_WAITING_FOR_PARENTS


def test_a_parent_that_can_never_be_up_is_told_as_such() -> None:
    scaled = gang({"prefill": (0, 1), "decode": (1, 1)})
    cliques = [pod_clique("prefill", 2), pod_clique("decode", 1, "prefill", "ghost")]
    slots = {("prefill", 0): "n0", ("decode", 0): "n2"}
    pods = [up("prefill", 0), member("decode", 0)]
    step = next_step(view(scaled, pods, reservation(slots, State.LIFTING), cliques=cliques), NOW)
    assert step == Wait(
        names.REASON_WAITING_FOR_PARENTS,
        "decode waits for prefill: 1 of 2 pods ready, and it has only 1 and "
        "ghost: it is not in the gang",
    )


def test_a_waiting_pod_whose_node_is_lost_is_given_another_before_its_turn() -> None:
    pods = [up("prefill", 0), starting("prefill", 1), *REST]
    step = next_step(seen(pods, lost=frozenset({"n4"})), NOW)
    assert isinstance(step, Place)
    assert slots_of(step.minimum) == [("router", 0)]


@pytest.mark.parametrize("state", [State.HELD, State.BOUND])
def test_scaled_gangs_follow_a_bound_base_and_no_held_one(state: State) -> None:
    pods = [up(*slot) for slot in WHOLE]
    assert has_started(seen(pods, state)) is (state is State.BOUND)


def test_scaled_gangs_follow_a_base_whose_later_waves_only_wait_for_earlier_ones() -> None:
    first = waiting(("prefill", 0), ("prefill", 1))
    assert not has_started(seen([*first, *REST]))
    unbound = [starting("prefill", 0), member("prefill", 1, gated=False)]
    assert not has_started(seen([*unbound, *REST]))
    loading = [starting("prefill", 0), starting("prefill", 1)]
    assert has_started(seen([*loading, *REST]))
    assert not has_started(seen([*loading, *REST], lost=frozenset({"n4"})))
    assert not has_started(seen([*loading, *REST[:2]]))


def notices(of: GangView) -> list[tuple[str, bool, str]]:
    return [(n.pod.metadata.name, n.blocked, n.message) for n in startup.notices(of)]


def blocked(clique: str, index: int, *, message: str = PREFILL_WAITS, gated: bool = True) -> Pod:
    said = Condition(names.STARTUP_BLOCKED, "True", message=message, last_transition_time=NOW)
    node = "" if gated else WHOLE[clique, index]
    return saying(member(clique, index, gated=gated, node=node), said, phase="Pending")


def test_a_waiting_pod_says_for_whom_and_says_it_once() -> None:
    pods = [up("prefill", 0), starting("prefill", 1), blocked("decode", 0), *REST[1:2]]
    assert notices(seen(pods)) == [("decode-1", True, PREFILL_WAITS)]
    assert notices(seen(pods, State.HELD)) == [("decode-0", False, "")]


def test_a_pod_that_waits_no_more_says_so() -> None:
    pods = [up("prefill", 0), up("prefill", 1), blocked("decode", 0, gated=False)]
    assert notices(seen(pods)) == [("decode-0", False, "")]


def test_a_pod_in_its_init_container_says_whom_that_waits_for() -> None:
    inside = with_waiter(starting("decode", 0))
    done = saying(with_waiter(starting("decode", 1)), Condition("Initialized", "True"))
    pods = [up("prefill", 0), starting("prefill", 1), inside, done]
    assert notices(seen(pods, State.BOUND)) == [("decode-0", True, PREFILL_WAITS)]


def test_the_time_of_a_condition_is_that_of_its_change() -> None:
    def written(pod: Pod) -> Json:
        (notice,) = startup.notices(seen([up("prefill", 0), starting("prefill", 1), pod]))
        return startup.condition(notice, "2030-01-01T00:00:00Z")

    fresh = written(member("decode", 0))
    assert fresh == {
        "type": "PodStartupBlocked",
        "status": "True",
        "reason": "WaitingForParents",
        "message": PREFILL_WAITS,
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }
    again = written(blocked("decode", 0, message="waits for prefill: 0 of 2 pods ready"))
    assert isinstance(again, dict)
    assert again["lastTransitionTime"] == "2026-01-02T03:04:05Z"

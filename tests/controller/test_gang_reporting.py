"""Whether a gang is ready, and whether it lost what it had."""

from dataclasses import replace

import msgspec
import pytest

from api import names
from api.objects import condition_of
from api.podgang import Phase, PodGangStatus
from api.reservation import State
from api.streams import Condition, Pod
from controller.gangs import asking, reporting, topologies
from controller.gangs.deciding import Place, Wait
from controller.podgang import Gang
from scheduler import cycle
from scheduler.snapshot import build
from tests.support.sets import NOW, gang, member, reservation, view

BOUND = Wait(names.REASON_BOUND)
PAIR = gang({"a": (2, 3), "b": (1, 1)})


def up(pod: Pod) -> Pod:
    conditions = (Condition("ContainersReady", "True"),)
    return msgspec.structs.replace(
        pod, status=msgspec.structs.replace(pod.status, conditions=conditions)
    )


def pods(a: int, b: int) -> list[Pod]:
    """All pods of the pair, so many of each clique up."""
    found = []
    for clique, count, ready in (("a", 3, a), ("b", 1, b)):
        members = [member(clique, i, gated=False, node="n") for i in range(count)]
        found += [up(pod) if i < ready else pod for i, pod in enumerate(members)]
    return found


def reported(of: Gang, a: int, b: int) -> PodGangStatus:
    return reporting.status(view(of, pods(a, b)), BOUND, None, NOW)


def health(status: PodGangStatus) -> dict[str, tuple[str, str]]:
    return {
        kind: (found.status, found.reason)
        for kind in (names.READY, names.UNHEALTHY)
        if (found := condition_of(status.conditions, kind))
    }


def test_a_gang_is_ready_once_every_clique_has_its_minimum_up() -> None:
    assert health(reported(PAIR, 1, 1)) == {names.READY: ("False", names.REASON_NOT_READY)}
    assert health(reported(PAIR, 3, 0)) == {names.READY: ("False", names.REASON_NOT_READY)}
    assert health(reported(PAIR, 2, 1)) == {names.READY: ("True", names.REASON_READY)}


def test_only_a_gang_that_was_ready_once_can_be_unhealthy() -> None:
    ran = replace(PAIR, status=reported(PAIR, 2, 1))
    lost = reported(ran, 1, 1)
    assert health(lost)[names.UNHEALTHY] == ("True", names.REASON_LOST)
    found = condition_of(lost.conditions, names.UNHEALTHY)
    assert found is not None
    assert found.message == "below the minimum: a"
    still = reported(replace(PAIR, status=lost), 0, 1)
    assert health(still)[names.UNHEALTHY] == ("True", names.REASON_LOST)
    back = reported(replace(PAIR, status=still), 2, 1)
    assert health(back) == {
        names.READY: ("True", names.REASON_READY),
        names.UNHEALTHY: ("False", names.REASON_BACK),
    }


@pytest.mark.parametrize(
    ("groups", "count", "initialized", "phase"),
    [
        pytest.param({"a": (2, 2), "b": (0, 0)}, 2, True, Phase.RUNNING, id="the rest runs"),
        pytest.param({"a": (2, 2), "b": (0, 0)}, 1, True, Phase.PENDING, id="the rest does not"),
        pytest.param({"a": (0, 2)}, 0, True, Phase.PENDING, id="pods without a minimum"),
        pytest.param({"a": (0, 0)}, 0, True, Phase.RUNNING, id="all scaled to nothing"),
        pytest.param({"a": (1, 0)}, 0, False, Phase.PENDING, id="not made yet"),
    ],
)
def test_a_clique_scaled_to_nothing_does_not_keep_its_gang_from_running(
    groups: dict[str, tuple[int, int]],
    count: int,
    initialized: bool,  # noqa: FBT001
    phase: Phase,
) -> None:
    running = [
        msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase="Running"))
        for pod in (member("a", i, gated=False, node="n") for i in range(count))
    ]
    of = gang(groups, initialized=initialized)
    assert reporting.status(view(of, running), BOUND, None, NOW).phase is phase


def test_what_workloads_says_of_a_gang_makes_no_news() -> None:
    said = reported(PAIR, 2, 1)
    beside = said.model_copy(update={"conditions": [*PAIR.status.conditions, *said.conditions]})
    assert reporting.same(beside, said)
    assert not reporting.same(PAIR.status, said)
    assert not reporting.same(beside, reported(PAIR, 1, 1))


def test_a_gang_without_room_is_told_what_of_its_wishes_is_not_heeded() -> None:
    waiting = view(PAIR, [member("a", 0), member("a", 1), member("b", 0)])
    asked = asking.request(waiting, Place(waiting.members, ()))
    (refusal,) = cycle.plan(build((), (), [topologies.BUILT_IN.levels]), [asked]).refusals

    def said(unheeded: str) -> str:
        step = Place(waiting.members, ())
        status = reporting.status(waiting, step, refusal, NOW, unheeded)
        found = condition_of(status.conditions, names.SCHEDULED)
        assert found is not None
        return found.message

    assert said("reservation x is for others") == f"{said('')}; reservation x is for others"


def test_a_gang_that_was_rolled_back_is_disrupted_until_it_has_room_again() -> None:
    slots = {("a", 0): "n"}
    taken_back = view(PAIR, pods(3, 1), reservation(slots, State.ROLLED_BACK))
    step = Wait(names.REASON_ROLLED_BACK, "a pod was not bound")
    status = reporting.status(taken_back, step, None, NOW)
    said = condition_of(status.conditions, names.DISRUPTION_TARGET)
    assert said is not None
    assert (said.status, said.reason) == ("True", "RolledBack")
    again = view(replace(PAIR, status=status), pods(3, 1), reservation(slots, State.LIFTING))
    after = reporting.status(again, BOUND, None, NOW)
    over = condition_of(after.conditions, names.DISRUPTION_TARGET)
    assert over is not None
    assert over.status == "False"
    assert condition_of(reported(PAIR, 2, 1).conditions, names.DISRUPTION_TARGET) is None

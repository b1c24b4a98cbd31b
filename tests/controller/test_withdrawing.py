"""Gangs that wait for a quota take turns: the first keeps its pods, the others give theirs back."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec
import pytest

from api import names
from api.objects import timestamp
from controller.podgang import Gang
from controller.workloads import naming
from controller.workloads.expansion import expand
from controller.workloads.quota import shortage, withdrawing
from controller.workloads.quota.shortage import Refused, Shortage, Trying, Withdrawn
from controller.workloads.quota.withdrawing import PATIENCE
from controller.workloads.stepping import Again, Change, Remove, Step
from controller.workloads.views import Rank, Rival, SetView, Trouble
from kube.resources import PODGANGS, PODS
from tests.support.carrying import carried
from tests.support.setviews import LONG_AGO, NOW, clique, made, set_spec, with_pods

WORDS = "exceeded quota: pods, requested: pods=1, used: pods=4, limited: pods=4"
SECOND = timedelta(seconds=1)
TWO = set_spec(clique("engine", 3), replicas=2)
OLDER: Rank = (0, LONG_AGO - SECOND, "other-0")
YOUNGER: Rank = (0, LONG_AGO + SECOND, "other-0")


def half(*pods: int, state: str = "gated") -> SetView:
    """A set whose gangs, none of them whole, have so many pods each."""
    view = made(set_spec(clique("engine", 3), replicas=len(pods)), state)
    view = replace(view, gangs={name: _unmade(gang) for name, gang in view.gangs.items()})
    for replica, count in enumerate(pods):
        view = with_pods(view, f"demo-{replica}-engine", *[state] * count)
    return view


def _unmade(gang: Gang) -> Gang:
    return replace(gang, status=gang.status.model_copy(update={"conditions": []}))


def refused(view: SetView, *replicas: int) -> SetView:
    """The set after a pass in which a quota refused a pod of each of these replicas."""
    pods = (naming.pod("set-uid", f"demo-{replica}-engine", 2) for replica in replicas)
    troubles = tuple(Trouble("ERR_CREATE_POD", WORDS, pod, over_quota=True) for pod in pods)
    return replace(view, troubles=troubles)


def steps(view: SetView, now: datetime = NOW) -> list[Step]:
    return list(withdrawing.steps(view, expand(view), now))


def after(view: SetView, now: datetime = NOW) -> SetView:
    """The set after a pass with no more refusals."""
    return replace(carried(view, steps(view, now)), troubles=())


def state(view: SetView, replica: int = 0) -> Shortage | None:
    return shortage.read(view.gangs[f"demo-{replica}"].metadata.annotations)


def in_state(view: SetView, *states: Shortage | None) -> SetView:
    for replica, found in enumerate(states):
        if found is not None:
            name = f"demo-{replica}"
            change = Change(PODGANGS, name, "", shortage.remember(found))
            view = carried(view, [change])
    return view


def held(view: SetView, now: datetime = NOW) -> set[str]:
    return set(withdrawing.held(view, expand(view), now))


def taken_back(found: Iterable[Step]) -> set[str]:
    return {
        s.name.rpartition("-")[0] for s in found if isinstance(s, Remove) and s.resource is PODS
    }


def test_who_is_refused_keeps_its_pods_and_goes_on_trying() -> None:
    view = after(refused(half(2), 0))
    assert state(view) == Refused(NOW, WORDS)
    assert held(view) == set()
    assert taken_back(steps(view)) == set()


def test_of_two_half_made_gangs_of_a_set_the_second_gives_its_pods_back() -> None:
    view = after(refused(half(2, 2), 0, 1))
    assert state(view, 0) == Refused(NOW, WORDS)
    assert state(view, 1) == Withdrawn(NOW + 2 * SECOND, WORDS)
    assert taken_back(steps(view)) == {"demo-1-engine"}
    assert held(view) == {"demo-1"}


def test_of_two_half_made_gangs_of_two_sets_the_younger_gives_its_pods_back() -> None:
    view = after(replace(refused(half(2), 0), rivals=(Rival(OLDER, NOW),)))
    assert state(view) == Withdrawn(NOW + 2 * SECOND, WORDS)
    assert taken_back(steps(view)) == {"demo-0-engine"}
    view = after(replace(refused(half(2), 0), rivals=(Rival(YOUNGER, NOW),)))
    assert state(view) == Refused(NOW, WORDS)


def test_one_that_was_refused_first_makes_way_when_an_older_one_comes_to_be_refused() -> None:
    view = replace(after(refused(half(2), 0)), rivals=(Rival(OLDER, NOW),))
    assert state(after(view)) == Withdrawn(NOW + 2 * SECOND, WORDS, times=0)


def test_nothing_is_written_about_gangs_that_have_nothing_to_give_back() -> None:
    """Of a hundred gangs that a quota stops, one is noted."""
    view = refused(half(1, *[0] * 99), *range(100))
    (note,) = [step for step in steps(view) if isinstance(step, Change)]
    assert note.name == "demo-0"
    assert len(held(after(view))) == 99


def test_who_does_not_succeed_within_its_patience_gives_up_its_turn() -> None:
    view = after(refused(half(2), 0))
    late = NOW + PATIENCE
    assert state(after(view, late - SECOND)) == Refused(NOW, WORDS)
    view = after(view, late)
    assert state(view) == Withdrawn(late + 2 * SECOND, WORDS, times=1)
    assert taken_back(steps(view, late)) == {"demo-0-engine"}


def test_it_waits_longer_each_time_up_to_five_minutes() -> None:
    waits = []
    for times in range(10):
        view = in_state(half(1), Refused(NOW - PATIENCE, WORDS, times))
        found = state(after(view))
        assert isinstance(found, Withdrawn)
        waits.append((found.until - NOW).total_seconds())
    assert waits == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_after_its_wait_it_tries_again_unless_somebody_is_before_it() -> None:
    view = in_state(half(0), Withdrawn(NOW + 9 * SECOND, WORDS, times=1))
    assert steps(view) == [Again(NOW + 9 * SECOND), Again(NOW + 2 * SECOND)]
    later = NOW + 9 * SECOND
    other = replace(view, rivals=(Rival(YOUNGER, later),))
    assert held(other, later) == {"demo-0"}
    assert isinstance(state(after(other, later)), Withdrawn), "the other gave up less often"
    view = after(view, later)
    assert state(view) == Trying(times=1)
    assert held(view, later) == set()


def test_the_last_who_gave_up_lets_the_next_one_try() -> None:
    view = in_state(half(0, 0), Withdrawn(NOW - SECOND, WORDS, times=1), Refused(NOW, WORDS))
    assert held(view) == {"demo-0"}


def test_while_a_set_leaves_room_to_others_none_of_its_gangs_takes_it() -> None:
    view = in_state(half(0, 0, 2), Withdrawn(NOW + SECOND, WORDS), None, None)
    assert held(view) == {"demo-0", "demo-1"}
    assert held(view, NOW + SECOND) == {"demo-0"}


def test_a_gang_that_was_whole_once_is_left_alone() -> None:
    view = replace(refused(made(TWO, "gated"), 0), rivals=(Rival(OLDER, NOW),))
    assert steps(view) == []
    assert held(view) == set()


@pytest.mark.parametrize("begun", ["lifted", "up"])
def test_a_gang_of_which_anything_was_lifted_is_left_alone(begun: str) -> None:
    view = replace(refused(with_pods(half(3), "demo-0-engine", begun, "gated"), 0),
                   rivals=(Rival(OLDER, NOW),))  # fmt: skip
    assert steps(view) == []
    assert held(view) == set()
    noted = in_state(view, Refused(NOW, WORDS))
    assert state(after(noted)) is None


def test_once_it_is_whole_what_was_is_forgotten() -> None:
    view = in_state(made(TWO, "gated"), Refused(NOW, WORDS, 3))
    assert state(after(view)) is None
    assert steps(after(view)) == []


def test_a_rival_that_nobody_looks_after_is_not_waited_for_for_ever() -> None:
    view = replace(half(0), rivals=(Rival(OLDER, NOW),))
    assert held(view) == {"demo-0"}
    assert steps(view) == [Again(NOW + 2 * SECOND)]
    assert held(view, NOW + 2 * PATIENCE) == set()


def test_other_refusals_are_none_of_its_business() -> None:
    view = refused(half(2), 0)
    troubles = tuple(replace(trouble, over_quota=False) for trouble in view.troubles)
    assert steps(replace(view, troubles=troubles)) == []


def test_the_gang_says_which_quota_and_when_it_tries_again() -> None:
    view = refused(half(2), 0)
    (gang,) = expand(view).gangs
    assert withdrawing.told(view, gang) == WORDS
    assert withdrawing.told(after(view), gang) == WORDS
    until = NOW + 9 * SECOND
    view = in_state(view, Withdrawn(until, WORDS))
    assert withdrawing.told(view, gang).endswith(f"the next try is at {timestamp(until)}")
    assert withdrawing.told(half(2), gang) == ""


@pytest.mark.parametrize("first", ["older", "younger"])
def test_whoever_looks_first_the_older_of_two_sets_becomes_whole_and_then_the_other(
    first: str,
) -> None:
    """A quota of four pods and two sets of three; each pass makes what fits."""
    sets = {"older": _aged(half(2), "a", LONG_AGO), "younger": _aged(half(2), "b", NOW)}
    now, won = NOW, ""
    whole: list[str] = []
    for _ in range(200):
        for name in sorted(sets, reverse=first == "younger"):
            sets = _passed(sets, name, now)
        whole = [name for name, view in sets.items() if view.gangs["demo-0"].initialized]
        won = won or "".join(whole)
        if won and "older" in sets and len(sets) == 2:
            assert won == "older"
            del sets["older"]  # its author deletes it
        if whole == ["younger"]:
            break
        now += SECOND
    assert whole == ["younger"]
    assert now < NOW + timedelta(minutes=2)


def _aged(view: SetView, name: str, since: datetime) -> SetView:
    gang = view.gangs["demo-0"]
    meta = msgspec.structs.replace(gang.metadata, creation_timestamp=since)
    return replace(
        view,
        metadata=msgspec.structs.replace(view.metadata, name=view.metadata.name, uid=name),
        gangs={"demo-0": replace(gang, metadata=meta)},
    )


def _passed(sets: dict[str, SetView], name: str, now: datetime) -> dict[str, SetView]:
    rivals = tuple(
        Rival(shortage.rank(gang.metadata, found.times), found.since)
        for other, view in sets.items()
        for gang in view.gangs.values()
        if other != name and isinstance(found := shortage.read(gang.metadata.annotations), Refused)
    )
    view = replace(sets[name], rivals=rivals)
    used = sum(len(pods) for each in sets.values() for pods in each.pods.values())
    mine = len(view.pods_of("demo-0-engine"))
    if mine < 3 and "demo-0" not in withdrawing.held(view, expand(view), now):
        made_now = min(3 - mine, 4 - used)
        if made_now < 3 - mine:
            view = refused(view, 0)
        view = with_pods(view, "demo-0-engine", *["gated"] * (mine + made_now))
    if len(view.pods_of("demo-0-engine")) == 3:
        whole = made(view.spec, "gated").gangs["demo-0"]
        view = replace(
            view, gangs={"demo-0": replace(whole, metadata=view.gangs["demo-0"].metadata)}
        )
    return {**sets, name: after(view, now)}


def test_the_annotation_is_read_as_it_was_written() -> None:
    for found in (Refused(NOW, WORDS, 2), Withdrawn(NOW, WORDS, 1), Trying(3)):
        assert state(in_state(half(0), found)) == found
    view = half(0)
    for text in ("", "[]", '{"type":"Refused","since":"2026-01-01T00:00:00","words":""}'):
        view.gangs["demo-0"].metadata.annotations[names.QUOTA_ANNOTATION] = text
        assert state(view) is None

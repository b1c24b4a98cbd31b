"""What becomes of a plain gang's PodGang: pods come, start, go and are followed by others."""

from dataclasses import replace

import pytest

from api import names
from api.jsons import JsonObject
from api.reservation import ReservationSpec, State
from api.streams import Node, Pod
from controller.gangs import booking, plain_pods, plain_slots
from controller.gangs.deciding import Trim, next_step
from controller.gangs.plain_deciding import (
    KEPT_SECONDS,
    RETRIED_SECONDS,
    Amend,
    Confirm,
    Make,
    Rest,
    Taken,
    Unmake,
    decide,
    vacant,
)
from controller.gangs.plain_slots import Ledger
from controller.gangs.standing import Standing
from controller.gangs.views import GangView, Reservation, members_of
from scheduler.answers import Placed, Placement
from scheduler.requests import GangRequest, Want
from tests.support.clusters import node
from tests.support.plaingangs import (
    CLOSE,
    KEY,
    after,
    close_view,
    gang_of,
    ledger,
    plain,
    seen,
    slots,
    stored,
)
from tests.support.sets import NOW, reservation

A, B, C, D = (plain(name, born=i) for i, name in enumerate("abcd"))
RUNNING = tuple(plain(name, on=f"n{i}", born=i) for i, name in enumerate("abc"))
ROOMS = ledger({0: "n0", 1: "n1", 2: "n2"})
WHOLE = gang_of("abc")


def test_the_first_pod_that_waits_has_the_podgang_made() -> None:
    step = decide(seen(A))
    assert isinstance(step, Make)
    assert slots(step) == {0: "a"}
    body = step.wanted.body()
    assert body["metadata"] == {
        "name": "train",
        "namespace": "default",
        "labels": {names.GANG_LABEL: "train"},
        "annotations": {names.SLOTS_ANNOTATION: "0"},
    }
    assert body["spec"] == {
        "podgroups": [
            {
                "name": "train",
                "minReplicas": 3,
                "podReferences": [{"namespace": "default", "name": "a"}],
            }
        ]
    }


def test_further_pods_wait_to_be_told_together_but_for_the_one_that_makes_it_whole() -> None:
    view = after(seen(A), decide(seen(A)))
    second = decide(replace(view, pods=(A, B)))
    assert isinstance(second, Amend)
    assert not second.at_once
    last = decide(replace(view, pods=(A, B, C)))
    assert isinstance(last, Amend)
    assert last.at_once
    assert slots(last) == {0: "a", 1: "b", 2: "c"}


def test_a_gang_is_whole_once_its_minimum_of_pods_is_there_and_stays_so() -> None:
    view = after(seen(A, B), decide(seen(A, B)))
    assert decide(view) == Rest()
    view = replace(view, pods=(A, B, C))
    view = after(view, decide(view))
    whole = decide(view)
    assert isinstance(whole, Confirm)
    assert whole.whole
    view = after(view, whole)
    assert decide(view) == Rest()
    view = replace(view, pods=(A, B))
    view = after(view, decide(view))
    assert decide(view) == Rest()


@pytest.mark.parametrize(
    ("pods", "minimum"),
    [
        ([plain("a", size="4")], 4),
        ([plain("a", size="4", minimum="2")], 2),
        ([plain("a", size="4", minimum="2"), plain("b", size="5", minimum="3")], 3),
        ([plain("a", size="4"), plain("b", size="4", minimum="1")], 4),
    ],
)
def test_the_minimum_is_what_is_written_else_the_size_and_of_several_the_largest(
    pods: list[Pod], minimum: int
) -> None:
    step = decide(seen(*pods))
    assert isinstance(step, Make)
    assert step.wanted.minimum == minimum


def test_pods_that_disagree_are_told_of_before_and_after_the_gang_is_whole() -> None:
    pods = (plain("a", size="2"), plain("b", size="3"))
    view = after(seen(*pods), decide(seen(*pods)))
    said = decide(view)
    assert isinstance(said, Confirm)
    assert not said.whole
    told = "its pods disagree about the minimum (2, 3): the largest counts"
    assert said.message == told
    view = replace(after(view, said), pods=(*pods, C))
    view = after(view, decide(view))
    said = decide(view)
    assert isinstance(said, Confirm)
    assert (said.whole, said.message) == (True, told)


def test_the_oldest_pod_is_followed_in_all_else() -> None:
    pods = (plain("b", priority="low", born=2), plain("a", priority="high", born=3))
    step = decide(seen(*pods))
    assert isinstance(step, Make)
    assert step.wanted.priority_class == "low"


def test_a_surge_pod_joins_by_itself_in_a_slot_of_its_own() -> None:
    view = replace(seen(*RUNNING, D, there=WHOLE), ledger=ROOMS)
    assert slots(decide(view)) == {0: "a", 1: "b", 2: "c", 3: "d"}


def test_a_successor_takes_the_slot_that_was_left() -> None:
    view = replace(seen(RUNNING[0], RUNNING[2], D, there=WHOLE), ledger=ROOMS)
    step = decide(view)
    assert slots(step) == {0: "a", 1: "d", 2: "c"}
    assert isinstance(step, Amend)
    assert step.at_once


def test_a_surge_pod_that_waits_for_room_moves_into_a_slot_that_is_left() -> None:
    grown = gang_of("abcd")
    view = replace(seen(*RUNNING[:2], D, there=grown), ledger=ROOMS)
    assert slots(decide(view)) == {0: "a", 1: "b", 2: "d"}


def test_a_larger_successor_does_not_take_a_slot_that_is_too_small_for_it() -> None:
    large = plain("d", gpus="4", born=9)
    view = replace(seen(*RUNNING[:2], large, there=WHOLE), ledger=ROOMS)
    assert slots(decide(view)) == {0: "a", 1: "b", 2: "c", 3: "d"}


def test_a_namesake_of_another_size_leaves_the_slot_of_its_predecessor() -> None:
    large = plain("c", gpus="4", born=9)
    view = replace(seen(*RUNNING[:2], large, there=WHOLE), ledger=ROOMS)
    assert slots(decide(view)) == {0: "a", 1: "b", 3: "c"}


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param([node("n0"), node("n1")], id="gone"),
        pytest.param([node("n2", spec={"unschedulable": True})], id="cordoned"),
    ],
)
def test_nobody_takes_a_slot_on_a_node_that_takes_nobody(nodes: list[Node]) -> None:
    rooms = ledger({0: "n0", 1: "n1", 2: "n2"}, nodes=nodes)
    view = replace(seen(*RUNNING[:2], D, there=WHOLE), ledger=rooms)
    assert slots(decide(view)) == {0: "a", 1: "b", 2: "c", 3: "d"}


def test_a_slot_waits_for_a_successor_until_it_has_waited_long_enough() -> None:
    view = replace(seen(*RUNNING[:2], there=WHOLE), ledger=ROOMS)
    assert vacant(view) == {2: KEPT_SECONDS}
    assert decide(view) == Rest()
    step = decide(replace(view, tired=frozenset({2})))
    assert slots(step) == {0: "a", 1: "b"}
    assert isinstance(step, Amend)
    assert not step.at_once


def test_a_pod_that_is_on_its_way_out_keeps_its_slot_for_its_successor() -> None:
    going = plain("c", on="n2", going=True)
    view = replace(seen(*RUNNING[:2], going, there=WHOLE), ledger=ROOMS)
    assert vacant(view) == {}
    assert decide(view) == Rest()


def test_a_slot_waits_longer_for_who_tries_again_what_has_failed_but_not_for_ever() -> None:
    failed = plain("c", on="n2", phase="Failed")
    view = replace(seen(*RUNNING[:2], failed, there=WHOLE), ledger=ROOMS)
    assert vacant(view) == {2: RETRIED_SECONDS}
    assert decide(view) == Rest()
    assert slots(decide(replace(view, pods=(*view.pods, D)))) == {0: "a", 1: "b", 2: "d"}
    assert slots(decide(replace(view, tired=frozenset({2})))) == {0: "a", 1: "b"}


def test_nobody_follows_a_pod_that_has_done_its_work() -> None:
    done = plain("c", on="n2", phase="Succeeded")
    view = replace(seen(*RUNNING[:2], done, there=WHOLE), ledger=ROOMS)
    assert slots(decide(view)) == {0: "a", 1: "b"}


def test_pods_of_an_ordered_owner_have_the_slots_it_numbers_them_by() -> None:
    def numbered(name: str, index: str, born: int) -> Pod:
        return plain(name, labels={names.STATEFULSET_INDEX_LABEL: index}, born=born)

    pods = [numbered("web-2", "2", 0), numbered("web-0", "0", 1), numbered("db-0", "0", 2)]
    assert slots(decide(seen(*pods))) == {0: "web-0", 1: "db-0", 2: "web-2"}
    assert slots(decide(seen(numbered("web-0", "9" * 9, 0)))) == {0: "web-0"}


def test_the_podgang_goes_with_its_last_pod() -> None:
    assert isinstance(decide(seen(there=WHOLE)), Unmake)
    done = (plain(name, on="n0", phase="Succeeded") for name in "abc")
    assert isinstance(decide(seen(*done, there=WHOLE)), Unmake)


def test_pods_that_come_when_all_others_are_gone_begin_anew_as_a_whole() -> None:
    view = replace(seen(D, there=WHOLE), ledger=ROOMS)
    step = decide(view)
    assert isinstance(step, Unmake)
    assert isinstance(decide(after(view, step)), Make)


def test_a_gang_of_which_none_was_started_serves_whoever_waits() -> None:
    """Else a Deployment whose pods are replaced all the time has PodGangs made all the time."""
    view = seen(A, B, C)
    for _ in range(2):
        view = after(view, decide(view))
    step = decide(replace(view, pods=(D,)))
    assert isinstance(step, Amend)
    assert slots(step) == {0: "d"}
    assert isinstance(decide(replace(view, pods=())), Unmake)


def test_a_gang_that_was_whole_waits_again_while_its_new_pods_ask_for_what_is_not_there() -> None:
    view = close_view(plain("a", size="1"))
    for _ in range(2):
        view = after(view, decide(view))
    assert decide(view) == Rest()
    other = plain("b", size="1", labels={**CLOSE, names.TOPOLOGY_LABEL: "other"})
    view = replace(view, pods=(other,))
    view = after(view, decide(view))
    said = decide(view)
    assert isinstance(said, Confirm)
    assert not said.whole


def test_a_gang_that_was_rolled_back_is_remembered_while_its_pods_are_made_anew() -> None:
    """With its PodGang it would be forgotten how often, and be tried again at once for ever."""
    tried = Ledger({}, {}, tried=True)
    gone = replace(seen(there=WHOLE), ledger=tried)
    assert decide(gone) == Rest()
    assert isinstance(decide(replace(gone, pods=(D,))), Amend)
    assert isinstance(decide(replace(gone, forsaken=True)), Unmake)
    done = replace(gone, ledger=replace(tried, committed=True))
    assert isinstance(decide(done), Unmake), "it was started after all, and is over"


def test_namesakes_without_room_begin_anew_too() -> None:
    view = replace(seen(A, there=WHOLE), ledger=ledger({}))
    assert isinstance(decide(view), Unmake)


def test_a_gang_that_is_about_to_be_lifted_is_not_over() -> None:
    view = replace(seen(A, B, C, there=WHOLE), ledger=ROOMS)
    assert decide(view) == Rest()


def test_a_podgang_that_somebody_deleted_is_made_anew_for_the_next_pod_that_waits() -> None:
    assert decide(seen(*RUNNING)) == Rest()
    step = decide(seen(*RUNNING[:2], D))
    assert isinstance(step, Make)
    assert slots(step) == {0: "a", 1: "b", 2: "d"}


def test_pods_that_run_without_having_waited_are_no_members() -> None:
    stray = plain("s", gated=False)
    assert slots(decide(seen(stray, A))) == {0: "a"}


def test_another_podgang_of_that_name_is_left_alone_and_the_pod_is_told() -> None:
    body = stored(
        {"metadata": {"name": "train", "namespace": "default"}, "spec": {"podgroups": []}}
    )
    assert decide(seen(A, there=body)) == Taken(body.metadata, A)
    assert decide(seen(*RUNNING, there=body)) == Rest()


@pytest.mark.parametrize(
    ("pod", "key"),
    [
        (A, KEY),
        (plain("a", labels={names.PODGANG_LABEL: "demo-0"}), None),
        (plain("a", size="none"), None),
        (plain("a", size="10001"), None),
        (plain("a", labels={names.GANG_LABEL: ""}), None),
    ],
    ids=["a plain pod", "a set's", "no size", "too large", "no name"],
)
def test_a_pod_claims_a_plain_gang_by_labels_that_make_sense(
    pod: Pod, key: tuple[str, str] | None
) -> None:
    assert plain_pods.gang_of(pod) == key


@pytest.mark.parametrize(
    ("indices", "text"),
    [([0], "0"), ([0, 1, 2], "0-2"), ([0, 1, 3, 5, 6], "0-1,3,5-6"), ([], "")],
)
def test_indices_are_written_in_runs_and_read_back(indices: list[int], text: str) -> None:
    assert plain_slots.spelled(indices) == text
    found = plain_slots.slots_of(gang_of([f"p{i}" for i in indices], indices))
    assert list(found.values()) == indices


@pytest.mark.parametrize("text", ["x", "1-0", "0,0", "0-99999", "0-1", "2,1", "0,"])
def test_indices_that_do_not_fit_the_pods_are_no_ones(text: str) -> None:
    body = gang_of("abc")
    body.metadata.annotations[names.SLOTS_ANNOTATION] = text
    assert plain_slots.slots_of(body) == {}


def test_its_members_are_seen_by_their_slots_and_what_was_left_is_given_back() -> None:
    pods = {(KEY[0], pod.metadata.name): pod for pod in (*RUNNING[:2], plain("c", size="none"))}
    gang = gang_of("abc", [0, 2, 5])
    members = members_of(gang, pods, {})
    assert [(m.slot, m.pod.metadata.name) for m in members] == [
        (("train", 0), "a"),
        (("train", 2), "b"),
    ]
    booked = reservation({("train", i): f"n{i}" for i in (0, 1, 2, 5)}, State.BOUND, name="train")
    view = GangView(gang, members, booked, base_started=True)
    assert view.stale_slots() == {("train", 1)}
    assert next_step(view, NOW) == Trim(booked, frozenset({("train", 1)}))


def test_what_each_slot_takes_is_written_down_where_pods_of_a_gang_are_not_alike() -> None:
    booked = reservation({("train", 0): "n0"}, State.BOUND, name="train")
    gpus = {"nvidia.com/gpu": 4, "pods": 1}
    wants = [Want("train", 1, gpus), Want("train", 2, {**gpus, "nvidia.com/gpu": 1})]
    asked = GangRequest("default", "train", (), tuple(wants))
    placed = tuple(Placed(want, "n9") for want in wants)
    patch = booking.grown(booked, Placement(asked, placed, (), 1.0), Standing(1.0))
    spec = ReservationSpec.model_validate({**booked.spec.model_dump(), **as_spec(patch)})
    grown = Reservation(booked.metadata, spec, booked.status)
    taken = {slot.index: requests["nvidia.com/gpu"] for _, slot, requests in grown.slots()}
    assert taken == {0: "1", 1: "4", 2: "1"}


def as_spec(patch: JsonObject) -> JsonObject:
    spec = patch["spec"]
    assert isinstance(spec, dict)
    return spec

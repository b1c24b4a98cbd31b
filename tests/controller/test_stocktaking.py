"""All room that is taken counts, once: by pods, by slots, by whoever is about to be bound."""

import random

import msgspec
import pytest

from api.jsons import Json
from api.reservation import State
from api.streams import Pod
from controller.gangs import asking, reporting, stocktaking
from controller.gangs.deciding import Place, Wait, next_step
from controller.gangs.views import GangView
from kube.objects import Key
from scheduler.answers import NoFit
from scheduler.requests import Anchor, GangRequest
from scheduler.snapshot import Hold
from tests.support.chance import dice
from tests.support.clusters import pod
from tests.support.sets import NOW, gang, member, reservation, slots_of, view
from tests.support.stockrooms import LEVELS, Stand, taken

GPU = {"nvidia.com/gpu": 1, "pods": 1}
GANG = gang({"a": (2, 2)})
SLOTS = {("a", 0): "n0", ("a", 1): "n1"}


def keyed(*pods: Pod) -> dict[Key, Pod]:
    return {(p.metadata.namespace, p.metadata.name): p for p in pods}


def pinned_to(node: str, **spec: Json) -> Pod:
    terms: Json = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    required: Json = {"nodeSelectorTerms": terms}
    affinity: Json = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return pod("pinned", spec={"affinity": affinity, **spec})


@pytest.mark.parametrize(
    ("claimant", "node"),
    [
        (pod("p", spec={"nodeName": "n1"}), "n1"),
        (pod("p", status={"nominatedNodeName": "n1"}), "n1"),
        (pinned_to("n1"), "n1"),
        (pinned_to("n1", schedulingGates=[{"name": "any"}]), None),
        (pod("p"), None),
        (pod("p", spec={"nodeName": "n1"}, status={"phase": "Failed"}), None),
    ],
)
def test_a_pod_claims_room_where_it_is_or_is_about_to_be(claimant: Pod, node: str | None) -> None:
    assert stocktaking.claim(claimant) == (Hold(node, GPU) if node else None)


def test_a_slot_counts_until_its_pod_is_bound_and_then_the_pod_does() -> None:
    pods = [member("a", 0, gated=False, node="n0"), member("a", 1)]
    seen = view(GANG, pods, reservation(SLOTS, State.LIFTING))
    assert taken(keyed(*pods), [seen]) == ["n0", "n1"]


@pytest.mark.parametrize("most", [1, 2, 100])
def test_it_does_not_matter_in_how_many_steps_changes_are_counted(most: int) -> None:
    stand = Stand()
    pods = [
        member("a", 0, gated=False, node="n0"),
        member("a", 1),
        pod("p", spec={"nodeName": "n3"}),
    ]
    for each in pods:
        stand.put(each)
    stand.see(view(GANG, pods[:2], reservation(SLOTS, State.LIFTING)))
    steps = 1
    while stand.room.catch_up(most):
        steps += 1
    assert steps == {1: 3, 2: 2, 100: 1}[most]
    assert stand.taken() == ["n0", "n1", "n3"]


def test_a_slot_whose_pod_is_being_replaced_is_kept_for_its_successor() -> None:
    seen = view(gang({"a": (2, 1)}), [member("a", 0)], reservation(SLOTS, State.BOUND))
    assert taken(keyed(member("a", 0)), [seen]) == ["n0", "n1"]


def test_a_lifted_pod_that_a_scheduler_nominates_counts_once() -> None:
    lifted = member("a", 0, gated=False)
    status = msgspec.structs.replace(lifted.status, nominated_node_name="n0")
    pods = [msgspec.structs.replace(lifted, status=status), member("a", 1)]
    seen = view(GANG, pods, reservation(SLOTS, State.LIFTING))
    assert taken(keyed(*pods), [seen]) == ["n0", "n1"]


def test_what_a_gang_that_is_gone_has_reserved_counts_until_it_is_gone_too() -> None:
    assert taken({}, [], [reservation(SLOTS, State.LIFTING)]) == ["n0", "n1"]


def test_a_slot_that_moves_does_not_count_while_it_is_planned_and_does_afterwards() -> None:
    stand = Stand()
    seen = view(GANG, [member("a", 0), member("a", 1)], reservation(SLOTS, State.LIFTING))
    stand.see(seen)
    moving = frozenset({(seen.gang.key, ("a", 1))})
    assert stand.taken(moving) == ["n0"]
    assert stand.taken() == ["n0", "n1"]


def test_what_changes_is_counted_again_and_nothing_twice() -> None:
    stand = Stand()
    gated = [member("a", 0), member("a", 1)]
    for each in gated:
        stand.put(each)
    assert stand.taken() == []
    stand.see(view(GANG, gated, reservation(SLOTS)))
    assert stand.taken() == ["n0", "n1"]
    bound = member("a", 0, gated=False, node="n0")
    stand.put(bound)
    stand.see(view(GANG, [bound, gated[1]], reservation(SLOTS, State.LIFTING)))
    assert stand.taken() == ["n0", "n1"]
    stand.drop(bound)
    stand.see(view(GANG, [gated[1]], reservation(SLOTS, State.LIFTING)))
    assert stand.taken() == ["n0", "n1"]
    stand.see(view(GANG, [gated[1]]))
    assert stand.taken() == []
    lifted = member("a", 1, gated=False, node="n7")
    stand.put(lifted)
    stand.see(view(GANG, [lifted]))
    assert stand.taken() == ["n7"]
    del stand.views[GANG.key]
    stand.room.touch(GANG.key)
    assert stand.taken() == ["n7"]  # the pod is there, whoever it was of


def test_who_is_to_come_to_a_slot_is_known_to_others() -> None:
    seen = view(GANG, [member("a", 0)], reservation(SLOTS, State.LIFTING))
    stand = Stand()
    stand.see(seen)
    found = stand.room.snapshot(LEVELS)
    there = {n: [r.name for r in found.residents[found.row_of[n]]] for n in ("n0", "n1")}
    assert there == {"n0": ["a-0"], "n1": []}


def test_growth_is_asked_for_near_where_the_gang_lives() -> None:
    pods = [member("a", 0, gated=False, node="n0"), member("a", 1)]
    seen = view(gang({"a": (1, 2)}), pods, reservation({("a", 0): "n0"}, State.BOUND))
    step = next_step(seen, NOW)
    assert isinstance(step, Place)
    asked = asking.request(seen, step)
    assert asked.anchors == (Anchor("n0", "a"),)
    assert [(want.clique, want.index) for want in asked.extras] == [("a", 1)]


def refusal(asked: GangRequest) -> NoFit:
    return NoFit(asked, 0, {"nvidia.com/gpu": 8}, {"nvidia.com/gpu": 0}, 1, 1, {})


def test_a_bound_gang_stays_bound_while_only_extras_wait() -> None:
    pods = [member("a", 0, gated=False, node="n0"), member("a", 1)]
    seen = view(gang({"a": (1, 2)}), pods, reservation({("a", 0): "n0"}, State.BOUND))
    step = next_step(seen, NOW)
    assert isinstance(step, Place)
    condition, *_ = reporting.status(seen, step, None, NOW).conditions
    assert (condition.status, condition.message) == ("True", "1 further pods wait for room")


def test_a_bound_gang_whose_minimum_grew_beyond_the_room_is_not_called_scheduled() -> None:
    pods = [member("a", 0, gated=False, node="n0"), member("a", 1)]
    seen = view(GANG, pods, reservation({("a", 0): "n0"}, State.BOUND))
    step = next_step(seen, NOW)
    assert isinstance(step, Place)
    assert slots_of(step.minimum) == [("a", 1)]
    asked = asking.request(seen, step)
    condition, *_ = reporting.status(seen, step, refusal(asked), NOW).conditions
    assert (condition.status, condition.reason) == ("False", "InsufficientCapacity")


def test_a_bound_gang_that_lost_a_pod_says_so_and_stays_scheduled() -> None:
    seen = view(GANG, [member("a", 0, gated=False, node="n0")], reservation(SLOTS, State.BOUND))
    step = next_step(seen, NOW)
    assert step == Wait("AllPodsBound", "a has 1 of 2 pods")


def random_gang(rng: random.Random) -> GangView:
    """The gang at any point of its life: some pods, some slots, not always on the same nodes."""
    pods = [
        member("a", i, gated=gated, node="" if gated else f"n{rng.randrange(3)}")
        for i in range(2)
        if rng.random() < 0.8
        for gated in (rng.random() < 0.5,)
    ]
    slots = {("a", i): f"n{rng.randrange(3)}" for i in range(2) if rng.random() < 0.8}
    return view(GANG, pods, reservation(slots, State.LIFTING) if rng.random() < 0.8 else None)


def test_however_things_changed_on_the_way_the_same_is_taken_as_if_they_always_were_so() -> None:
    rng = dice()
    stand = Stand()
    for _ in range(150):
        what = rng.randrange(3)
        if what == 0:
            name = f"stray-{rng.randrange(4)}"
            stand.put(pod(name, spec={"nodeName": f"n{rng.randrange(5)}"}))
        elif what == 1 and stand.pods:
            stand.drop(stand.pods[rng.choice(sorted(stand.pods))])
        else:
            seen = random_gang(rng)
            for each in seen.members:
                stand.put(each.pod)
            stand.see(seen)
        if rng.random() < 0.3:
            assert stand.taken() == taken(stand.pods, [*stand.views.values()])


def test_a_pod_that_is_leaving_does_not_overdraw_its_node() -> None:
    """It and its slot both count meanwhile, and a neighbour must not be given up for that."""
    stand = Stand()
    large = {"nvidia.com/gpu": "8"}
    raw: Json = "2026-01-02T03:04:05Z"
    stand.put(pod("going", large, spec={"nodeName": "n0"}, metadata={"deletionTimestamp": raw}))
    stand.put(pod("waiting", large, status={"nominatedNodeName": "n0"}))
    assert stand.room.overdrawn("n0") == frozenset()
    stand.put(pod("going", large, spec={"nodeName": "n0"}))
    assert stand.room.overdrawn("n0") == {"nvidia.com/gpu"}


def test_a_daemon_that_is_leaving_is_followed_by_another() -> None:
    stand = Stand()
    large = {"nvidia.com/gpu": "8"}
    owner: Json = {"kind": "DaemonSet", "name": "d", "uid": "uid-d", "controller": True}
    stand.put(
        pod(
            "going", large, spec={"nodeName": "n0"},
            metadata={"deletionTimestamp": "2026-01-02T03:04:05Z", "ownerReferences": [owner]},
        )
    )  # fmt: skip
    stand.put(pod("waiting", large, status={"nominatedNodeName": "n0"}))
    assert stand.room.overdrawn("n0") == {"nvidia.com/gpu"}

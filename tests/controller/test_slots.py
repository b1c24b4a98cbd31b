"""Which places a clique's pods take, as pods come, go, end and are too many."""

from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import pytest

from api.streams import Pod
from controller.workloads import naming
from controller.workloads.expansion import expand
from controller.workloads.making.slots import Slots, index_of, slots
from controller.workloads.views import SetView
from kube.resources import PODCLIQUES
from tests.support.clusters import pod
from tests.support.sets import clique, set_spec
from tests.support.setviews import made, pod_in
from tests.support.worlds import World

NAME = "demo-0-a"


def name(index: int) -> str:
    return naming.pod("set-uid", NAME, index)


def having(count: int, states: dict[int, str]) -> SetView:
    """A set whose clique is to have so many pods, and has these by place."""
    view = made(set_spec(clique("a", count)))
    want = expand(view).cliques[NAME]
    pods = tuple(pod_in(state, want, index) for index, state in states.items())
    return replace(view, pods={NAME: pods}, gangs={})


def found(view: SetView) -> Slots:
    return slots(view, expand(view).cliques[NAME])


def test_all_places_are_made_where_there_are_none() -> None:
    assert found(having(3, {})) == Slots((0, 1, 2), (), tuple(sorted(map(name, range(3)))))


def test_holes_are_filled_from_the_lowest() -> None:
    assert found(having(4, {1: "ready", 5: "ready"})).make == (0, 2)


def test_a_pod_on_its_way_out_keeps_its_place_and_is_referred_to_by_its_successors_name() -> None:
    seen = found(having(2, {0: "ready", 1: "leaving ready"}))
    assert seen.make == ()
    assert seen.remove == ()
    assert seen.referred == tuple(sorted((name(0), name(1))))


def test_one_that_ended_is_removed_and_its_place_stays() -> None:
    seen = found(having(2, {0: "ready", 1: "failed"}))
    assert [each.metadata.name for each in seen.remove] == [name(1)]
    assert seen.make == ()
    assert name(1) in seen.referred


def test_one_that_is_done_keeps_its_place() -> None:
    """Nothing of it is to be done again."""
    seen = found(having(2, {0: "ready", 1: "done"}))
    assert seen == Slots((), (), tuple(sorted((name(0), name(1)))))
    assert [each.metadata.name for each in found(having(1, {0: "ready", 1: "done"})).remove] == [
        name(1)
    ]


@pytest.mark.parametrize(
    ("states", "gone"),
    [
        pytest.param({0: "gated", 1: "ready", 2: "bound"}, 0, id="without a node before all"),
        pytest.param({0: "ready", 1: "bound", 2: "ready"}, 1, id="not ready before ready"),
        pytest.param({0: "ready", 1: "ready", 2: "ready"}, 2, id="of equals the last"),
        pytest.param({0: "failed", 1: "gated", 2: "ready"}, 0, id="ended before all"),
    ],
)
def test_scale_in_takes_whoever_has_got_least_far(states: dict[int, str], gone: int) -> None:
    seen = found(having(2, states))
    assert [each.metadata.name for each in seen.remove] == [name(gone)]
    assert name(gone) not in seen.referred
    assert len(seen.referred) == 2


def test_scale_in_takes_the_youngest_of_equals() -> None:
    view = having(2, {0: "ready", 1: "ready", 2: "ready"})
    made_at = {0: 5, 1: 9, 2: 7}  # minutes past the hour
    pods = tuple(
        msgspec.structs.replace(
            each,
            metadata=msgspec.structs.replace(
                each.metadata, creation_timestamp=datetime(2026, 1, 1, 1, made_at[i], tzinfo=UTC)
            ),
        )
        for i, each in enumerate(view.pods[NAME])
    )
    seen = found(replace(view, pods={NAME: pods}))
    assert [each.metadata.name for each in seen.remove] == [name(1)]


def test_scale_in_takes_a_place_without_a_pod_to_lose_first() -> None:
    seen = found(having(2, {0: "leaving ready", 1: "gated", 2: "ready"}))
    assert seen.remove == ()
    assert seen.referred == tuple(sorted((name(1), name(2))))


def test_scale_in_takes_pods_of_an_older_template_first() -> None:
    view = having(2, {0: "ready", 2: "ready"})
    want = expand(view).cliques[NAME]
    older = pod_in("ready", want, 1, newest=False)
    seen = found(replace(view, pods={NAME: (*view.pods[NAME], older)}))
    assert [each.metadata.name for each in seen.remove] == [name(1)]


def test_a_place_that_the_gang_refers_to_is_filled_before_lower_ones() -> None:
    world = World(set_spec(clique("a", 4)))
    world.settle()
    world.patch(PODCLIQUES, NAME, {"spec": {"replicas": 2}})
    for other in (name(0), name(2)):
        world.delete_pod(other)
    world.settle()
    assert sorted(index_of(each, NAME) for each in world.pods().values()) == [1, 3]
    world.delete_pod(name(3))
    world.settle()
    assert sorted(index_of(each, NAME) for each in world.pods().values()) == [1, 3]


def test_of_two_pods_in_one_place_the_better_one_stays() -> None:
    view = having(1, {0: "ready"})
    twin = pod_in("gated", expand(view).cliques[NAME], 0)
    meta = msgspec.structs.replace(twin.metadata, name="twin", uid="uid-twin")
    twin = msgspec.structs.replace(twin, metadata=meta)
    seen = found(replace(view, pods={NAME: (twin, *view.pods[NAME])}))
    assert [each.metadata.name for each in seen.remove] == ["twin"]
    assert seen.referred == (name(0),)


def test_a_pods_place_is_read_from_its_host_name_which_nobody_can_change() -> None:
    def hosted(hostname: str, label: str) -> Pod:
        labels = {"grove.io/podclique-pod-index": label}
        return pod("x", spec={"hostname": hostname}, metadata={"labels": {**labels}})

    assert index_of(hosted("demo-0-a-7", "3"), NAME) == 7
    assert index_of(hosted("another", "3"), NAME) == 3
    assert index_of(hosted("another", "x"), NAME) == 0


def test_a_number_that_somebody_wrote_is_not_counted_up_to() -> None:
    """A pod that we did not make says it is in a place that no clique has."""
    view = made(set_spec(clique("a", 2)))
    want = expand(view).cliques[NAME]
    forged = pod_in("ready", want, 10**18)
    assert index_of(forged, NAME) == 10**18
    # The gang refers to a pod that is gone, whose place is looked for.
    gone = replace(view, pods={NAME: (forged,)})
    assert found(gone).make == (0,)


def test_no_two_places_of_a_large_clique_have_one_name() -> None:
    assert len({naming.pod("uid", "clique", index) for index in range(10_000)}) == 10_000

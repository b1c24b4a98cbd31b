"""A set expands into exactly Grove's cliques and gangs, the same ones every time."""

from api.jsons import JsonObject
from controller.workloads.expansion import expand, is_too_large
from controller.workloads.wants import Wanted
from kube.resources import PODCLIQUES, SCALING_GROUPS
from tests.support.sets import clique, set_spec
from tests.support.worlds import World

GROUP: JsonObject = {
    "name": "model", "cliqueNames": ["leader", "worker"], "replicas": 3, "minAvailable": 2,
}  # fmt: skip
GROUPED = set_spec(clique("router", 1), clique("leader", 1), clique("worker", 2), groups=[GROUP])


def shape(wanted: Wanted) -> dict[str, dict[str, tuple[int, int]]]:
    return {g.name: {c.name: (c.minimum, c.replicas) for c in g.cliques} for g in wanted.gangs}


def expanded(world: World) -> Wanted:
    view = world.view()
    assert view is not None
    return expand(view)


def test_every_replica_is_a_gang_of_all_its_cliques() -> None:
    spec = set_spec(clique("prefill", 2), clique("decode", 4, 3), replicas=2)
    assert shape(expanded(World(spec))) == {
        "demo-0": {"demo-0-prefill": (2, 2), "demo-0-decode": (3, 4)},
        "demo-1": {"demo-1-prefill": (2, 2), "demo-1-decode": (3, 4)},
    }


def test_copies_of_a_group_beyond_its_minimum_are_gangs_that_wait_for_their_base() -> None:
    wanted = expanded(World(GROUPED))
    assert shape(wanted) == {
        "demo-0": {
            "demo-0-router": (1, 1),
            "demo-0-model-0-leader": (1, 1),
            "demo-0-model-0-worker": (2, 2),
            "demo-0-model-1-leader": (1, 1),
            "demo-0-model-1-worker": (2, 2),
        },
        "demo-0-model-0": {"demo-0-model-2-leader": (1, 1), "demo-0-model-2-worker": (2, 2)},
    }
    assert [gang.base for gang in wanted.gangs] == ["", "demo-0"]
    assert [(group.name, group.copies) for group in wanted.groups] == [("demo-0-model", 3)]


def test_how_many_there_are_is_said_by_the_live_clique_and_group_once_they_are_there() -> None:
    world = World(GROUPED)
    world.settle()
    world.patch(SCALING_GROUPS, "demo-0-model", {"spec": {"replicas": 4}})
    world.patch(PODCLIQUES, "demo-0-router", {"spec": {"replicas": 5}})
    found = shape(expanded(world))
    assert found["demo-0"]["demo-0-router"] == (1, 5)
    assert [*found] == ["demo-0", "demo-0-model-0", "demo-0-model-1"]
    # What the template says later counts for those that are yet to be made.
    world.edit(GROUPED.model_copy(update={"replicas": 2}))
    assert shape(expanded(world))["demo-1"]["demo-1-router"] == (1, 1)


def test_a_clique_that_is_scaled_to_nothing_holds_nobody_back() -> None:
    world = World(GROUPED)
    world.settle()
    world.patch(PODCLIQUES, "demo-0-router", {"spec": {"replicas": 0}})
    assert shape(expanded(world))["demo-0"]["demo-0-router"] == (0, 0)


def test_a_group_below_its_minimum_has_no_scaled_gangs_and_a_smaller_base() -> None:
    world = World(GROUPED)
    world.settle()
    world.patch(SCALING_GROUPS, "demo-0-model", {"spec": {"replicas": 1}})
    found = shape(expanded(world))
    assert [*found] == ["demo-0"]
    assert [*found["demo-0"]] == [
        "demo-0-router", "demo-0-model-0-leader", "demo-0-model-0-worker",
    ]  # fmt: skip


def test_expanding_again_gives_the_same() -> None:
    assert expanded(World(GROUPED)) == expanded(World(GROUPED))


def test_the_template_is_not_changed_by_expanding_it() -> None:
    before = GROUPED.model_dump()
    World(GROUPED).settle()
    assert GROUPED.model_dump() == before


def test_a_set_scaled_part_by_part_beyond_what_anybody_means_is_told_apart() -> None:
    world = World(GROUPED)
    world.settle()
    view = world.view()
    assert view is not None
    assert not is_too_large(view)
    world.patch(SCALING_GROUPS, "demo-0-model", {"spec": {"replicas": 10_000}})
    view = world.view()
    assert view is not None
    assert is_too_large(view)


def test_names_differ_between_sets_of_the_same_name() -> None:
    world, other = World(GROUPED), World(GROUPED, uid="another")
    world.settle()
    other.settle()
    assert len(world.pods()) == len(other.pods()) == 10
    assert world.pods().keys().isdisjoint(other.pods())

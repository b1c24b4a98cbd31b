"""How large a set's gangs are."""

from api.jsons import Json, JsonObject
from policies import gang_sizes, podcliqueset_view
from policies.gang_sizes import GangSizes
from tests.policies.drafts import clique, draft, group


def pod(gpus: Json, *before: JsonObject) -> JsonObject:
    limits: JsonObject = {"nvidia.com/gpu": gpus}
    main: JsonObject = {"name": "main", "resources": {"limits": limits}}
    return {"containers": [main], "initContainers": [*before]}


def sizes(*cliques: JsonObject, groups: tuple[Json, ...] = (), replicas: int = 1) -> GangSizes:
    raw = draft(*cliques, groups=groups)
    spec = raw["spec"]
    assert isinstance(spec, dict)
    spec["replicas"] = replicas
    return gang_sizes.of_set(podcliqueset_view.view(raw))


def test_each_replica_is_a_gang_and_each_copy_beyond_the_minimum_one_more() -> None:
    found = sizes(
        clique("router", counts={"replicas": 2}),
        clique("worker", counts={"replicas": 4}, pod=pod("8")),
        groups=(group("g", "worker", counts={"replicas": 5, "minAvailable": 2}),),
        replicas=3,
    )
    assert found.gangs == 3 * (1 + 3)
    assert found.pods == 2 + 2 * 4
    assert found.gpus == 2 * 4 * 8


def test_what_autoscaling_may_reach_counts() -> None:
    scaled: JsonObject = {"replicas": 2, "autoScalingConfig": {"maxReplicas": 9}}
    found = sizes(clique("a", counts=scaled, pod=pod(1)))
    assert (found.pods, found.gpus) == (9, 9)
    group_scaled: JsonObject = {"replicas": 1, "scaleConfig": {"maxReplicas": 6}}
    found = sizes(clique("a"), groups=(group("g", "a", counts=group_scaled),))
    assert (found.gangs, found.pods) == (6, 1)


def test_gpus_of_init_containers_count_where_they_last_or_are_more() -> None:
    def init(gpus: str, **more: Json) -> JsonObject:
        return {"name": "i", "resources": {"requests": {"amd.com/gpu": gpus}}, **more}

    assert gang_sizes.gpus_of(pod("2", init("3"))) == 3
    assert gang_sizes.gpus_of(pod("2", init("1"))) == 2
    assert gang_sizes.gpus_of(pod("2", init("1", restartPolicy="Always"))) == 3
    assert gang_sizes.gpus_of({}) == 0


def test_an_amount_that_is_none_counts_as_none() -> None:
    odds: list[Json] = ["many", True, None, [1], "-"]
    for odd in odds:
        assert gang_sizes.gpus_of(pod(odd)) == 0

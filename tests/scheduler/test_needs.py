"""A pod takes what Kubernetes says it takes."""

import pytest

from api.jsons import Json, JsonObject
from scheduler import needs
from tests.support.clusters import pod


def container(requests: dict[str, Json], **more: Json) -> JsonObject:
    return {"resources": {"requests": requests}, **more}


def cpu(*, containers: list[Json], init: list[Json] | None = None, **spec: Json) -> int:
    made = pod("p", spec={"containers": containers, "initContainers": init or [], **spec})
    return needs.of_pod(made)["cpu"]


def test_containers_add_up_and_take_one_pod_slot() -> None:
    made = pod("p", {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "2"})
    assert needs.of_pod(made) == {
        "cpu": 500, "memory": 2**30, "nvidia.com/gpu": 2, "pods": 1,
    }  # fmt: skip
    assert cpu(containers=[container({"cpu": "1"}), container({"cpu": "2"})]) == 3000


def test_init_containers_run_one_by_one_so_the_largest_counts() -> None:
    init: list[Json] = [container({"cpu": "3"}), container({"cpu": "5"})]
    assert cpu(containers=[container({"cpu": "1"})], init=init) == 5000
    assert cpu(containers=[container({"cpu": "9"})], init=init) == 9000


def test_a_sidecar_runs_beside_what_starts_after_it() -> None:
    sidecar: Json = container({"cpu": "2"}, restartPolicy="Always")
    late: Json = container({"cpu": "5"})
    assert cpu(containers=[container({"cpu": "1"})], init=[sidecar, late]) == 7000
    assert cpu(containers=[container({"cpu": "1"})], init=[late, sidecar]) == 5000
    assert cpu(containers=[container({"cpu": "6"})], init=[sidecar]) == 8000


def test_overhead_comes_on_top() -> None:
    assert cpu(containers=[container({"cpu": "1"})], overhead={"cpu": "250m"}) == 1250


def test_requests_for_the_whole_pod_replace_the_sum() -> None:
    whole: Json = {"requests": {"cpu": "4"}}
    assert cpu(containers=[container({"cpu": "1"})], resources=whole) == 4000


def test_limits_stand_in_for_requests() -> None:
    limited: Json = {"resources": {"limits": {"cpu": "2"}, "requests": {"memory": "1"}}}
    assert cpu(containers=[limited]) == 2000


def test_what_is_asked_for_the_whole_pod_counts_for_processors_memory_and_huge_pages_only() -> None:
    asked: dict[str, Json] = {"cpu": "1", "ephemeral-storage": "1", "hugepages-2Mi": "2Mi"}
    whole: Json = {"requests": {"cpu": "0", "hugepages-2Mi": "4Mi", "ephemeral-storage": "9"}}
    made = pod("p", spec={"containers": [container(asked)], "resources": whole})
    assert needs.of_pod(made) == {"ephemeral-storage": 1, "hugepages-2Mi": 4 << 20, "pods": 1}


def test_limits_for_the_whole_pod_stand_in_only_where_no_container_asks() -> None:
    whole: Json = {"limits": {"cpu": "4", "memory": "64", "hugepages-2Mi": "4Mi"}}
    asked: dict[str, Json] = {"cpu": "1", "hugepages-2Mi": "2Mi"}
    made = pod("p", spec={"containers": [container(asked)], "resources": whole})
    assert needs.of_pod(made) == {
        "cpu": 1000, "memory": 64, "hugepages-2Mi": 4 << 20, "pods": 1,
    }  # fmt: skip


def test_amounts_are_rounded_once_when_all_are_added_up() -> None:
    assert cpu(containers=[container({"cpu": "100n"}), container({"cpu": "200n"})]) == 1
    assert cpu(containers=[container({"cpu": "0.5m"}), container({"cpu": "0.5m"})]) == 1
    assert cpu(containers=[container({"cpu": "0.6m"}), container({"cpu": "0.5m"})]) == 2


def test_an_amount_of_zero_is_none_at_all() -> None:
    none = pod("p", spec={"containers": [container({})]})
    zero = pod("p", spec={"containers": [container({"cpu": "0"})]})
    assert needs.of_pod(none) == needs.of_pod(zero) == {"pods": 1}


def test_amounts_beyond_any_machine_stay_within_bounds() -> None:
    assert cpu(containers=[container({"cpu": "9E"}), container({"cpu": "9E"})]) == 2**50


@pytest.mark.parametrize(
    ("told", "milli"),
    [
        ({}, 2000),
        ({"allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "2"}}}, 2000),
        ({"allocatedResources": {"cpu": "3"}}, 3000),
        ({"resources": {"requests": {"cpu": "4"}}}, 4000),
        ({"allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "1"}}}, 2000),
    ],
)
def test_a_pod_that_is_being_resized_takes_the_most_of_what_is_said_of_it(
    told: dict[str, Json], milli: int
) -> None:
    spec: JsonObject = {"nodeName": "n", "containers": [container({"cpu": "2"}, name="a")]}
    status: JsonObject = {"containerStatuses": [{"name": "a", **told}]}
    bound = pod("p", spec=spec, status=status)
    assert needs.of_pod(bound)["cpu"] == milli
    unbound = pod("p", spec={**spec, "nodeName": ""}, status=status)
    assert needs.of_pod(unbound)["cpu"] == 2000

"""A pod takes what Kubernetes says it takes."""

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

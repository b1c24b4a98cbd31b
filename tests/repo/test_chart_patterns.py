"""Sets from patterns: let in by the code that the webhook runs, and shaped as they should be."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
import yaml

from api.jsons import Json, JsonObject
from api.podcliqueset import PodCliqueSetSpec
from policies.answers import Allow
from tests.repo.test_examples import judged, spec_of
from tests.support import patterns
from tests.support.chart_pods import listed, mapping
from tests.support.patterns import CHART, EXAMPLES

pytestmark = pytest.mark.cluster  # it needs helm, which `make test-fast` must do without

PATTERNS: Final = ("singleNode", "leaderWorkers", "disaggregated", "pipeline")

Patterned = Callable[[Json], JsonObject]


@pytest.fixture
def patterned(helm: Path, tmp_path: Path) -> Patterned:
    """Renders values that come to one set."""

    def render(values: Json) -> JsonObject:
        file = tmp_path / "values.yaml"
        file.write_text(yaml.safe_dump(values))
        (only,) = patterns.rendered(helm, tmp_path, "-f", file)
        return only

    return render


def example(pattern: str) -> Json:
    (values,) = [
        found for path in EXAMPLES if pattern in (found := yaml.safe_load(path.read_text()))
    ]
    return values  # type: ignore[no-any-return]


def shape(spec: PodCliqueSetSpec) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Pods of each role, and whom it waits for."""
    return {
        clique.name: (clique.spec.replicas, tuple(clique.spec.starts_after))
        for clique in spec.template.cliques
    }


def test_there_is_an_example_of_each_pattern() -> None:
    found = [key for path in EXAMPLES for key in yaml.safe_load(path.read_text())]
    assert sorted(found) == sorted(PATTERNS)
    assert yaml.safe_load((CHART / "values.yaml").read_text()) == {each: {} for each in PATTERNS}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_each_is_let_in_without_a_warning_and_says_nothing_that_is_ignored(
    patterned: Patterned, pattern: str
) -> None:
    manifest = patterned(example(pattern))
    answer = judged(manifest)
    assert isinstance(answer, Allow), answer
    assert answer.warnings == ()
    read = spec_of(manifest).model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert read == manifest["spec"]


def test_a_leader_waits_for_its_workers_and_a_copy_is_whole(patterned: Patterned) -> None:
    spec = spec_of(patterned(example("leaderWorkers")))
    assert shape(spec) == {"leader": (1, ("worker",)), "worker": (3, ())}
    (group,) = spec.template.pod_clique_scaling_groups
    assert (group.clique_names, group.replicas, group.min_available) == (["leader", "worker"], 2, 1)


@pytest.mark.parametrize(
    ("startup", "waits"),
    [("leaderFirst", {"worker": ("leader",)}), ("together", {}), (None, {})],
)
def test_who_waits_for_whom_can_be_chosen(
    patterned: Patterned, startup: str | None, waits: dict[str, tuple[str, ...]]
) -> None:
    role: JsonObject = {"image": "i"}
    chosen: JsonObject = {"startup": startup} if startup else {}
    manifest = patterned({"leaderWorkers": {"m": {"leader": role, "workers": role, **chosen}}})
    found = {name: after for name, (_, after) in shape(spec_of(manifest)).items() if after}
    assert found == waits
    assert isinstance(judged(manifest), Allow)


def test_stages_scale_each_for_itself_and_the_router_waits_for_both(patterned: Patterned) -> None:
    spec = spec_of(patterned(example("disaggregated")))
    assert shape(spec) == {
        "router": (2, ("prefill", "decode")),
        "prefill": (1, ()),
        "decode": (2, ()),
    }
    groups = [group.clique_names for group in spec.template.pod_clique_scaling_groups]
    assert groups == [["prefill"], ["decode"]]


def test_a_pipeline_is_one_group_of_all_its_stages(patterned: Patterned) -> None:
    spec = spec_of(patterned(example("pipeline")))
    (group,) = spec.template.pod_clique_scaling_groups
    assert group.clique_names == ["router", "vision", "reasoning", "code"]
    assert shape(spec)["router"] == (1, ("vision", "reasoning"))


def test_the_rest_of_a_pod_is_kept_and_the_container_main_filled_in(patterned: Patterned) -> None:
    more: list[Json] = [
        {"name": "main", "lifecycle": {"preStop": {"sleep": {"seconds": 5}}}},
        {"name": "metrics", "image": "m"},
    ]
    pod: JsonObject = {"nodeSelector": {"pool": "gpu"}, "containers": more}
    said: JsonObject = {"image": "i", "gpus": 2, "queue": "chat", "podSpec": pod}
    manifest = patterned({"singleNode": {"one": said}})
    assert isinstance(judged(manifest), Allow)
    (clique,) = listed(manifest, "spec", "template", "cliques")
    made = mapping(clique, "spec", "podSpec")
    assert made["nodeSelector"] == {"pool": "gpu"}
    main, other = listed(made, "containers")
    assert (main["image"], other["image"]) == ("i", "m")
    assert mapping(main, "resources", "limits") == {"nvidia.com/gpu": "2"}
    assert "lifecycle" in main
    assert mapping(manifest, "metadata", "labels")["penstock.dev/queue"] == "chat"


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"singleNode": {"a": {"imag": "i"}}}, "imag"),
        ({"singleNode": {"A": {"image": "i"}}}, "'A' does not match"),
        ({"single": {}}, "single"),
        ({"leaderWorkers": {"a": {"leader": {"image": "i"}}}}, "workers"),
        ({"pipeline": {"a": {"stages": []}}}, "/pipeline/a/stages"),
        ({"pipeline": {"a": {"stages": [{"name": "b"}]}}}, "image"),
        ({"disaggregated": {"a": {"router": {"image": "i", "gpu": 1}}}}, "gpu"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(
    patterned: Patterned, values: JsonObject, named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        patterned(values)

"""Who waits for whom: exactly the cliques of the gang that must be up before, and no others."""

from dataclasses import replace

import msgspec
import pytest

from api.jsons import Json, JsonObject
from api.podcliqueset import PodCliqueSetSpec
from controller.workloads.expansion import expand
from controller.workloads.ordering import order_trouble
from controller.workloads.views import SetView
from tests.support.setviews import clique, made, set_spec

IN_ORDER = "CliqueStartupTypeInOrder"
EXPLICIT = "CliqueStartupTypeExplicit"
ANY_ORDER = "CliqueStartupTypeAnyOrder"


def group(name: str, *cliques: str, replicas: int = 3, minimum: int = 2) -> JsonObject:
    names: Json = [*cliques]
    return {"name": name, "cliqueNames": names, "replicas": replicas, "minAvailable": minimum}


def ordered(
    how: str, *cliques: JsonObject, groups: list[JsonObject] | None = None, replicas: int = 1
) -> PodCliqueSetSpec:
    raw = set_spec(*cliques, replicas=replicas, groups=groups).model_dump(by_alias=True)
    raw["template"]["cliqueStartupType"] = how
    return PodCliqueSetSpec.model_validate(raw)


def waits(spec: PodCliqueSetSpec) -> dict[str, list[str]]:
    """Map each clique that waits to whom it waits for."""
    return {
        name: [f"{parent.clique}:{parent.minimum}" for parent in want.waits_for]
        for name, want in expand(made(spec)).cliques.items()
        if want.waits_for
    }


def test_in_any_order_nobody_waits() -> None:
    assert waits(ordered(ANY_ORDER, clique("a", 1), clique("b", 1, startsAfter=["a"]))) == {}


def test_in_order_each_waits_for_the_one_before_in_its_own_replica() -> None:
    spec = ordered(IN_ORDER, clique("a", 4, 2), clique("b", 3), clique("c", 1), replicas=2)
    assert waits(spec) == {
        "demo-0-b": ["demo-0-a:2"], "demo-0-c": ["demo-0-b:3"],
        "demo-1-b": ["demo-1-a:2"], "demo-1-c": ["demo-1-b:3"],
    }  # fmt: skip


def test_explicit_cliques_wait_for_those_they_name() -> None:
    spec = ordered(
        EXPLICIT, clique("a", 1), clique("b", 2), clique("c", 1, startsAfter=["b", "a", "b"])
    )
    assert waits(spec) == {"demo-0-c": ["demo-0-b:2", "demo-0-a:1"]}


def test_names_are_taken_as_a_whole() -> None:
    spec = ordered(
        EXPLICIT, clique("worker", 1), clique("prefill-worker", 2),
        clique("router", 1, startsAfter=["prefill-worker"]),
    )  # fmt: skip
    assert waits(spec) == {"demo-0-router": ["demo-0-prefill-worker:2"]}


def test_outside_of_a_group_all_copies_of_the_base_gang_are_waited_for() -> None:
    spec = ordered(
        EXPLICIT, clique("leader", 1), clique("router", 1, startsAfter=["leader"]),
        groups=[group("model", "leader")],
    )  # fmt: skip
    assert waits(spec) == {"demo-0-router": ["demo-0-model-0-leader:1", "demo-0-model-1-leader:1"]}


def test_inside_a_group_only_the_own_copy_is_waited_for() -> None:
    spec = ordered(
        EXPLICIT, clique("leader", 1), clique("worker", 4, startsAfter=["leader"]),
        groups=[group("model", "leader", "worker")],
    )  # fmt: skip
    assert waits(spec) == {
        f"demo-0-model-{copy}-worker": [f"demo-0-model-{copy}-leader:1"] for copy in range(3)
    }


def test_a_group_waits_for_cliques_and_groups_outside_only_in_the_base_gang() -> None:
    spec = ordered(
        EXPLICIT, clique("store", 1), clique("prefill", 1),
        clique("decode", 1, startsAfter=["store", "prefill"]),
        groups=[group("p", "prefill", replicas=2), group("d", "decode", replicas=2, minimum=1)],
    )  # fmt: skip
    assert waits(spec) == {
        "demo-0-d-0-decode": ["demo-0-store:1", "demo-0-p-0-prefill:1", "demo-0-p-1-prefill:1"]
    }


def test_in_order_a_scaled_gang_skips_to_the_last_earlier_clique_it_has() -> None:
    spec = ordered(
        IN_ORDER, clique("leader", 1), clique("router", 1), clique("worker", 1),
        groups=[group("model", "leader", "worker", replicas=2, minimum=1)],
    )  # fmt: skip
    assert waits(spec) == {
        "demo-0-router": ["demo-0-model-0-leader:1"],
        "demo-0-model-0-worker": ["demo-0-router:1"],
        "demo-0-model-1-worker": ["demo-0-model-1-leader:1"],
    }


def test_in_order_a_group_that_has_no_copy_in_the_base_gang_is_skipped() -> None:
    spec = ordered(
        IN_ORDER, clique("a", 1), clique("b", 1), clique("c", 1),
        groups=[group("model", "b", replicas=1, minimum=0)],
    )  # fmt: skip
    assert waits(spec) == {"demo-0-c": ["demo-0-a:1"]}


def scaled(view: SetView, name: str, replicas: int) -> SetView:
    if name in view.groups:
        there = view.groups[name]
        update = there.spec.model_copy(update={"replicas": replicas})
        return replace(view, groups={**view.groups, name: replace(there, spec=update)})
    lone = view.cliques[name]
    changed = lone.spec.model_copy(update={"replicas": replicas})
    return replace(view, cliques={**view.cliques, name: replace(lone, spec=changed)})


def trouble(view: SetView) -> str:
    return order_trouble(view, expand(view))


PAIR = ordered(IN_ORDER, clique("a", 3, 2), clique("b", 2))
GROUPED = ordered(
    IN_ORDER, clique("a", 1), clique("b", 1), groups=[group("model", "a", replicas=2)]
)


def test_an_order_that_can_complete_is_no_trouble() -> None:
    for spec in (PAIR, GROUPED):
        assert trouble(made(spec)) == ""


@pytest.mark.parametrize(
    ("spec", "name", "replicas", "said"),
    [
        pytest.param(
            PAIR, "demo-0-a", 0,
            "demo-0-b waits for demo-0-a, which must have 2 pods up and is scaled to 0;"
            " scale it up",
            id="a parent without pods",
        ),
        pytest.param(
            GROUPED, "demo-0-model", 0,
            "demo-0-b waits for demo-0-model-0-a, which is not there as long as demo-0-model has"
            " too few copies; scale that up",
            id="a parent's group without copies",
        ),
        pytest.param(PAIR, "demo-0-b", 0, "", id="nobody left who waits"),
    ],
)  # fmt: skip
def test_a_parent_that_was_scaled_away_is_told(
    spec: PodCliqueSetSpec, name: str, replicas: int, said: str
) -> None:
    assert trouble(scaled(made(spec), name, replicas)) == said


def test_a_stored_cycle_is_told_with_its_path() -> None:
    view = made(
        ordered(EXPLICIT, clique("a", 1, startsAfter=["b"]), clique("b", 1, startsAfter=["a"]))
    )
    assert trouble(view) == "cliques wait for each other: demo-0-a → demo-0-b → demo-0-a"


def test_a_clique_that_waits_for_itself_is_told() -> None:
    view = made(ordered(EXPLICIT, clique("a", 1, startsAfter=["a"])))
    assert trouble(view) == "cliques wait for each other: demo-0-a → demo-0-a"


def test_a_parent_that_the_set_does_not_have_is_waited_for_and_told() -> None:
    spec = ordered(EXPLICIT, clique("a", 1, startsAfter=["typo"]))
    assert waits(spec) == {"demo-0-a": ["demo-0-typo:1"]}
    assert trouble(made(spec)) == "demo-0-a waits for demo-0-typo, which the set does not have"


def test_a_set_by_another_name_waits_for_its_own() -> None:
    view = made(PAIR)
    view = replace(view, metadata=msgspec.structs.replace(view.metadata, name="other"), cliques={})
    assert [p.clique for p in expand(view).cliques["other-0-b"].waits_for] == ["other-0-a"]


def test_of_far_more_parents_than_can_be_named_the_first_are_waited_for_and_that_is_told() -> None:
    spec = ordered(
        IN_ORDER, clique("a", 1), clique("b", 1),
        groups=[group("model", "a", replicas=2_000, minimum=2_000)],
    )  # fmt: skip
    view = made(spec)
    assert len(expand(view).cliques["demo-0-b"].waits_for) == 1_024
    assert "waits for more PodCliques than the 1024 that it can name" in trouble(view)

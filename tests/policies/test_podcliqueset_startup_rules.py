import pytest

from api.jsons import JsonObject
from policies.problems import Problem
from tests.policies import drafts
from tests.policies.drafts import CLIQUES, GROUPS, clique, draft, group, only

TYPES = ["AnyOrder", "InOrder", "Explicit"]


def problems(*cliques: JsonObject, startup: str = "Explicit") -> list[Problem]:
    return drafts.problems(draft(*cliques, startup=startup))


def test_a_set_without_cliques_is_refused() -> None:
    assert "at least one clique" in only(drafts.problems(draft(cliques=[])), CLIQUES)


def test_a_group_in_a_set_without_cliques_is_not_offered_any() -> None:
    found = drafts.problems(draft(cliques=[], groups=(group("g", "a"),)))
    assert str(found[1]) == f"{GROUPS}[0].cliqueNames[0]: there is no clique 'a'"


def test_a_startup_type_is_one_of_three() -> None:
    for startup in TYPES:
        assert not problems(clique("a"), startup=startup)
    message = only(problems(clique("a"), startup="Sideways"), "spec.template.cliqueStartupType")
    assert "CliqueStartupTypeExplicit" in message


@pytest.mark.parametrize("startup", TYPES)
def test_a_cycle_is_named_whatever_the_startup_type(startup: str) -> None:
    found = problems(
        clique("first"), clique("prefill", "router"), clique("router", "prefill"), startup=startup
    )
    message = only(found, f"{CLIQUES}[1].spec.startsAfter")
    assert "prefill → router → prefill;" in message


@pytest.mark.parametrize("startup", TYPES)
def test_waiting_for_oneself_is_one_problem_and_no_cycle(startup: str) -> None:
    found = problems(clique("a", "a"), startup=startup)
    message = only(found, f"{CLIQUES}[0].spec.startsAfter[0]")
    assert message == "clique 'a' cannot start after itself"


def test_where_the_order_counts_dependencies_exist_and_are_named_once() -> None:
    found = problems(clique("a"), clique("b", "a", "c", "a", ""))
    assert [str(problem) for problem in found] == [
        f"{CLIQUES}[1].spec.startsAfter[1]: there is no clique 'c'; there are a, b",
        f"{CLIQUES}[1].spec.startsAfter[2]: names 'a' a second time",
        f"{CLIQUES}[1].spec.startsAfter[3]: is empty; name a clique or take the entry out",
    ]


@pytest.mark.parametrize("startup", ["AnyOrder", "InOrder"])
def test_where_nothing_follows_them_loose_dependencies_only_earn_a_warning(startup: str) -> None:
    raw = draft(clique("a"), clique("b", "a", "c", "a"), startup=startup)
    assert [warning.partition(": ")[0] for warning in drafts.warnings(raw)] == [
        f"{CLIQUES}[1].spec.startsAfter[1]",
        f"{CLIQUES}[1].spec.startsAfter[2]",
    ]


def test_the_choice_of_names_is_kept_short() -> None:
    message = only(
        problems(*(clique(f"c{i}") for i in range(7)), clique("d", "e")),
        f"{CLIQUES}[7].spec.startsAfter[0]",
    )
    assert message.endswith("there are c0, c1, c2, c3, c4 and 3 more")


def test_more_cliques_than_are_taken_are_counted_and_their_cycle_is_named() -> None:
    size = 1000
    ring = [clique(f"c{i}", f"c{(i + 1) % size}") for i in range(size)]
    found = problems(*ring)
    assert [problem.path for problem in found] == [f"{CLIQUES}[0].spec.startsAfter", CLIQUES]
    assert "c0 → c1 → c2 → c3 → … 993 more … → c997 → c998 → c999 → c0;" in found[0].message
    assert found[1].message == "at most 64 are taken, got 1000"


def test_a_cycle_of_few_is_named_whole() -> None:
    ring = [clique(f"c{i}", f"c{(i + 1) % 8}") for i in range(8)]
    message = only(problems(*ring), f"{CLIQUES}[0].spec.startsAfter")
    assert "c0 → c1 → c2 → c3 → c4 → c5 → c6 → c7 → c0;" in message


TAKEN: JsonObject = {
    "initContainers": [{"name": "load", "image": "x"}, {"name": "grove-initc", "image": "x"}],
    "containers": [{"name": "grove-initc", "image": "x"}],
    "volumes": [
        {"name": "pod-info-vol", "emptyDir": {}},
        {"name": "mine", "emptyDir": {}},
        {"name": "sa-token-secret-vol", "emptyDir": {}},
    ],
}


@pytest.mark.parametrize("startup", ["InOrder", "Explicit"])
def test_names_of_the_container_that_waits_and_its_volumes_are_free_in_pods_that_wait(
    startup: str,
) -> None:
    found = problems(clique("a"), clique("b", "a", pod=TAKEN), startup=startup)
    spec = f"{CLIQUES}[1].spec.podSpec"
    assert [problem.path for problem in found] == [
        f"{spec}.initContainers[1].name",
        f"{spec}.containers[0].name",
        f"{spec}.volumes[0].name",
        f"{spec}.volumes[2].name",
    ]
    assert "'grove-initc' is given to pods that wait" in found[0].message


@pytest.mark.parametrize("startup", TYPES)
def test_pods_that_wait_for_nobody_may_have_any_names(startup: str) -> None:
    """Grove takes and runs them too."""
    cliques = [clique("a", pod=TAKEN), clique("b", "a")]
    assert not problems(*cliques, startup=startup)
    if startup == "AnyOrder":
        assert not problems(*reversed(cliques), startup=startup)

from typing import Final

import pytest

from api.jsons import Json, JsonObject
from policies import parsing, podcliqueset_rules
from policies.parsing import ParsedSet
from policies.podcliqueset_rules import NamedSet
from policies.problems import Problem

CLIQUES: Final = "spec.template.cliques"
GROUPS: Final = "spec.template.podCliqueScalingGroups"
NONE: Final[JsonObject] = {}
POD: Final[JsonObject] = {"containers": [{"name": "main", "image": "x"}]}


def clique(
    name: str, *after: Json, pod: JsonObject = POD, counts: JsonObject = NONE
) -> dict[str, Json]:
    return {"name": name, "spec": {"startsAfter": [*after], "podSpec": pod, **counts}}


def group(name: str, *members: Json, counts: JsonObject = NONE) -> dict[str, Json]:
    return {"name": name, "cliqueNames": [*members], **counts}


def problems(
    *cliques: Json, groups: tuple[Json, ...] = (), name: str = "llm", startup: str = "AnyOrder"
) -> list[Problem]:
    template: JsonObject = {
        "cliqueStartupType": f"CliqueStartupType{startup}",
        "cliques": [*cliques],
        "podCliqueScalingGroups": [*groups],
    }
    raw: JsonObject = {"metadata": {"name": name}, "spec": {"replicas": 1, "template": template}}
    parsed = parsing.podcliqueset(raw)
    assert isinstance(parsed, ParsedSet), parsed
    return podcliqueset_rules.check(parsed.name, parsed.spec)


def only(found: list[Problem], path: str) -> str:
    assert [problem.path for problem in found] == [path]
    return found[0].message


def test_a_whole_system_passes() -> None:
    assert not problems(
        clique("router"),
        clique("leader", "router", counts={"replicas": 1, "minAvailable": 1}),
        clique("worker", "leader", counts={"replicas": 4, "minAvailable": 2}),
        groups=(group("prefill", "leader", "worker", counts={"replicas": 3, "minAvailable": 2}),),
        startup="Explicit",
    )


def test_a_set_without_cliques_is_refused() -> None:
    assert "at least one clique" in only(problems(), CLIQUES)


@pytest.mark.parametrize("startup", ["AnyOrder", "InOrder", "Explicit"])
def test_a_cycle_is_named_whatever_the_startup_type(startup: str) -> None:
    found = problems(
        clique("first"), clique("prefill", "router"), clique("router", "prefill"), startup=startup
    )
    message = only(found, f"{CLIQUES}[1].spec.startsAfter")
    assert "prefill → router → prefill;" in message


def test_waiting_for_oneself_is_one_problem_and_no_cycle() -> None:
    message = only(problems(clique("a", "a")), f"{CLIQUES}[0].spec.startsAfter[0]")
    assert message == "clique 'a' cannot start after itself"


def test_dependencies_must_exist_and_be_named_once() -> None:
    found = problems(clique("a"), clique("b", "a", "c", "a"))
    assert [str(problem) for problem in found] == [
        f"{CLIQUES}[1].spec.startsAfter[1]: there is no clique 'c'; there are a, b",
        f"{CLIQUES}[1].spec.startsAfter[2]: names 'a' a second time",
    ]


def test_the_choice_of_names_is_kept_short() -> None:
    message = only(
        problems(*(clique(f"c{i}") for i in range(7)), clique("d", "e")),
        f"{CLIQUES}[7].spec.startsAfter[0]",
    )
    assert message.endswith("there are c0, c1, c2, c3, c4 and 3 more")


@pytest.mark.parametrize("name", ["Upper", "-a", "a-", "a.b", "a_b", "ä", "a\n", "a b"])
def test_names_are_dns_labels(name: str) -> None:
    assert "not a DNS label" in only(problems(clique(name)), f"{CLIQUES}[0].name")
    assert "not a DNS label" in only(problems(clique("a"), name=name), "metadata.name")
    found = problems(clique("a"), groups=(group(name, "a"),))
    assert "not a DNS label" in only(found, f"{GROUPS}[0].name")


@pytest.mark.parametrize("name", ["a", "0", "a-b", "a--b", "9z"])
def test_good_labels_pass(name: str) -> None:
    assert not problems(clique(name), groups=(group(name, name),), name=name)


def test_a_set_without_a_name_is_told_so() -> None:
    assert "not a DNS label" in only(problems(clique("a"), name=""), "metadata.name")


def test_two_of_one_name_are_refused_at_each_later_one() -> None:
    found = problems(clique("a"), clique("b"), clique("a"), clique("a"))
    assert [p.path for p in found] == [f"{CLIQUES}[2].name", f"{CLIQUES}[3].name"]
    twins = (group("g", "a"), group("g", "b"))
    assert only(problems(clique("a"), clique("b"), groups=twins), f"{GROUPS}[1].name")


@pytest.mark.parametrize(
    ("replicas", "minimum", "field"),
    [
        pytest.param(4, 4, None, id="all of them"),
        pytest.param(4, 1, None, id="one of them"),
        pytest.param(4, None, None, id="minimum left out"),
        pytest.param(4, 5, "minAvailable", id="minimum above replicas"),
        pytest.param(4, 0, "minAvailable", id="minimum of zero"),
        pytest.param(0, None, "replicas", id="no replicas"),
        pytest.param(0, 1, "replicas", id="no replicas is said once"),
    ],
)
def test_minimum_can_be_reached(replicas: int, minimum: int | None, field: str | None) -> None:
    counts: JsonObject = {"replicas": replicas}
    if minimum is not None:
        counts["minAvailable"] = minimum
    expected = [] if field is None else [field]
    alone = problems(clique("a", counts=counts))
    assert [p.path for p in alone] == [f"{CLIQUES}[0].spec.{name}" for name in expected]
    grouped = problems(clique("a"), groups=(group("g", "a", counts=counts),))
    assert [p.path for p in grouped] == [f"{GROUPS}[0].{name}" for name in expected]


def test_groups_take_cliques_that_exist_and_are_free() -> None:
    found = problems(
        clique("a"),
        clique("b"),
        groups=(group("g", "a", "a"), group("h", "a", "c"), group("i")),
    )
    assert [str(problem) for problem in found] == [
        f"{GROUPS}[0].cliqueNames[1]: clique 'a' is in group 'g' already",
        f"{GROUPS}[1].cliqueNames[0]: clique 'a' is in group 'g' already",
        f"{GROUPS}[1].cliqueNames[1]: there is no clique 'c'; there are a, b",
        f"{GROUPS}[2].cliqueNames: is empty; name the cliques to scale",
    ]


def test_a_group_in_a_set_without_cliques_is_not_offered_any() -> None:
    found = problems(groups=(group("g", "a"),))
    assert str(found[1]) == f"{GROUPS}[0].cliqueNames[0]: there is no clique 'a'"


@pytest.mark.parametrize(
    ("set_name", "group_name", "clique_name", "fits"),
    [
        ("s" * 20, None, "c" * 25, True),
        ("s" * 20, None, "c" * 26, False),
        ("s" * 15, "g" * 15, "c" * 15, True),
        ("s" * 15, "g" * 15, "c" * 16, False),
        ("s" * 15, "g" * 31, "c" * 5, False),
    ],
)
def test_names_share_45_characters(
    set_name: str,
    group_name: str | None,
    clique_name: str,
    fits: bool,  # noqa: FBT001
) -> None:
    groups = () if group_name is None else (group(group_name, clique_name),)
    found = problems(clique(clique_name), groups=groups, name=set_name)
    if fits:
        assert not found
    else:
        assert "45 fit" in only(found, f"{CLIQUES}[0].name")


@pytest.mark.parametrize(
    ("pod", "field", "fix"),
    [
        pytest.param({}, "containers", "at least one container", id="nothing"),
        pytest.param({"containers": []}, "containers", "at least one container", id="empty"),
        pytest.param({"containers": "x"}, "containers", "at least one container", id="text"),
        pytest.param({**POD, "nodeName": "n1"}, "nodeName", "use nodeSelector", id="on a node"),
        pytest.param(
            {**POD, "schedulerName": "volcano"},
            "schedulerName",
            "leave schedulerName out",
            id="foreign scheduler",
        ),
    ],
)
def test_pods_that_could_not_be_released_are_refused(pod: JsonObject, field: str, fix: str) -> None:
    message = only(problems(clique("a", pod=pod)), f"{CLIQUES}[0].spec.podSpec.{field}")
    assert fix in message


@pytest.mark.parametrize("scheduler", ["", "default-scheduler"])
def test_the_schedulers_own_name_may_be_written(scheduler: str) -> None:
    assert not problems(clique("a", pod={**POD, "schedulerName": scheduler, "nodeName": ""}))


def test_a_set_of_more_pods_than_anybody_means_is_refused() -> None:
    many: JsonObject = {"replicas": 3000}
    inside = group("g", "a", counts={"replicas": 6})
    assert not problems(
        clique("a", counts=many), clique("b", counts={"replicas": 2000}), groups=(inside,)
    )
    found = problems(
        clique("a", counts=many), clique("b", counts={"replicas": 2001}), groups=(inside,)
    )
    assert "20001 pods" in only(found, "spec.replicas")


def test_a_clique_may_not_be_called_like_one_in_a_copy_of_a_group() -> None:
    found = problems(clique("g-0-c"), clique("c"), groups=(group("g", "c"),))
    assert "copy 0 of group 'g'" in only(found, f"{CLIQUES}[0].name")
    two = (group("a", "b-0-c"), group("a-0-b", "c"))
    crossed = problems(clique("b-0-c"), clique("c"), groups=two)
    assert [problem.path for problem in crossed] == [f"{CLIQUES}[{i}].name" for i in (0, 1)]
    assert not problems(clique("g-x-c"), clique("g-0-d"), clique("c"), groups=(group("g", "c"),))


def test_all_problems_come_at_once_the_cycle_before_the_rest() -> None:
    found = problems(clique("A", "b", counts={"replicas": 0}), clique("b", "A", pod={}))
    assert [problem.path for problem in found] == [
        f"{CLIQUES}[0].spec.startsAfter",
        f"{CLIQUES}[0].name",
        f"{CLIQUES}[0].spec.replicas",
        f"{CLIQUES}[1].spec.podSpec.containers",
    ]


def test_no_rule_is_left_out_of_the_tuple() -> None:
    written = {
        name
        for name, value in vars(podcliqueset_rules).items()
        if getattr(value, "__annotations__", {}).get("of") is NamedSet and name[0] != "_"
    }
    assert written == {getattr(rule, "__name__", "") for rule in podcliqueset_rules.RULES}

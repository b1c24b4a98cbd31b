import pytest

from api.jsons import Json, JsonObject
from policies.problems import Problem
from tests.policies import drafts
from tests.policies.drafts import CLIQUES, GROUPS, clique, draft, group, only


def problems(
    *cliques: JsonObject, groups: tuple[JsonObject, ...] = (), name: str = "llm"
) -> list[Problem]:
    return drafts.problems(draft(*cliques, groups=groups, name=name))


def test_a_whole_system_passes() -> None:
    assert not problems(
        clique("router"),
        clique("leader", "router", counts={"replicas": 1, "minAvailable": 1}),
        clique("worker", "leader", counts={"replicas": 4, "minAvailable": 2}),
        groups=(group("prefill", "leader", "worker", counts={"replicas": 3, "minAvailable": 2}),),
    )


@pytest.mark.parametrize("name", ["Upper", "-a", "a-", "a.b", "a_b", "ä", "a\n", "a b", ""])
def test_names_are_dns_labels(name: str) -> None:
    assert "not a DNS label" in only(problems(clique(name)), f"{CLIQUES}[0].name")
    assert "not a DNS label" in only(problems(clique("a"), name=name), "metadata.name")
    found = problems(clique("a"), groups=(group(name, "a"),))
    assert "not a DNS label" in only(found, f"{GROUPS}[0].name")


@pytest.mark.parametrize("name", ["a", "0", "a-b", "a--b", "9z"])
def test_good_labels_pass(name: str) -> None:
    assert not problems(clique(name), groups=(group(name, name),), name=name)


@pytest.mark.parametrize(
    ("metadata", "total"),
    [({"generateName": "s" * 40}, 46), ({"name": "", "generateName": "s" * 40}, 46), ({}, None)],
)
def test_a_name_yet_to_be_generated_counts_with_its_tail(
    metadata: JsonObject, total: int | None
) -> None:
    found = drafts.problems({**draft(clique("c")), "metadata": metadata})
    if total is None:
        assert "not a DNS label" in only(found, "metadata.name")
    else:
        assert [problem.path for problem in found] == ["metadata.name", f"{CLIQUES}[0].name"]
        assert f"{total} characters" in found[0].message


def test_two_of_one_name_are_refused_at_each_later_one() -> None:
    found = problems(clique("a"), clique("b"), clique("a"), clique("a"))
    assert [p.path for p in found] == [f"{CLIQUES}[2].name", f"{CLIQUES}[3].name"]
    twins = (group("g", "a"), group("g", "b"))
    assert only(problems(clique("a"), clique("b"), groups=twins), f"{GROUPS}[1].name")


@pytest.mark.parametrize(
    ("first", "second", "fits"),
    [
        ("x", "y", True),
        ("x", "x", False),
        (None, None, True),
        ("", "", True),
        ("b", None, False),
    ],
)
def test_roles_differ_and_a_role_left_out_is_the_cliques_name(
    first: str | None,
    second: str | None,
    fits: bool,  # noqa: FBT001
) -> None:
    found = problems(
        clique("a", counts={"roleName": first}), clique("b", counts={"roleName": second})
    )
    if fits:
        assert not found
    else:
        assert f"role of {CLIQUES}[0]" in only(found, f"{CLIQUES}[1].spec.roleName")


@pytest.mark.parametrize(
    ("replicas", "minimum", "field"),
    [
        pytest.param(4, 4, None, id="all of them"),
        pytest.param(4, 1, None, id="one of them"),
        pytest.param(4, None, None, id="minimum left out"),
        pytest.param(4, 5, "minAvailable", id="minimum above replicas"),
        pytest.param(4, 0, "minAvailable", id="minimum of zero"),
        pytest.param(-1, None, "replicas", id="fewer than none is said once"),
        pytest.param(-1, 1, "replicas", id="fewer than none"),
        pytest.param(10_001, 1, "replicas", id="beyond the bound"),
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


def test_no_copies_of_a_group_are_refused_but_no_pods_of_a_clique_mean_one() -> None:
    assert not problems(clique("a", counts={"replicas": 0}))
    found = problems(clique("a"), groups=(group("g", "a", counts={"replicas": 0}),))
    assert only(found, f"{GROUPS}[0].replicas") == "must be at least 1, got 0"


def test_a_set_has_no_fewer_copies_than_none() -> None:
    assert not drafts.problems(drafts.edited(draft(), "spec/replicas", 0))
    found = drafts.problems(drafts.edited(draft(), "spec/replicas", -1))
    assert only(found, "spec.replicas") == "must be at least 0, got -1"


@pytest.mark.parametrize(
    ("lowest", "highest", "expected"),
    [
        pytest.param(2, 4, [], id="around the counts"),
        pytest.param(None, 4, [], id="lowest left out"),
        pytest.param(1, 4, ["minReplicas"], id="below the minimum"),
        pytest.param(5, 4, ["maxReplicas"], id="the wrong way round"),
        pytest.param(2, 3, ["maxReplicas"], id="to less than is asked for"),
    ],
)
def test_a_clique_scales_within_reach(
    lowest: int | None, highest: int, expected: list[str]
) -> None:
    scaling: JsonObject = {"minReplicas": lowest, "maxReplicas": highest}
    counts: JsonObject = {"replicas": 4, "minAvailable": 2, "autoScalingConfig": scaling}
    found = problems(clique("a", counts=counts))
    path = f"{CLIQUES}[0].spec.autoScalingConfig"
    assert [problem.path for problem in found] == [f"{path}.{field}" for field in expected]


@pytest.mark.parametrize(
    ("lowest", "highest", "expected"),
    [
        pytest.param(2, 4, [], id="around the counts"),
        pytest.param(2, 3, [], id="to less than is asked for is let be"),
        pytest.param(1, 4, ["minReplicas"], id="below the minimum"),
        pytest.param(5, 4, ["maxReplicas"], id="the wrong way round"),
        pytest.param(None, 3, ["maxReplicas"], id="lowest left out is replicas"),
    ],
)
def test_a_group_scales_within_reach(lowest: int | None, highest: int, expected: list[str]) -> None:
    scaling: JsonObject = {"minReplicas": lowest, "maxReplicas": highest}
    counts: JsonObject = {"replicas": 4, "minAvailable": 2, "scaleConfig": scaling}
    found = problems(clique("a"), groups=(group("g", "a", counts=counts),))
    path = f"{GROUPS}[0].scaleConfig"
    assert [problem.path for problem in found] == [f"{path}.{field}" for field in expected]


def test_a_member_is_scaled_by_its_group_alone() -> None:
    scaled = clique("a", counts={"autoScalingConfig": {"maxReplicas": 2}})
    assert not problems(scaled)
    message = only(
        problems(scaled, groups=(group("g", "a"),)), f"{CLIQUES}[0].spec.autoScalingConfig"
    )
    assert "write scaleConfig there" in message


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


@pytest.mark.parametrize("delay", ["4h", "1h30m", "300ms", "0.5s", None])
def test_a_termination_delay_is_a_duration(delay: str | None) -> None:
    assert not drafts.problems(draft(terminationDelay=delay))


@pytest.mark.parametrize("delay", ["0s", "0", "-4h", "4 hours", "4", "", "PT4H"])
def test_a_termination_delay_is_longer_than_nothing(delay: str) -> None:
    found = drafts.problems(draft(terminationDelay=delay))
    assert repr(delay) in only(found, "spec.template.terminationDelay")


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
        # Told at every name that counts.
        paths = ["metadata.name", *([f"{GROUPS}[0].name"] if groups else []), f"{CLIQUES}[0].name"]
        assert [problem.path for problem in found] == paths
        assert all("45 fit" in problem.message for problem in found)


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
    found = problems(clique("A", "b", counts={"replicas": -1}), clique("b", "A", pod={}))
    assert [problem.path for problem in found] == [
        f"{CLIQUES}[0].spec.startsAfter",
        f"{CLIQUES}[0].name",
        f"{CLIQUES}[0].spec.replicas",
        f"{CLIQUES}[1].spec.podSpec.containers",
    ]


BUDGET = "spec.updateStrategy.rollingUpdate.maxUnavailable"


def with_budget(groups: tuple[JsonObject, ...] = (), **budget: int | str) -> list[Problem]:
    raw = draft(clique("a"), clique("b"), groups=groups)
    spec = raw["spec"]
    assert isinstance(spec, dict)
    strategy: JsonObject = {"type": "RollingRecreate", "rollingUpdate": {**budget}}
    return drafts.problems({**raw, "spec": {**spec, "updateStrategy": strategy}})


@pytest.mark.parametrize("nothing", [0, "0%", "00%"])
def test_an_update_must_be_able_to_begin(nothing: int | str) -> None:
    assert "raise one" in only(with_budget(maxUnavailable=nothing), BUDGET)
    assert "raise one" in only(with_budget(maxUnavailable=nothing, maxSurge=nothing), BUDGET)
    assert not with_budget(maxUnavailable=nothing, maxSurge="1%")


def test_copies_of_a_group_have_no_surplus_and_need_a_budget() -> None:
    grouped = (group("g", "a"),)
    assert "in place" in only(with_budget(grouped, maxUnavailable=0, maxSurge=1), BUDGET)
    assert not with_budget(grouped, maxUnavailable="10%", maxSurge=1)
    assert not with_budget(grouped, maxSurge=1)


@pytest.mark.parametrize("share", ["101%", "5", "-1%", "half", True, -1, 1.5, "1 %", "10%\n"])
def test_a_budget_is_a_count_or_a_percentage(share: Json) -> None:
    raw = draft(clique("a"))
    spec = raw["spec"]
    assert isinstance(spec, dict)
    strategy: JsonObject = {"type": "RollingRecreate", "rollingUpdate": {"maxSurge": share}}
    found = drafts.problems({**raw, "spec": {**spec, "updateStrategy": strategy}})
    assert "such as 25%" in only(found, "spec.updateStrategy.rollingUpdate.maxSurge")


SCALES: JsonObject = {"maxReplicas": 4}


@pytest.mark.parametrize(
    ("alone", "together", "fits"),
    [(SCALES, SCALES, False), (SCALES, None, True), (None, SCALES, True), (None, None, True)],
)
def test_a_clique_and_a_group_of_one_name_do_not_both_scale(
    alone: Json,
    together: Json,
    fits: bool,  # noqa: FBT001
) -> None:
    """Grove takes any, and runs all but those whose autoscalers would be one."""
    found = problems(
        clique("x", counts={"autoScalingConfig": alone} if alone else {}),
        clique("m"),
        groups=(group("x", "m", counts={"scaleConfig": together} if together else {}),),
    )
    if fits:
        assert not found
    else:
        assert f"name of {GROUPS}[0]" in only(found, f"{CLIQUES}[0].name")


def test_a_member_may_be_called_like_its_group_that_scales() -> None:
    assert not problems(clique("x"), groups=(group("x", "x", counts={"scaleConfig": SCALES}),))

import jsonpatch
import orjson
from hypothesis import given
from hypothesis import strategies as st

from api.jsons import Json, JsonObject
from policies.answers import Allow, Refuse
from policies.podcliqueset_defaults import defaulted, holding
from policies.problems import Problem
from tests.policies import drafts
from tests.policies.chaos import EVERYTHING, JSONS, broken_sets, paths, replaced, sets
from tests.policies.drafts import CLIQUES, GROUPS, clique, cluster, draft, edited, group, judged

CLUSTER = cluster("net", node={"cpu": 64_000}, domains={"example.com/rack": {"cpu": 1}})


def found(raw: JsonObject) -> list[str]:
    return [problem.path for problem in drafts.problems(raw, known=CLUSTER)]


def test_a_set_of_every_field_is_let_in_but_for_one_old_spelling() -> None:
    assert found(EVERYTHING) == ["spec.template.topologyConstraint.packDomain"]


def test_a_set_is_let_in_with_its_defaults_and_its_finalizer() -> None:
    raw = draft(clique("a"))
    assert judged(raw) == Allow((*defaulted(raw).patch, *holding(raw)))


def test_a_set_that_is_changed_is_given_no_finalizer_again() -> None:
    raw = draft(clique("a"))
    assert judged(edited(raw, "spec/replicas", 2), raw) == Allow(defaulted(raw).patch)


def test_wrong_types_and_broken_rules_are_told_together() -> None:
    raw = edited(draft(clique("a", "b"), clique("b", "a"), clique("C")), "spec/replicas", "3")
    assert found(edited(raw, "spec/template/cliques/2/labels", ["x"])) == [
        f"{CLIQUES}[0].spec.startsAfter",
        "spec.replicas",
        f"{CLIQUES}[2].labels",
        f"{CLIQUES}[2].name",
    ]


def test_a_name_that_cannot_be_read_makes_nothing_else_wrong() -> None:
    raw = draft(
        clique("a", 4),
        clique(7),
        clique("b", "c"),
        groups=(group("g", "c", "a"), group({}, "b")),
        resourceSharing=[
            {"name": 1, "scope": "AllReplicas", "filter": {"childScalingGroupNames": ["h"]}}
        ],
    )
    assert found(raw) == [
        f"{CLIQUES}[0].spec.startsAfter[0]",
        f"{CLIQUES}[1].name",
        "spec.template.resourceSharing[0].name",
        f"{GROUPS}[1].name",
    ]


def test_counts_that_cannot_be_read_make_nothing_else_wrong() -> None:
    counts: JsonObject = {"replicas": "4", "minAvailable": 2}
    scaling: JsonObject = {"minReplicas": [], "maxReplicas": 1}
    raw = draft(
        clique("a", counts=counts),
        clique("b", counts={"replicas": 1, "minAvailable": {}, "autoScalingConfig": scaling}),
        groups=(group("g", "a", counts={**counts, "scaleConfig": scaling}),),
    )
    assert found(raw) == [
        f"{CLIQUES}[0].spec.replicas",
        f"{CLIQUES}[1].spec.minAvailable",
        f"{CLIQUES}[1].spec.autoScalingConfig.minReplicas",
        f"{GROUPS}[0].replicas",
        f"{GROUPS}[0].scaleConfig.minReplicas",
    ]


def test_what_is_missing_is_told_once() -> None:
    assert found({"metadata": {"name": "x"}}) == ["spec"]
    assert found({"metadata": {"name": "x"}, "spec": {}}) == ["spec.template"]
    assert found({"metadata": {"name": "x"}, "spec": {"template": {}}}) == [CLIQUES]
    assert found(draft({})) == [f"{CLIQUES}[0].name", f"{CLIQUES}[0].spec"]
    assert found(draft({"name": "a", "spec": {}})) == [f"{CLIQUES}[0].spec.podSpec"]


def test_where_a_rule_and_the_shape_speak_of_one_field_the_rule_does() -> None:
    (problem,) = drafts.problems(draft(clique("")))
    assert "not a DNS label" in problem.message


@given(broken_sets())
def test_anything_anywhere_is_answered_in_short_lines(raw: JsonObject) -> None:
    answer = judged(raw, known=CLUSTER)
    if isinstance(answer, Refuse):
        assert answer.problems
        assert all(str(problem).isprintable() for problem in answer.problems)
        assert len(set(answer.problems)) == len(answer.problems)


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "x"]), JSONS, max_size=3))
def test_any_object_is_answered(raw: JsonObject) -> None:
    judged(raw, known=CLUSTER)


@given(sets())
def test_what_is_let_in_once_is_let_in_again_with_nothing_to_fill_in(raw: JsonObject) -> None:
    answer = judged(raw)
    if isinstance(answer, Allow):
        again = judged(jsonpatch.apply_patch(raw, list(answer.patch)))
        assert again == Allow(warnings=answer.warnings)


def one_wrong_type(at: Json) -> Json:
    return 7 if isinstance(at, str | dict | list) else "seven"


def test_a_wrong_type_in_any_one_place_is_told_at_that_place_alone() -> None:
    """What is opaque to the models is left to the definitions."""
    good = orjson.loads(orjson.dumps(EVERYTHING))
    good["spec"]["template"]["topologyConstraint"] = {
        "topologyName": "net",
        "pack": {"required": "zone"},
    }
    assert found(good) == []
    tried = 0
    for path in paths(good):
        opaque = {"podSpec", "templateSpec", "metrics"}.intersection(path[:-1])
        if len(path) < 2 or path[0] != "spec" or opaque:
            continue
        at: Json = good
        for step in path:
            at = at[step]  # type: ignore[index]
        where = spelled(path)
        told = found(replaced(good, path, one_wrong_type(at)))
        assert told, where
        assert all(problem.startswith(where) for problem in told), (where, told)
        tried += 1
    assert tried > 70


def spelled(path: tuple[str | int, ...]) -> str:
    steps = [f".{step}" if str(step).isalpha() else f"[{step}]" for step in path]
    return "".join(steps).removeprefix(".")


def test_a_flood_of_problems_costs_little_and_is_cut() -> None:
    bad: list[Json] = [clique(f"C{i}", "x", "y", pod={}) for i in range(64)]
    answer = judged(draft(cliques=bad))
    assert isinstance(answer, Refuse)
    assert answer.message.endswith(" more")
    assert Problem(
        f"{CLIQUES}[63].spec.podSpec.containers", "a pod needs at least one container"
    ) in (answer.problems)

"""What pods hold more of than rules look at is refused, so that nothing hides behind it."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import policies
from api.cliques import MAX_CLIQUES
from api.jsons import Json, JsonObject
from api.podcliqueset import PodCliqueSetSpec
from api.topology import ClusterTopologyBindingSpec
from policies import bounds, parsing, reading
from policies.answers import Allow, Answer, Refuse
from policies.policy import BUILT_IN, Policy
from tests.policies import drafts
from tests.policies.drafts import POD, clique, draft
from tests.support import gangpods
from tests.support.edits import edited

SET_POD: Final = "spec.template.cliques[0].spec.podSpec"
PLACES: Final = {
    "initContainers": "initContainers",
    "containers": "containers",
    "volumes": "volumes",
    "env": "containers[0].env",
    "envFrom": "containers[0].envFrom",
    "ports": "containers[0].ports",
    "volumeMounts": "containers[0].volumeMounts",
    "add": "containers[0].securityContext.capabilities.add",
    "drop": "containers[0].securityContext.capabilities.drop",
    "sysctls": "securityContext.sysctls",
    bounds.TERMS: bounds.TERMS_PATH,
}
WARNED: Final = Policy.model_validate({"mode": "off"})
ENFORCED: Final = Policy.model_validate(
    {
        "rules": [
            {"id": "baseline", "podSecurity": "baseline"},
            {"id": "images", "images": {"deny": ["*bad*"]}},
        ]
    }
)


def one(field: str, i: int) -> Json:
    """One thing of a list that no rule minds."""
    if field in ("add", "drop"):
        return "CHOWN"
    if field == bounds.TERMS:
        return {"matchExpressions": [{"key": "k", "operator": "Exists"}]}
    more: dict[str, JsonObject] = {
        "ports": {"containerPort": 80},
        "volumeMounts": {"mountPath": "/m"},
        "volumes": {"emptyDir": {}},
        "sysctls": {"name": "kernel.shm_rmid_forced", "value": "1"},
    }
    return {"name": f"n{i}", **more.get(field, {})}


def filled(field: str, count: int) -> list[Json]:
    return [one(field, i) for i in range(count)]


def with_pod(pod: JsonObject) -> JsonObject:
    return draft(clique("a", pod=pod))


def pod_with(path: str, value: Json) -> JsonObject:
    return edited({"spec": POD}, {f"spec.{path}": value})["spec"]  # type: ignore[return-value]


def set_answer(pod: JsonObject, policy: Policy, before: JsonObject | None = None) -> Answer:
    return drafts.asked(with_pod(pod), before, policy=policy)


def pod_answer(pod: JsonObject, policy: Policy) -> Answer:
    return gangpods.judged(gangpods.pod(gangpods.PLAIN, pod), policy)


def told(answer: Answer) -> list[str]:
    """What is refused for being too much."""
    found = answer.problems if isinstance(answer, Refuse) else ()
    return [each.path for each in found if "at most" in each.message]


@pytest.mark.parametrize("policy", [BUILT_IN, WARNED, ENFORCED], ids=["none", "off", "enforced"])
@pytest.mark.parametrize("field", PLACES)
def test_as_many_as_rules_look_at_are_let_in_and_one_more_is_not(
    field: str, policy: Policy
) -> None:
    most, path = bounds.MOST[field], PLACES[field]
    full = pod_with(path, filled(field, most))
    assert isinstance(set_answer(full, policy), Allow)
    assert isinstance(pod_answer(full, policy), Allow)
    over = pod_with(path, filled(field, most + 1))
    assert told(set_answer(over, policy)) == [f"{SET_POD}.{path}"]
    assert told(pod_answer(over, policy)) == [f"spec.{path}"]


def test_containers_that_come_later_are_counted_too() -> None:
    # Sets may have none, and neither may new pods; the API server is who says so of these.
    most = bounds.MOST["ephemeralContainers"]
    field = "ephemeralContainers"
    assert isinstance(pod_answer(pod_with(field, filled(field, most)), BUILT_IN), Allow)
    over = pod_with(field, filled(field, most + 1))
    assert told(pod_answer(over, BUILT_IN)) == [f"spec.{field}"]


@pytest.mark.parametrize("path", ["containers[0].image", "volumes[0].image.reference"])
def test_an_image_that_patterns_do_not_see_whole_is_refused(path: str) -> None:
    base: JsonObject = {**POD, "volumes": [{"name": "v", "image": {}}]}

    def pod(length: int) -> JsonObject:
        return edited({"spec": base}, {f"spec.{path}": "x" * length})["spec"]  # type: ignore[return-value]

    assert isinstance(set_answer(pod(bounds.LONGEST_IMAGE), BUILT_IN), Allow)
    assert told(set_answer(pod(bounds.LONGEST_IMAGE + 1), BUILT_IN)) == [f"{SET_POD}.{path}"]
    assert told(pod_answer(pod(bounds.LONGEST_IMAGE + 1), BUILT_IN)) == [f"spec.{path}"]


BEHIND: Final[dict[str, Json]] = {
    "volumes": {"name": "host", "hostPath": {"path": "/"}},
    "containers": {"name": "root", "image": "bad", "securityContext": {"privileged": True}},
    "initContainers": {"name": "root", "image": "bad"},
}


@pytest.mark.parametrize("field", BEHIND)
def test_nothing_hides_behind_what_rules_look_at(field: str) -> None:
    for before in (0, bounds.MOST[field] - 1, bounds.MOST[field], bounds.MOST[field] + 50):
        pod = pod_with(field, [*filled(field, before), BEHIND[field]])
        assert isinstance(set_answer(pod, ENFORCED), Refuse), before
        assert isinstance(pod_answer(pod, ENFORCED), Refuse), before


def test_a_sets_own_pods_may_hold_what_is_put_into_them() -> None:
    spec = pod_with("initContainers", filled("initContainers", bounds.MOST["initContainers"] + 1))
    assert isinstance(gangpods.judged(gangpods.pod(gangpods.GROVES, spec)), Allow)


def test_a_stored_set_that_holds_too_much_may_change_but_not_in_that_pod() -> None:
    most = bounds.MOST["volumes"]
    stored = with_pod(pod_with("volumes", filled("volumes", most + 5)))
    scaled = edited(stored, {"spec.replicas": 7})
    assert isinstance(drafts.asked(scaled, stored, policy=ENFORCED), Allow)
    inside = pod_with("volumes", [*filled("volumes", most + 4), BEHIND["volumes"]])
    assert told(set_answer(inside, ENFORCED, stored)) == [f"{SET_POD}.volumes"]


def test_what_models_bound_is_told_before_it_is_cut() -> None:
    found = [
        most
        for spec in (PodCliqueSetSpec, ClusterTopologyBindingSpec)
        for most in _bounds(spec.model_json_schema())
    ]
    assert max(found) < parsing.MOST_READ
    assert max(MAX_CLIQUES, *bounds.MOST.values()) <= reading.MOST_NAMED


def _bounds(node: Json) -> Iterator[int]:
    if isinstance(node, dict):
        for key in ("maxItems", "maxProperties"):
            most = node.get(key)
            if isinstance(most, int):
                yield most
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for each in inner:
        yield from _bounds(each)


# Whoever adds to these must say who reports what is cut off.
CUTS: Final = {
    # By what the models bound, as `parsing.misfits` tells.
    "parsing": {"islice(details, MOST_FOUND)", "islice(raw.items(), MOST_READ)", "raw[:MOST_READ]"},
    "podcliqueset_view": {
        "reading.items(template.get('cliques'))[:MAX_CLIQUES]",
        "reading.items(template.get('podCliqueScalingGroups'))[:MAX_CLIQUES]",
        "reading.listed(spec.get('startsAfter'), MAX_CLIQUES)",
        "reading.listed(raw.get('cliqueNames'), MAX_CLIQUES)",
    },
    "podcliqueset_sharing_rules": {
        "reading.items(raw)[:MAX_SHARED]",
        "shared[:MAX_SHARED]",
        "reading.items(group.raw.get('resourceSharing'))[:MAX_SHARED]",
        "reading.items(case.set.template.get('resourceClaimTemplates'))[:MAX_CLAIM_TEMPLATES]",
        "reading.items(raw.get('resourceSharing'))[:MAX_SHARED]",
        "reading.listed(of.names, MAX_CLIQUES)",
    },
    "podcliqueset_startup_rules": {
        "cliques[:_MOST_SEARCHED]",
        "reading.listed(reading.mapping(clique.get('spec')).get('startsAfter'), MAX_CLIQUES)",
    },
    "podspec_rules": {
        "islice(labels.items(), MOST_KEYS)",
        "islice(annotations.items(), MOST_KEYS)",
        "islice(labels, MOST_KEYS)",
        "islice(annotations, MOST_KEYS)",
    },
    # By the table above, and by those whose lists have bounds.
    "bounds": {"found[:most]"},
    "reading": {"value[:most]", "value[:MOST_NAMED]"},
    # An image that is longer is refused; the other is a message.
    "pod_checks": {
        "written[:bounds.LONGEST_IMAGE]", "used.written[:globs.LONGEST]", "wanted.allow[:5]",
    },
    # Texts, of which patterns and expressions see the beginning.
    "expression_view": {"found[:_LONGEST]", "text[:_LONGEST]"},
    # Messages.
    "expression_checks": {"' '.join(asked.text.split())[:_LONGEST_SHOWN]"},
    "podcliqueset_rules": {"full[:2 * syntax.LONGEST_NAME]"},
    "podcliqueset_changes": {
        "line[:LONGEST_SHOWN - 1]", "said[:5]", "value[:LONGEST_SHOWN]",
    },
    "problems": {"problems[:MOST_SHOWN]", "names[:5]", "line[:longest - 1 - len(end)]"},
    "startup_graph": {"cycle[:start]"},
}  # fmt: skip
# The first letter of a message, all pieces of a pattern but the last.
LETTERS: Final = ("message[:1]", "rest[:-1]", "pattern[:-1]", "full[:match.start()]")
NO_RULES: Final = ("audit_", "policy")
CUTTING: Final = ("islice", "reading.listed")


def cuts(module: Path) -> set[str]:
    """Everything in a module that gives the first of many."""
    return {
        ast.unparse(node)
        for node in ast.walk(ast.parse(module.read_text()))
        if (isinstance(node, ast.Call) and ast.unparse(node.func) in CUTTING)
        or (
            isinstance(node, ast.Subscript)
            and isinstance(node.slice, ast.Slice)
            and node.slice.upper is not None
            and node.slice.lower is None
            and ast.unparse(node) not in LETTERS
        )
    }


def test_there_is_no_other_cut() -> None:
    modules = Path(policies.__path__[0]).glob("*.py")
    judging = [each for each in modules if not each.name.startswith(NO_RULES)]
    assert {each.stem: found for each in judging if (found := cuts(each))} == CUTS

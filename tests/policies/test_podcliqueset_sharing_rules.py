import pytest

from api.jsons import Json, JsonObject
from policies.problems import Problem
from tests.policies import drafts
from tests.policies.drafts import CLIQUES, GROUPS, clique, draft, edited, group, only

TEMPLATES = "spec.template.resourceClaimTemplates"
DEVICES: JsonObject = {"spec": {"devices": {"requests": [{"name": "gpu"}]}}}
AT: dict[str, str] = {
    "": "spec.template.resourceSharing",
    "cliques/0/": f"{CLIQUES}[0].resourceSharing",
    "podCliqueScalingGroups/0/": f"{GROUPS}[0].resourceSharing",
}
EVERYWHERE = pytest.mark.parametrize("place", AT)


def template(name: Json = "gpus", spec: Json = DEVICES) -> JsonObject:
    return {"name": name, "templateSpec": spec}


def sharing(name: Json = "gpus", scope: Json = "AllReplicas", **more: Json) -> JsonObject:
    return {"name": name, "scope": scope, **more}


def problems(place: str, *shared: Json, templates: tuple[Json, ...] = ()) -> list[Problem]:
    raw = draft(
        clique("a"),
        clique("b"),
        groups=(group("g", "a"),),
        resourceClaimTemplates=[*templates] or [template()],
    )
    return drafts.problems(edited(raw, f"spec/template/{place}resourceSharing", [*shared]))


@EVERYWHERE
@pytest.mark.parametrize("scope", ["AllReplicas", "PerReplica"])
def test_a_claim_may_be_shared_anywhere(place: str, scope: str) -> None:
    assert not problems(place, sharing(scope=scope), sharing("elsewhere", namespace="other"))


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"spec": {}},
        {"spec": {"devices": {}}},
        {"spec": {"devices": {"requests": []}}},
        {"spec": {"devices": {"requests": "gpu"}}},
        {"spec": {"devices": 4}},
        {"spec": "x"},
    ],
)
def test_a_claim_template_asks_for_some_device(spec: JsonObject) -> None:
    found = problems("", templates=(template(spec=spec),))
    assert only(found, f"{TEMPLATES}[0].templateSpec.spec.devices.requests")


def test_claim_templates_have_names_of_their_own() -> None:
    found = problems("", templates=(template(), template(""), template(), template("other")))
    assert [problem.path for problem in found] == [f"{TEMPLATES}[1].name", f"{TEMPLATES}[2].name"]


@EVERYWHERE
def test_what_is_shared_has_a_name_that_is_shared_once(place: str) -> None:
    found = problems(place, sharing("x"), sharing(""), sharing("x", "PerReplica"))
    assert [problem.path for problem in found] == [f"{AT[place]}[1].name", f"{AT[place]}[2].name"]


@EVERYWHERE
def test_a_template_of_the_set_is_in_no_namespace(place: str) -> None:
    found = problems(place, sharing(namespace="other"))
    assert "leave it out" in only(found, f"{AT[place]}[0].namespace")


@EVERYWHERE
def test_a_scope_is_one_of_two(place: str) -> None:
    found = problems(place, sharing(scope="Some"))
    assert "AllReplicas, PerReplica" in only(found, f"{AT[place]}[0].scope")


@pytest.mark.parametrize(
    ("chosen", "field"),
    [
        ({"childCliqueNames": ["a", "b"]}, None),
        ({"childScalingGroupNames": ["g"]}, None),
        ({"childCliqueNames": ["b"], "childScalingGroupNames": ["g"]}, None),
        (None, None),
        ({}, ""),
        ({"childCliqueNames": [], "childScalingGroupNames": []}, ""),
        ({"childCliqueNames": ["a", "x"]}, ".childCliqueNames[1]"),
        ({"childCliqueNames": ["g"]}, ".childCliqueNames[0]"),
        ({"childScalingGroupNames": ["a"]}, ".childScalingGroupNames[0]"),
    ],
)
def test_a_sets_filter_names_its_parts(chosen: Json, field: str | None) -> None:
    found = problems("", sharing(filter=chosen))
    expected = [] if field is None else [f"{AT['']}[0].filter{field}"]
    assert [problem.path for problem in found] == expected


@pytest.mark.parametrize(
    ("chosen", "field"),
    [
        ({"childCliqueNames": ["a"]}, None),
        (None, None),
        ({}, ""),
        ({"childCliqueNames": []}, ""),
        ({"childCliqueNames": ["a", "b"]}, ".childCliqueNames[1]"),
    ],
)
def test_a_groups_filter_names_its_members(chosen: Json, field: str | None) -> None:
    place = "podCliqueScalingGroups/0/"
    found = problems(place, sharing(filter=chosen))
    expected = [] if field is None else [f"{AT[place]}[0].filter{field}"]
    assert [problem.path for problem in found] == expected


@pytest.mark.parametrize(
    ("ours", "theirs", "fits"),
    [
        (sharing(), sharing(), False),
        (sharing(scope="PerReplica"), sharing(scope="PerReplica"), False),
        (sharing(), sharing(scope="PerReplica"), True),
        (sharing(), sharing("elsewhere"), True),
        (sharing(namespace="other"), sharing(namespace="another"), False),
    ],
)
def test_claims_of_a_clique_and_a_group_of_one_name_are_not_one_claim(
    ours: JsonObject,
    theirs: JsonObject,
    fits: bool,  # noqa: FBT001
) -> None:
    found = drafts.problems(
        draft(
            clique("m"),
            clique("x", resourceSharing=[sharing("first"), ours]),
            groups=(group("x", "m", resourceSharing=[theirs]),),
        )
    )
    if fits:
        assert not found
    else:
        message = only(found, f"{CLIQUES}[1].resourceSharing[1].name")
        assert message.startswith("claims of 'gpus' would be called like those of the scaling")


def test_a_member_may_share_what_a_group_of_its_name_shares() -> None:
    inside = group("x", "x", resourceSharing=[sharing()])
    assert not drafts.problems(draft(clique("x", resourceSharing=[sharing()]), groups=(inside,)))

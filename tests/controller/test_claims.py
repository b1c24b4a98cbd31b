"""Shared claims: which there are at each level, what of, and which pods use them."""

from dataclasses import replace

import msgspec
import pytest

from api.jsons import Json, JsonObject
from api.podcliqueset import PodCliqueSetSpec
from api.streams import Meta
from controller.voicing import Tell
from controller.workloads.expansion import expand
from controller.workloads.making import claims
from controller.workloads.stepping import Create, Remove, Step
from controller.workloads.views import SetView, Thing
from kube.resources import RESOURCE_CLAIMS
from tests.support.setviews import NOW, clique, made, set_spec, with_pods

DEVICES: JsonObject = {
    "devices": {"requests": [{"name": "x", "exactly": {"deviceClassName": "nic"}}]}
}
IN_LINE: JsonObject = {
    "name": "nic",
    "templateSpec": {
        "metadata": {"labels": {"team": "a", "app.kubernetes.io/part-of": "other"}},
        "spec": DEVICES,
    },
}
LABELS = {
    "app.kubernetes.io/managed-by": "grove-operator",
    "app.kubernetes.io/part-of": "demo",
    "app.kubernetes.io/component": "resource-claim",
}


def shared(scope: str, name: str = "nic", **more: Json) -> JsonObject:
    return {"name": name, "scope": scope, **more}


def spec_of(
    of_set: Json = None, of_group: Json = None, of_clique: Json = None, *, replicas: int = 1
) -> PodCliqueSetSpec:
    """A router alone; a leader and two workers in a group of two copies."""
    group: JsonObject = {
        "name": "model", "cliqueNames": ["leader", "worker"], "replicas": 2,
        "resourceSharing": of_group or [],
    }  # fmt: skip
    raw = set_spec(
        clique("router", 1), clique("leader", 1), clique("worker", 2),
        groups=[group], replicas=replicas,
    ).model_dump(by_alias=True)  # fmt: skip
    raw["template"]["resourceClaimTemplates"] = [IN_LINE]
    raw["template"]["resourceSharing"] = of_set or []
    raw["template"]["cliques"][2]["resourceSharing"] = of_clique or []
    return PodCliqueSetSpec.model_validate(raw)


def steps(view: SetView) -> list[Step]:
    return list(claims.steps(view, expand(view), NOW))


def bodies(view: SetView) -> dict[str, JsonObject]:
    found = {}
    for step in steps(view):
        assert isinstance(step, Create)
        found[str(part(step.body, "metadata")["name"])] = step.body
    return found


def part(body: JsonObject, name: str) -> JsonObject:
    found = body[name]
    assert isinstance(found, dict)
    return found


def owners(view: SetView) -> dict[str, tuple[str, dict[str, Json]]]:
    """Each claim's owner, and its labels beyond those that all have."""
    found = {}
    for name, body in bodies(view).items():
        metadata = part(body, "metadata")
        references = metadata["ownerReferences"]
        assert isinstance(references, list)
        assert isinstance(references[0], dict)
        labels = part(metadata, "labels")
        assert labels.items() >= LABELS.items()
        more = {k: v for k, v in labels.items() if k not in LABELS and k != "team"}
        found[name] = (f"{references[0]['kind']} {references[0]['uid']}", more)
    return found


def used(view: SetView, name: str, index: int = 0) -> tuple[str, ...]:
    return claims.names_for(view, expand(view).cliques[name], index)


BOTH: Json = [shared("PerReplica"), shared("AllReplicas", "link", namespace="lab")]


def test_a_set_shares_over_all_replicas_or_in_each() -> None:
    view = templates(made(spec_of(of_set=BOTH, replicas=2)))
    label = "grove.io/podcliqueset-replica-index"
    assert owners(view) == {
        "demo-0-nic": ("PodCliqueSet set-uid", {label: "0"}),
        "demo-1-nic": ("PodCliqueSet set-uid", {label: "1"}),
        "demo-all-link": ("PodCliqueSet set-uid", {}),
    }
    assert used(view, "demo-1-router") == ("demo-all-link", "demo-1-nic")


def test_a_group_shares_over_all_copies_or_in_each() -> None:
    view = templates(made(spec_of(of_group=BOTH)))
    group = {"grove.io/podcliquescalinggroup": "demo-0-model"}
    label = "grove.io/podcliquescalinggroup-replica-index"
    owner = "PodCliqueScalingGroup uid-demo-0-model"
    assert owners(view) == {
        "demo-0-model-0-nic": (owner, group | {label: "0"}),
        "demo-0-model-1-nic": (owner, group | {label: "1"}),
        "demo-0-model-all-link": (owner, group),
    }
    assert used(view, "demo-0-model-1-leader") == ("demo-0-model-all-link", "demo-0-model-1-nic")
    assert used(view, "demo-0-router") == ()


def test_a_clique_shares_over_all_pods_or_each_pod_has_its_own() -> None:
    view = templates(made(spec_of(of_clique=BOTH)))
    found = owners(view)
    for copy in range(2):
        name = f"demo-0-model-{copy}-worker"
        own = {"grove.io/podclique": name}
        owner = f"PodClique uid-{name}"
        label = "grove.io/podclique-pod-index"
        assert found[f"{name}-0-nic"] == (owner, own | {label: "0"})
        assert found[f"{name}-1-nic"] == (owner, own | {label: "1"})
        assert found[f"{name}-all-link"] == (owner, own)
        assert used(view, name, 1) == (f"{name}-all-link", f"{name}-1-nic")
    assert len(found) == 6


def test_all_levels_come_in_order() -> None:
    one: Json = [shared("AllReplicas")]
    view = made(spec_of(one, one, one))
    assert used(view, "demo-0-model-0-worker") == (
        "demo-all-nic", "demo-0-model-all-nic", "demo-0-model-0-worker-all-nic",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("chosen", "users"),
    [
        pytest.param({"childCliqueNames": ["router"]}, ["router"], id="a clique"),
        pytest.param(
            {"childScalingGroupNames": ["model"]}, ["model-0-leader", "model-0-worker"],
            id="a group",
        ),
        pytest.param(
            {"childCliqueNames": ["router", "worker"]}, ["model-0-worker", "router"], id="cliques"
        ),
        pytest.param({}, [], id="nobody"),
    ],
)  # fmt: skip
def test_a_sets_filter_says_who_shares(chosen: Json, users: list[str]) -> None:
    view = made(spec_of(of_set=[shared("AllReplicas", filter=chosen)]))
    everybody = ("router", "model-0-leader", "model-0-worker")
    assert sorted(n for n in everybody if used(view, f"demo-0-{n}")) == users


def test_a_groups_filter_says_which_members_share() -> None:
    chosen: Json = {"childCliqueNames": ["worker"]}
    view = made(spec_of(of_group=[shared("AllReplicas", filter=chosen)]))
    assert used(view, "demo-0-model-0-worker")
    assert not used(view, "demo-0-model-0-leader")


def templates(view: SetView) -> SetView:
    """With a template of another namespace, and one that the set's own hides."""
    there: JsonObject = {"spec": {"spec": {"devices": {"requests": [{"name": "link"}]}}}}
    return replace(view, claim_templates={("lab", "link"): there, ("default", "nic"): there})


def test_a_template_of_the_set_comes_first_then_one_of_the_cluster() -> None:
    found = bodies(templates(made(spec_of(of_set=BOTH))))
    assert found["demo-0-nic"]["spec"] == DEVICES
    assert found["demo-all-link"]["spec"] == {"devices": {"requests": [{"name": "link"}]}}


def test_a_templates_labels_are_kept_but_not_against_ours() -> None:
    (body,) = bodies(made(spec_of(of_set=[shared("AllReplicas")]))).values()
    assert part(body, "metadata")["labels"] == LABELS | {"team": "a"}


def test_a_template_that_is_not_there_is_told_and_its_pods_are_not_made() -> None:
    view = made(spec_of(of_set=[shared("AllReplicas", "rare")]))
    (told,) = steps(view)
    assert isinstance(told, Tell)
    assert told.note == "there is no ResourceClaimTemplate default/rare: pods that share it wait"
    assert claims.missing_for(view, expand(view).cliques["demo-0-router"], 0) == ("demo-all-rare",)


def with_claims(view: SetView) -> SetView:
    things = {
        name: Thing(Meta(name=name, uid=f"uid-{name}"), body) for name, body in bodies(view).items()
    }
    return replace(view, things={RESOURCE_CLAIMS: things})


def test_claims_that_are_there_are_left_alone_also_when_their_template_has_changed() -> None:
    view = with_claims(templates(made(spec_of(BOTH, BOTH, BOTH))))
    assert steps(replace(view, claim_templates={})) == []
    assert claims.missing_for(view, expand(view).cliques["demo-0-model-1-worker"], 1) == ()


def test_claims_of_what_was_scaled_in_are_removed() -> None:
    each: Json = [shared("PerReplica")]
    view = with_claims(made(spec_of(each, each, each, replicas=2)))
    one = view.spec.model_copy(update={"replicas": 1})
    gone = {step.name for step in steps(replace(view, spec=one)) if isinstance(step, Remove)}
    assert gone == {
        "demo-1-nic", "demo-1-model-0-nic", "demo-1-model-1-nic",
        *(f"demo-1-model-{copy}-worker-{pod}-nic" for copy in range(2) for pod in range(2)),
    }  # fmt: skip


def test_a_pods_own_claim_follows_its_place_and_stays_while_the_pod_leaves() -> None:
    name = "demo-0-model-0-worker"
    view = with_claims(made(spec_of(of_clique=[shared("PerReplica")])))
    there = view.cliques[name]
    lone = replace(there, spec=there.spec.model_copy(update={"replicas": 1}))
    view = replace(view, cliques={**view.cliques, name: lone})
    assert steps(with_pods(view, name, "leaving ready", "ready")) == []
    _, second = with_pods(view, name, "ready", "ready").pods[name]
    scaled = replace(view, pods={**view.pods, name: (second,)})
    assert [step.name for step in steps(scaled) if isinstance(step, Remove)] == [f"{name}-0-nic"]


def test_nothing_is_made_before_its_owner_is_there() -> None:
    view = made(spec_of(of_group=[shared("AllReplicas")], of_clique=[shared("AllReplicas")]))
    assert steps(replace(view, groups={}, cliques={})) == []


def test_every_container_of_the_author_refers_to_its_pods_claims() -> None:
    view = made(spec_of(of_set=[shared("AllReplicas"), shared("PerReplica", "a.b")]))
    own: Json = {"limits": {"cpu": "1"}, "claims": [{"name": "own"}]}
    spec: JsonObject = {
        "containers": [{"name": "x", "resources": own}, {"name": "y"}],
        "initContainers": [{"name": "z"}],
        "resourceClaims": [{"name": "own", "resourceClaimName": "own"}],
    }
    before = msgspec.json.encode(spec)
    shaped = claims.shaped(view, expand(view).cliques["demo-0-router"], 0, spec)
    assert msgspec.json.encode(spec) == before
    dotted = "demo-0-a-b-"
    entries = shaped["resourceClaims"]
    assert isinstance(entries, list)
    assert entries[:2] == [
        {"name": "own", "resourceClaimName": "own"},
        {"name": "demo-all-nic", "resourceClaimName": "demo-all-nic"},
    ]
    assert isinstance(entries[2], dict)
    assert str(entries[2]["name"]).startswith(dotted)
    assert entries[2]["resourceClaimName"] == "demo-0-a.b"
    added: list[Json] = [{"name": "demo-all-nic"}, {"name": entries[2]["name"]}]
    assert shaped["containers"] == [
        {"name": "x", "resources": {"limits": {"cpu": "1"}, "claims": [{"name": "own"}, *added]}},
        {"name": "y", "resources": {"claims": added}},
    ]
    assert shaped["initContainers"] == [{"name": "z", "resources": {"claims": added}}]


def test_a_pod_that_shares_nothing_is_as_its_author_wrote_it() -> None:
    view = made(spec_of())
    spec: JsonObject = {"containers": [{"name": "x"}]}
    assert claims.shaped(view, expand(view).cliques["demo-0-router"], 0, spec) == spec
    assert steps(view) == []

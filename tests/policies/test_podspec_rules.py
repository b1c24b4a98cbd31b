import pytest

from api.jsons import Json, JsonObject
from policies.policy import BUILT_IN, Policy
from policies.problems import Problem
from tests.policies import drafts
from tests.policies.drafts import CLIQUES, POD, clique, draft, group, only

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
SPEC = f"{CLIQUES}[0].spec.podSpec"
OURS: JsonObject = {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}


def problems(pod: Json, before: Json = None) -> list[Problem]:
    old = None if before is None else draft(clique("a", pod=before))
    return drafts.problems(draft(clique("a", pod=pod)), old)


@pytest.mark.parametrize(
    ("pod", "field", "fix"),
    [
        pytest.param({}, "containers", "at least one container", id="nothing"),
        pytest.param({"containers": []}, "containers", "at least one container", id="empty"),
        pytest.param({"containers": "x"}, "containers", "must be a list", id="text"),
        pytest.param({"containers": ["x"]}, "containers[0]", "must be an object", id="texts"),
        pytest.param({**POD, "nodeName": "n1"}, "nodeName", "use nodeSelector", id="on a node"),
        pytest.param({**POD, "nodeName": 1}, "nodeName", "must be a string", id="a number's node"),
        pytest.param(
            {**POD, "topologySpreadConstraints": []},
            "topologySpreadConstraints",
            "leave it out",
            id="spread",
        ),
        pytest.param(
            {**POD, "ephemeralContainers": [{"name": "x"}]},
            "ephemeralContainers",
            "leave it out",
            id="visitors",
        ),
        pytest.param(
            {**POD, "schedulerName": "volcano"},
            "schedulerName",
            "leave schedulerName out; there are default-scheduler",
            id="foreign scheduler",
        ),
    ],
)
def test_pods_that_could_not_be_released_are_refused(pod: JsonObject, field: str, fix: str) -> None:
    assert fix in str(problems(pod)[-1])
    assert {problem.path for problem in problems(pod)} == {f"{SPEC}.{field}"}


def test_what_spreads_may_come_later_with_a_warning_but_no_node() -> None:
    spread: JsonObject = {**POD, "topologySpreadConstraints": [{"maxSkew": 1}]}
    assert not problems(spread, before=POD)
    (warning,) = drafts.warnings(draft(clique("a", pod=spread)), draft(clique("a")))
    assert "topologySpreadConstraints: not looked at" in warning
    assert only(problems({**POD, "nodeName": "n1"}, before=POD), f"{SPEC}.nodeName")


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never", None])
def test_a_restart_policy_passes_without_a_word(policy: str | None) -> None:
    assert drafts.warnings(draft(clique("a", pod={**POD, "restartPolicy": policy}))) == []


@pytest.mark.parametrize("policy", ["always", "Sometimes"])
def test_a_restart_policy_that_no_pod_has_is_refused(policy: str) -> None:
    message = only(problems({**POD, "restartPolicy": policy}), f"{SPEC}.restartPolicy")
    assert "Always, OnFailure, Never" in message


@pytest.mark.parametrize("scheduler", ["", "default-scheduler", "kai-scheduler", "grove-scheduler"])
def test_schedulers_that_gangs_are_placed_for_may_be_named(scheduler: str) -> None:
    mixed = clique("a", pod={**POD, "schedulerName": scheduler, "nodeName": ""})
    assert not drafts.problems(draft(mixed, clique("b")))


def test_all_cliques_mean_one_scheduler() -> None:
    policy = Policy(scheduler_names={"": "default-scheduler", "kai-scheduler": "kai"})
    raw = draft(clique("a"), clique("b", pod={**POD, "schedulerName": "kai-scheduler"}))
    message = only(drafts.problems(raw, policy=policy), f"{CLIQUES}[1].spec.podSpec.schedulerName")
    assert message.startswith(f"means 'kai', but {CLIQUES}[0] means 'default-scheduler'")
    assert not drafts.problems(raw, policy=BUILT_IN)


@pytest.mark.parametrize(
    ("terms", "fits"),
    [
        ([OURS], True),
        ([{}, OURS], True),
        ([{"matchFields": [{"key": "metadata.name"}]}], True),
        (["x"], True),
        ("x", True),
        (None, True),
        ([], False),
        ([{}], False),
        ([{"matchExpressions": []}, {"matchFields": None}], False),
    ],
)
def test_only_empty_terms_could_never_be_pinned(
    terms: Json,
    fits: bool,  # noqa: FBT001
) -> None:
    affinity: JsonObject = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    found = problems({**POD, "affinity": affinity})
    if fits:
        assert not found
    else:
        path = f"{SPEC}.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
        assert "which no node matches" in only(found, path)


@pytest.mark.parametrize("name", ["A", "a", "_", "-", "A.b-C_1", ".a"])
def test_variables_are_named_as_in_kubernetes(name: str) -> None:
    env: list[Json] = [{"name": name, "value": "x"}]
    assert not problems({"containers": [{"name": "c", "env": env}]})


@pytest.mark.parametrize("name", ["", "1A", "A B", "A=B", "ä", ".", "..", "..a", "A\n"])
def test_variables_of_bad_names_are_refused(name: str) -> None:
    env: list[Json] = [{"name": "OK"}, {"name": name}]
    found = problems({"containers": [{"name": "c", "env": env}]})
    assert "is no name for a variable" in only(found, f"{SPEC}.containers[0].env[1].name")


@pytest.mark.parametrize("which", ["containers", "initContainers"])
def test_variables_are_set_once_in_each_container(which: str) -> None:
    def env(*names: str) -> JsonObject:
        return {"name": "c", "env": [{"name": name} for name in names]}

    found = problems({**POD, which: [env("A", "B"), env("A"), env("A", "B", "A")]})
    assert "a second time" in only(found, f"{SPEC}.{which}[2].env[2].name")


@pytest.mark.parametrize("key", ["a", "A.b_c", "x.io/a", "x.y-z.io/A", "1"])
@pytest.mark.parametrize("value", ["", "a", "A.b_c-d", "1"])
def test_labels_and_annotations_spelled_well_pass(key: str, value: str) -> None:
    assert not drafts.problems(
        draft(
            clique("a", labels={key: value}, annotations={key: "any thing: at all"}),
            groups=(group("g", "a", annotations={key: "ä"}),),
        )
    )


@pytest.mark.parametrize("key", ["", "/a", "a/", "a b", "-a", "x_y/a", "a/b/c", "ä", "k" * 64])
@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_keys_that_no_object_could_carry_are_refused(key: str, field: str) -> None:
    keyed: JsonObject = {key: "v"}
    made = clique("a", labels=keyed) if field == "labels" else clique("a", annotations=keyed)
    found = drafts.problems(draft(made))
    assert "is no key" in only(found, f"{CLIQUES}[0].{field}[{key}]")


@pytest.mark.parametrize("value", ["a b", "-a", "a-", "ä", "a\n"])
def test_label_values_that_no_object_could_carry_are_refused(value: str) -> None:
    found = drafts.problems(draft(clique("a", labels={"k": value})))
    assert "cannot be a label's value" in only(found, f"{CLIQUES}[0].labels[k]")


def test_annotations_larger_than_any_object_may_have_are_refused() -> None:
    many: JsonObject = {f"k{i}": "x" * 16_000 for i in range(17)}
    found = drafts.problems(draft(clique("a", annotations=many)))
    assert "at most 262144" in only(found, f"{CLIQUES}[0].annotations")


@pytest.mark.parametrize(
    "key",
    [
        "penstock.dev/gang",
        "penstock.dev/gang-size",
        "penstock.dev/gang-min-available",
        "penstock.dev/topology-level",
        "grove.io/podgang",
        "grove.io/base-podgang",
        "grove.io/podclique",
        "grove.io/podclique-pod-index",
        "grove.io/podcliqueset-replica-index",
        "grove.io/podcliquescalinggroup",
        "grove.io/podcliquescalinggroup-replica-index",
    ],
)
def test_pods_of_a_set_cannot_pass_for_those_of_another_gang(key: str) -> None:
    found = drafts.problems(draft(clique("a", labels={key: "other"})))
    assert "only Penstock writes" in only(found, f"{CLIQUES}[0].labels[{key}]")


def test_pods_of_a_set_cannot_pass_for_static_ones() -> None:
    key = "kubernetes.io/config.mirror"
    found = drafts.problems(draft(clique("a", annotations={key: "x"})))
    assert "leave it out" in only(found, f"{CLIQUES}[0].annotations[{key}]")


def test_words_that_concern_no_membership_pass() -> None:
    labels: JsonObject = {"penstock.dev/queue": "blue", "kai.scheduler/queue": "blue"}
    annotations: JsonObject = {
        "penstock.dev/readiness-gate": "true",
        "scheduling.grove.io/volcano-queue": "blue",
    }
    assert not drafts.problems(draft(clique("a", labels=labels, annotations=annotations)))

"""What a policy with queues, rules and exemptions makes of sets and pods."""

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from api import names
from api.jsons import Json, JsonObject
from policies import pod_admission, podcliqueset_admission, policy_reading
from policies.admission import Operation, Request, User
from policies.answers import Allow, Answer, Refuse
from policies.findings import Finding
from policies.policy import Policy
from policies.policy_queues import Mode
from tests.policies.drafts import clique, cluster, draft
from tests.support.gangpods import PLAIN, pod

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
ANNA: Final = User("anna", ("ml",))
TOPOLOGY: Final = cluster("net")


def policy(**keys: Json) -> Policy:
    read = policy_reading.read({**keys})
    assert isinstance(read, Policy), read
    return read


def queue(name: str = "prod", *namespaces: str, **more: Json) -> JsonObject:
    return {"name": name, "namespaces": [*namespaces] or ["*"], "default": True, **more}


def asked(
    by: Policy,
    raw: JsonObject | None = None,
    *,
    before: JsonObject | None = None,
    user: User = ANNA,
    namespace: str = "infer-a",
    labels: JsonObject | None = None,
) -> Answer:
    new = raw or draft()
    metadata = new["metadata"]
    assert isinstance(metadata, dict)
    new = {**new, "metadata": {**metadata, "labels": labels or {}}}
    if before is not None:
        before = {**before, "metadata": new["metadata"]}
    request = Request(
        Operation.UPDATE if before else Operation.CREATE,
        "PodCliqueSet",
        new,
        before,
        namespace=namespace,
        user=user,
        now=NOW,
    )
    return podcliqueset_admission.judge(by, TOPOLOGY, request)


def refused(answer: Answer) -> list[tuple[str, str]]:
    """Give the rules that kept it out, and where."""
    assert isinstance(answer, Refuse), answer
    return [(each.rule, each.problem.path) for each in answer.findings]


def test_a_policy_without_queues_and_rules_asks_nothing() -> None:
    answer = asked(policy())
    assert isinstance(answer, Allow)
    assert answer.findings == ()


@pytest.mark.parametrize("key", [names.QUEUE_LABEL, names.KAI_QUEUE_LABEL])
def test_a_queue_is_named_by_either_label(key: str) -> None:
    by = policy(queues=[queue("prod", "infer-*"), queue("lab", "lab")])
    assert isinstance(asked(by, labels={key: "prod"}), Allow)
    assert refused(asked(by, labels={key: "none"})) == [("queue-open", f"metadata.labels[{key}]")]
    assert refused(asked(by, labels={key: "lab"})) == [("queue-open", f"metadata.labels[{key}]")]


def test_a_refusal_names_the_queues_there_are_and_the_rule() -> None:
    answer = asked(policy(queues=[queue("prod")]), labels={names.QUEUE_LABEL: "prd"})
    assert isinstance(answer, Refuse)
    assert "there is no queue 'prd'; there are prod (policy rule queue-open)" in answer.message


def test_namespaces_without_a_queue_are_let_be_unless_that_is_denied() -> None:
    queues: list[Json] = [queue("prod", "infer-b")]
    assert isinstance(asked(policy(queues=queues)), Allow)
    denied = policy(queues=queues, unmatchedNamespaces="deny")
    assert refused(asked(denied)) == [("queue-open", "metadata.namespace")]
    assert isinstance(asked(denied, namespace="infer-b"), Allow)


@pytest.mark.parametrize(
    ("submitters", "user", "may"),
    [
        ({}, ANNA, True),
        ({"users": ["anna"]}, ANNA, True),
        ({"groups": ["ml*"]}, ANNA, True),
        ({"users": ["bert"]}, ANNA, False),
        ({"serviceAccounts": ["cd:argo"]}, User("system:serviceaccount:cd:argo"), True),
        ({"serviceAccounts": ["cd:argo"]}, User("system:serviceaccount:cd:other"), False),
        # A person may not pass for an account.
        ({"serviceAccounts": ["cd:argo"]}, User("cd:argo"), False),
        ({"users": ["bert"]}, User("system:serviceaccount:kube-system:generic-garbage"), True),
        ({"users": ["bert"]}, User("system:anonymous"), False),
    ],
)
def test_a_queue_may_be_for_some_people_only(
    submitters: JsonObject, user: User, *, may: bool
) -> None:
    answer = asked(policy(queues=[queue(submitters=submitters)]), user=user)
    assert isinstance(answer, Allow) is may


def test_who_may_not_submit_may_not_change_what_is_there_either() -> None:
    by = policy(queues=[queue(submitters={"users": ["bert"]})])
    before = draft(clique("a", counts={"replicas": 1, "minAvailable": 1}))
    assert isinstance(asked(by, before, before=before), Allow)
    more = draft(clique("a", counts={"replicas": 2, "minAvailable": 1}))
    assert [rule for rule, _ in refused(asked(by, more, before=before))] == ["queue-submitter"]


@pytest.mark.parametrize(
    ("asks", "raw", "rule"),
    [
        (
            {"limits": {"podsPerGang": {"max": 3}}},
            draft(clique("a", counts={"replicas": 4})),
            "gangs-are-sized",
        ),
        ({"limits": {"podsPerGang": {"min": 2}}}, draft(), "gangs-are-sized"),
        (
            {"limits": {"gpusPerGang": 7}},
            draft(
                clique(
                    "a",
                    pod={
                        "containers": [
                            {
                                "name": "m",
                                "image": "x",
                                "resources": {"limits": {"nvidia.com/gpu": 8}},
                            }
                        ]
                    },
                )
            ),
            "gangs-are-sized",
        ),
        (
            {"limits": {"replicasPerClique": 3}},
            draft(clique("a", counts={"replicas": 4})),
            "cliques-are-sized",
        ),
        (
            {"limits": {"priorityClasses": ["low"]}},
            draft(priorityClassName="high"),
            "priorities-are-allowed",
        ),
        (
            {"topology": {"required": "block", "whenPodsAtLeast": 1}},
            draft(),
            "large-gangs-are-near",
        ),
        (
            {"topology": {"required": "block", "whenPodsAtLeast": 1}},
            draft(topologyConstraint={"topologyName": "net", "pack": {"required": "zone"}}),
            "large-gangs-are-near",
        ),
        ({"schedulers": ["other"]}, draft(), "schedulers-are-allowed"),
        ({"startup": {"maxCliques": 1}}, draft(clique("a"), clique("b")), "startup-is-short"),
        ({"startup": {"maxEdges": 0}}, draft(clique("a"), clique("b", "a")), "startup-is-short"),
        (
            {"startup": {"maxDepth": 2}},
            draft(clique("a"), clique("b", "a"), clique("c", "b")),
            "startup-is-short",
        ),
    ],
)
def test_a_queue_limits_what_stands_in_it(asks: JsonObject, raw: JsonObject, rule: str) -> None:
    found = refused(asked(policy(queues=[{**queue(), **asks}]), raw))
    assert [name for name, _ in found] == [f"queue-{rule}"]


@pytest.mark.parametrize(
    ("asks", "raw"),
    [
        (
            {"limits": {"gangs": 1, "podsPerGang": {"min": 4, "max": 4}}},
            draft(clique("a", counts={"replicas": 4})),
        ),
        ({"limits": {"priorityClasses": ["low"]}}, draft(priorityClassName="low")),
        (
            {"topology": {"required": "block", "whenPodsAtLeast": 2}},
            draft(clique("a", counts={"replicas": 1})),
        ),
        (
            {"topology": {"required": "block", "whenPodsAtLeast": 1}},
            draft(topologyConstraint={"topologyName": "net", "pack": {"required": "rack"}}),
        ),
        ({"schedulers": ["default-scheduler"]}, draft()),
        (
            {"startup": {"maxCliques": 3, "maxEdges": 2, "maxDepth": 3}},
            draft(clique("a"), clique("b", "a"), clique("c", "b")),
        ),
    ],
)
def test_what_is_within_the_limits_passes(asks: JsonObject, raw: JsonObject) -> None:
    assert isinstance(asked(policy(queues=[{**queue(), **asks}]), raw), Allow)


def test_replicas_of_a_set_count_as_gangs() -> None:
    raw = draft()
    spec = raw["spec"]
    assert isinstance(spec, dict)
    spec["replicas"] = 3
    found = refused(asked(policy(queues=[queue(limits={"gangs": 2})]), raw))
    assert found == [("queue-gangs-are-few", "spec.replicas")]


IMAGES: Final[JsonObject] = {"id": "registry", "images": {"allow": ["registry.example/*"]}}


def test_images_of_every_clique_are_looked_at() -> None:
    own: JsonObject = {"containers": [{"name": "m", "image": "registry.example/a:1"}]}
    raw = draft(clique("a", pod=own), clique("b"))
    found = refused(asked(policy(rules=[IMAGES]), raw))
    assert found == [("registry", "spec.template.cliques[1].spec.podSpec.containers[0].image")]


@pytest.mark.parametrize(
    ("images", "image", "fits"),
    [
        ({"deny": ["*:latest"]}, "nginx", False),
        ({"deny": ["*:latest"]}, "nginx:1", True),
        ({"allow": ["docker.io/library/*"]}, "nginx", True),
        ({"requireDigest": True}, "nginx:1", False),
        ({"requireDigest": True}, "nginx@sha256:" + "0" * 64, True),
        ({"allow": ["docker.io/*"], "deny": ["*/nginx:*"]}, "nginx:1", False),
    ],
)
def test_images_are_allowed_denied_and_pinned(images: Json, image: str, *, fits: bool) -> None:
    raw = draft(clique("a", pod={"containers": [{"name": "m", "image": image}]}))
    answer = asked(policy(rules=[{"id": "r", "images": images}]), raw)
    assert isinstance(answer, Allow) is fits


def test_pod_security_is_asked_of_every_clique() -> None:
    rule: JsonObject = {"id": "safe", "podSecurity": "baseline"}
    raw = draft(clique("a", pod={"containers": [{"name": "m", "image": "x"}], "hostIPC": True}))
    found = refused(asked(policy(rules=[rule]), raw))
    assert ("safe", "spec.template.cliques[0].spec.podSpec.hostIPC") in found


def test_a_rule_may_be_for_some_queues_only() -> None:
    by = policy(queues=[queue("prod"), queue("lab")], rules=[{**IMAGES, "queues": ["pr*"]}])
    assert isinstance(asked(by, labels={names.QUEUE_LABEL: "lab"}), Allow)
    assert isinstance(asked(by, labels={names.QUEUE_LABEL: "prod"}), Refuse)


@pytest.mark.parametrize("mode", [*Mode])
def test_what_comes_of_a_broken_rule_is_the_rules_own_mode(mode: Mode) -> None:
    answer = asked(policy(mode="off", rules=[{**IMAGES, "mode": mode.value}]))
    assert isinstance(answer, Refuse) is (mode is Mode.ENFORCE)
    assert [each.mode for each in answer.findings] == ([] if mode is Mode.OFF else [mode])
    if isinstance(answer, Allow):
        told = [line for line in answer.warnings if "registry" in line]
        assert len(told) == (1 if mode is Mode.WARN else 0)


@pytest.mark.parametrize("mode", [*Mode])
def test_a_queue_and_the_whole_policy_have_modes_too(mode: Mode) -> None:
    small: JsonObject = {"podsPerGang": {"min": 9}}
    of_queue = asked(policy(mode="off", queues=[queue(mode=mode.value, limits=small)]))
    of_policy = asked(policy(mode=mode.value, queues=[queue(limits=small)]))
    for answer in (of_queue, of_policy):
        assert isinstance(answer, Refuse) is (mode is Mode.ENFORCE)


def exemption(**more: Json) -> JsonObject:
    return {
        "id": "EX-1",
        "reason": "migration",
        "expires": (NOW + timedelta(days=1)).isoformat(),
        "rules": ["registry"],
        "namespaces": ["infer-*"],
        **more,
    }


@pytest.mark.parametrize(
    ("let_off", "holds"),
    [
        (exemption(), True),
        (exemption(expires=NOW.isoformat()), False),
        (exemption(rules=["other"]), False),
        (exemption(namespaces=["lab"]), False),
        (exemption(names=["llm"]), True),
        (exemption(names=["other"]), False),
        (exemption(submitters={"users": ["anna"]}), True),
        (exemption(submitters={"users": ["bert"]}), False),
    ],
)
def test_an_exemption_lets_off_whom_it_names_until_it_ends(
    let_off: JsonObject, *, holds: bool
) -> None:
    answer = asked(policy(rules=[IMAGES], exemptions=[let_off]))
    assert isinstance(answer, Allow) is holds


def test_without_a_clock_nobody_is_let_off() -> None:
    by = policy(rules=[IMAGES], exemptions=[exemption()])
    request = Request(Operation.CREATE, "PodCliqueSet", draft(), namespace="infer-a")
    assert isinstance(podcliqueset_admission.judge(by, TOPOLOGY, request), Refuse)


def test_what_was_broken_before_does_not_freeze_a_set() -> None:
    before = draft(clique("a", counts={"replicas": 1, "minAvailable": 1}))
    after = draft(clique("a", counts={"replicas": 2, "minAvailable": 1}))
    assert isinstance(asked(policy(rules=[IMAGES]), after, before=before), Allow)


def test_a_plain_gangs_pod_is_held_against_the_policy_and_a_sets_is_not() -> None:
    by = policy(rules=[IMAGES])

    def judged(labels: dict[str, str]) -> Answer:
        found: JsonObject = pod(labels)
        found["spec"] = {"containers": [{"name": "main", "image": "x"}]}
        request = Request(Operation.CREATE, "Pod", found, namespace="infer-a", user=ANNA)
        return pod_admission.judge(by, TOPOLOGY, request)

    assert refused(judged(PLAIN)) == [("registry", "spec.containers[0].image")]
    assert isinstance(judged({names.PODGANG_LABEL: "a-0"}), Allow)


UPSIDE_DOWN: Final[JsonObject] = {"podsPerGang": {"min": 3, "max": 2}}
NAMELESS: Final[JsonObject] = {"serviceAccounts": ["x"]}


@pytest.mark.parametrize(
    ("keys", "path", "words"),
    [
        ({"queues": [queue("a"), queue("a")]}, "queues[1].name", "'a' is there already"),
        ({"rules": [{"id": "r"}]}, "rules[0]", "must ask one thing"),
        ({"queues": [queue(limits=UPSIDE_DOWN)]}, "queues[0].limits.podsPerGang", "less than min"),
        ({"queues": [queue("a b")]}, "queues[0].name", "cannot be a label's value"),
        (
            {"exemptions": [exemption(expires="2026-01-01T00:00:00")]},
            "exemptions[0].expires",
            "time",
        ),
        ({"queues": [queue(submitters=NAMELESS)]}, "queues[0].submitters.serviceAccounts", ":name"),
        ({"mode": "strict"}, "mode", "'enforce', 'warn', 'audit' or 'off'"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(
    keys: dict[str, Json], path: str, words: str
) -> None:
    found = policy_reading.read({**keys})
    assert not isinstance(found, Policy)
    assert [(fault.problem.path, words in fault.problem.message) for fault in found] == [
        (path, True)
    ]


def test_a_finding_is_told_with_its_rule() -> None:
    answer = asked(policy(rules=[IMAGES]))
    assert isinstance(answer, Refuse)
    (finding,) = answer.findings
    assert isinstance(finding, Finding)
    assert str(finding.told).endswith("(policy rule registry)")

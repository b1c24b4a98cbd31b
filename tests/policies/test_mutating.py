"""What the policy gives to sets and pods that leave it out, and when it gives nothing."""

import copy
import json
from typing import Final, cast

import jsonpatch
import pytest
from hypothesis import given

from api import names
from api.jsons import Json, JsonObject
from policies import mutating, podcliqueset_admission, podcliqueset_defaults, policy_reading
from policies.admission import Operation, Request, User
from policies.answers import Allow
from policies.policy import Policy
from tests.policies.chaos import JSONS, broken_sets, sets
from tests.policies.drafts import clique, cluster, constraint, draft, edited, group
from tests.policies.test_evaluating import policy, queue
from tests.policies.test_podcliqueset_defaults import at
from tests.support.gangpods import GROVES, PLAIN, admitted, part, pod

NET: Final = cluster("net")
EVERYTHING: Final = policy(
    queues=[queue("chat", "infer-*")],
    mutations=[
        {
            "id": "all",
            "queues": ["chat"],
            "startup": "gate",
            "readinessGate": True,
            "topology": {"level": "rack", "topology": "net"},
            "requests": {"cpu": "2", "memory": "1Gi"},
            "ports": [{"name": "http", "containerPort": 8000}],
        }
    ],
)
CONTAINERS: Final = "spec/template/cliques/0/spec/podSpec/containers"


def stored(
    raw: JsonObject,
    by: Policy = EVERYTHING,
    before: JsonObject | None = None,
    namespace: str = "infer-a",
) -> JsonObject:
    """What the API server stores; looked at a second time nothing more is given."""

    def asked(new: JsonObject) -> tuple[JsonObject, ...]:
        operation = Operation.CREATE if before is None else Operation.UPDATE
        user = User("anna")
        request = Request(operation, "PodCliqueSet", new, before, namespace=namespace, user=user)
        answer = podcliqueset_admission.judge(by, NET, request)
        assert isinstance(answer, Allow), answer
        return answer.patch

    def applied(new: JsonObject) -> JsonObject:
        received = copy.deepcopy(new)
        return cast("JsonObject", jsonpatch.apply_patch(received, list(asked(new))))

    once = applied(raw)
    assert asked(once) == ()
    return once


def labels(raw: JsonObject) -> Json:
    return part(raw, "metadata", "labels")


def test_a_new_set_is_given_all_that_it_leaves_out() -> None:
    found = stored(draft(clique("a")))
    assert labels(found) == {names.QUEUE_LABEL: "chat"}
    assert part(found, "metadata", "annotations") == {names.STARTUP_ANNOTATION: "gate"}
    assert at(found, f"{CONTAINERS}/0/resources") == {"requests": {"cpu": "2", "memory": "1Gi"}}
    port: JsonObject = {"name": "http", "containerPort": 8000, "protocol": "TCP"}
    assert at(found, f"{CONTAINERS}/0/ports") == [port]
    wanted: JsonObject = {"topologyName": "net", "pack": {"required": "rack"}}
    assert at(found, "spec/template/topologyConstraint") == wanted


@pytest.mark.parametrize(
    ("resources", "kept"),
    [
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "1", "memory": "1Gi"}}),
        (
            {"limits": {"memory": "512Mi"}},
            {"limits": {"memory": "512Mi"}, "requests": {"cpu": "2"}},
        ),
        ({"requests": None}, {"requests": {"cpu": "2", "memory": "1Gi"}}),
        (
            {"requests": {"cpu": "0", "memory": "0"}},
            {"requests": {"cpu": "0", "memory": "0"}},
        ),
    ],
)
def test_no_amount_is_written_over(resources: JsonObject, kept: JsonObject) -> None:
    spec: JsonObject = {"containers": [{"name": "m", "image": "x", "resources": resources}]}
    assert at(stored(draft(clique("a", pod=spec))), f"{CONTAINERS}/0/resources") == kept


def test_nothing_that_is_said_is_written_over() -> None:
    port: JsonObject = {"containerPort": 9}
    full: JsonObject = {"requests": {"cpu": "1", "memory": "1"}}
    spec: JsonObject = {
        "containers": [{"name": "m", "image": "x", "ports": [port], "resources": full}]
    }
    near = constraint("zone", name="net")
    raw = draft(
        clique("a", pod=spec),
        annotations={names.STARTUP_ANNOTATION: "init"},
        topologyConstraint=near,
    )
    raw = edited(raw, "metadata/labels", {names.KAI_QUEUE_LABEL: "chat"})
    found = stored(raw)
    assert part(found, "metadata") == {**part_of(raw), "finalizers": [names.SET_FINALIZER]}
    assert at(found, f"{CONTAINERS}/0") == spec["containers"][0]  # type: ignore[index]
    assert at(found, "spec/template/topologyConstraint") == near


def part_of(raw: JsonObject) -> JsonObject:
    metadata = raw["metadata"]
    assert isinstance(metadata, dict)
    return metadata


def test_who_asks_for_closeness_anywhere_is_given_none() -> None:
    raw = draft(
        clique("a"), groups=(group("g", "a", topologyConstraint=constraint("rack", name="net")),)
    )
    assert at(stored(raw), "spec/template/topologyConstraint") is None


def test_ports_are_given_to_the_first_container_only() -> None:
    spec: JsonObject = {"containers": [{"name": n, "image": "x"} for n in "ab"]}
    found = stored(draft(clique("a", pod=spec)))
    assert at(found, f"{CONTAINERS}/1/ports") is None
    assert at(found, f"{CONTAINERS}/1/resources/requests/cpu") == "2"


def test_other_queues_and_cliques_are_given_nothing() -> None:
    by = policy(
        queues=[queue("chat", "infer-*"), queue("lab", "lab-*")],
        mutations=[{"id": "m", "queues": ["chat"], "cliques": ["work*"], "requests": {"cpu": "1"}}],
    )
    raw = draft(clique("lead"), clique("worker"))
    found = stored(raw, by)
    assert at(found, f"{CONTAINERS}/0/resources") is None
    assert at(found, "spec/template/cliques/1/spec/podSpec/containers/0/resources") is not None
    other = stored(raw, by, namespace="lab-1")
    assert labels(other) == {names.QUEUE_LABEL: "lab"}
    assert "resources" not in json.dumps(other)


def test_the_first_mutation_that_gives_a_thing_counts() -> None:
    by = policy(
        mutations=[
            {"id": "a", "requests": {"cpu": "1"}, "startup": "init"},
            {"id": "b", "requests": {"cpu": "2", "memory": "1Gi"}, "startup": "gate"},
        ]
    )
    found = stored(draft(clique("a")), by)
    requests = at(found, f"{CONTAINERS}/0/resources/requests")
    assert requests == {"cpu": "1", "memory": "1Gi"}
    assert part(found, "metadata", "annotations") == {names.STARTUP_ANNOTATION: "init"}


def test_a_policy_that_comes_later_changes_no_set() -> None:
    old = stored(draft(clique("a"), clique("b")), policy())
    assert stored(old, EVERYTHING, old) == old
    scaled = edited(old, "spec/replicas", 3)
    assert stored(scaled, EVERYTHING, old) == scaled


def test_a_change_of_one_clique_gives_to_this_one_only() -> None:
    old = stored(draft(clique("a"), clique("b"), startup="AnyOrder"), policy())
    new = edited(old, f"{CONTAINERS}/0/image", "y")
    found = stored(new, EVERYTHING, old)
    assert at(found, f"{CONTAINERS}/0/resources/requests/cpu") == "2"
    assert at(found, "spec/template/cliques/1") == at(old, "spec/template/cliques/1")
    assert part(found, "metadata") == part(old, "metadata")


def test_a_manifest_written_anew_is_given_the_same_as_before() -> None:
    raw = draft(clique("a"), clique("b"))
    old = stored(raw)
    assert labels(old) is not None
    again = {**raw, "metadata": {**part_of(raw), "finalizers": [names.SET_FINALIZER]}}
    assert stored(cast("JsonObject", again), EVERYTHING, old) == old


def test_a_plain_gangs_pod_is_given_what_its_queue_gives() -> None:
    by = policy(
        queues=[queue("chat")],
        mutations=[
            {
                "id": "all",
                "readinessGate": True,
                "topology": {"level": "rack"},
                "requests": {"cpu": "2"},
                "ports": [{"containerPort": 80}],
            }
        ],
        rules=[{"id": "sized", "cel": "pod.containers.all(c, c.cpu.requests > 0)"}],
    )
    found = admitted(pod(PLAIN), by, NET)
    assert labels(found) == {
        **PLAIN,
        names.QUEUE_LABEL: "chat",
        names.TOPOLOGY_LEVEL_LABEL: "rack",
        names.TOPOLOGY_LABEL: "net",
    }
    assert part(found, "spec", "readinessGates") == [{"conditionType": names.READINESS_GATE}]
    container: JsonObject = {
        "name": "main",
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "2"}},
    }
    assert part(found, "spec", "containers") == [container]
    assert admitted(found, by, NET) == found


def test_a_sets_pod_is_given_its_queue_and_the_readiness_gate_only() -> None:
    by = policy(queues=[queue("chat")], mutations=[{**_GATE, "requests": {"cpu": "2"}}])
    found = admitted(pod(GROVES), by)
    assert labels(found) == {**GROVES, names.QUEUE_LABEL: "chat"}
    assert part(found, "spec", "readinessGates") == [{"conditionType": names.READINESS_GATE}]
    assert part(found, "spec", "containers") == [{"name": "main"}]


_GATE: Final[JsonObject] = {"id": "gate", "queues": ["chat"], "readinessGate": True}


def test_a_pod_that_says_no_gets_no_readiness_gate() -> None:
    by = policy(queues=[queue("chat")], mutations=[_GATE])
    found = admitted(pod(PLAIN, readiness_gate="false"), by)
    assert part(found, "spec", "readinessGates") is None


def test_kais_word_for_a_queue_needs_no_other() -> None:
    by = policy(queues=[queue("chat")])
    found = admitted(pod({**PLAIN, names.KAI_QUEUE_LABEL: "chat"}), by)
    assert labels(found) == {**PLAIN, names.KAI_QUEUE_LABEL: "chat"}


@pytest.mark.parametrize(
    ("mutation", "told"),
    [
        ({"id": "m"}, "must give something"),
        ({"id": "m", "requests": {"nvidia.com/gpu": "1"}}, "mutations[0].requests.nvidia.com/gpu"),
        ({"id": "m", "requests": {"cpu": "-1"}}, "is less than nothing"),
        ({"id": "m", "requests": {"cpu": "a lot"}}, "is not a quantity"),
        ({"id": "m", "ports": [{"containerPort": 0}]}, "greater than or equal to 1"),
        ({"id": "m", "ports": [{"containerPort": 1, "name": "80"}]}, "can name no port"),
        ({"id": "m", "ports": [{"containerPort": 1}, {"containerPort": 1}]}, "is there twice"),
        ({"id": "m", "startup": "never"}, "mutations[0].startup"),
        ({"id": "m", "topology": {"level": "x/y"}}, "cannot be a label's value"),
    ],
)
def test_a_mutation_that_could_only_do_harm_is_refused(mutation: JsonObject, told: str) -> None:
    found = policy_reading.read({"mutations": [mutation]})
    assert not isinstance(found, Policy)
    assert told in str(found[0].problem)


def test_two_mutations_of_one_name_are_refused() -> None:
    found = policy_reading.read({"mutations": [_GATE, _GATE]})
    assert not isinstance(found, Policy)
    assert "is there already" in found[0].problem.message


def given_twice(raw: JsonObject, before: JsonObject | None) -> None:
    filled = podcliqueset_defaults.defaulted(raw).object
    once = mutating.to_set(EVERYTHING, "infer-a", filled, before)
    received = json.loads(json.dumps(filled))
    assert jsonpatch.apply_patch(received, list(once.patch)) == once.object
    assert mutating.to_set(EVERYTHING, "infer-a", once.object, before).patch == ()


@given(raw=broken_sets() | sets(), value=JSONS)
def test_whatever_is_written_the_second_look_gives_nothing_more(
    raw: JsonObject, value: Json
) -> None:
    given_twice(raw, None)
    given_twice({**raw, "metadata": value}, None)
    given_twice(raw, podcliqueset_defaults.defaulted({**raw, "metadata": value}).object)


def test_a_label_on_a_clique_names_no_other_queue_than_its_set() -> None:
    by = policy(queues=[queue("chat", "infer-*"), queue("lab", "lab")])
    raw = draft(clique("a", labels={names.QUEUE_LABEL: "lab"}))
    request = Request(Operation.CREATE, "PodCliqueSet", raw, None, namespace="infer-a")
    answer = podcliqueset_admission.judge(by, NET, request)
    (finding,) = answer.findings
    assert (finding.rule, finding.problem.path) == (
        "queue-open",
        f"spec.template.cliques[0].labels[{names.QUEUE_LABEL}]",
    )
    same = draft(clique("a", labels={names.KAI_QUEUE_LABEL: "chat"}))
    request = Request(Operation.CREATE, "PodCliqueSet", same, None, namespace="infer-a")
    assert podcliqueset_admission.judge(by, NET, request).findings == ()


def test_two_labels_of_one_set_name_one_queue() -> None:
    by = policy(queues=[queue("chat"), queue("lab")])
    both: JsonObject = {names.QUEUE_LABEL: "chat", names.KAI_QUEUE_LABEL: "lab"}
    raw = edited(draft(clique("a")), "metadata/labels", both)
    answer = podcliqueset_admission.judge(by, NET, Request(Operation.CREATE, "PodCliqueSet", raw))
    (finding,) = answer.findings
    assert finding.problem.path == f"metadata.labels[{names.KAI_QUEUE_LABEL}]"
    assert "stands in queue 'chat'" in finding.problem.message

"""Manifests on their own, judged as if they were applied."""

from datetime import UTC, datetime
from typing import Final

import pytest

from api.jsons import Json, JsonObject
from policies import policy_reading, trying, verdicts
from policies.admission import User
from policies.known import NOTHING
from policies.policy import BUILT_IN, Policy
from policies.trying import Submitter, Tried
from policies.verdicts import Decision
from tests.policies.drafts import draft
from tests.support.gangpods import PLAIN, pod

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
NOBODY: Final = Submitter()
BERTA: Final = Submitter(User("berta"), "team")


def policy(**keys: Json) -> Policy:
    read = policy_reading.read({**keys})
    assert isinstance(read, Policy), read
    return read


OF_ANNA: Final = policy(
    queues=[
        {
            "name": "q",
            "namespaces": ["*"],
            "default": True,
            "submitters": {"users": ["anna"]},
            "limits": {"priorityClasses": []},
        }
    ]
)


def a_set(**metadata: Json) -> JsonObject:
    found = draft()
    assert isinstance(found["metadata"], dict)
    return {**found, "kind": "PodCliqueSet", "metadata": {**found["metadata"], **metadata}}


def gang_pod() -> JsonObject:
    spec: JsonObject = {"containers": [{"name": "main", "image": "x"}]}
    return {**pod({**PLAIN}), "kind": "Pod", "spec": spec}


def workload(kind: str) -> JsonObject:
    template: JsonObject = {key: gang_pod()[key] for key in ("metadata", "spec")}
    spec: JsonObject = {"template": template}
    if kind == "CronJob":
        spec = {"jobTemplate": {"spec": spec}}
    return {"kind": kind, "metadata": {"name": "w", "namespace": "there"}, "spec": spec}


def tried(manifest: JsonObject, submitter: Submitter = NOBODY) -> Tried:
    found = trying.asked(manifest, submitter, NOW)
    assert found is not None
    return found


def decision(by: Policy, found: Tried) -> Decision:
    return verdicts.verdict(trying.judged(by, NOTHING, found)).decision


def test_nobody_is_asked_who_they_are_unless_it_is_said_who_applies_it() -> None:
    assert decision(OF_ANNA, tried(a_set())) is Decision.ALLOW
    assert decision(OF_ANNA, tried(a_set(), BERTA)) is Decision.REFUSE
    assert decision(OF_ANNA, tried(a_set(), Submitter(User("anna")))) is Decision.ALLOW


def test_a_manifest_goes_where_it_says_unless_it_is_said_where_to() -> None:
    assert tried(a_set()).namespace == "default"
    assert tried(a_set(namespace="there")).namespace == "there"
    assert tried(a_set(namespace="there"), BERTA).title == "PodCliqueSet team/llm"


@pytest.mark.parametrize("kind", trying.MAKERS)
def test_a_workload_of_gang_pods_is_judged_by_the_pods_its_controller_makes(kind: str) -> None:
    found = tried(workload(kind), BERTA)
    assert (found.kind, found.request.kind, found.namespace) == (kind, "Pod", "team")
    assert found.request.user.name.startswith("system:serviceaccount:kube-system:")
    # Not asked who they are, though others would be.
    assert decision(OF_ANNA, found) is Decision.ALLOW
    assert decision(OF_ANNA, tried(gang_pod(), BERTA)) is Decision.REFUSE
    broken = policy(rules=[{"id": "digests", "images": {"requireDigest": True}}])
    assert decision(broken, found) is Decision.REFUSE


@pytest.mark.parametrize("kind", ["Service", "Pod", "Job", "Deployment", "PodClique", ""])
def test_what_admission_is_not_asked_about_is_not_judged(kind: str) -> None:
    manifest: JsonObject = {"kind": kind, "metadata": {"name": "x"}, "spec": {"template": {}}}
    assert trying.asked(manifest, NOBODY, NOW) is None


def test_a_list_is_taken_apart_and_items_of_a_typed_one_are_what_it_is_of() -> None:
    bare = {key: value for key, value in a_set(name="b").items() if key != "kind"}
    typed: JsonObject = {"kind": "PodCliqueSetList", "items": [bare]}
    found = list(trying.objects({"kind": "List", "items": [a_set(name="a"), typed, 7]}))
    assert [tried(each).name for each in found] == ["a", "b"]


def test_the_topologies_among_manifests_are_known_and_what_is_none_is_not() -> None:
    binding: JsonObject = {
        "kind": "ClusterTopologyBinding",
        "metadata": {"name": "net"},
        "spec": {"levels": [{"domain": "rack", "key": "example.com/rack"}]},
    }
    broken: JsonObject = {**binding, "metadata": {"name": "odd"}, "spec": {"levels": 7}}
    known = trying.known_from([a_set(), binding, broken])
    assert known.bindings() == ["net"]
    assert tried(binding).title == "ClusterTopologyBinding net"
    assert decision(BUILT_IN, tried(broken)) is Decision.REFUSE

from typing import Final

import pytest

from api import names
from api.jsons import Json, JsonObject
from policies import managed_admission
from policies.admission import Operation, Request, User
from policies.answers import Allow, Answer, Code, Refuse
from policies.known import Snapshot
from policies.policy import BUILT_IN, Policy, ProtectionPolicy

MANAGED: Final = {names.MANAGED_BY_LABEL: names.MANAGED_BY, names.PART_OF_LABEL: "chat"}
TENANT: Final = User("alice", ("system:authenticated",))
WORKLOADS: Final = User("system:serviceaccount:penstock-system:penstock-workloads")
GANGS: Final = User("system:serviceaccount:penstock-system:penstock-gangs")
KEPT: Final = Snapshot(sets={("default", "chat"): {}})
UNPROTECTED: Final = Snapshot(sets={("default", "chat"): {names.UNPROTECTED_ANNOTATION: "true"}})


def thing(labels: dict[str, str] | None = None, spec: Json = None, **metadata: Json) -> JsonObject:
    meta: JsonObject = {"name": "chat-0", "labels": {**(MANAGED if labels is None else labels)}}
    return {"metadata": {**meta, **metadata}, "spec": spec}


def request(
    operation: str, kind: str = "PodGang", *, old: JsonObject | None = None,
    new: JsonObject | None = None, user: User = TENANT, subresource: str = "",
) -> Request:  # fmt: skip
    before = old or (thing() if operation != "CREATE" else None)
    after = new or (thing(spec={"changed": True}) if operation != "DELETE" else None)
    return Request(
        Operation(operation), kind, after, before,
        namespace="default", name="chat-0", user=user, subresource=subresource,
    )  # fmt: skip


def judged(of: Request, known: Snapshot = KEPT, policy: Policy = BUILT_IN) -> Answer:
    return managed_admission.judge(policy, known, of)


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
@pytest.mark.parametrize("kind", ["PodGang", "PodClique", "Service", "Secret", "RoleBinding"])
def test_what_is_made_for_a_set_is_not_changed_by_hand(operation: str, kind: str) -> None:
    answer = judged(request(operation, kind))
    assert isinstance(answer, Refuse)
    assert answer.code is Code.FORBIDDEN
    assert answer.message == (
        f"{kind} chat-0 is made and kept by Penstock for PodCliqueSet chat: change the set "
        "instead, or annotate the set grove.io/disable-managed-resource-protection=true to "
        "change by hand what belongs to it"
    )


@pytest.mark.parametrize("user", [WORKLOADS, GANGS])
def test_who_makes_it_changes_it(user: User) -> None:
    assert judged(request("UPDATE", user=user)) == Allow()


@pytest.mark.parametrize(
    "name",
    [
        "system:serviceaccount:default:penstock-workloads",
        "system:serviceaccount:penstock-system:penstock-webhook",
        "penstock-workloads",
        "",
    ],
)
def test_a_namesake_of_a_maker_is_nobody(name: str) -> None:
    assert isinstance(judged(request("UPDATE", user=User(name))), Refuse)


def test_the_policy_names_others_who_may() -> None:
    policy = Policy(managed_resources=ProtectionPolicy(exempt_user_names=["alice"]))
    assert judged(request("UPDATE"), policy=policy) == Allow()
    assert isinstance(judged(request("UPDATE", user=User("bob")), policy=policy), Refuse)


def test_the_policy_may_switch_it_off() -> None:
    off = Policy(managed_resources=ProtectionPolicy(enabled=False))
    assert judged(request("UPDATE"), policy=off) == Allow()


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
def test_a_set_may_give_leave(operation: str) -> None:
    assert judged(request(operation), UNPROTECTED) == Allow()


@pytest.mark.parametrize("value", ["True", "yes", "", "false"])
def test_leave_is_given_in_one_word_only(value: str) -> None:
    known = Snapshot(sets={("default", "chat"): {names.UNPROTECTED_ANNOTATION: value}})
    assert isinstance(judged(request("UPDATE"), known), Refuse)


def test_leave_is_given_for_one_namespace() -> None:
    elsewhere = Snapshot(
        sets={("default", "chat"): {}, ("b", "chat"): {names.UNPROTECTED_ANNOTATION: "true"}}
    )
    assert isinstance(judged(request("UPDATE"), elsewhere), Refuse)


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({}, id="labels taken off"),
        pytest.param({**MANAGED, names.PART_OF_LABEL: "other"}, id="given to another set"),
        pytest.param({**MANAGED, names.MANAGED_BY_LABEL: "me"}, id="given to another maker"),
    ],
)
def test_nobody_slips_it_out_of_its_set_first(labels: dict[str, str]) -> None:
    known = Snapshot(
        sets={
            ("default", "chat"): {},
            ("default", "other"): {names.UNPROTECTED_ANNOTATION: "true"},
        }
    )
    assert isinstance(judged(request("UPDATE", new=thing(labels)), known), Refuse)


def test_what_was_not_made_for_a_set_may_be_changed_into_what_looks_so() -> None:
    assert judged(request("UPDATE", old=thing({}))) == Allow()
    assert judged(request("CREATE", new=thing({}))) == Allow()
    unmanaged = {names.PART_OF_LABEL: "chat"}
    assert judged(request("DELETE", old=thing(unmanaged))) == Allow()


@pytest.mark.parametrize(
    ("labels", "known", "named"),
    [
        pytest.param(MANAGED, Snapshot(), "no PodCliqueSet chat", id="the set is gone"),
        pytest.param(
            {names.MANAGED_BY_LABEL: names.MANAGED_BY}, KEPT, names.PART_OF_LABEL, id="no set named"
        ),
    ],
)
def test_what_no_set_keeps_is_free_with_a_warning(
    labels: dict[str, str], known: Snapshot, named: str
) -> None:
    answer = judged(request("DELETE", old=thing(labels)), known)
    assert isinstance(answer, Allow)
    (warning,) = answer.warnings
    assert named in warning
    assert len(warning) <= 120


def test_anybody_may_delete_a_pod_and_only_that() -> None:
    assert judged(request("DELETE", "Pod")) == Allow()
    assert isinstance(judged(request("UPDATE", "Pod")), Refuse)


def test_subresources_and_connections_are_no_business_of_it() -> None:
    assert judged(request("UPDATE", "Scale", subresource="scale")) == Allow()
    assert judged(request("CONNECT", "PodExecOptions")) == Allow()


@pytest.mark.parametrize("kind", ["PodClique", "PodCliqueScalingGroup"])
def test_what_scale_may_do_an_update_may(kind: str) -> None:
    old = thing(spec={"replicas": 2, "minAvailable": 1}, resourceVersion="1", generation=1)
    more = thing(spec={"replicas": 3, "minAvailable": 1}, resourceVersion="1", generation=2)
    assert judged(request("UPDATE", kind, old=old, new=more)) == Allow()
    both = thing(spec={"replicas": 3, "minAvailable": 3})
    assert isinstance(judged(request("UPDATE", kind, old=old, new=both)), Refuse)
    assert isinstance(judged(request("UPDATE", "PodGang", old=old, new=more)), Refuse)


def test_what_is_being_deleted_may_lose_its_finalizers_and_change_in_nothing_else() -> None:
    since = "2031-01-01T00:00:00Z"
    old = thing(finalizers=["example.com/x"], deletionTimestamp=since)
    assert judged(request("UPDATE", old=old, new=thing(deletionTimestamp=since))) == Allow()
    changed = thing(spec={"podgroups": []}, deletionTimestamp=since)
    assert isinstance(judged(request("UPDATE", old=old, new=changed)), Refuse)
    alive = thing(finalizers=["example.com/x"])
    assert isinstance(judged(request("UPDATE", old=alive, new=thing())), Refuse)


def test_a_review_without_the_object_as_it_was_is_refused() -> None:
    bare = Request(Operation.DELETE, "PodGang", None, None, namespace="default", user=TENANT)
    answer = judged(bare)
    assert isinstance(answer, Refuse)
    assert answer.code is Code.BAD_REQUEST


def test_labels_of_no_sense_are_nobodys() -> None:
    assert judged(request("UPDATE", old={"metadata": "x"})) == Allow()
    assert judged(request("UPDATE", old={"metadata": {"labels": []}})) == Allow()
    odd: JsonObject = {
        "metadata": {"labels": {names.MANAGED_BY_LABEL: names.MANAGED_BY, names.PART_OF_LABEL: 4}}
    }
    assert isinstance(judged(request("UPDATE", old=odd)), Allow)

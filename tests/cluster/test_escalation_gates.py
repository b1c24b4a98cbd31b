"""A tenant tries to let a gated pod go, or to say where it goes. All webhooks up."""

import pytest

from api import names
from api.jsons import Json, JsonObject
from kube.client import Client
from kube.errors import Forbidden
from kube.resources import PODS
from tests.support.attempts import (
    BELONGING,
    ONLY_LIFT,
    PLACE,
    Ask,
    Attempt,
    Seen,
    carry_out,
    changed,
    each,
    merge,
)
from tests.support.tenants import (
    ADMIN,
    APPLY,
    EDITOR,
    JSON_PATCH,
    OWNER,
    ROLEBINDINGS,
    ROLES,
    STRATEGIC_PATCH,
    Estate,
)

pytestmark = pytest.mark.cluster

EVERYBODY = (EDITOR, ADMIN, OWNER)
AFFINITY: JsonObject = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["mine"]}]}
            ]
        }
    }
}


def without_version(pod: JsonObject) -> JsonObject:
    """Have an update go through whoever wrote in between."""
    return changed(pod, "metadata", "resourceVersion", to=None)


def json_patch(seen: Seen) -> list[Ask]:
    operations: Json = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
    return [Ask("PATCH", seen.gated(), operations, JSON_PATCH)]


def strategic_patch(seen: Seen) -> list[Ask]:
    gates: Json = [{"name": names.GATE, "$patch": "delete"}]
    return [Ask("PATCH", seen.gated(), {"spec": {"schedulingGates": gates}}, STRATEGIC_PATCH)]


def update(seen: Seen) -> list[Ask]:
    body = changed(without_version(seen.pod), "spec", "schedulingGates", to=[])
    return [Ask("PUT", seen.gated(), body)]


def update_of(sub: str, seen: Seen) -> list[Ask]:
    body = changed(without_version(seen.pod), "spec", "schedulingGates", to=[])
    return [Ask("PUT", seen.gated(sub), changed(body, "spec", "affinity", to=AFFINITY))]


def binding(name: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "mine"},
    }


def own_role(seen: Seen) -> list[Ask]:
    """In its namespace an owner may give itself any right, since it has them all there."""
    estate = seen.estate
    rights: Json = [
        {"apiGroups": [names.GROUP], "resources": [names.GATES_RESOURCE], "verbs": ["lift"]}
    ]
    role: JsonObject = {"metadata": {"name": "lifter"}, "rules": rights}
    bound: JsonObject = {
        "metadata": {"name": "lifter"},
        "roleRef": {"apiGroup": ROLES.group, "kind": "Role", "name": "lifter"},
        "subjects": [{"kind": "ServiceAccount", "name": OWNER, "namespace": estate.namespace}],
    }
    return [
        Ask("POST", estate.path(ROLES), role),
        Ask("POST", estate.path(ROLEBINDINGS), bound),
        *json_patch(seen),
    ]


def apply_in_anothers_name(seen: Seen) -> list[Ask]:
    """A field that its last manager leaves out goes, and anybody may call himself anything."""
    body: JsonObject = {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {"name": seen.estate.gated},
        "spec": {"containers": [{"name": "engine"}]},
    }
    query = (("fieldManager", names.WORKLOADS_MANAGER), ("force", "true"))
    return [Ask("PATCH", seen.gated(), body, APPLY, query)]


def tolerate(seen: Seen) -> list[Ask]:
    there = seen.pod["spec"]
    assert isinstance(there, dict)
    before = there.get("tolerations")
    more: Json = [*(before if isinstance(before, list) else []), {"operator": "Exists"}]
    return merge(seen.gated(), {"spec": {"tolerations": more}})


@each(
    Attempt("takes the gate off by JSON patch", EVERYBODY, json_patch, ONLY_LIFT),
    Attempt("takes the gate off by strategic merge", EVERYBODY, strategic_patch, ONLY_LIFT),
    Attempt(
        "takes all gates off by merge patch",
        (ADMIN,),
        lambda seen: merge(seen.gated(), {"spec": {"schedulingGates": None}}),
        ONLY_LIFT,
    ),
    Attempt("takes the gate off by an update of the whole pod", EVERYBODY, update, ONLY_LIFT),
    Attempt(
        "puts a gate of its own in place of ours",
        (OWNER,),
        lambda seen: merge(seen.gated(), {"spec": {"schedulingGates": [{"name": "my.own/gate"}]}}),
        "only deletion is allowed",
    ),
    Attempt("grants itself the verb lift in its namespace", (OWNER,), own_role, ONLY_LIFT),
    Attempt(
        "takes the gate off while it deletes the pod's labels",
        (OWNER,),
        lambda seen: merge(
            seen.gated(), {"metadata": {"labels": None}, "spec": {"schedulingGates": []}}
        ),
        f"{ONLY_LIFT}|{BELONGING}",
    ),
    Attempt(
        "applies the pod in the name of its maker, without the gate",
        (EDITOR, OWNER),
        apply_in_anothers_name,
        "is made and kept by Penstock",
    ),
    Attempt(
        "binds a gated pod to a node by itself",
        (OWNER,),
        lambda seen: [Ask("POST", seen.gated("binding"), binding(seen.estate.gated))],
        "schedulingGates",
    ),
    Attempt(
        "binds a gated pod by the older kind of Binding",
        (OWNER,),
        lambda seen: [
            Ask(
                "POST",
                f"/api/v1/namespaces/{seen.estate.namespace}/bindings",
                binding(seen.estate.gated),
            )
        ],
        "schedulingGates",
    ),
)
async def test_nobody_lets_a_gated_pod_go(
    person: Client, estate: Estate, attempt: Attempt, tenant: str
) -> None:
    await carry_out(person, estate, attempt, tenant)


@each(
    Attempt(
        "narrows a gated pod's nodeSelector",
        EVERYBODY,
        lambda seen: merge(seen.gated(), {"spec": {"nodeSelector": {"my": "node"}}}),
        PLACE,
    ),
    Attempt(
        "gives a gated pod an affinity",
        EVERYBODY,
        lambda seen: merge(seen.gated(), {"spec": {"affinity": AFFINITY}}),
        PLACE,
    ),
    Attempt("has a gated pod tolerate every taint", EVERYBODY, tolerate, PLACE),
    Attempt(
        "nominates a node for a gated pod",
        (OWNER,),
        lambda seen: merge(seen.gated("status"), {"status": {"nominatedNodeName": "mine"}}),
        "nominatedNodeName cannot be changed",
    ),
    Attempt(
        "gives a gated pod a node",
        (OWNER,),
        lambda seen: merge(seen.gated(), {"spec": {"nodeName": "mine"}}),
        "spec",
    ),
)
async def test_nobody_says_where_a_gated_pod_goes(
    person: Client, estate: Estate, attempt: Attempt, tenant: str
) -> None:
    await carry_out(person, estate, attempt, tenant)


@each(
    Attempt(
        "takes the gate off through the status", (OWNER,), lambda seen: update_of("status", seen)
    ),
    Attempt(
        "takes the gate off beside an ephemeral container",
        (OWNER,),
        lambda seen: update_of("ephemeralcontainers", seen),
    ),
    Attempt("takes the gate off in a resize", (OWNER,), lambda seen: update_of("resize", seen)),
)
async def test_what_is_let_in_leaves_the_gate_where_it_is(
    person: Client, estate: Estate, attempt: Attempt, tenant: str
) -> None:
    await carry_out(person, estate, attempt, tenant)


async def test_whoever_applied_the_gate_cannot_apply_it_away(
    person: Client, estate: Estate
) -> None:
    pod: JsonObject = {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            "name": "applied",
            "labels": {names.GANG_LABEL: "applied", names.GANG_SIZE_LABEL: "1000"},
        },
        "spec": {
            "containers": [{"name": "main", "image": "none"}],
            "schedulingGates": [{"name": names.GATE}],
        },
    }
    path = estate.path(PODS, "applied")
    mine = {"fieldManager": "mine", "force": "true"}
    async with estate.acting(EDITOR) as editor:
        made = await editor.ask("PATCH", path, pod, APPLY, **mine)
        assert names.GATE in str(made["spec"])
        without = changed(pod, "spec", "schedulingGates", to=[])
        with pytest.raises(Forbidden, match=ONLY_LIFT):
            await editor.ask("PATCH", path, without, APPLY, **mine)
        await editor.ask("DELETE", path)

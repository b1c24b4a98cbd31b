"""A tenant tries to write what Penstock decides by: the ledger, the policy, the guards, us."""

import pytest

from api import names
from api.jsons import Json, JsonObject
from kube.client import Client
from kube.resources import (
    CONFIGMAPS,
    LEASES,
    PODGANGS,
    RESERVATIONS,
    SECRETS,
    SERVICEACCOUNTS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from penstock.lab import tokens
from tests.support.attempts import (
    NO_RIGHT,
    ONLY_LIFT,
    Ask,
    Attempt,
    Seen,
    carry_out,
    each,
    merge,
)
from tests.support.tenants import (
    ADMIN,
    CLUSTERROLEBINDINGS,
    OWNER,
    RBAC,
    RUNNING_SET,
    WAITING_SET,
    Estate,
)

pytestmark = pytest.mark.cluster

GUARDS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)
BOTH = (ADMIN, OWNER)
RUNNING_GANG = f"{RUNNING_SET}-0"
WAITING_GANG = f"{WAITING_SET}-0"


def a_reservation(name: str) -> JsonObject:
    slots: Json = [{"index": 0, "node": "mine"}]
    spec: JsonObject = {
        "gang": {"name": WAITING_GANG, "uid": "anything"},
        "deadline": "2100-01-01T00:00:00Z",
        "groups": [{"name": "engine", "requests": {"cpu": "1"}, "slots": slots}],
    }
    return {
        "apiVersion": RESERVATIONS.api_version,
        "kind": RESERVATIONS.kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def a_gang_of_others(seen: Seen) -> list[Ask]:
    """Anybody may write a PodGang that names any pods; it counts once its status says so."""
    taken: Json = [{"namespace": seen.estate.namespace, "name": seen.estate.gated}]
    body: JsonObject = {
        "apiVersion": PODGANGS.api_version,
        "kind": PODGANGS.kind,
        "metadata": {"name": "greedy"},
        "spec": {"podgroups": [{"name": "all", "minReplicas": 1, "podReferences": taken}]},
    }
    done: JsonObject = {
        "type": names.INITIALIZED,
        "status": "True",
        "reason": names.PODS_CREATED,
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    greedy = seen.estate.path(PODGANGS, "greedy", "status")
    return [
        Ask("POST", seen.estate.path(PODGANGS), body),
        *merge(greedy, {"status": {"conditions": [done]}}),
    ]


def reservation(seen: Seen, sub: str | None = None) -> str:
    return seen.estate.path(RESERVATIONS, RUNNING_GANG, sub)


@each(
    Attempt(
        "books room in the ledger",
        (OWNER,),
        lambda seen: [Ask("POST", seen.estate.path(RESERVATIONS), a_reservation("mine"))],
        ONLY_LIFT,
    ),
    Attempt(
        "moves a gang's room to another node",
        (OWNER,),
        lambda seen: merge(reservation(seen), {"spec": a_reservation("x")["spec"]}),
        ONLY_LIFT,
    ),
    Attempt(
        "says that a reservation is done",
        (OWNER,),
        lambda seen: merge(reservation(seen, "status"), {"status": {"state": "RolledBack"}}),
        ONLY_LIFT,
    ),
    Attempt(
        "deletes a reservation",
        (OWNER,),
        lambda seen: [Ask("DELETE", reservation(seen))],
        ONLY_LIFT,
    ),
    Attempt(
        "deletes all reservations at once",
        (OWNER,),
        lambda seen: [Ask("DELETE", seen.estate.path(RESERVATIONS))],
        ONLY_LIFT,
    ),
    Attempt(
        "says that a gang is scheduled",
        (OWNER,),
        lambda seen: merge(
            seen.estate.path(PODGANGS, WAITING_GANG, "status"), {"status": {"phase": "Running"}}
        ),
        "the status of a gang says what Penstock did",
    ),
    Attempt(
        "has a gang of its own lay claim to others' pods",
        (OWNER,),
        a_gang_of_others,
        "the status of a gang says what Penstock did",
    ),
    Attempt(
        "makes a gang smaller than its set wants it",
        (OWNER,),
        lambda seen: merge(seen.estate.path(PODGANGS, WAITING_GANG), {"spec": {"podgroups": []}}),
        "is made and kept by Penstock|Invalid value",
    ),
)
async def test_nobody_writes_the_ledger(
    person: Client, estate: Estate, attempt: Attempt, tenant: str
) -> None:
    await carry_out(person, estate, attempt, tenant)


def elsewhere(
    kind: Resource, name: str, namespace: str | None = names.NAMESPACE, sub: str | None = None
) -> str:
    return kind.path(namespace, name, sub)


@each(
    Attempt(
        "writes the policy",
        BOTH,
        lambda _: merge(elsewhere(CONFIGMAPS, names.POLICY_CONFIG), {"data": {}}),
        NO_RIGHT,
    ),
    Attempt(
        "writes how large the cluster is",
        BOTH,
        lambda _: merge(elsewhere(CONFIGMAPS, names.CAPACITY_CONFIG), {"data": {}}),
        NO_RIGHT,
    ),
    Attempt(
        "reads the key of the certificate authority",
        BOTH,
        lambda _: [Ask("GET", elsewhere(SECRETS, names.CA_SECRET))],
        NO_RIGHT,
    ),
    Attempt(
        "takes the lease of gangs",
        BOTH,
        lambda _: merge(elsewhere(LEASES, names.GANGS_LEASE), {"spec": {"holderIdentity": "me"}}),
        NO_RIGHT,
    ),
    Attempt(
        "asks for a token of gangs",
        BOTH,
        lambda _: [
            Ask(
                "POST",
                elsewhere(SERVICEACCOUNTS, names.GANGS_ACCOUNT, sub="token"),
                tokens.request(600),
            )
        ],
        NO_RIGHT,
    ),
    Attempt(
        "switches a guard off",
        BOTH,
        lambda _: [Ask("DELETE", elsewhere(GUARDS, "penstock-guard-gate", None))],
        NO_RIGHT,
    ),
    Attempt(
        "switches the webhooks off",
        BOTH,
        lambda _: [
            Ask("DELETE", elsewhere(VALIDATING_WEBHOOKS, names.WEBHOOK_CONFIGURATION, None))
        ],
        NO_RIGHT,
    ),
    Attempt(
        "grants itself the role of gangs in the whole cluster",
        BOTH,
        lambda seen: [
            Ask(
                "POST",
                CLUSTERROLEBINDINGS.path(),
                {
                    "metadata": {"name": "mine"},
                    "roleRef": {
                        "apiGroup": RBAC,
                        "kind": "ClusterRole",
                        "name": names.GANGS_ACCOUNT,
                    },
                    "subjects": [
                        {
                            "kind": "ServiceAccount",
                            "name": OWNER,
                            "namespace": seen.estate.namespace,
                        }
                    ],
                },
            )
        ],
        NO_RIGHT,
    ),
)
async def test_nobody_reaches_what_is_ours_outside_his_namespace(
    person: Client, estate: Estate, attempt: Attempt, tenant: str
) -> None:
    await carry_out(person, estate, attempt, tenant)

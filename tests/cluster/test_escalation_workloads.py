"""A thief of the token of workloads tries what it is for and more: with the real token."""

from typing import Final
from uuid import uuid4

import pytest

from api import names
from api.jsons import Json, JsonObject
from kube.client import Client
from kube.errors import Forbidden, Invalid
from kube.resources import (
    AUTOSCALERS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
    Resource,
)
from tests.support.installed import Installed
from tests.support.tenants import a_pod

pytestmark = pytest.mark.cluster

NAMESPACE: Final = "default"


def spec(**fields: Json) -> JsonObject:
    return {"spec": fields}


OTHERS: Final[dict[Resource, JsonObject]] = {
    PODS: {"spec": a_pod("x")["spec"]},
    SERVICES: spec(selector={"app": "bank"}, ports=[{"port": 80}]),
    AUTOSCALERS: spec(
        maxReplicas=2,
        scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "bank"},
    ),
    SERVICEACCOUNTS: {},
    ROLES: {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    # Of a role whose every right it holds, so that Kubernetes alone would let it.
    ROLE_BINDINGS: {
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": names.WORKLOADS_ACCOUNT,
        },
    },
}


@pytest.mark.parametrize("kind", OTHERS, ids=lambda kind: kind.plural)
async def test_workloads_neither_changes_nor_deletes_what_was_not_made_for_a_set(
    installed: Installed, person: Client, kind: Resource
) -> None:
    name = f"bank-{uuid4().hex[:8]}"
    body = {
        "apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name},
        **OTHERS[kind],
    }  # fmt: skip
    marked = {"metadata": {"labels": {names.MANAGED_BY_LABEL: names.MANAGED_BY}}}
    await person.create(kind, body, NAMESPACE)
    async with installed.acting(names.WORKLOADS_ACCOUNT) as workloads:
        with pytest.raises(Forbidden, match=r"penstock-workloads may|cannot patch resource"):
            await workloads.merge_patch(kind, name, marked, NAMESPACE)
        with pytest.raises(Forbidden, match="made for a set"):
            await workloads.delete(kind, name, NAMESPACE)
    await person.delete(kind, name, NAMESPACE)


async def test_workloads_deletes_no_secret(installed: Installed, person: Client) -> None:
    name = f"bank-{uuid4().hex[:8]}"
    await person.create(SECRETS, {"metadata": {"name": name}}, NAMESPACE)
    async with installed.acting(names.WORKLOADS_ACCOUNT) as workloads:
        with pytest.raises(Forbidden, match="cannot delete resource"):
            await workloads.delete(SECRETS, name, NAMESPACE)
    await person.delete(SECRETS, name, NAMESPACE)


async def test_workloads_makes_no_pod_that_could_run_as_gangs(installed: Installed) -> None:
    """It harms nobody, so that Pod Security lets it be."""
    harmless: JsonObject = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    pod = a_pod(
        "x",
        serviceAccountName=names.GANGS_ACCOUNT,
        schedulingGates=[{"name": names.GATE}],
        containers=[{"name": "main", "image": "none", "securityContext": harmless}],
    )
    pod["metadata"] = {"generateName": "posing-", "labels": {names.PODGANG_LABEL: "posing-0"}}
    async with installed.acting(names.WORKLOADS_ACCOUNT) as workloads:
        with pytest.raises(Forbidden, match="no pods in Penstock's own namespace"):
            await workloads.create(PODS, pod, names.NAMESPACE)


@pytest.mark.parametrize("scheduler", ["default-scheduler", "another"])
async def test_workloads_starts_no_pod_without_the_gate_where_no_webhook_gives_it_one(
    installed: Installed, scheduler: str
) -> None:
    pod = a_pod("x", serviceAccountName="default", schedulerName=scheduler)
    pod["metadata"] = {"generateName": "loose-", "labels": {names.PODGANG_LABEL: "loose-0"}}
    async with installed.acting(names.WORKLOADS_ACCOUNT) as workloads:
        with pytest.raises(Forbidden, match="scheduling gate"):
            await workloads.create(PODS, pod, "kube-system")


async def test_workloads_makes_no_pod_for_a_name_that_nobody_runs_a_scheduler_by(
    installed: Installed,
) -> None:
    """It says that it has judged the pod, so that no webhook writes the name that is meant."""
    pod = a_pod("x", schedulerName="kai-scheduler", schedulingGates=[{"name": names.GATE}])
    pod["metadata"] = {
        "generateName": "misnamed-",
        "labels": {names.PODGANG_LABEL: "misnamed-0"},
        "annotations": {names.JUDGED_ANNOTATION: "x"},
    }
    async with installed.acting(names.WORKLOADS_ACCOUNT) as workloads:
        with pytest.raises(Invalid, match=r"kai-scheduler stands for another name.* try again"):
            await workloads.create(PODS, pod, NAMESPACE)

"""Owners whose pods would wait behind our gate for ever are refused, or told, when written."""

import asyncio
from typing import Final

import pytest
import yaml

from api import names
from api.cliques import MAX_REPLICAS
from api.jsons import Json, JsonObject
from kube.errors import Invalid
from kube.resources import Resource
from tests.support.attempts import changed
from tests.support.installed import Installed
from tests.support.living import Kubectl
from tests.support.tenants import EDITOR, MERGE_PATCH, Estate

pytestmark = pytest.mark.cluster

STATEFULSETS: Final = Resource("apps", "v1", "statefulsets", "StatefulSet", namespaced=True)
DAEMONSETS: Final = Resource("apps", "v1", "daemonsets", "DaemonSet", namespaced=True)
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment", namespaced=True)
JOBS: Final = Resource("batch", "v1", "jobs", "Job", namespaced=True)
CRONJOBS: Final = Resource("batch", "v1", "cronjobs", "CronJob", namespaced=True)

FOUR: Final[JsonObject] = {names.GANG_LABEL: "mine", names.GANG_SIZE_LABEL: "4"}
TWO_OF_FOUR: Final[JsonObject] = {**FOUR, names.GANG_MINIMUM_LABEL: "2"}


def owner(kind: Resource, labels: JsonObject, **spec: Json) -> JsonObject:
    """An owner whose pods carry these labels."""
    pod: JsonObject = {"containers": [{"name": "main", "image": "none"}]}
    template: JsonObject = {"metadata": {"labels": {"app": "owned", **labels}}, "spec": pod}
    whole: JsonObject = {"template": template}
    if kind in (JOBS, CRONJOBS):
        pod["restartPolicy"] = "Never"
    else:
        whole["selector"] = {"matchLabels": {"app": "owned"}}
    if kind == CRONJOBS:
        whole = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {**whole, **spec}}}
    else:
        whole.update(spec)
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "owned"},
        "spec": whole,
    }


PARALLEL: Final[JsonObject] = {"podManagementPolicy": "Parallel", "replicas": 4}
FOREIGN: Final[JsonObject] = {"containers": [{"name": "m", "image": "n"}], "schedulerName": "other"}

REFUSED: Final[dict[str, tuple[Resource, JsonObject, str]]] = {
    "a StatefulSet that makes one pod at a time": (
        STATEFULSETS,
        owner(STATEFULSETS, FOUR, podManagementPolicy="OrderedReady", replicas=4),
        "podManagementPolicy must be Parallel",
    ),
    "a StatefulSet that does not say how it makes them": (
        STATEFULSETS,
        owner(STATEFULSETS, FOUR, replicas=4),
        "podManagementPolicy must be Parallel",
    ),
    "a Job that runs fewer pods at a time than its gang has": (
        JOBS,
        owner(JOBS, FOUR, parallelism=3, completions=8),
        "never has more than 3 pods at one time, and its gang starts with 4",
    ),
    "a Job that needs fewer pods than its gang has": (
        JOBS,
        owner(JOBS, FOUR, parallelism=4, completions=2),
        "never has more than 2 pods",
    ),
    "a Job that says nothing of how many": (
        JOBS,
        owner(JOBS, FOUR),
        "never has more than 1 pods",
    ),
    "a Job below the gang's minimum": (
        JOBS,
        owner(JOBS, TWO_OF_FOUR, parallelism=1, completions=4),
        "its gang starts with 2",
    ),
    "a CronJob whose Jobs are too small": (
        CRONJOBS,
        owner(CRONJOBS, FOUR, parallelism=3, completions=8),
        "never has more than 3 pods",
    ),
    "a DaemonSet": (DAEMONSETS, owner(DAEMONSETS, FOUR), "a DaemonSet cannot make a gang"),
    "a size that is no number": (
        DEPLOYMENTS,
        owner(DEPLOYMENTS, {names.GANG_LABEL: "mine", names.GANG_SIZE_LABEL: "many"}),
        "must be a whole number",
    ),
    "a minimum that would overflow": (
        STATEFULSETS,
        owner(STATEFULSETS, {**FOUR, names.GANG_MINIMUM_LABEL: "9" * 30}, **PARALLEL),
        "must be a whole number",
    ),
    "more pods than a gang may have": (
        DEPLOYMENTS,
        owner(DEPLOYMENTS, {**FOUR, names.GANG_SIZE_LABEL: str(MAX_REPLICAS + 1)}),
        "must be a whole number of pods, from 1 to 10000",
    ),
    "a minimum that the gang never reaches": (
        DEPLOYMENTS,
        owner(DEPLOYMENTS, {**FOUR, names.GANG_MINIMUM_LABEL: "5"}),
        "is 5 and must not exceed penstock.dev/gang-size, which is 4",
    ),
    "a gang without a size": (
        DEPLOYMENTS,
        owner(DEPLOYMENTS, {names.GANG_LABEL: "mine"}),
        "add one of them",
    ),
}


@pytest.mark.parametrize(("kind", "body", "says"), REFUSED.values(), ids=REFUSED)
async def test_refused_at_once_is(
    estate: Estate, kind: Resource, body: JsonObject, says: str
) -> None:
    async with estate.acting(EDITOR) as editor:
        with pytest.raises(Invalid, match=says):
            await editor.ask("POST", estate.path(kind), body, dryRun="All")


ADMITTED: Final[dict[str, tuple[Resource, JsonObject]]] = {
    "a StatefulSet that makes all pods at once": (
        STATEFULSETS,
        owner(STATEFULSETS, FOUR, **PARALLEL),
    ),
    "a StatefulSet whose gang starts with one pod": (
        STATEFULSETS,
        owner(STATEFULSETS, {**FOUR, names.GANG_MINIMUM_LABEL: "1"}, replicas=4),
    ),
    "a Deployment of as many as a gang may have": (
        DEPLOYMENTS,
        owner(DEPLOYMENTS, {**FOUR, names.GANG_SIZE_LABEL: str(MAX_REPLICAS)}),
    ),
    "a Deployment that waits for all of its gang": (
        DEPLOYMENTS,
        owner(DEPLOYMENTS, {**FOUR, names.GANG_MINIMUM_LABEL: "4"}),
    ),
    "a StatefulSet of no gang": (STATEFULSETS, owner(STATEFULSETS, {}, replicas=4)),
    "a Job as wide as its gang": (JOBS, owner(JOBS, FOUR, parallelism=4, completions=4)),
    "a Job as wide as its gang's minimum": (JOBS, owner(JOBS, TWO_OF_FOUR, parallelism=2)),
    "a Job that is paused": (JOBS, owner(JOBS, FOUR, parallelism=0)),
    "a CronJob of wide Jobs": (CRONJOBS, owner(CRONJOBS, FOUR, parallelism=4)),
    "a DaemonSet of no gang": (DAEMONSETS, owner(DAEMONSETS, {})),
    "a DaemonSet of another scheduler": (
        DAEMONSETS,
        changed(owner(DAEMONSETS, FOUR), "spec", "template", "spec", to=FOREIGN),
    ),
}


@pytest.mark.parametrize(("kind", "body"), ADMITTED.values(), ids=ADMITTED)
async def test_let_in_is(estate: Estate, kind: Resource, body: JsonObject) -> None:
    async with estate.acting(EDITOR) as editor:
        await editor.ask("POST", estate.path(kind), body, dryRun="All")


async def test_one_that_is_there_can_be_scaled_but_not_turned_into_a_gang(
    estate: Estate,
) -> None:
    path = estate.path(STATEFULSETS, "owned")
    async with estate.acting(EDITOR) as editor:
        body = owner(STATEFULSETS, {}, replicas=0)
        await editor.ask("POST", estate.path(STATEFULSETS), body)
        claim: JsonObject = {"spec": {"template": {"metadata": {"labels": FOUR}}}}
        with pytest.raises(Invalid, match="podManagementPolicy must be Parallel"):
            await editor.ask("PATCH", path, claim, MERGE_PATCH)
        await editor.ask("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH)
        await editor.ask("DELETE", path)


@pytest.mark.parametrize(
    ("kind", "spec", "told"),
    [
        (
            DEPLOYMENTS,
            {"replicas": 3},
            "spec.replicas is 3, and the gang of these pods starts with 4",
        ),
        (DEPLOYMENTS, {"replicas": 4}, ""),
        (STATEFULSETS, {**PARALLEL, "replicas": 1}, "spec.replicas is 1"),
    ],
    ids=["a small Deployment", "a Deployment of the right size", "a small StatefulSet"],
)
async def test_whoever_may_yet_be_scaled_up_is_told_only(
    installed: Installed, estate: Estate, kind: Resource, spec: JsonObject, told: str
) -> None:
    kubectl = Kubectl(installed.lab.binaries["kubectl"], installed.lab.kubeconfig, estate.namespace)
    text = yaml.safe_dump(owner(kind, FOUR, **spec))
    create = ("create", "--dry-run=server", "-f", "-")
    done = await asyncio.to_thread(kubectl.run, *create, text=text, check=True)
    assert told in done.stderr
    assert bool(done.stderr) is bool(told)

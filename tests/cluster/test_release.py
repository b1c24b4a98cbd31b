"""Breaking the glass: one command lets gated pods go, for whoever may lift gates."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from api import exits, names
from api.streams import Pod
from controller.gangs import freeing
from tests.support.installed import Installed, answered, away
from tests.support.living import Cluster, Kubectl, engine_set
from tests.support.tenants import ADMIN, Estate

pytestmark = [pytest.mark.cluster, pytest.mark.long]


def release(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "penstock", "release", "--kubeconfig", str(kubeconfig)]
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip


async def test_what_is_released_is_bound_by_kube_scheduler_and_nothing_before(
    cluster: Cluster, kubectl: Kubectl, installed: Installed
) -> None:
    # Three pods of which two have room: no gang, so all of them wait.
    await cluster.label_nodes("release-test", count=2)
    kubectl.apply(engine_set("stuck", pods=3, gpus=8, selector="release-test"))
    await cluster.gang("stuck-0", reason=names.REASON_NEVER_FITS)
    here = ("--namespace", cluster.namespace)

    shown = release(installed.lab.kubeconfig, *here)
    assert shown.returncode == exits.OK, shown.stderr
    assert f"would lift {cluster.namespace}/stuck-0: 3 pods: " in shown.stdout
    assert "3 pods of 1 gang would be lifted. Nothing was changed" in shown.stdout
    assert [pod.gates for pod in await cluster.pods("stuck", 3)] == [(names.GATE,)] * 3

    with away(installed, "gangs", "webhook-0", "webhook-1"):
        done = release(installed.lab.kubeconfig, "stuck", *here, "--yes")
    assert done.returncode == exits.OK, done.stderr
    assert done.stdout.splitlines()[-1] == "3 pods lifted."

    async def bound() -> list[Pod] | None:
        pods = await cluster.pods("stuck", 3)
        return pods if sum(bool(pod.spec.node_name) for pod in pods) == 2 else None

    pods = await cluster.until(bound, "as many bound as have room")
    assert all(freeing.is_free(pod) and not pod.gates for pod in pods)
    again = release(installed.lab.kubeconfig, *here, "--yes")
    assert again.returncode == exits.OK
    assert again.stdout.startswith("No pod in namespace")
    await answered(installed)  # which whoever comes next takes for granted


def test_who_may_not_lift_gates_is_told_so_and_lifts_nothing(
    estate: Estate, installed: Installed
) -> None:
    told = release(estate.folder / ADMIN, "--namespace", estate.namespace, "--yes")
    assert told.returncode == exits.BAD_CREDENTIALS
    (line,) = told.stderr.splitlines()
    assert "it takes the verb lift on schedulinggates.penstock.dev" in line
    seen = release(installed.lab.kubeconfig, "--namespace", estate.namespace)
    assert f"would lift {estate.namespace}/" in seen.stdout, "it waits as before"


async def test_every_namespace_can_be_released_at_once_and_is_left_alone_from_then_on(
    cluster: Cluster, kubectl: Kubectl, installed: Installed
) -> None:
    await cluster.label_nodes("release-all-test", count=1)
    kubectl.apply(engine_set("all", pods=2, gpus=8, selector="release-all-test"))
    await cluster.gang("all-0", reason=names.REASON_NEVER_FITS)
    shown = release(installed.lab.kubeconfig, "--all")
    assert f"would lift {cluster.namespace}/all-0: 2 pods: " in shown.stdout
    before = await cluster.pods("all", 2)
    assert [pod.gates for pod in before] == [(names.GATE,)] * 2

    done = release(installed.lab.kubeconfig, "--all", "--yes")
    assert done.returncode == exits.OK, done.stderr
    assert f"lifted {cluster.namespace}/all-0: 2 pods" in done.stdout

    async def bound(count: int) -> list[Pod] | None:
        pods = await cluster.pods("all", 2)
        return pods if sum(bool(pod.spec.node_name) for pod in pods) == count else None

    await cluster.until(partial(bound, 1), "as many bound as have room")
    await cluster.label_nodes("release-all-test", count=2)
    pods = await cluster.until(partial(bound, 2), "the other one bound too")
    assert {pod.metadata.uid for pod in pods} == {pod.metadata.uid for pod in before}
    assert all(freeing.is_free(pod) and not pod.gates for pod in pods)

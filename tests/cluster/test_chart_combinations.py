"""Whatever the values say, the API server takes each object of the chart, to the last field."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from api import names
from api.jsons import JsonObject
from kube.clock import SystemClock
from penstock.lab import cluster as labs
from penstock.lab.progress import Screen
from penstock.lab.spec import LabSpec
from penstock.lab.state import Lab
from tests.support import foreign
from tests.support.charts import CHART
from tests.support.leftovers import fresh_name
from tests.support.living import Kubectl

pytestmark = [pytest.mark.cluster, pytest.mark.long]

GROVE: Final = ("grove.accounts[0].namespace=grove-system", "grove.accounts[0].name=grove-operator")
COMBINATIONS: Final[dict[str, tuple[str, ...]]] = {
    "default": (),
    "outside": ("webhook.url=https://127.0.0.1:1",),
    "companion": ("companion.enabled=true", *GROVE),
    "no gangs": ("featureGates.GangScheduling=false",),
    "no sets": ("featureGates.GroveIntegration=false",),
    "cert-manager": ("certManager.enabled=true", "audit.serve=true"),
    "networks": (
        *("networkPolicy.enabled=true", "networkPolicy.apiServers={10.0.0.0/8,fd00::/8}"),
        *("networkPolicy.metricsFrom={monitoring}", "audit.serve=true"),
        *("dashboard.enabled=true", "dashboard.service=true", "dashboard.from={people}"),
    ),
    "closed networks": ("networkPolicy.enabled=true", "companion.enabled=true", *GROVE),
    "metrics": (
        *("metrics.serviceMonitor.enabled=true", "flowControl.enabled=false"),
        *("alerts.enabled=true", "grafana.enabled=true"),
    ),
    "placed": (
        *("pods.nodeSelector.pool=system", "pods.tolerations[0].operator=Exists"),
        *("pods.priorityClassName=", "pods.labels.a=b", "pods.annotations.c=d", "labels.e=f"),
    ),
    "audited": ("audit.files=false", "audit.stdout=true", "audit.keySecret=mine"),
    "traced": ("traces.endpoint=http://c:4318/v1/traces", "traces.headersSecret.name=token"),
    "all of it": (
        *("workloads.startup=init", "workloads.waiterImage=waiter:1", "workloads.mnnvl=true"),
        *("gangs.recordRefusals=true", "reservations.aggregateTo={admin,edit}", *GROVE),
        *("topologyAwareScheduling.enabled=true", "policy.mode=warn", "schedulers={a,b}"),
        *("webhook.proof.enabled=false", "webhook.excludedNamespaces={tools}"),
        *("webhook.clients.configMap=clients", "webhook.clients.names={kube-apiserver}"),
    ),
}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A lab of its own, with our definitions and no Penstock."""
    screen = Screen(sys.stderr, SystemClock(), live=False)
    lab = asyncio.run(labs.up(LabSpec(fresh_name(), nodes=1, topology="rack=1"), screen))
    try:
        kubectl = Kubectl(lab.binaries["kubectl"], lab.kubeconfig, "default")
        files = str(CHART / "files" / "crds")
        kubectl.run("apply", "--server-side", "-f", files, check=True)
        kubectl.run("create", "namespace", names.NAMESPACE, check=True)
        yield lab
    finally:
        asyncio.run(labs.down(lab.name, screen))


def rendered(lab: Lab, home: Path, settings: tuple[str, ...]) -> list[JsonObject]:
    done = subprocess.run(
        [
            *(lab.binaries["helm"], "template", "penstock", CHART, "--kube-version", "1.37.1"),
            *("--api-versions", "grove.io/v1alpha1/ClusterTopologyBinding"),
            *("--namespace", names.NAMESPACE, "--set", "definitions.enabled=false"),
            *(part for each in settings for part in ("--set", each)),
        ],
        capture_output=True, text=True, check=False, env={"HOME": str(home)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def tried(lab: Lab, objects: list[JsonObject]) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [lab.binaries["kubectl"], "--kubeconfig", lab.kubeconfig]
    return subprocess.run(
        [*command, "apply", "--dry-run=server", "--validate=strict", "-f", "-"],
        input=yaml.safe_dump_all(objects), capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("settings", COMBINATIONS.values(), ids=COMBINATIONS)
def test_every_object_is_taken(lab: Lab, tmp_path: Path, settings: tuple[str, ...]) -> None:
    objects: list[JsonObject] = []
    for each in rendered(lab, tmp_path, settings):
        # No lab has the operators whose kinds these are.
        if foreign.group(each) in foreign.GROUPS:
            foreign.check(each)
        else:
            objects.append(each)
    done = tried(lab, objects)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert len(done.stdout.splitlines()) == len(objects) > 40


def test_a_misspelt_field_would_not_be(lab: Lab, tmp_path: Path) -> None:
    objects = rendered(lab, tmp_path, ())
    (job,) = [each for each in objects if each["kind"] == "Job"]
    spec = job["spec"]
    assert isinstance(spec, dict)
    spec["backofLimit"] = 1
    done = tried(lab, [job])
    assert done.returncode != 0
    assert 'unknown field "spec.backofLimit"' in done.stderr

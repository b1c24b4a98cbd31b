"""What the chart runs inside a cluster is taken by the API server, at every change.

The lab's own installation holds the rest; `test_chart_combinations` tries all values, at length.
"""

from pathlib import Path

import pytest

from api.jsons import JsonObject
from penstock.lab.state import Lab
from tests.cluster.test_chart_combinations import COMBINATIONS, rendered, tried
from tests.support.chart_pods import mapping

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("installed")]

CLIENTS = ("webhook.clients.configMap=clients", "webhook.clients.names={kube-apiserver}")
INSIDE = (*COMBINATIONS["networks"], *CLIENTS)


def name_of(each: JsonObject) -> tuple[str, str]:
    return str(each["kind"]), str(mapping(each, "metadata")["name"])


def test_every_object_that_the_lab_has_not_is_taken(lab: Lab, tmp_path: Path) -> None:
    there = {name_of(each) for each in rendered(lab, tmp_path, COMBINATIONS["outside"])}
    further = [each for each in rendered(lab, tmp_path, INSIDE) if name_of(each) not in there]
    assert {"Deployment", "Job", "Service", "NetworkPolicy", "PodDisruptionBudget"} <= {
        str(each["kind"]) for each in further
    }
    done = tried(lab, further)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert len(done.stdout.splitlines()) == len(further)

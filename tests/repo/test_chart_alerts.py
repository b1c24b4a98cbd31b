"""Alerts and dashboard in the chart: only where they are asked for, and unchanged."""

import json

import pytest
import yaml

from tests.repo import checkout
from tests.support.charts import Objects, Render

pytestmark = pytest.mark.cluster  # it needs helm, which `make test-fast` must do without

FILES = checkout.ROOT / "charts" / "penstock" / "files"
RULE = ("PrometheusRule", "penstock")
DASHBOARD = ("ConfigMap", "penstock-dashboard")


def test_neither_is_there_unless_it_is_asked_for(inside: Objects) -> None:
    assert RULE not in inside
    assert DASHBOARD not in inside


def test_both_are_as_their_files_say(render: Render) -> None:
    found = render(
        "alerts.enabled=true", "alerts.labels.release=prometheus", "grafana.enabled=true",
    )  # fmt: skip
    assert found[RULE]["spec"] == yaml.safe_load((FILES / "alerts.yaml").read_text())
    rule, dashboard = found[RULE]["metadata"], found[DASHBOARD]["metadata"]
    assert isinstance(rule, dict)
    assert isinstance(dashboard, dict)
    assert isinstance(rule["labels"], dict)
    assert isinstance(dashboard["labels"], dict)
    assert rule["labels"]["release"] == "prometheus"
    assert dashboard["labels"]["grafana_dashboard"] == "1"
    data = found[DASHBOARD]["data"]
    assert isinstance(data, dict)
    assert json.loads(str(data["penstock.json"])) == json.loads(
        (FILES / "dashboard.json").read_text()
    )

"""Where the chart has spans sent, and with which headers."""

from typing import Final

import pytest

from kube import tracing
from tests.support.chart_pods import PROCESSES, arguments, container, listed
from tests.support.charts import Objects, Render

pytestmark = pytest.mark.cluster  # it needs helm, which `make test-fast` must do without

URL: Final = "https://collector.example.com/v1/traces"
ENDPOINT: Final = f"traces.endpoint={URL}"
HEADERS: Final = "traces.headersSecret.name=otel"
VARIABLE: Final = "OTEL_EXPORTER_OTLP_TRACES_HEADERS"


def given(objects: Objects, process: str) -> object:
    return container(objects, process).get("env")


@pytest.mark.parametrize("process", PROCESSES)
def test_each_process_has_the_headers_of_a_secret_in_its_environment(
    render: Render, process: str
) -> None:
    made = render(ENDPOINT, HEADERS, "traces.headersSecret.key=collector.headers")
    assert f"{tracing.FLAG}={URL}" in arguments(made, process)
    where = {"secretKeyRef": {"name": "otel", "key": "collector.headers"}}
    assert given(made, process) == [{"name": VARIABLE, "valueFrom": where}]


def test_the_name_of_the_secret_is_enough(render: Render) -> None:
    (variable,) = listed(container(render(ENDPOINT, HEADERS), "gangs"), "env")
    assert variable["valueFrom"] == {"secretKeyRef": {"name": "otel", "key": "headers"}}


def test_nobody_else_is_told_them(render: Render) -> None:
    made = render(ENDPOINT, HEADERS, "dashboard.enabled=true")
    told = {key for key, each in made.items() if VARIABLE in str(each)}
    assert told == {("Deployment", f"penstock-{each}") for each in PROCESSES}


@pytest.mark.parametrize("settings", [(), (ENDPOINT,), (HEADERS,)])
def test_without_a_collector_or_a_secret_there_are_none(
    render: Render, settings: tuple[str, ...]
) -> None:
    made = render(*settings)
    assert [given(made, each) for each in PROCESSES] == [None] * len(PROCESSES)


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("name=Mine_", "/traces/headersSecret/name"),
        ("key=", "/traces/headersSecret/key"),
        ("key=a b", "/traces/headersSecret/key"),
        ("token=x", "token"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(render: Render, setting: str, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        render(f"traces.headersSecret.{setting}")

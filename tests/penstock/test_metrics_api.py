"""What a lab's metrics API answers, and that it does over TLS with its own certificate."""

import ssl
from contextlib import closing
from http.client import HTTPSConnection
from pathlib import Path

import pytest

from api.jsons import Json
from kube.clock import SystemClock
from penstock.lab.metrics_api import SERVICE, Address, answer, file_values, registration, serving
from tests.support.manualclock import START

VALUES = {"chat/queue": "40", "chat/services/front/latency": "250m"}
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"
CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2"


def told(path: str) -> Json:
    return answer(path, VALUES.get, START)


def test_an_external_metric_has_the_value_of_its_namespace() -> None:
    found = told(f"{EXTERNAL}/namespaces/chat/queue?labelSelector=a%3Db")
    assert found == {
        "kind": "ExternalMetricValueList",
        "apiVersion": "external.metrics.k8s.io/v1beta1",
        "metadata": {},
        "items": [
            {
                "metricName": "queue",
                "metricLabels": {},
                "timestamp": "2026-01-01T00:00:00Z",
                "value": "40",
            }
        ],
    }
    assert told(f"{EXTERNAL}/namespaces/other/queue") is None


def test_a_custom_metric_has_the_value_of_its_object() -> None:
    found = told(f"{CUSTOM}/namespaces/chat/services/front/latency")
    assert isinstance(found, dict)
    assert found["items"] == [
        {
            "describedObject": {"kind": "services", "namespace": "chat", "name": "front"},
            "metric": {"name": "latency"},
            "timestamp": "2026-01-01T00:00:00Z",
            "value": "250m",
        }
    ]
    assert told(f"{CUSTOM}/namespaces/chat/services/back/latency") is None


@pytest.mark.parametrize("path", [EXTERNAL, CUSTOM])
def test_both_versions_are_discovered(path: str) -> None:
    found = told(path)
    assert isinstance(found, dict)
    assert found["groupVersion"] == path.removeprefix("/apis/")


@pytest.mark.parametrize("path", ["/", "/apis", "/openapi/v2", f"{CUSTOM}/namespaces/chat/queue"])
def test_there_is_nothing_elsewhere(path: str) -> None:
    assert told(path) is None


def test_it_serves_under_the_name_by_which_the_api_server_asks() -> None:
    with serving(VALUES.get, SystemClock()) as address:
        context = ssl.create_default_context(cadata=address.authority.decode())
        connection = HTTPSConnection("localhost", address.port, context=context, timeout=10)
        with closing(connection):
            replies = []
            for metric in ("queue", "unknown"):
                connection.request("GET", f"{EXTERNAL}/namespaces/chat/{metric}")
                reply = connection.getresponse()
                replies.append((reply.status, reply.read()))
    assert [status for status, _ in replies] == [200, 404]
    assert b'"value": "40"' in replies[0][1]


def test_the_api_server_is_told_of_the_port_and_of_whom_to_trust() -> None:
    bodies = [body for _, _, body in registration(Address(4321, b"PEM"))]
    assert bodies[0]["spec"] == {"type": "ExternalName", "externalName": "localhost"}
    for body in bodies[1:]:
        spec = body["spec"]
        assert isinstance(spec, dict)
        assert spec["service"] == {"name": SERVICE, "namespace": "kube-system", "port": 4321}
        assert spec["caBundle"] == "UEVN"


def test_values_in_a_file_may_be_changed_and_say_more_or_less(tmp_path: Path) -> None:
    path = tmp_path / "metrics.yaml"
    path.write_text("queue: 30\nchat/queue: 7\n")
    values = file_values(path)
    assert (values("chat/queue"), values("other/queue"), values("a/b")) == ("7", "30", None)
    path.write_text("chat/services/front/latency: 250m\n")
    assert values("chat/services/front/latency") == "250m"
    assert values("chat/queue") is None

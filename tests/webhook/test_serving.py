import base64
from io import BytesIO
from typing import Final, cast

import jsonpatch
import orjson
import pytest
from flask.testing import FlaskClient
from gunicorn.http.errors import InvalidChunkSize
from hypothesis import given, settings
from hypothesis import strategies as st
from werkzeug.test import TestResponse

from api import names
from api.jsons import Json, JsonObject
from kube.clock import SystemClock
from policies.known import NOTHING
from policies.policy import BUILT_IN
from webhook import intake, serving
from webhook.answering import Answering
from webhook.metrics import Metrics
from webhook.routes import PATHS
from webhook.serving import Desk

VALIDATE: Final = "/validate/podcliquesets"
MUTATE: Final = "/mutate/pods"
POD: Final[JsonObject] = {"containers": [{"name": "main"}]}


@pytest.fixture
def reasons() -> list[str]:
    """Why the webhook is not ready."""
    return []


@pytest.fixture
def client(reasons: list[str]) -> FlaskClient:
    return client_of(reasons)


def client_of(reasons: list[str]) -> FlaskClient:
    metrics = Metrics(PATHS)
    answering = Answering(lambda: BUILT_IN, NOTHING, metrics, SystemClock().monotonic)
    desk = Desk(answering, lambda: tuple(reasons), metrics.written)
    return serving.make_app(desk).test_client()


def review(found: Json, kind: str = "PodCliqueSet", operation: Json = "CREATE") -> JsonObject:
    request: JsonObject = {
        "uid": "u-1",
        "operation": operation,
        "kind": {"group": "", "version": "v1", "kind": kind},
        "object": found,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def ask(client: FlaskClient, path: str, body: Json) -> JsonObject:
    reply = client.post(path, data=orjson.dumps(body), content_type="application/json")
    assert reply.status_code == 200, reply.data
    return answered(reply)


def answered(reply: TestResponse) -> JsonObject:
    """Hold a reply against what the API server demands of one."""
    assert reply.content_type == "application/json"
    written = orjson.loads(reply.data)
    assert written["apiVersion"] == "admission.k8s.io/v1"
    assert written["kind"] == "AdmissionReview"
    response = cast("JsonObject", written["response"])
    assert response["uid"] == "u-1"
    assert isinstance(response["allowed"], bool)
    assert ("patch" in response) == ("patchType" in response)
    assert response["allowed"] or "patch" not in response
    return response


def clique(name: str, *after: str) -> JsonObject:
    return {"name": name, "spec": {"startsAfter": [*after], "podSpec": POD}}


def a_set(*cliques: Json) -> JsonObject:
    return {"metadata": {"name": "llm"}, "spec": {"template": {"cliques": [*cliques]}}}


def test_a_good_set_is_let_in(client: FlaskClient) -> None:
    assert ask(client, VALIDATE, review(a_set(clique("a")))) == {"uid": "u-1", "allowed": True}


def test_a_cycle_is_refused_with_its_path(client: FlaskClient) -> None:
    cycle = a_set(clique("prefill", "router"), clique("router", "prefill"))
    response = ask(client, VALIDATE, review(cycle, operation="UPDATE"))
    status = response["status"]
    assert isinstance(status, dict)
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert (
        "spec.template.cliques[0].spec.startsAfter: cliques wait for each other: "
        "prefill → router → prefill;" in str(status["message"])
    )


def test_a_gang_pod_comes_back_gated(client: FlaskClient) -> None:
    pod: JsonObject = {"metadata": {"labels": {names.PODGANG_LABEL: "llm-0"}}, "spec": POD}
    response = ask(client, MUTATE, review(pod, "Pod"))
    patch = orjson.loads(base64.b64decode(str(response["patch"])))
    patched = jsonpatch.apply_patch(pod, patch)
    assert patched["spec"]["schedulingGates"] == [{"name": "penstock.dev/gang"}]
    assert "patch" not in ask(client, MUTATE, review(patched, "Pod"))


def test_a_delete_is_let_through(client: FlaskClient) -> None:
    for path, kind in ((VALIDATE, "PodCliqueSet"), (MUTATE, "Pod")):
        assert ask(client, path, review(None, kind, "DELETE"))["allowed"]


def test_readiness_goes_with_a_reason_and_health_stays(
    client: FlaskClient, reasons: list[str]
) -> None:
    assert client.get("/readyz").status_code == 200
    reasons += ["draining", "the certificate has ended"]
    reply = client.get("/readyz")
    assert (reply.status_code, reply.text) == (503, "draining\nthe certificate has ended")
    assert client.get("/healthz").status_code == 200


def test_metrics_are_written_where_prometheus_looks(client: FlaskClient) -> None:
    ask(client, VALIDATE, review(a_set(clique("a"))))
    reply = client.get("/metrics")
    assert reply.content_type == "text/plain; version=0.0.4; charset=utf-8"
    assert 'penstock_webhook_requests_total{decision="allow",dry_run="false"' in reply.text


@pytest.mark.parametrize("method", ["get", "post"])
def test_unknown_paths_are_not_found(client: FlaskClient, method: str) -> None:
    reply = client.open("/validate/pods", method=method)
    assert reply.status_code == 404
    assert reply.content_type.startswith("text/plain")


def test_a_review_is_posted(client: FlaskClient) -> None:
    reply = client.get(VALIDATE)
    assert reply.status_code == 405
    assert reply.headers["Allow"] == "POST"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_only_json_is_taken(client: FlaskClient, kind: str) -> None:
    assert client.post(VALIDATE, data=b"{}", content_type=kind).status_code == 415


def test_a_charset_does_no_harm(client: FlaskClient) -> None:
    body = orjson.dumps(review(a_set(clique("a"))))
    reply = client.post(VALIDATE, data=body, content_type="application/json; charset=utf-8")
    assert answered(reply)["allowed"]


def test_packed_bodies_are_refused(client: FlaskClient) -> None:
    reply = client.post(
        VALIDATE,
        data=b"{}",
        content_type="application/json",
        headers={"Content-Encoding": "gzip"},
    )
    assert reply.status_code == 415


def test_a_body_of_7_mib_is_read_and_a_byte_more_is_not(client: FlaskClient) -> None:
    body = orjson.dumps(review(a_set(clique("a"))))
    full = body + b" " * (intake.LARGEST_BODY - len(body))
    reply = client.post(VALIDATE, data=full, content_type="application/json")
    assert answered(reply)["allowed"]
    reply = client.post(VALIDATE, data=full + b" ", content_type="application/json")
    assert reply.status_code == 413


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"[" * 1_000_000, b'{"request": {}}'])
def test_what_is_no_review_is_a_bad_request(client: FlaskClient, body: bytes) -> None:
    reply = client.post(VALIDATE, data=body, content_type="application/json")
    assert reply.status_code == 400
    assert b"AdmissionReview" in reply.data


class Broken:
    """The body of a client that has gone, or never spoke HTTP properly."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def read(self, _: int = -1) -> bytes:
        raise self._error


@pytest.mark.parametrize("error", [ConnectionResetError("gone"), InvalidChunkSize(b"zz")])
def test_a_body_that_breaks_off_is_a_bad_request(client: FlaskClient, error: Exception) -> None:
    reply = client.post(
        VALIDATE,
        content_type="application/json",
        environ_overrides={"wsgi.input": Broken(error), "CONTENT_LENGTH": "10"},
    )
    assert reply.status_code == 400


def test_a_body_that_ends_early_is_a_bad_request(client: FlaskClient) -> None:
    reply = client.post(
        VALIDATE,
        content_type="application/json",
        environ_overrides={"wsgi.input": BytesIO(b"{}"), "CONTENT_LENGTH": "3"},
    )
    assert (reply.status_code, reply.text) == (400, "the body ends before it should")


def test_what_is_turned_away_unread_is_counted_by_path_and_code(client: FlaskClient) -> None:
    json = "application/json"
    lost = {"wsgi.input": Broken(ConnectionResetError("gone")), "CONTENT_LENGTH": "10"}
    client.post(VALIDATE, data=b"{}", content_type="text/plain")
    client.post(VALIDATE, data=b"{}", content_type=json, headers={"Content-Encoding": "gzip"})
    client.post(MUTATE, data=b" " * (intake.LARGEST_BODY + 1), content_type=json)
    client.post(MUTATE, content_type=json, environ_overrides=lost)
    # That is no path of ours.
    client.post("/elsewhere", data=b"{}", content_type="text/plain")
    ask(client, VALIDATE, review(a_set(clique("a"))))
    counted = client.get("/metrics").text.splitlines()
    assert sorted(line for line in counted if line.startswith("penstock_webhook_rejected")) == [
        f'penstock_webhook_rejected_total{{code="400",path="{MUTATE}"}} 1.0',
        f'penstock_webhook_rejected_total{{code="413",path="{MUTATE}"}} 1.0',
        f'penstock_webhook_rejected_total{{code="415",path="{VALIDATE}"}} 2.0',
    ]


@pytest.mark.parametrize(("size", "code"), [(intake.LARGEST_BODY, 200), (8 << 20, 413)])
def test_a_body_in_chunks_is_bounded_too(client: FlaskClient, size: int, code: int) -> None:
    body = orjson.dumps(review(a_set(clique("a"))))
    whole = BytesIO(body + b" " * (size - len(body)))
    reply = client.post(
        VALIDATE,
        content_type="application/json",
        environ_overrides={"wsgi.input": whole, "wsgi.input_terminated": True},
    )
    assert reply.status_code == code


SCALARS: Final = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
)
WORDS: Final[list[str]] = [
    *["metadata", "name", "labels", "annotations", "generateName", "deletionTimestamp"],
    *["spec", "template", "cliques", "podSpec", "replicas", "minAvailable", "startsAfter"],
    *["podCliqueScalingGroups", "cliqueNames", "containers", "nodeName", "schedulerName"],
    *["schedulingGates", names.GANG_LABEL, names.PODGANG_LABEL],
]
KEYS: Final = st.text(max_size=4) | st.sampled_from(WORDS)
JSONS: Final = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)


@st.composite
def disfigured(draw: st.DrawFn) -> JsonObject:
    """A true object with something else in one place: wrong types reach every depth."""
    true: JsonObject = {
        "metadata": {"name": "llm", "labels": {names.GANG_LABEL: "g"}, "annotations": {}},
        "spec": {
            "replicas": 1,
            "schedulingGates": [{"name": "other"}],
            "template": {
                "cliques": [clique("a"), clique("b", "a")],
                "podCliqueScalingGroups": [{"name": "g", "cliqueNames": ["a"]}],
            },
        },
    }
    place: Json = true
    while True:
        if isinstance(place, dict) and place:
            key = draw(st.sampled_from(sorted(place)))
            inner = place[key]
            if not isinstance(inner, dict | list) or not inner or draw(st.booleans()):
                place[key] = draw(JSONS)
                return true
            place = inner
        elif isinstance(place, list) and place:
            index = draw(st.integers(0, len(place) - 1))
            inner = place[index]
            if not isinstance(inner, dict | list) or not inner or draw(st.booleans()):
                place[index] = draw(JSONS)
                return true
            place = inner


@given(
    st.sampled_from([VALIDATE, MUTATE]),
    JSONS | disfigured(),
    st.sampled_from(["PodCliqueSet", "Pod", ""]),
    st.sampled_from(["CREATE", "UPDATE", "DELETE", "CONNECT"]) | SCALARS,
)
@settings(max_examples=100, deadline=None)
def test_any_object_gets_a_well_formed_answer_or_a_4xx(
    path: str, found: Json, kind: str, operation: Json
) -> None:
    client = client_of([])
    body = orjson.dumps(review(found, kind, operation))
    reply = client.post(path, data=body, content_type="application/json")
    if reply.status_code == 200:
        status = answered(reply).get("status", {})
        # Nothing in a manifest is a fault of ours.
        assert isinstance(status, dict)
        assert status.get("code") != 500, status
    else:
        assert 400 <= reply.status_code < 500


@given(JSONS)
@settings(deadline=None)
def test_any_json_at_all_is_answered_or_a_4xx(body: Json) -> None:
    client = client_of([])
    reply = client.post(VALIDATE, data=orjson.dumps(body), content_type="application/json")
    assert 400 <= reply.status_code < 500

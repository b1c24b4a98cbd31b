import base64
from typing import Final, cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.jsons import Json, JsonObject
from policies.admission import Operation, Request
from policies.answers import Allow, Answer, Code, Refuse
from webhook import review
from webhook.review import Review, Unanswerable, Unfit


def asked(**request: Json) -> bytes:
    full: JsonObject = {"uid": "u-1", "operation": "CREATE", "kind": {"kind": "Pod"}, **request}
    return orjson.dumps({"apiVersion": review.API_VERSION, "kind": review.KIND, "request": full})


def response(answer: Answer) -> JsonObject:
    written = cast("JsonObject", orjson.loads(review.write("u-1", answer)))
    assert written["apiVersion"] == "admission.k8s.io/v1"
    assert written["kind"] == "AdmissionReview"
    return cast("JsonObject", written["response"])


def nested(levels: int) -> Json:
    value: Json = {}
    for _ in range(levels - 1):
        value = [value]
    return value


def test_a_review_carries_what_rules_judge_by() -> None:
    read = review.read(asked(object={"a": 1}, oldObject={"b": 2}, dryRun=False, options=None))
    assert read == Review("u-1", Request(Operation.CREATE, "Pod", {"a": 1}))


def test_a_delete_has_no_new_object() -> None:
    deleted = Review("u-1", Request(Operation.DELETE, "Pod", None))
    assert review.read(asked(operation="DELETE", object=None)) == deleted
    assert review.read(asked(operation="DELETE")) == deleted


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{", id="half"),
        pytest.param(b"[]", id="list"),
        pytest.param(b"null", id="null"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b"{}", id="empty"),
        pytest.param(asked() + b"x", id="more behind it"),
        pytest.param(asked(uid=None), id="no uid"),
        pytest.param(asked(uid=7), id="uid of a number"),
        pytest.param(asked(uid=""), id="empty uid"),
        pytest.param(asked(uid="u" * 129), id="endless uid"),
        pytest.param(asked(uid="a\nb"), id="uid of two lines"),
        pytest.param(asked(operation="PATCH"), id="unknown operation"),
        pytest.param(asked(kind="Pod"), id="kind is text"),
        pytest.param(asked().replace(b"admission.k8s.io/v1", b"admission.k8s.io/v2"), id="v2"),
        pytest.param(asked().replace(b"AdmissionReview", b"TokenReview"), id="another review"),
        pytest.param(b"[" * 100_000, id="deep and open"),
        pytest.param(
            asked(object="@").replace(b'"@"', b"[" * 50_000 + b"]" * 50_000), id="too deep to skip"
        ),
    ],
)
def test_what_is_no_review_cannot_be_answered(body: bytes) -> None:
    read = review.read(body)
    assert isinstance(read, Unanswerable)
    assert read.message


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        pytest.param(asked(object=[]), "not a JSON object", id="list"),
        pytest.param(asked(object="x"), "not a JSON object", id="text"),
        pytest.param(asked(object="@").replace(b"@", b"\xff"), "not JSON", id="no text"),
        pytest.param(asked(object={"x": nested(64)}), "64 levels", id="65 levels"),
    ],
)
def test_an_object_that_is_none_is_answered_to_its_uid(body: bytes, fault: str) -> None:
    read = review.read(body)
    assert isinstance(read, Unfit)
    assert read.uid == "u-1"
    assert fault in read.message


def test_64_levels_are_read() -> None:
    assert isinstance(review.read(asked(object={"x": nested(63)})), Review)


@pytest.mark.parametrize(
    ("value", "depth"),
    [(1, 0), ({}, 1), ([], 1), ([1, "a"], 1), ({"a": [1, {}]}, 3), ([[], [[]]], 3)],
)
def test_depth_counts_what_nests(value: Json, depth: int) -> None:
    assert not review.deeper_than(depth, value)
    assert depth == 0 or review.deeper_than(depth - 1, value)


def test_an_answer_without_changes_has_no_patch() -> None:
    assert response(Allow()) == {"uid": "u-1", "allowed": True}


def test_a_patch_goes_with_its_type_and_in_base64() -> None:
    operation: JsonObject = {"op": "add", "path": "/spec/schedulingGates", "value": []}
    written = response(Allow((operation,)))
    assert written["patchType"] == "JSONPatch"
    assert orjson.loads(base64.b64decode(str(written["patch"]))) == [operation]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (Code.BAD_REQUEST, "BadRequest"),
        (Code.FORBIDDEN, "Forbidden"),
        (Code.INVALID, "Invalid"),
        (Code.INTERNAL, "InternalError"),
    ],
)
def test_a_refusal_says_code_reason_and_message(code: Code, reason: str) -> None:
    written = response(Refuse(code, "prefill → router"))
    status: Final = {"status": "Failure", "code": int(code), "reason": reason}
    assert written == {
        "uid": "u-1",
        "allowed": False,
        "status": {**status, "message": "prefill → router"},
    }


def test_every_code_has_a_reason() -> None:
    for code in Code:
        assert response(Refuse(code, "m"))["status"]


def test_warnings_are_kept_few_and_short() -> None:
    written = response(Allow(warnings=tuple("w" * 500 for _ in range(10))))
    warnings = written["warnings"]
    assert isinstance(warnings, list)
    assert [len(str(warning)) for warning in warnings[:-1]] == [120] * 7
    assert warnings[-1] == "+3 more"
    assert response(Allow(warnings=("one",)))["warnings"] == ["one"]


@given(st.binary(max_size=200))
def test_no_bytes_make_reading_raise(body: bytes) -> None:
    assert isinstance(review.read(body), Unanswerable)

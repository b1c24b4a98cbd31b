import base64
from typing import Final, cast

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.jsons import Json, JsonObject
from policies.admission import Operation, Request, User
from policies.answers import Allow, Answer, Code, Refuse
from webhook import contents, review
from webhook.review import Opened, Review, Unanswerable, Unfit

MIB: Final = 1024 * 1024


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


def requested(body: bytes) -> Request | Unfit:
    read = review.read(body)
    assert isinstance(read, Review), read
    assert read.uid == "u-1"
    return read.request()


def test_a_review_carries_all_that_rules_judge_by() -> None:
    body = asked(
        operation="UPDATE",
        kind={"group": "autoscaling", "version": "v1", "kind": "Scale"},
        resource={"group": "grove.io", "version": "v1alpha1", "resource": "podcliques"},
        subResource="scale",
        requestKind={"kind": "Other"},
        namespace="tenant",
        name="llm-0-decode",
        userInfo={"username": "ada", "uid": "7", "groups": ["a", "b"], "extra": {"x": ["y"]}},
        object={"a": 1},
        oldObject={"b": 2},
        dryRun=True,
        options={"kind": "UpdateOptions"},
    )
    assert requested(body) == Request(
        Operation.UPDATE,
        "Scale",
        {"a": 1},
        {"b": 2},
        resource="podcliques",
        subresource="scale",
        namespace="tenant",
        name="llm-0-decode",
        user=User("ada", ("a", "b")),
        dry_run=True,
    )


def test_what_a_review_leaves_out_is_empty() -> None:
    bare = Request(Operation.CREATE, "Pod", None)
    assert requested(asked()) == bare
    nothing: dict[str, Json] = dict.fromkeys(
        ("object", "oldObject", "subResource", "namespace", "name", "dryRun", "options")
    )
    assert requested(asked(**nothing, userInfo={"groups": None})) == bare


@pytest.mark.parametrize("field", ["object", "oldObject"])
def test_the_record_of_who_owns_which_field_is_not_read(field: str) -> None:
    record: Json = [{"manager": "kubectl", "fieldsV1": nested(100)}]
    metadata: Json = {"labels": {"managedFields": "x"}, "managedFields": record}
    written: Json = {"metadata": metadata, "spec": {"managedFields": [1]}}
    found = requested(asked(**{field: written}))
    assert isinstance(found, Request)
    assert (found.object or found.old_object) == {
        "metadata": {"labels": {"managedFields": "x"}},
        "spec": {"managedFields": [1]},
    }


@pytest.mark.parametrize("metadata", [None, 7, "managedFields", ["managedFields"]])
def test_metadata_that_is_none_is_left_to_the_rules(metadata: Json) -> None:
    found = requested(asked(object={"metadata": metadata}))
    assert isinstance(found, Request)
    assert found.object == {"metadata": metadata}


def test_a_delete_has_only_an_old_object() -> None:
    deleted = Request(Operation.DELETE, "Pod", None, {"a": 1})
    assert requested(asked(operation="DELETE", object=None, oldObject={"a": 1})) == deleted


def test_objects_are_not_looked_at_before_they_are_asked_for() -> None:
    read = review.read(asked(object="@").replace(b'"@"', b'{"x": "\xff"}'))
    assert isinstance(read, Review)
    assert isinstance(read.request(), Unfit)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param({"metadata": {"name": "a"}, "spec": {"x": [1, 2.5, None]}}, id="as usual"),
        pytest.param({"metadata": {"name": "a"}, "status": {}, "odd": True}, id="another field"),
        pytest.param({"spec": {}}, id="no metadata"),
        pytest.param({"metadata": {}, "data": {"x": "y" * 200_000}}, id="large"),
    ],
)
def test_who_hears_of_a_review_keeps_its_bytes_and_may_read_them_again(found: JsonObject) -> None:
    body = asked(object=found, oldObject=found, operation="UPDATE")
    opened = review.opened(body)
    assert isinstance(opened, Opened)
    request = opened.request()
    assert isinstance(request, Request)
    assert (request.object, request.old_object) == (found, found)
    assert opened.review.request() == request
    kept = msgspec.structs.asdict(opened.review.asked)
    assert (kept["object"], kept["old_object"]) == (None, None)


def test_only_small_objects_are_read_ahead() -> None:
    for length, is_ahead in ((1_000, True), (contents.FEW, False)):
        opened = review.opened(asked(object={"metadata": {}, "data": {"x": "y" * length}}))
        assert isinstance(opened, Opened)
        assert (opened.objects is not None) == is_ahead


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**30])
def test_a_number_beyond_64_bits_is_read_as_one_with_a_fraction(number: int) -> None:
    written = f'{{"metadata": {{}}, "spec": {{"x": {number}}}}}'.encode()
    found = requested(asked(object="@").replace(b'"@"', written))
    assert isinstance(found, Request)
    assert found.object is not None
    assert repr(found.object["spec"]) == repr({"x": float(number)})


def test_the_record_of_who_owns_which_field_is_left_out() -> None:
    metadata: JsonObject = {"name": "a", "managedFields": [{"manager": "kubectl"}]}
    others: list[JsonObject] = [{"spec": {}}, {"odd": True}]
    for more in others:
        found = requested(asked(object={"metadata": metadata, **more}))
        assert isinstance(found, Request)
        assert found.object == {"metadata": {"name": "a"}, **more}


def test_metadata_is_given_where_there_is_an_object() -> None:
    for body, metadata in (
        (asked(object={"metadata": {"uid": "x"}}), {"uid": "x"}),
        (asked(object={"spec": {}}), {}),
        (asked(oldObject={"metadata": {"uid": "x"}}), None),
    ):
        read = review.read(body)
        assert isinstance(read, Review)
        found = read.metadata()
        assert (None if found is None else orjson.loads(found)) == metadata


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
            asked(name="@", object={}).replace(b'"@"', b"[" * 50_000), id="deep before the object"
        ),
        pytest.param(asked(uid=7, object="@").replace(b'"@"', b"[" * 50_000), id="deep and no uid"),
    ],
)
def test_what_is_no_review_cannot_be_answered(body: bytes) -> None:
    read = review.read(body)
    assert isinstance(read, Unanswerable)
    assert read.message


@pytest.mark.parametrize("field", ["object", "oldObject"])
@pytest.mark.parametrize(
    ("found", "fault"),
    [
        pytest.param(b"[]", "is not a JSON object", id="list"),
        pytest.param(b'"x"', "is not a JSON object", id="text"),
        pytest.param(b'"\xff"', "is not JSON", id="no text"),
        pytest.param(orjson.dumps({"x": nested(64)}), "64 levels", id="65 levels"),
        pytest.param(orjson.dumps({"x": [0] * 100_000}), "100000 values", id="100,001 values"),
        pytest.param(orjson.dumps({"x": "x" * 2 * MIB}), "more than 2 MiB", id="2 MiB and more"),
    ],
)
def test_an_object_that_is_none_is_answered_to_its_uid(
    field: str, found: bytes, fault: str
) -> None:
    answered = requested(asked(**{field: "@"}).replace(b'"@"', found))
    assert isinstance(answered, Unfit)
    assert fault in answered.message
    assert answered.message.startswith("the old object") == (field == "oldObject")


@pytest.mark.parametrize("field", ["object", "oldObject"])
def test_an_object_too_deep_to_skip_is_answered_to_its_uid(field: str) -> None:
    body = asked(object="@") if field == "object" else asked(object={}, oldObject="@")
    body = body.replace(b'"@"', b"[" * 50_000 + b"]" * 50_000)
    answered = requested(body)
    assert isinstance(answered, Unfit)
    assert "nests more than 64 levels" in answered.message


def test_64_levels_and_100_000_values_are_read() -> None:
    assert isinstance(requested(asked(object={"x": nested(63)})), Request)
    assert isinstance(requested(asked(object={"x": [0] * 99_999})), Request)


@pytest.mark.parametrize(
    ("value", "depth", "count"),
    [
        (1, 0, 0),
        ({}, 1, 0),
        ([], 1, 0),
        ([1, "a"], 1, 2),
        ({"a": [1, {}]}, 3, 3),
        ([[], [[]]], 3, 3),
    ],
)
def test_what_nests_and_what_it_holds_are_counted(value: Json, depth: int, count: int) -> None:
    text = orjson.dumps(value)
    assert not contents.size_fault(text, depth, count)
    assert depth == 0 or "deep" in contents.size_fault(text, depth - 1, count)
    assert count == 0 or "values" in contents.size_fault(text, depth, count - 1)


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
        (Code.UNAVAILABLE, "ServiceUnavailable"),
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


def depth_of(value: Json) -> int:
    inside = _inside(value)
    return 0 if inside is None else 1 + max(map(depth_of, inside), default=0)


def count_of(value: Json) -> int:
    inside = _inside(value) or []
    return len(inside) + sum(map(count_of, inside))


def _inside(value: Json) -> list[Json] | None:
    if isinstance(value, dict):
        return [*value.values()]
    return value if isinstance(value, list) else None


MISLEADING: Final = st.text(st.sampled_from('[]{},:"\\ \n\ta'), max_size=8)
MISLEADING_JSONS: Final = st.recursive(
    st.none() | st.integers(-9, 9) | MISLEADING,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(MISLEADING, inner, max_size=4),
    max_leaves=15,
)


@given(MISLEADING_JSONS, st.booleans())
def test_brackets_and_commas_in_strings_count_for_nothing(
    value: Json,
    spread: bool,  # noqa: FBT001 - given by hypothesis
) -> None:
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2 if spread else None)
    depth, count = depth_of(value), count_of(value)
    assert not contents.size_fault(text, depth, count)
    assert depth == 0 or "deep" in contents.size_fault(text, depth - 1, count)
    assert count == 0 or "values" in contents.size_fault(text, depth, count - 1)


def test_a_long_text_full_of_brackets_and_quotes_is_read() -> None:
    for piece in ("[,", "{}", '"', "\\", '\\"', '"["'):
        text = piece * (400_000 // len(piece))
        found = requested(asked(object={"x": [text, text]}, oldObject={"x": text}))
        assert isinstance(found, Request)
        assert found.object == {"x": [text, text]}


def test_as_many_empty_lists_as_may_be_are_read() -> None:
    empty: list[Json] = [[] if i % 2 else {} for i in range(99_998)]
    assert isinstance(requested(asked(object={"x": empty})), Request)
    assert isinstance(requested(asked(object={"x": [*empty, [], []]})), Unfit)

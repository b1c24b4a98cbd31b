import pytest

from api.jsons import Json
from controller.workloads.making.covering import covers, kept
from controller.workloads.stepping import Change, Create, Remove
from controller.workloads.views import Thing
from kube.resources import SERVICES
from tests.support.things import thing

AMOUNT: Json = {"type": "Value", "value": "1"}


@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        ({"a": 1, "b": 2}, {"a": 1}),
        ({"a": {"x": "y", "more": [1]}}, {"a": {"x": "y"}}),
        ([{"a": 1, "added": 2}, 3], [{"a": 1}, 3]),
        ({}, {"gone": None}),
        ({"type": "Value", "value": 1}, AMOUNT),
        ({"type": "Value", "value": "1000m"}, AMOUNT),
        (
            {"type": "AverageValue", "averageValue": "1k"},
            {"type": "AverageValue", "averageValue": 1000},
        ),
    ],
)
def test_what_is_there_with_more_around_it_is_enough(there: Json, wanted: Json) -> None:
    assert covers(there, wanted)


@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"b": None, "a": 1, "c": 1}),
        ({"a": "1"}, {"a": 1}),
        ({"a": 1}, {"a": True}),
        ({"kept": 1}, {"kept": None}),
        ([1, 2], [1]),
        ([2, 1], [1, 2]),
        ({"a": []}, {"a": {}}),
        (None, {}),
        ({"type": "Value", "value": "1001m"}, AMOUNT),
        ({"type": "Value"}, AMOUNT),
        # Outside a metric's target, texts are texts.
        ({"name": "SIZE", "value": "1000m"}, {"name": "SIZE", "value": "1"}),
        ({"type": "Value", "value": "many"}, AMOUNT),
    ],
)
def test_what_is_other_or_missing_is_not_enough(there: Json, wanted: Json) -> None:
    assert not covers(there, wanted)


def body(name: str, spec: Json) -> dict[str, Json]:
    metadata: Json = {"name": name, "labels": {"a": "b"}, "ownerReferences": [{"uid": "o"}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def test_what_is_missing_is_made_what_was_changed_put_right_and_the_rest_removed() -> None:
    there = {
        "good": thing(body("good", {"x": 1, "defaulted": True})),
        "changed": thing(body("changed", {"x": 2})),
        "extra": thing(body("extra", {"x": 1})),
    }
    wanted = {name: body(name, {"x": 1}) for name in ("good", "changed", "missing")}
    assert list(kept(SERVICES, there, wanted)) == [
        Change(
            SERVICES,
            "changed",
            "uid-changed",
            {"metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}},
        ),
        Create(SERVICES, wanted["missing"]),
        Remove(SERVICES, "extra", "uid-extra"),
    ]


def test_what_is_on_its_way_out_is_left_to_go() -> None:
    there: dict[str, Thing] = {
        "wanted": thing(body("wanted", {"x": 2}), leaving=True),
        "extra": thing(body("extra", {}), leaving=True),
    }
    assert list(kept(SERVICES, there, {"wanted": body("wanted", {"x": 1})})) == []

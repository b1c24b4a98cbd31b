"""A glance at an object says that it fits only where the model itself says so."""

from typing import Annotated

import orjson
import pytest
from hypothesis import assume, given
from pydantic import Field, ValidationError, field_validator

from api.jsons import Json, JsonObject
from api.models import Model
from api.podcliqueset import PodCliqueSetSpec
from api.topology import ClusterTopologyBindingSpec
from policies.model_glance import Glance
from tests.policies.chaos import EVERYTHING, broken_sets, sets

SET = Glance(PodCliqueSetSpec)


def fits_the_model(raw: Json, model: type[Model] = PodCliqueSetSpec) -> bool:
    try:
        model.model_validate_json(orjson.dumps(raw), strict=True)
    except ValidationError:
        return False
    return True


def can_be_written(raw: Json) -> bool:
    try:
        orjson.dumps(raw)
    except TypeError:
        return False
    return True


@given(broken_sets())
def test_what_passes_a_glance_fits_the_model(raw: JsonObject) -> None:
    # What cannot be written is told before anything is looked at.
    assume(can_be_written(raw))
    assert not SET.fits(raw.get("spec")) or fits_the_model(raw.get("spec"))


@given(sets())
def test_what_people_write_passes_where_it_fits(raw: JsonObject) -> None:
    assert SET.fits(raw["spec"]) == fits_the_model(raw["spec"])


def test_a_set_of_every_field_passes() -> None:
    assert SET.fits(EVERYTHING["spec"])


def test_a_binding_passes() -> None:
    levels: Json = [{"domain": "rack", "key": "example.com/rack"}]
    assert Glance(ClusterTopologyBindingSpec).fits({"levels": levels})


@pytest.mark.parametrize("domain", ["Rack", "rack\n", "", "r" * 64, 7, None])
def test_a_domain_that_is_none_does_not_pass(domain: Json) -> None:
    raw: Json = {"levels": [{"domain": domain, "key": "example.com/rack"}]}
    assert not Glance(ClusterTopologyBindingSpec).fits(raw)
    assert not fits_the_model(raw, ClusterTopologyBindingSpec)


class Odd(Model):
    """A model of what msgspec has no words for."""

    even: Annotated[int, Field(multiple_of=2)] = 0
    either: int | str = 0
    text: Annotated[str | None, Field(max_length=3)] = None


class Checked(Model):
    """A model with a check of its own."""

    name: str = ""

    @field_validator("name")
    @classmethod
    def _is_short(cls, value: str) -> str:
        if len(value) > 3:
            raise ValueError("too long")
        return value


class Holder(Model):
    """A model that holds one with a check."""

    inner: Checked | None = None


@pytest.mark.parametrize(
    ("model", "raw"),
    [
        (Odd, {"even": 3}),
        (Odd, {"either": True}),
        (Odd, {"text": "four"}),
        (Checked, {"name": "four"}),
        (Holder, {"inner": {"name": "four"}}),
    ],
)
def test_what_a_glance_cannot_tell_does_not_pass(model: type[Model], raw: Json) -> None:
    assert not Glance(model).fits(raw)


def test_nothing_passes_that_is_no_object() -> None:
    assert not any(map(SET.fits, (None, [], "x", 7, {})))

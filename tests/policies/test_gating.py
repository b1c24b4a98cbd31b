from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from api.jsons import Json, JsonObject
from policies import gating

OURS: Final[JsonObject] = {"name": names.GATE}
GATES: Final = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["a", "b", names.GATE, "penstock.dev/gang2"])}),
    max_size=5,
)


@pytest.mark.parametrize(
    ("gates", "then"),
    [
        pytest.param([], [OURS], id="none yet"),
        pytest.param([{"name": "quota"}], [{"name": "quota"}, OURS], id="after a foreign gate"),
        pytest.param([OURS, {"name": "quota"}], [OURS, {"name": "quota"}], id="ours is there"),
    ],
)
def test_our_gate_comes_after_those_that_are_there(gates: list[Json], then: list[Json]) -> None:
    assert gating.gated(gates) == then


@pytest.mark.parametrize("gates", [None, [], "x", [names.GATE], [{"name": "penstock.dev/gang2"}]])
def test_what_is_not_our_gate_is_not_taken_for_it(gates: Json) -> None:
    assert not gating.is_gated(gates)


@given(GATES)
def test_our_gate_is_added_once_and_none_is_taken_away(gates: list[Json]) -> None:
    once = gating.gated(gates)
    assert gating.is_gated(once)
    assert once[: len(gates)] == gates
    assert len(once) == len(gates) + (not gating.is_gated(gates))
    assert gating.gated(once) == once

"""Gangs that Grove started have no reservation; those that wait for them go by their pods."""

import pytest

from controller.gangs.deciding import has_started
from tests.support.sets import gang, member, view


@pytest.mark.parametrize(
    ("bound", "gated", "started"), [(2, 0, True), (2, 1, True), (1, 2, False), (0, 3, False)]
)
def test_a_gang_without_reservation_has_started_when_its_minimum_is_bound(
    bound: int,
    gated: int,
    started: bool,  # noqa: FBT001
) -> None:
    pods = [member("router", index, gated=False, node="n") for index in range(bound)]
    pods += [member("router", bound + index) for index in range(gated)]
    seen = gang({"router": (2, bound + gated)})
    assert has_started(view(seen, pods, None)) is started

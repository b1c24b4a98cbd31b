"""A set that starts has nothing to do while its pods have no nodes; any other may have, at once."""

from dataclasses import replace

import msgspec
import pytest

from api.podcliqueset import SetUpdate
from controller.workloads import planning
from controller.workloads.stepping import Again
from controller.workloads.story import statuses
from tests.support.setviews import NOW, clique, made, set_spec, wanted, with_pods

PAIR = set_spec(clique("prefill", 3, 2), clique("decode", 2))


@pytest.mark.parametrize(
    ("state", "idle"),
    [
        ("gated", True),
        ("lifted", True),
        ("ready", False),
        ("failed", False),
        ("leaving gated", False),
    ],
)
def test_a_set_that_starts_is_idle_until_its_pods_have_nodes(state: str, *, idle: bool) -> None:
    view = with_pods(made(PAIR), "demo-0-prefill", "ready", "ready", state)
    assert planning.is_idle(view, []) is idle
    assert planning.is_idle(view, [Again(NOW)]) is idle


def test_a_set_with_something_to_do_or_that_leaves_or_was_updated_is_not_idle() -> None:
    view = with_pods(made(PAIR), "demo-0-prefill", "gated")
    assert planning.is_idle(view, [])
    say = next(each for each in statuses.steps(view, wanted(view), NOW))
    assert not planning.is_idle(view, [say])
    leaving = msgspec.structs.replace(view.metadata, deletion_timestamp=NOW)
    assert not planning.is_idle(replace(view, metadata=leaving), [])
    updated = view.status.model_copy(update={"update_progress": SetUpdate()})
    assert not planning.is_idle(replace(view, status=updated), [])

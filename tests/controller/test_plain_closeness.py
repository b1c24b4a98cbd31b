"""Where a plain gang would best be: what its pods say of levels, apartness and zones."""

from dataclasses import replace
from datetime import timedelta

import pytest

from api import names
from api.jsons import Json
from controller.gangs.patience import timeout_of
from controller.gangs.plain_bodies import Closeness
from controller.gangs.plain_deciding import (
    Amend,
    Confirm,
    Make,
    PlainStep,
    Rest,
    decide,
)
from tests.support.plaingangs import (
    CLOSE,
    after,
    close_view,
    gang_of,
    ledger,
    plain,
    seen,
)

A, B, C, D = (plain(name, born=i) for i, name in enumerate("abcd"))
RUNNING = tuple(plain(name, on=f"n{i}", born=i) for i, name in enumerate("abc"))
ROOMS = ledger({0: "n0", 1: "n1", 2: "n2"})
WHOLE = gang_of("abc")

SPREAD, ZONE = names.SPREAD_ANNOTATION, names.PREFERRED_ZONE
WAITS = names.GANG_TIMEOUT


def told(step: PlainStep) -> dict[str, Json]:
    """The annotations of the PodGang that is wanted, but for its slots."""
    assert isinstance(step, Make | Amend)
    meta = step.wanted.body()["metadata"]
    assert isinstance(meta, dict)
    found = meta["annotations"]
    assert isinstance(found, dict)
    return {key: value for key, value in found.items() if key != names.SLOTS_ANNOTATION}


def test_where_a_gang_would_best_be_is_what_the_first_slot_says_that_says_it() -> None:
    """Slots by their numbers, whoever is the oldest."""
    index = {n: {names.JOB_INDEX_LABEL: str(n)} for n in range(3)}
    view = seen(
        plain("a", labels=index[2], annotations={SPREAD: "block", ZONE: "z2"}, born=1),
        plain("b", labels=index[1], annotations={SPREAD: "rack"}, born=2),
        plain("c", labels=index[0], born=3),
    )
    step = decide(view)
    assert told(step) == {SPREAD: "rack", ZONE: "z2"}
    view = after(view, step)
    said = decide(view)
    assert isinstance(said, Confirm)
    assert said.whole
    assert said.message == (
        "its pods disagree about where they keep apart (block, rack): that of the first slot that "
        "says it counts"
    )


def test_a_zone_may_be_a_label_and_what_is_too_long_says_nothing() -> None:
    long = {SPREAD: "x" * 318, ZONE: "x" * 64}
    pods = plain("a", annotations=long, born=1), plain("b", labels={ZONE: "z1"}, born=2)
    assert told(decide(seen(*pods))) == {ZONE: "z1"}


def test_for_how_long_a_gang_may_wait_is_said_by_its_pods_too() -> None:
    index = {n: {names.JOB_INDEX_LABEL: str(n)} for n in range(3)}
    view = seen(
        plain("a", labels=index[2], annotations={WAITS: "5m"}, born=1),
        plain("b", labels={**index[1], WAITS: "10m"}, born=2),
        plain("c", labels=index[0], annotations={WAITS: "x" * 64}, born=3),
    )
    step = decide(view)
    assert told(step) == {WAITS: "10m"}
    view = after(view, step)
    assert view.there is not None
    assert timeout_of(view.there, None) == timedelta(minutes=10)
    said = decide(view)
    assert isinstance(said, Confirm)
    assert said.message == (
        "its pods disagree about the gang timeout (10m, 5m): that of the first slot that says it "
        "counts"
    )


def test_a_gang_that_no_longer_says_where_it_would_best_be_does_not_go_on_saying_it() -> None:
    view = seen(plain("a", annotations={SPREAD: "rack"}))
    view = after(view, decide(view))
    step = decide(replace(view, pods=(plain("a"),)))
    assert isinstance(step, Amend)
    assert told(step) == {}
    patched = step.wanted.patch(step.gang)["metadata"]
    assert isinstance(patched, dict)
    assert patched["annotations"] == {
        names.SLOTS_ANNOTATION: "0", names.TOPOLOGY_NAME_ANNOTATION: None, SPREAD: None, ZONE: None,
        names.GANG_TIMEOUT: None,
    }  # fmt: skip


def test_a_level_is_put_into_the_node_label_that_it_stands_for() -> None:
    view = close_view(plain("a", labels=CLOSE))
    step = decide(view)
    assert isinstance(step, Make)
    assert step.wanted.closeness == Closeness("net", "r")
    body = step.wanted.body()
    assert isinstance(body["spec"], dict)
    assert body["spec"]["topologyConstraint"] == {"packConstraint": {"required": "r"}}
    assert decide(after(view, step)) == Rest()


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        ({**CLOSE, names.TOPOLOGY_LABEL: "other"}, "there is no ClusterTopologyBinding 'other'"),
        ({**CLOSE, names.TOPOLOGY_LEVEL_LABEL: "row"}, "'row' is no level of net"),
    ],
)
def test_a_gang_waits_for_a_topology_that_is_not_there(labels: dict[str, str], why: str) -> None:
    view = close_view(plain("a", size="1", labels=labels))
    view = after(view, decide(view))
    said = decide(view)
    assert isinstance(said, Confirm)
    assert (said.whole, said.message) == (False, why)


def test_a_gang_that_runs_keeps_its_closeness_when_its_topology_goes() -> None:
    pod = plain("a", size="1", labels=CLOSE)
    view = close_view(pod)
    view = after(view, decide(view))
    view = after(view, decide(view))
    view = replace(view, ledger=ledger({0: "n0"}))
    assert isinstance(decide(replace(view, topologies={})), Confirm)
    gone = after(replace(view, topologies={}), decide(replace(view, topologies={})))
    assert decide(gone) == Rest()
    assert gone.there is not None
    assert gone.there.initialized

"""Gangs that are heard of one after the other are judged as if all had asked together."""

from scheduler.answers import Cause
from scheduler.emptied import Emptied
from scheduler.foretelling import Forecast
from scheduler.requests import GangRequest
from scheduler.snapshot import build
from tests.support.clusters import racks
from tests.support.refusals import LEVELS, taken, wants

NODES = tuple(racks(1, 1, 1, 2))


def forecast(**holds: int) -> Forecast:
    snapshot = build(NODES, taken({n.metadata.name: holds.get("each", 0) for n in NODES}), LEVELS)
    return Forecast(snapshot, Emptied(NODES, tuple(LEVELS)))


def asking(name: str, pods: int, **more: str | int) -> GangRequest:
    priority, born = int(more.get("priority", 0)), str(more.get("born", ""))
    return GangRequest("team", name, wants("w", pods), priority=priority, born=born)


def names(forecast: Forecast, *gangs: GangRequest) -> list[str]:
    return [refusal.gang.name for refusal in forecast.refusals(gangs)]


def test_each_is_judged_into_what_those_before_it_leave() -> None:
    made = forecast()
    assert names(made, asking("a", 1)) == []
    assert names(made, asking("b", 1)) == []
    assert names(made, asking("c", 1)) == ["c"]


def test_of_those_that_ask_together_the_more_urgent_and_then_the_older_come_first() -> None:
    young, old = asking("a", 1, born="2026-02"), asking("b", 1, born="2026-01")
    urgent = asking("c", 1, born="2026-03", priority=5)
    assert names(forecast(), young, old, urgent) == ["a"]


def test_a_refused_one_takes_nothing() -> None:
    made = forecast()
    assert names(made, asking("large", 3), asking("small", 2)) == ["large"]
    assert names(made, asking("later", 3)) == ["later"]


def test_who_would_never_fit_is_told_so() -> None:
    (never, later) = forecast(each=8).refusals([asking("large", 3), asking("small", 2)])
    assert (never.gang.name, never.never, later.never) == ("large", True, False)
    assert later.cause is Cause.TOTAL

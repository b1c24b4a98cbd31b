"""What one gang was refused is told to another that asks the same under other names."""

import dataclasses
from collections.abc import Sequence

import pytest

from api import names
from api.streams import Node
from scheduler import cycle, explain
from scheduler.answers import NoFit
from scheduler.eligible import Constraints
from scheduler.emptied import MOST, Emptied
from scheduler.foretelling import Forecast
from scheduler.requests import Anchor, Closeness, GangRequest, Group, Want
from scheduler.retelling import question, retold
from scheduler.snapshot import Hold, build
from tests.support.clusters import racks
from tests.support.refusals import LEVELS, taken, wants

RACK, BLOCK = Closeness(names.RACK_KEY), Closeness(names.BLOCK_KEY)
NODES = racks(1, 1, 2, 2)


def asking(name: str, *cliques: tuple[str, int, int], **more: object) -> GangRequest:
    """A gang of cliques of so many pods with so many GPUs, each called after the gang."""
    asked: list[Want] = []
    for role, pods, gpus in cliques:
        asked += wants(f"{name}-{role}", pods, gpus)
    made = GangRequest("team", name, tuple(asked))
    return dataclasses.replace(made, **more)  # type: ignore[arg-type]


def whole(name: str) -> GangRequest:
    return asking(name, ("a", 3, 8), ("b", 2, 8))


def near(name: str) -> GangRequest:
    return asking(name, ("a", 2, 8), ("b", 1, 8), near=RACK)


def grouped(name: str) -> GangRequest:
    both = Group(f"{name}-both", (f"{name}-a", f"{name}-b"), BLOCK)
    alone = Group(f"{name}-a", (f"{name}-a",), RACK)
    return asking(name, ("a", 3, 8), ("b", 1, 4), groups=(both, alone))


def anchored(name: str) -> GangRequest:
    there = (Anchor("n-0-0-0-0", f"{name}-a"),)
    return asking(name, ("a", 2, 8), ("b", 1, 8), near=RACK, anchors=there)


def large(name: str) -> GangRequest:
    return asking(name, ("a", 1, 1), ("b", 1, 16))


CASES = (whole, near, grouped, anchored, large)


def refused(gang: GangRequest, nodes: Sequence[Node] = NODES, holds: Sequence[Hold] = ()) -> NoFit:
    (refusal,) = cycle.plan(build(nodes, holds, LEVELS), [gang]).refusals
    return refusal


@pytest.mark.parametrize("kind", CASES)
def test_it_is_what_the_other_would_have_been_told(kind: object) -> None:
    assert callable(kind)
    one, other = kind("one"), kind("another")
    assert question(one) == question(other)
    found, asked = retold(refused(one), other), refused(other)
    assert explain.sentence(found) == explain.sentence(asked)
    assert found == asked


def test_other_amounts_another_order_and_other_words_of_closeness_are_other_questions() -> None:
    asked = [
        asking("g", ("a", 2, 8), ("b", 1, 4)),
        asking("g", ("a", 2, 8), ("b", 1, 8)),
        asking("g", ("a", 2, 8), ("b", 2, 4)),
        asking("g", ("b", 2, 8), ("a", 1, 4)),
        asking("g", ("a", 2, 8), ("b", 1, 4), near=RACK),
        asking("g", ("a", 2, 8), ("b", 1, 4), groups=(Group("g-a", ("g-a",), RACK),)),
        asking("g", ("a", 2, 8), ("b", 1, 4), groups=(Group("g-b", ("g-b",), RACK),)),
    ]
    assert len({question(each) for each in asked}) == len(asked)


def labelled(name: str) -> GangRequest:
    """As pods of sets are: each says by its labels whose it is."""
    who = Constraints(namespace="team", labels=(("grove.io/podgang", name),))
    return GangRequest("team", name, wants(f"{name}-a", 3, 8, who))


def test_of_many_alike_one_is_looked_into_and_all_are_told_that_they_never_fit() -> None:
    nodes = tuple(racks(1, 1, 1, 2))
    emptied = Emptied(nodes, tuple(LEVELS))
    forecast = Forecast(build(nodes, taken({"n-0-0-0-0": 8}), LEVELS), emptied)
    many = [labelled(f"late-{number}") for number in range(2 * MOST)]
    found = forecast.refusals(many)
    assert len(found) == len(many)
    assert all(each.never for each in found)
    assert {each.gang.name: each.cliques[0].clique for each in found} == {
        gang.name: f"{gang.name}-a" for gang in many
    }

"""What judges the engine is judged here: by hand, and by trying everything."""

import dataclasses
from collections import Counter
from itertools import product
from pathlib import Path

import msgspec
import pytest

from tests.bench import (
    quality,
    quality_cases,
    quality_drawing,
    quality_engine,
    quality_exact,
    quality_judging,
    quality_peer,
    quality_tally,
    quality_trials,
)
from tests.bench.quality_cases import GPU, HOSTNAME, Case, Clique, Group, Near, Node, free
from tests.bench.quality_judging import Put
from tests.bench.quality_trials import Tried

LEVELS = ("block", "rack")
LIMIT = 2.0


def node(name: str, block: str, rack: str, gpus: int = 8, **more: object) -> Node:
    made = Node(name, (block, rack), {GPU: gpus, "pods": 10})
    return msgspec.structs.replace(made, **more)


def clique(name: str, minimum: int, gpus: int, **more: object) -> Clique:
    return msgspec.structs.replace(Clique(name, minimum, {GPU: gpus, "pods": 1}), **more)


def case(nodes: list[Node], cliques: list[Clique], *groups: Group, near: str = "") -> Case:
    return Case(0, 0, "by-hand", LEVELS, tuple(nodes), tuple(cliques), groups, Near(near))


PAIR = case(
    [node("a", "b0", "r0", 8), node("b", "b0", "r0", 4), node("c", "b0", "r1", 8)],
    [clique("w", 2, 4), clique("x", 1, 8)],
    Group("w", ("w",), Near("rack")),
    near="block",
)
GOOD = (Put("w", 0, "a"), Put("w", 1, "b"), Put("x", 0, "c"))


def every_way(asked: Case) -> list[list[Put]]:
    pods = [(c.name, len(c.anchors) + i) for c in asked.cliques for i in range(c.minimum)]
    names = [each.name for each in asked.nodes]
    return [
        [Put(name, index, where) for (name, index), where in zip(pods, ways, strict=True)]
        for ways in product(names, repeat=len(pods))
    ]


def small(number: int) -> Case | None:
    """A part of a drawn case, so small that all answers can be tried."""
    drawn = quality_drawing.draw(3, number)
    part = tuple(sorted(drawn.nodes, key=lambda each: -free(each).get(GPU, 0))[:5])
    cliques = drawn.cliques[:3]
    left = {each.name for each in cliques}
    groups = [Group(g.name, tuple(c for c in g.cliques if c in left), g.near) for g in drawn.groups]
    made = msgspec.structs.replace(
        drawn,
        nodes=part,
        cliques=tuple(msgspec.structs.replace(c, minimum=min(2, c.minimum)) for c in cliques),
        groups=tuple(group for group in groups if group.cliques),
    )
    pods = sum(each.minimum for each in made.cliques)
    return made if len(part) ** pods <= 1_000 and drawn.kind != "growing" else None


@pytest.mark.no_cover
def test_the_exact_model_says_what_trying_everything_says() -> None:
    tried = [found for number in range(60) if (found := small(number)) is not None]
    verdicts = Counter[bool | None]()
    for asked in tried:
        scores = [
            quality_judging.score(asked, ways)
            for ways in every_way(asked)
            if not quality_judging.problems(asked, ways)
        ]
        answer = quality_exact.solve(asked, LIMIT)
        assert (answer.possible, answer.closed) == (bool(scores), True), asked.title
        assert answer.best == pytest.approx(max(scores, default=0.0)), asked.title
        verdicts[answer.possible] += 1
    assert min(verdicts[True], verdicts[False]) >= 3


def test_a_valid_answer_has_no_problems_and_its_score_is_counted_by_pairs() -> None:
    assert quality_judging.problems(PAIR, GOOD) == []
    # One pair shares block and rack, two pairs share the block only.
    assert quality_judging.score(PAIR, GOOD) == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert quality_exact.solve(PAIR, LIMIT).best == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("puts", "problem"),
    [
        pytest.param(GOOD[1:], "w misses [0]", id="a pod of the minimum is missing"),
        pytest.param((*GOOD, GOOD[0]), "w has pod 0 2 times", id="a pod is placed twice"),
        pytest.param((*GOOD, Put("w", 2, "a")), "w has pod 2", id="a pod nobody asked for"),
        pytest.param((*GOOD[:2], Put("x", 0, "a")), "a gives 12 of 8", id="overcommitted"),
        pytest.param((*GOOD[:2], Put("x", 0, "gone")), "no nodes ['gone']", id="no such node"),
        pytest.param(
            (GOOD[0], Put("w", 1, "c"), GOOD[2]), "('w',) are in", id="two racks where one must do"
        ),
    ],
)
def test_an_answer_is_found_wrong(puts: tuple[Put, ...], problem: str) -> None:
    assert problem in "; ".join(quality_judging.problems(PAIR, puts))


def test_an_answer_on_a_tainted_node_or_in_another_pool_is_found_wrong() -> None:
    kept = [node("a", "b", "r", tainted=True), node("b", "b", "r", pool="red")]
    for asked in (clique("w", 1, 1), clique("w", 1, 1, pool="blue", tolerant=True)):
        both = [quality_judging.problems(case(kept, [asked]), [Put("w", 0, n)]) for n in "ab"]
        assert both[0] == ["w may not use a"]
        assert bool(both[1]) is bool(asked.pool)


def test_pods_of_one_node_share_every_level_also_where_it_has_no_label() -> None:
    bare = case([node("a", "b", ""), node("b", "b", "")], [clique("w", 2, 1)])
    assert quality_judging.score(bare, [Put("w", 0, "a"), Put("w", 1, "a")]) == 1.0
    assert quality_judging.score(bare, [Put("w", 0, "a"), Put("w", 1, "b")]) == 0.5
    racked = msgspec.structs.replace(bare, near=Near("rack"))
    assert quality_exact.solve(racked, LIMIT).possible is False
    assert quality_exact.solve(msgspec.structs.replace(bare, near=Near(HOSTNAME)), LIMIT).possible


def test_pods_that_are_there_bind_those_that_are_asked_for() -> None:
    nodes = [node("a", "b0", "r0", 0), node("b", "b0", "r0", 1), node("c", "b1", "r0", 8)]
    grown = case(nodes, [clique("w", 2, 1, anchors=("a",))], near="block")
    assert quality_exact.solve(grown, LIMIT).possible is False
    one = msgspec.structs.replace(grown, cliques=(clique("w", 1, 1, anchors=("a",)),))
    assert quality_exact.solve(one, LIMIT).counts == (("w", "b", 1),)
    assert quality_peer.place(one) == [Put("w", 1, "b")]


def test_first_fit_takes_the_fullest_domain_and_never_asks_a_sibling_again() -> None:
    # The small one finds the rack that only the large one could use fuller than its own.
    trap = case(
        [node("a", "b", "r0", 4), node("b", "b", "r1", 3), node("c", "b", "r1", 3)],
        [clique("small", 1, 3), clique("large", 1, 4)],
        Group("small", ("small",), Near("rack")),
        Group("large", ("large",), Near("rack")),
        near="block",
    )
    assert quality_exact.solve(trap, LIMIT).possible
    assert quality_peer.place(trap) is None
    kind = msgspec.structs.replace(trap, cliques=trap.cliques[::-1])
    found = quality_peer.place(kind)
    assert found is not None
    assert quality_judging.problems(kind, found) == []


def test_what_first_fit_places_is_valid_and_no_better_than_the_best() -> None:
    for number in range(60):
        drawn = quality_drawing.draw(5, number)
        puts = quality_peer.place(drawn)
        if puts is not None:
            assert quality_judging.problems(drawn, puts) == []


def test_a_case_is_drawn_alike_each_time_and_survives_being_saved(tmp_path: Path) -> None:
    drawn = quality_drawing.draw(1, 2)
    assert quality_drawing.draw(1, 2) == drawn != quality_drawing.draw(1, 3)
    quality_cases.save(drawn, tmp_path / "x" / "case.json")
    assert quality_cases.load(tmp_path / "x" / "case.json") == drawn
    assert drawn.title in quality_tally.shown(drawn)


@pytest.mark.no_cover
def test_every_kind_is_drawn_small_and_a_fair_share_of_them_has_no_answer() -> None:
    cases = [quality_drawing.draw(1, number) for number in range(150)]
    assert {c.kind for c in cases} == set(quality_drawing.KINDS)
    assert all(4 <= len(c.nodes) <= 24 and 2 <= len(c.levels) <= 3 for c in cases)
    assert any(near.required and near.preferred for c in cases for _, near in c.tree())
    assert any(e.extras for c in cases for e in c.cliques)


def test_the_engine_is_asked_for_what_the_case_asks() -> None:
    answer = quality_engine.ask(case([node("a", "b", "r", 8)], [clique("w", 2, 4)]))
    assert answer.placed
    assert answer.puts == (Put("w", 0, "a"), Put("w", 1, "a"))
    assert answer.score == 1.0
    assert not quality_engine.ask(case([node("a", "b", "r", 7)], [clique("w", 2, 4)])).placed


def test_more_room_is_more_room() -> None:
    for number in range(20):
        drawn = quality_drawing.draw(4, number)
        for wider in quality_trials.with_more_room(drawn):
            before = {each.name: quality_cases.free(each) for each in drawn.nodes}
            after = {each.name: quality_cases.free(each) for each in wider.nodes}
            assert before.keys() <= after.keys()
            assert all(
                after[name][key] >= room[key] for name, room in before.items() for key in room
            )
            assert after != before


def test_failures_are_told_by_name_and_counted_and_kept(tmp_path: Path) -> None:
    good = quality_trials.judged(PAIR, LIMIT)
    lost = Tried(placed=False)
    assert dataclasses.replace(good, ours=lost).failures == ["missed", "peer-placed"]
    spent = dataclasses.replace(good, ours=Tried(placed=False, exhausted=True))
    assert "exhausted" in spent.failures
    wrong = dataclasses.replace(good, ours=Tried(placed=True, problems=("x",), score=2.0))
    assert wrong.failures == ["invalid", "better-than-best"]
    assert "impossible" in dataclasses.replace(wrong, possible=False).failures
    assert dataclasses.replace(good, roomier=(lost,)).failures[-1] == "lost-by-room"
    figures = {row.what: row.value for row in quality_tally.rows([spent, spent])}
    assert figures["engine misses, of feasible"] == 100.0
    assert figures["exhausted, of all"] == 100.0
    assert figures["said to be impossible, and is not"] == 0


def test_a_failed_case_is_kept_under_what_is_wrong_with_it(tmp_path: Path) -> None:
    trial = quality_trials.tried(1, 3, LIMIT)
    lost = dataclasses.replace(trial, possible=True, ours=Tried(placed=False))
    assert quality.save([trial, lost], tmp_path) == 1
    (kept,) = tmp_path.iterdir()
    assert kept.name.startswith("missed-1-3-")
    assert quality_cases.load(kept) == quality_drawing.draw(1, 3)

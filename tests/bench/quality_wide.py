"""Cases in clusters of a thousand nodes: one rack of hundreds that look alike takes the gang.

A placement is drawn first, and just what it takes stays free in the racks it lies in. In every
other rack as much is free in sum, and each kind of pod fits, but it is cut in other pieces; so
nearly all of them pass simple bounds, and hardly any has room. Nobody needs to be asked whether the
gang can be placed: it can.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.bench import quality_engine, quality_judging, quality_peer
from tests.bench.harness import Budget, Row
from tests.bench.quality_cases import GPU, Case, Clique, Group, Near, Need, Node

KINDS: Final = ("devices", "cores")
BLOCK, RACK = "block", "rack"
EACH: Final = 4  # nodes in a rack
_RACKS: Final = (250, 300)
_A_BLOCK: Final = 25  # racks
_HAS: Final[Need] = {GPU: 8, "cpu": 96, "memory": 768, "pods": 110}
_MISSED: Final = Budget(0.5)


def draw(seed: int, number: int, racks: tuple[int, int] = _RACKS) -> Case:
    """Draw one case of so many racks; equal seeds and numbers give equal cases."""
    dice = Random(f"wide/{seed}/{number}")  # noqa: S311 - draws questions, guards no secret
    kind = KINDS[number % len(KINDS)]
    count = dice.randint(*racks)
    parts = dice.choice((1, 1, 2))  # that need a rack each, in one block
    hidden = [_part(dice, kind, f"g{i}-") for i in range(parts)]
    block = dice.randrange(count // _A_BLOCK)
    homes = dice.sample(range(block * _A_BLOCK, (block + 1) * _A_BLOCK), parts)
    nodes: list[Node] = []
    for rack in range(count):
        home = rack in homes
        free = hidden[homes.index(rack)][1] if home else _cut(dice, *dice.choice(hidden))
        nodes += [_node(rack, i, each) for i, each in enumerate(free)]
    cliques = [clique for some, _ in hidden for clique in some]
    near = Near(RACK)
    groups: tuple[Group, ...] = ()
    if parts > 1 or dice.random() < 0.5:
        near = Near(BLOCK if parts > 1 else "")
        groups = tuple(
            Group(f"g{i}", tuple(c.name for c in some), Near(RACK))
            for i, (some, _) in enumerate(hidden)
        )
    return Case(
        seed, number, f"wide-{kind}", (BLOCK, RACK), tuple(nodes), tuple(cliques), groups, near
    )


def _part(dice: Random, kind: str, prefix: str) -> tuple[list[Clique], list[Need]]:
    """Draw pods that fill a rack's nodes, and what they take of each."""
    needs = [_need(dice, kind) for _ in range(dice.choice((2, 3, 3, 4)))]
    counts = [0] * len(needs)
    taken: list[Need] = []
    for _ in range(EACH):
        most = {**_HAS, "pods": dice.randint(2, 6)}
        here = dict.fromkeys(_HAS, 0)
        while fits := [
            i
            for i, need in enumerate(needs)
            if all(here[name] + amount <= most[name] for name, amount in need.items())
        ]:
            chosen = dice.choice(fits)
            counts[chosen] += 1
            for name, amount in needs[chosen].items():
                here[name] += amount
        taken.append(here)
    cliques = [
        Clique(f"{prefix}c{i}", count, need)
        for i, (need, count) in enumerate(zip(needs, counts, strict=True))
        if count
    ]
    return cliques, taken


def _need(dice: Random, kind: str) -> Need:
    if kind == "devices":
        gpus = dice.choice((1, 2, 3, 3, 4, 5))
        return {GPU: gpus, "cpu": dice.choice((4, 8, 11)) * gpus, "memory": 48 * gpus, "pods": 1}
    return {"cpu": dice.randint(9, 52), "memory": dice.choice((16, 90, 200, 300)), "pods": 1}


def _cut(dice: Random, cliques: Sequence[Clique], free: Sequence[Need]) -> list[Need]:
    """Cut what is free in other pieces: some of it moves from node to node."""
    made = [dict(each) for each in free]
    dice.shuffle(made)
    for _ in range(dice.randint(1, 3)):
        giver, taker = dice.sample(made, 2)
        name = dice.choice([key for key in (GPU, "cpu", "memory") if giver[key]])
        least = min(clique.need[name] for clique in cliques if clique.need.get(name))
        bit = min(giver[name], dice.randint(1, least), _HAS[name] - taker[name])
        giver[name] -= bit
        taker[name] += bit
    return made


def _node(rack: int, number: int, free: Need) -> Node:
    hold = {name: amount - free[name] for name, amount in _HAS.items() if amount > free[name]}
    path = (f"b{rack // _A_BLOCK}", f"r{rack}")
    return Node(f"n{rack}-{number}", path, _HAS, (hold,) if hold else ())


@dataclass(frozen=True)
class Wide:
    """What became of one case."""

    number: int
    kind: str
    placed: bool
    exhausted: bool
    problems: tuple[str, ...]
    by_peer: bool
    steps: int
    seconds: float  # of one core


def tried(seed: int, number: int) -> Wide:
    """Draw a case and have the engine and first fit try it."""
    case = draw(seed, number)
    begun = time.process_time()
    answer = quality_engine.ask(case)
    seconds = time.process_time() - begun
    problems = quality_judging.problems(case, answer.puts) if answer.placed else []
    peer = quality_peer.place(case) is not None
    return Wide(
        number, KINDS[number % len(KINDS)], answer.placed, answer.exhausted, tuple(problems), peer,
        answer.steps, seconds,
    )  # fmt: skip


def rows(tried: Sequence[Wide]) -> list[Row]:
    """Give the figures of each kind."""
    found = []
    for kind in KINDS:
        mine = [each for each in tried if each.kind == kind]
        if not mine:
            continue
        where = f"1,000 nodes, {kind}"
        missed = sum(not each.placed for each in mine)
        denied = sum(not each.placed and not each.exhausted for each in mine)
        found += [
            Row(f"{where}: cases, all feasible", len(mine), "cases"),
            Row(f"{where}: engine misses", 100 * missed / len(mine), "%", budget=_MISSED),
            Row(f"{where}: said to be impossible", denied, "cases", budget=Budget(0)),
            Row(f"{where}: invalid plans", sum(bool(e.problems) for e in mine), "plans",
                budget=Budget(0)),
            Row(f"{where}: first-fit finds", 100 * sum(e.by_peer for e in mine) / len(mine), "%"),
            Row(f"{where}: placed by first-fit only",
                sum(e.by_peer and not e.placed for e in mine), "cases", budget=Budget(0)),
            Row(f"{where}: engine's time, longest", 1e3 * max(e.seconds for e in mine), "ms"),
        ]  # fmt: skip
    return found

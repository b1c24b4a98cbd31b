"""One case tried by everybody: exact model, engine, first-fit, and the engine given more room."""

import time
from dataclasses import dataclass
from random import Random

import msgspec

from tests.bench import (
    quality_drawing,
    quality_engine,
    quality_exact,
    quality_judging,
    quality_peer,
)
from tests.bench.quality_cases import GPU, HOSTNAME, Case
from tests.bench.quality_engine import Answer

_EPSILON = 1e-9


@dataclass(frozen=True)
class Tried:
    """What somebody answered, and what the case says of it."""

    placed: bool
    exhausted: bool = False
    problems: tuple[str, ...] = ()
    score: float = 0.0  # of the minimum
    kept: int = 0  # preferences
    steps: int = 0


@dataclass(frozen=True)
class Trial:
    """All that was found out about one case."""

    seed: int
    number: int
    kind: str
    wishes: int
    possible: bool | None  # None where the exact model does not say
    closed: bool
    best: float
    ours: Tried
    peer: Tried
    roomier: tuple[Tried, ...]  # the engine again, each time with more room; where it placed at all
    seconds: float  # of one core, for the engine alone

    @property
    def failures(self) -> list[str]:
        """Name what the engine did that it should not have done."""
        found = []
        if self.ours.problems or any(each.problems for each in self.roomier):
            found.append("invalid")
        if self.possible and not self.ours.placed:
            found.append("exhausted" if self.ours.exhausted else "missed")
        if self.possible is False and self.ours.placed:
            found.append("impossible")
        if self.closed and self.ours.placed and self.ours.score > self.best + _EPSILON:
            found.append("better-than-best")
        if self.peer.placed and not self.ours.placed:
            found.append("peer-placed")
        if any(not each.placed and not each.exhausted for each in self.roomier):
            found.append("lost-by-room")
        return found


def tried(seed: int, number: int, limit: float) -> Trial:
    """Draw a case and have everybody try it."""
    return judged(quality_drawing.draw(seed, number), limit)


def judged(case: Case, limit: float) -> Trial:
    """Have everybody try this case."""
    exact = quality_exact.solve(case, limit)
    begun = time.process_time()
    answer = _answer(case)
    seconds = time.process_time() - begun
    by_peer = quality_peer.place(case)
    ours = _judged(case, answer)
    peer = _judged(case, Answer(by_peer is not None, exhausted=False, puts=tuple(by_peer or ())))
    roomier = [_judged(each, _answer(each)) for each in with_more_room(case)] if ours.placed else []
    return Trial(
        case.seed,
        case.number,
        case.kind,
        quality_judging.kept(case, ())[1],
        exact.possible,
        exact.closed,
        exact.best,
        ours,
        peer,
        tuple(roomier),
        seconds,
    )


def _answer(case: Case) -> Answer | str:
    try:
        return quality_engine.ask(case)
    except Exception as error:  # noqa: BLE001 - a crash is an answer too, and is counted
        return f"{type(error).__name__}: {error}"


def _judged(case: Case, answer: Answer | str) -> Tried:
    if isinstance(answer, str):
        return Tried(placed=False, problems=(answer,))
    if not answer.placed:
        return Tried(placed=False, exhausted=answer.exhausted, steps=answer.steps)
    problems = quality_judging.problems(case, answer.puts)
    if problems:
        return Tried(placed=True, problems=tuple(problems), steps=answer.steps)
    mine = quality_judging.minimum_only(case, answer.puts)
    return Tried(
        placed=True,
        problems=tuple(_misjudged(case, answer)),
        score=quality_judging.score(case, mine),
        kept=quality_judging.kept(case, mine)[0],
        steps=answer.steps,
    )


def _misjudged(case: Case, answer: Answer) -> list[str]:
    """Say it where the engine claims another score than its placement has."""
    if answer.score is None:
        return []
    score = quality_judging.score(case, answer.puts)
    off = abs(score - answer.score) > _EPSILON
    return [f"says {answer.score:.4f} of what scores {score:.4f}"] if off else []


def with_more_room(case: Case) -> list[Case]:
    """Add room that takes none away: a node that is free, and what one hold took."""
    dice = Random(f"{case.title}/room")  # noqa: S311 - draws questions, guards no secret
    beside = dice.choice(case.nodes)
    path = (*beside.path[:-1], "added") if case.levels[-1] == HOSTNAME else beside.path
    size = beside.has | {GPU: dice.choice((1, 2, 4, 8))}
    node = msgspec.structs.replace(beside, name="added", path=path, has=size, held=())
    made = [msgspec.structs.replace(case, nodes=(*case.nodes, node))]
    freeable = [node for node in case.nodes if _holds_of_others(case, node.name)]
    if freeable:
        chosen = dice.choice(freeable).name
        keep = _without_one(case, dice, chosen)
        made.append(keep)
    return made


def _holds_of_others(case: Case, name: str) -> list[dict[str, int]]:
    """What is held on a node, but for what the gang's own pods hold."""
    node = next(node for node in case.nodes if node.name == name)
    holds = list(node.held)
    for clique in case.cliques:
        for anchor in clique.anchors:
            if anchor == name and clique.need in holds:
                holds.remove(clique.need)
    return holds


def _without_one(case: Case, dice: Random, name: str) -> Case:
    gone = dice.choice(_holds_of_others(case, name))
    nodes = []
    for node in case.nodes:
        held = list(node.held)
        if node.name == name:
            held.remove(gone)
        nodes.append(msgspec.structs.replace(node, held=tuple(held)))
    return msgspec.structs.replace(case, nodes=tuple(nodes))

"""What many trials come to: figures with their budgets, and cases for people to read."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import Final, TypeVar

from api.jsons import JsonObject
from tests.bench.harness import Budget, Row
from tests.bench.quality_cases import Case, free
from tests.bench.quality_trials import Trial

T = TypeVar("T")

_NONE: Final = Budget(0)


def rows(trials: Sequence[Trial]) -> list[Row]:
    """Give every figure; a share of nothing is 0."""
    possible = [trial for trial in trials if trial.possible]
    return [
        Row("cases", len(trials), "cases"),
        Row("of them feasible", len(possible), "cases"),
        Row("infeasible", sum(trial.possible is False for trial in trials), "cases"),
        Row(
            "not closed by the exact model",
            _share(trials, lambda t: not t.closed),
            "%",
            budget=Budget(2),
        ),
        *_ours(trials, possible),
        *_beside(trials, possible),
    ]


def _ours(trials: Sequence[Trial], possible: Sequence[Trial]) -> list[Row]:
    placed = [trial for trial in possible if trial.ours.placed and not trial.ours.problems]
    closed = [trial for trial in placed if trial.closed]
    again = [each for trial in trials for each in trial.roomier]
    missed = _share(possible, lambda t: not t.ours.placed)
    return [
        Row(
            "invalid plans",
            _count(trials, "invalid") + _count(trials, "impossible"),
            "plans",
            budget=_NONE,
        ),
        Row(
            "better than the best there is",
            _count(trials, "better-than-best"),
            "plans",
            budget=_NONE,
        ),
        Row("engine finds, of feasible", 100 - missed if possible else 0.0, "%"),
        Row("engine misses, of feasible", missed, "%", budget=Budget(0.5)),
        Row("said to be impossible, and is not", _count(trials, "missed"), "cases", budget=_NONE),
        Row("exhausted, of all", _share(trials, lambda t: t.ours.exhausted), "%"),
        Row("mean score", _mean(t.ours.score for t in closed), "of 1"),
        Row("mean score of the optimum", _mean(t.best for t in closed), "of 1"),
        Row("below the optimum by", _below(closed), "%", budget=Budget(3)),
        Row("optimum met, of found", _share(closed, lambda t: t.ours.score > t.best - 1e-9), "%"),
        Row("preferences kept", _kept(placed, lambda t: t.ours.kept), "%"),
        Row(
            "refused after room was added",
            _share(again, lambda t: not t.placed),
            "%",
            budget=Budget(0.5),
        ),
        Row(
            "the same, without saying exhausted",
            _count(trials, "lost-by-room"),
            "cases",
            budget=_NONE,
        ),
        Row("engine's time, mean", 1e3 * _mean(t.seconds for t in trials), "ms"),
        Row("engine's time, longest", 1e3 * max((t.seconds for t in trials), default=0.0), "ms"),
    ]


def _beside(trials: Sequence[Trial], possible: Sequence[Trial]) -> list[Row]:
    both = [t for t in possible if t.ours.placed and t.peer.placed and not t.ours.problems]
    ours = sum(t.ours.placed and not t.peer.placed for t in possible)
    return [
        Row(
            "first-fit finds, of feasible",
            _share(possible, lambda t: t.peer.placed),
            "%",
            budget=Budget(75),
        ),
        Row("placed by the engine only", ours, "cases"),
        Row("placed by first-fit only", _count(trials, "peer-placed"), "cases", budget=_NONE),
        Row(
            "invalid placements of first-fit",
            sum(bool(t.peer.problems) for t in trials),
            "plans",
            budget=_NONE,
        ),
        Row(
            "mean score where both place",
            _mean(t.ours.score for t in both),
            "of 1",
            floor=_mean(t.peer.score for t in both),
        ),
        Row(
            "preferences kept where both place",
            _kept(both, lambda t: t.ours.kept),
            "%",
            floor=_kept(both, lambda t: t.peer.kept),
        ),
    ]


def by_kind(trials: Sequence[Trial]) -> JsonObject:
    """Count for each kind of case: all, feasible, and those that the engine and first-fit place."""
    return {
        kind: {
            "cases": count,
            "feasible": sum(t.kind == kind and bool(t.possible) for t in trials),
            "engine": sum(t.kind == kind and t.ours.placed for t in trials),
            "first-fit": sum(t.kind == kind and t.peer.placed for t in trials),
        }
        for kind, count in sorted(Counter(trial.kind for trial in trials).items())
    }


def shown(case: Case) -> str:
    """Write a case so that somebody can see it at once."""
    lines = [f"{case.title}: levels {' > '.join(case.levels)}"]
    for node in sorted(case.nodes, key=lambda node: (node.path, node.name)):
        room = " ".join(f"{key}={amount}" for key, amount in free(node).items() if amount)
        marks = f"{' tainted' if node.tainted else ''}{' pool ' + node.pool if node.pool else ''}"
        lines.append(f"  {'/'.join(node.path):24} {node.name:6} {room}{marks}")
    for cliques, near in case.tree():
        lines.append(f"  {'+'.join(cliques)}: required {near.required}, preferred {near.preferred}")
    for clique in case.cliques:
        marks = f"{' tolerant' if clique.tolerant else ''}{clique.pool and ' in ' + clique.pool}"
        there = f", there {' '.join(clique.anchors)}" if clique.anchors else ""
        more = f"+{clique.extras}" if clique.extras else ""
        lines.append(f"  {clique.name}: {clique.minimum}{more} × {clique.need}{marks}{there}")
    return "\n".join(lines)


def _share(items: Sequence[T], holds: Callable[[T], bool]) -> float:
    return 100 * sum(holds(each) for each in items) / len(items) if items else 0.0


def _count(trials: Sequence[Trial], failure: str) -> int:
    return sum(failure in trial.failures for trial in trials)


def _mean(values: Iterable[float]) -> float:
    every = list(values)
    return fmean(every) if every else 0.0


def _below(closed: Sequence[Trial]) -> float:
    best = sum(trial.best for trial in closed)
    return 100 * (1 - sum(trial.ours.score for trial in closed) / best) if best else 0.0


def _kept(trials: Sequence[Trial], kept: Callable[[Trial], int]) -> float:
    wishes = sum(trial.wishes for trial in trials)
    return 100 * sum(kept(trial) for trial in trials) / wishes if wishes else 0.0

"""What a queue asks of the sets in it: how large, how near, by which scheduler, in what order."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from policies import podcliqueset_topology_rules, reading
from policies.gang_sizes import GangSizes
from policies.known import Known
from policies.podcliqueset_view import CLIQUES, Resolved, SetView
from policies.policy import Policy
from policies.policy_queues import Queue, StartupLimits
from policies.problems import Problem
from policies.rules import Rule


@dataclass(frozen=True)
class Stood:
    """A set in a queue."""

    set: SetView
    sizes: GangSizes
    queue: Queue
    policy: Policy
    known: Known


def gangs_are_few(stood: Stood) -> Iterator[Problem]:
    """Refuse a set that comes to more gangs than its queue takes of one."""
    most = stood.queue.limits.gangs
    if most is not None and stood.sizes.gangs > most:
        yield Problem(
            "spec.replicas",
            f"comes to {stood.sizes.gangs} gangs with all that scales out; queue "
            f"{stood.queue.name!r} takes at most {most} of one set",
        )


def gangs_are_sized(stood: Stood) -> Iterator[Problem]:
    """Refuse gangs of too few or too many pods or GPUs."""
    limits, name, sizes = stood.queue.limits, stood.queue.name, stood.sizes
    bounds = limits.pods_per_gang
    if sizes.pods < bounds.min:
        yield Problem(
            CLIQUES, f"a gang has {sizes.pods} pods; queue {name!r} takes none below {bounds.min}"
        )
    if bounds.max is not None and sizes.pods > bounds.max:
        yield Problem(
            CLIQUES, f"a gang may have {sizes.pods} pods; queue {name!r} takes at most {bounds.max}"
        )
    if limits.gpus_per_gang is not None and sizes.gpus > limits.gpus_per_gang:
        yield Problem(
            CLIQUES,
            f"a gang may take {sizes.gpus} GPUs; queue {name!r} gives at most "
            f"{limits.gpus_per_gang}",
        )


def cliques_are_sized(stood: Stood) -> Iterator[Problem]:
    """Refuse a clique of more pods than the queue takes."""
    most = stood.queue.limits.replicas_per_clique
    for clique, copies in stood.sizes.cliques:
        if most is not None and copies > most:
            yield Problem(
                f"{clique.path}.spec.replicas",
                f"may come to {copies}; queue {stood.queue.name!r} takes at most {most} of one "
                "clique",
            )


def priorities_are_allowed(stood: Stood) -> Iterator[Problem]:
    """Refuse priority classes that the queue has not."""
    allowed = stood.queue.limits.priority_classes
    if allowed is None:
        return
    top = reading.name(stood.set.template.get("priorityClassName")) or ""
    if top and top not in allowed:
        yield _priority("spec.template.priorityClassName", top, stood)
    for clique in stood.set.cliques:
        own = reading.name(clique.pod.get("priorityClassName")) or ""
        if own and own not in allowed:
            yield _priority(f"{clique.pod_path}.priorityClassName", own, stood)


def _priority(path: str, written: str, stood: Stood) -> Problem:
    allowed = ", ".join(stood.queue.limits.priority_classes or []) or "none"
    return Problem(path, f"{written!r} is not for queue {stood.queue.name!r}; it has: {allowed}")


def large_gangs_are_near(stood: Stood) -> Iterator[Problem]:
    """Refuse a large gang that does not ask to be as near as the queue wants it."""
    wanted = stood.queue.topology
    if wanted is None or stood.sizes.pods < wanted.when_pods_at_least:
        return
    if any(_is_as_near(stood, each, wanted.required) for each in _of_all_pods(stood.set)):
        return
    yield Problem(
        "spec.template.topologyConstraint.pack.required",
        f"gangs of {wanted.when_pods_at_least} pods or more in queue {stood.queue.name!r} must ask "
        f"for {wanted.required!r} or a narrower level",
    )


def _of_all_pods(seen: SetView) -> Iterator[Resolved]:
    for each in seen.resolved:
        if each.constraint is seen.constraint:
            yield each


def _is_as_near(stood: Stood, asked: Resolved, wanted: str) -> bool:
    written = asked.constraint.must
    if written is None or written == wanted:
        return written == wanted
    levels = podcliqueset_topology_rules.levels_of(stood.known, asked) or []
    return wanted in levels and written in levels and levels.index(written) > levels.index(wanted)


def schedulers_are_allowed(stood: Stood) -> Iterator[Problem]:
    """Refuse schedulers that the queue does not go by."""
    allowed = stood.queue.schedulers
    for clique in stood.set.cliques if allowed else ():
        written = reading.name(clique.pod.get("schedulerName")) or ""
        meant = stood.policy.scheduler_of(written)
        if meant not in allowed:
            yield Problem(
                f"{clique.pod_path}.schedulerName",
                f"{meant!r} is not for queue {stood.queue.name!r}; it has: {', '.join(allowed)}",
            )


def startup_is_short(stood: Stood) -> Iterator[Problem]:
    """Refuse startup orders of more cliques, edges or steps than the queue takes."""
    limits, name = stood.queue.startup, stood.queue.name
    if limits == NO_STARTUP_LIMITS:
        return
    edges = {
        clique.name: [after for _, after in clique.starts_after]
        for clique in stood.set.cliques
        if clique.name is not None
    }
    counts = (
        ("cliques", len(stood.set.cliques), limits.max_cliques),
        ("dependencies", sum(map(len, edges.values())), limits.max_edges),
        ("steps one after the other", _depth(edges), limits.max_depth),
    )
    for what, count, most in counts:
        if most is not None and count > most:
            yield Problem(
                CLIQUES, f"the startup order has {count} {what}; queue {name!r} takes {most}"
            )


def _depth(edges: Mapping[str, list[str]]) -> int:
    """Give the longest chain of cliques that wait for each other; a cycle is another's problem."""
    waiting = {name: {each for each in after if each in edges} for name, after in edges.items()}
    after: dict[str, list[str]] = {}
    for name, before in waiting.items():
        for each in before:
            after.setdefault(each, []).append(name)
    left = {name: len(before) for name, before in waiting.items()}
    wave = [name for name, count in left.items() if not count]
    depth = 0
    while wave:
        depth += 1
        following: list[str] = []
        for name in wave:
            for each in after.get(name, ()):
                left[each] -= 1
                if not left[each]:
                    following.append(each)
        wave = following
    return depth


NO_STARTUP_LIMITS: Final = StartupLimits()

RULES: Final[tuple[Rule[Stood], ...]] = (
    Rule(gangs_are_few),
    Rule(gangs_are_sized),
    Rule(cliques_are_sized),
    Rule(priorities_are_allowed),
    Rule(large_gangs_are_near),
    Rule(schedulers_are_allowed),
    Rule(startup_is_short),
)

"""Refusals for people and for tools: one sentence for a gang's condition, and a structure.

The sentence is a write on the PodGang each time it changes, so it tells only what the refusal turns
on: the cause, the domain that comes nearest and what that lacks, and one thing that would help.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from api import names as known
from api import quantities
from api.jsons import JsonObject
from api.quantities import Amounts
from scheduler.answers import (
    AskFewer,
    Cause,
    CliqueReport,
    FreeRoom,
    Loosen,
    MoreNodes,
    NoFit,
    Remedy,
    Uncordon,
    Widen,
)
from scheduler.filters.counted import spoken
from scheduler.parts import scarcity

LONGEST: Final = 400
_FEW: Final = 2  # of names or resources that are told; of the others their number


def sentence(refusal: NoFit) -> str:
    """Say what is missing and where it comes nearest, what would help, and which nodes count."""
    told = _HEADS[refusal.cause](refusal)
    if refusal.never:
        told = f"even with every node empty, {told}"
    help_ = next((text for text in map(_help, refusal.remedies) if text), "")
    tail = _left_out(refusal)
    for text in (f"{told}{help_}{tail}", f"{told}{tail}", told):
        if len(text) <= LONGEST:
            return text
    return told[: LONGEST - 1] + "…"


def details(refusal: NoFit) -> JsonObject:
    """Give the whole refusal as JSON; docs/engine.md says what its fields mean."""
    told = {
        "gang": {"namespace": refusal.gang.namespace, "name": refusal.gang.name},
        "message": sentence(refusal),
        "cause": refusal.cause,
        "part": refusal.part,
        "level": refusal.level,
        "subject": refusal.subject,
        "exhausted": refusal.exhausted,
        "never": refusal.never,
        "steps": refusal.steps,
        "pods": {
            "minimum": len(refusal.gang.minimum),
            "extras": len(refusal.gang.extras),
            "fitted": refusal.fitted,
        },
        "needed": refusal.needed,
        "free": refusal.free,
        "nodes": {
            "all": refusal.nodes,
            "usable": refusal.usable,
            "obstacles": refusal.obstacles,
        },
        "nearest": refusal.nearest,
        "levels": refusal.levels,
        "cliques": refusal.cliques,
        "remedies": [
            {"kind": type(remedy).__name__, **msgspec.to_builtins(remedy)}
            for remedy in refusal.remedies
        ],
    }
    plain: JsonObject = msgspec.json.decode(msgspec.json.encode(told))
    return plain


def level_word(key: str) -> str:
    """Name a level the way people do: `rack` for `topology.kubernetes.io/rack`."""
    return "node" if key == known.HOSTNAME_KEY else key.rpartition("/")[2]


def domain_text(path: tuple[str, ...]) -> str:
    """Name a domain by its path."""
    return "/".join(path) or "the cluster"


def _total(refusal: NoFit) -> str:
    short = list(_shortages(refusal))
    more = f" and {len(short) - _FEW} more" if len(short) > _FEW else ""
    return f"no room for {_pods(refusal)}: {'; '.join(short[:_FEW])}{more}{_where(refusal)}"


def _resource(refusal: NoFit) -> str:
    return f"{_total(refusal)}; no node has any {spoken(refusal.subject)}"


def _filters(refusal: NoFit) -> str:
    if any(_shortages(refusal)):
        return _total(refusal)
    clique = _scarce(refusal)
    reasons = ", ".join(f"{count} {reason}" for reason, count in clique.obstacles.items())
    return (
        f"no room for {_pods(refusal)}: {clique.clique} pods may use {clique.usable} of "
        f"{_plural(refusal.nodes, 'node')} ({reasons}), which take {clique.fits} of {clique.asked}"
        f"{_where(refusal)}"
    )


def _nodes(refusal: NoFit) -> str:
    largest = _largest(refusal)
    return (
        f"no room for {_pods(refusal)}: {refusal.fitted} would fit; there is enough in total but "
        f"not on single nodes, {largest} on one node{_where(refusal)}"
    )


def _large(refusal: NoFit) -> str:
    return f"no room for {_pods(refusal)}: {_largest(refusal)}, more than any node has"


def _domains(refusal: NoFit) -> str:
    return f"no {level_word(refusal.level)} has room for {_pods(refusal)}{_near(refusal)}"


def _anchors(refusal: NoFit) -> str:
    word, whose = level_word(refusal.level), refusal.part or "the gang"
    return f"{whose} has pods already and must stay in one {word} with them{_near(refusal)}"


def _apart(refusal: NoFit) -> str:
    word, whose = level_word(refusal.level), refusal.part or "the gang"
    return f"{whose} must be in one {word}, and its pods are in several already, or in none"


def _spread(refusal: NoFit) -> str:
    levels = {each.level for each in refusal.gang.spread if each.hard}
    word = level_word(levels.pop()) if len(levels) == 1 else "domain"
    return (
        f"every {word} with room for {_pods(refusal)} has as many replicas already as may be there"
        f"{_near(refusal)}"
    )


def _combination(refusal: NoFit) -> str:
    return f"no room for {_pods(refusal)} with each group in a domain as it must be{_near(refusal)}"


def _company(refusal: NoFit) -> str:
    return (
        f"there is room for {_pods(refusal)}, but none was found with each as near to, or as far "
        "from, other pods as it must be"
    )


def _budget(refusal: NoFit) -> str:
    return (
        f"no room found for {_pods(refusal)} before the search ended with its budget; there may be "
        f"some{_near(refusal)}"
    )


def _topology(refusal: NoFit) -> str:
    return f"there is no topology {refusal.subject}"


def _level(refusal: NoFit) -> str:
    whose = refusal.part or "the gang"
    return (
        f"{whose} must be in one domain of {refusal.level}, a level that its topology does not have"
    )


def _nesting(refusal: NoFit) -> str:
    return f"group {refusal.part} shares cliques with another group and does not lie within it"


_HEADS: Final[Mapping[Cause, Callable[[NoFit], str]]] = {
    Cause.TOPOLOGY: _topology,
    Cause.LEVEL: _level,
    Cause.NESTING: _nesting,
    Cause.RESOURCE: _resource,
    Cause.LARGE: _large,
    Cause.FILTERS: _filters,
    Cause.TOTAL: _total,
    Cause.NODES: _nodes,
    Cause.APART: _apart,
    Cause.ANCHORS: _anchors,
    Cause.SPREAD: _spread,
    Cause.DOMAINS: _domains,
    Cause.GROUP: _domains,
    Cause.COMPANY: _company,
    Cause.COMBINATION: _combination,
    Cause.BUDGET: _budget,
}


def _pods(refusal: NoFit) -> str:
    if not refusal.gang.minimum:
        return f"any of {_plural(len(refusal.gang.extras), 'further pod')}"
    if refusal.part and refusal.nearest is not None:
        return f"the {_plural(refusal.nearest.asked, 'pod')} of {refusal.part}"
    return f"all {_plural(len(refusal.gang.minimum), 'pod')} of the minimum"


def _near(refusal: NoFit) -> str:
    """Tell the nearest miss."""
    nearest = refusal.nearest
    if nearest is None:
        return ""
    lacks = [_amount(name, amount) for name, amount in nearest.lacks.items()][:_FEW]
    what = f" and lacks {' and '.join(lacks)}" if lacks else ""
    if not lacks and nearest.left_out:
        clique = next(iter(nearest.left_out))
        what = f"; {_largest(refusal, clique)} on one node"
    where = domain_text(nearest.domain)
    return f": nearest is {where}, which takes {nearest.fits} of {nearest.asked}{what}"


def _where(refusal: NoFit) -> str:
    """Tell the nearest miss where the gang must be in one domain."""
    if refusal.nearest is None or not refusal.nearest.level:
        return ""
    nearest = refusal.nearest
    return (
        f"; nearest {level_word(nearest.level)} is {domain_text(nearest.domain)}, "
        f"which takes {nearest.fits}"
    )


def _shortages(refusal: NoFit) -> Iterator[str]:
    for name in sorted(refusal.needed, key=scarcity):
        needed, free = _needed(refusal, name), refusal.free.get(name, 0)
        if needed > free:
            what = "pod slots" if name == quantities.PODS else spoken(name)
            wanted, there, missing = (
                quantities.text(name, amount) for amount in (needed, free, needed - free)
            )
            yield f"{what}: {wanted} needed, {there} free, {missing} short"


def _needed(refusal: NoFit, name: str) -> int:
    """Of extras, which come singly, one is asked for."""
    if refusal.gang.minimum or not refusal.cliques:
        return refusal.needed[name]
    return min(clique.need.get(name, 0) for clique in refusal.cliques)


def _scarce(refusal: NoFit) -> CliqueReport:
    """Give the clique of which the smallest share would fit; the first of these."""
    return min(refusal.cliques, key=lambda each: min(each.room, each.asked) / max(each.asked, 1))


def _largest(refusal: NoFit, clique: str = "") -> str:
    """Tell what the most demanding pod of those that found no node takes."""
    out = [each for each in refusal.cliques if each.fits < each.asked] or list(refusal.cliques)
    chosen = [each for each in out if each.clique == clique] or out
    need: Amounts = max(
        (each.need for each in chosen),
        key=lambda need: sum(v for k, v in need.items() if "/" in k),
        default={},
    )
    asked = [name for name in sorted(need, key=scarcity) if need[name] and name != quantities.PODS]
    return f"the largest pod needs {', '.join(_amount(name, need[name]) for name in asked)}"


def _help(remedy: Remedy) -> str:
    match remedy:
        case Uncordon(nodes):
            return f"; it would fit with {_few(nodes)} uncordoned"
        case Widen(_, _, wider, _):
            where = (
                f"one {level_word(wider)} would take it" if wider else "with no level it would fit"
            )
            return f"; {where}"
        case FreeRoom(domain, amounts, nodes):
            most = ", ".join(_amount(name, amount) for name, amount in list(amounts.items())[:_FEW])
            where = f"{_plural(len(nodes), 'node')}{' there' if domain else ''}"
            return f"; freeing {most} on {where} would do"
        case MoreNodes(domain, count, like):
            where = f" in {domain_text(domain)}" if domain else ""
            return f"; {_plural(count, 'more node')} like {like}{where} would do"
        case Loosen(level):
            word = level_word(level)
            return f"; it would fit if a {word} could have more replicas than it may"
        case AskFewer():
            return ""


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return " and ".join(names[:_FEW]) if not more else f"{', '.join(names[:_FEW])}{more}"


def _amount(name: str, amount: int) -> str:
    what = "pod slots" if name == quantities.PODS else spoken(name)
    return f"{quantities.text(name, amount)} {what}"


def _left_out(refusal: NoFit) -> str:
    if refusal.usable == refusal.nodes:
        return f" (counting all {_plural(refusal.nodes, 'node')})"
    reasons = ", ".join(f"{count} {reason}" for reason, count in refusal.obstacles.items())
    return f" (counting {refusal.usable} of {_plural(refusal.nodes, 'node')}: {reasons})"


def _plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"

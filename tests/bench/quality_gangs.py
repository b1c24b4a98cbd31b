"""Draw gangs: cliques of several sizes, groups of them, and wishes at every level of the tree."""

from random import Random
from typing import Final

import msgspec

from tests.bench.quality_cases import GPU, HOSTNAME, Case, Clique, Group, Near, Need

_MOST_PODS: Final = 24
_GPUS: Final = (0, 1, 1, 2, 2, 4, 4, 8)


def drawn(dice: Random, case: Case) -> Case:
    """Give the case a gang."""
    siblings = case.kind in ("siblings", "short")
    gang = _near(dice, case, wide=True) if not siblings or dice.random() < 0.7 else Near()
    shapes = [_clique(dice, f"c{i}") for i in range(dice.choice((2, 3, 3, 4, 5)))]
    groups: list[Group] = []
    cliques: list[Clique] = []
    if siblings or dice.random() < 0.4:
        for copy in range(dice.randint(2, 4) if siblings else dice.randint(1, 3)):
            if siblings and dice.random() < 0.4:  # not all siblings are copies of one another
                shapes = [_clique(dice, f"c{i}") for i in range(dice.choice((1, 2, 3)))]
            mine = [msgspec.structs.replace(s, name=f"g{copy}-{s.name}") for s in shapes]
            near = _within(dice, case, gang, required=siblings)
            groups.append(Group(f"g{copy}", tuple(c.name for c in mine), near))
            cliques += mine
        if dice.random() < 0.4:
            cliques.append(_clique(dice, "lone"))
    else:
        cliques = shapes
    cliques = _cut(cliques)
    groups = _left(groups, cliques)
    for clique in cliques:
        if dice.random() < 0.25 and not any(g.cliques == (clique.name,) for g in groups):
            above = next((g.near for g in groups if clique.name in g.cliques), gang)
            groups.append(Group(clique.name, (clique.name,), _within(dice, case, above)))
    if case.kind == "extras":
        cliques = [msgspec.structs.replace(c, extras=dice.randint(0, 3)) for c in cliques]
    cliques = [_choosy(dice, case, clique) for clique in cliques]
    return msgspec.structs.replace(case, cliques=tuple(cliques), groups=tuple(groups), near=gang)


def _clique(dice: Random, name: str) -> Clique:
    gpus = dice.choice(_GPUS)
    need: Need = {GPU: gpus} if gpus else {}
    plain = dice.random() < 0.3
    need["cpu"] = max(1, gpus * 4) if plain else dice.choice((1, 4, 8, 16, 30, 40))
    need["memory"] = max(2, gpus * 32) if plain else dice.choice((2, 16, 64, 200, 250))
    need["pods"] = 1
    return Clique(name, dice.choice((1, 2, 3, 4, 6)), need)


def _choosy(dice: Random, case: Case, clique: Clique) -> Clique:
    pools = any(node.pool for node in case.nodes)
    return msgspec.structs.replace(
        clique,
        pool="red" if pools and dice.random() < 0.4 else "",
        tolerant=dice.random() < 0.5,
    )


def _cut(cliques: list[Clique]) -> list[Clique]:
    """Leave out what is beyond the most pods a case has."""
    kept: list[Clique] = []
    for clique in cliques:
        room = _MOST_PODS - sum(each.minimum for each in kept)
        if room > 0:
            kept.append(msgspec.structs.replace(clique, minimum=min(room, clique.minimum)))
    return kept


def _left(groups: list[Group], cliques: list[Clique]) -> list[Group]:
    names = {clique.name for clique in cliques}
    inside = [
        msgspec.structs.replace(g, cliques=tuple(c for c in g.cliques if c in names))
        for g in groups
    ]
    return [group for group in inside if group.cliques]


def _near(dice: Random, case: Case, *, wide: bool) -> Near:
    """Draw a wish; both of its levels may be there, the preferred one is the narrower then."""
    levels = [*case.levels, *([HOSTNAME] if not wide and HOSTNAME not in case.levels else [])]
    if wide and levels[-1] == HOSTNAME:
        levels.pop()
    required = dice.choice(levels) if dice.random() < 0.6 else ""
    below = levels[levels.index(required) + 1 :] if required else levels
    preferred = dice.choice(below) if below and dice.random() < 0.4 else ""
    return Near(required, preferred)


def _within(dice: Random, case: Case, above: Near, *, required: bool = False) -> Near:
    """Draw a wish of a member: its required level is not wider than that of what it is part of."""
    order = [*case.levels, *([HOSTNAME] if HOSTNAME not in case.levels else [])]
    first = order.index(above.required) if above.required else 0
    below = order[first:]
    if HOSTNAME in below[1:] and (required or dice.random() < 0.7):
        below = below[:-1]  # one node for all is asked for seldom
    level = dice.choice(below) if required or dice.random() < 0.6 else ""
    narrower = below[below.index(level) + 1 :] if level else below
    preferred = dice.choice(narrower) if narrower and dice.random() < 0.3 else ""
    return Near(level, preferred)

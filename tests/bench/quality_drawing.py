"""Draw cases: small clusters with a gang each that hardly fits, or hardly does not.

Equal seeds and numbers give equal cases, whatever was drawn before. The kinds:

- `uniform`: a gang, and a cluster filled at random until little more than it needs is free.
- `hidden`: a placement is drawn first; what it takes is left free and little else.
- `siblings`: the same, for a gang of groups that each must have a rack of their own choosing.
- `short`: the same, but then one device less is free where the placement was hidden.
- `extras`: `hidden` with pods above the minimum.
- `growing`: `hidden` with some of the pods there already.
"""

from random import Random
from typing import Final

import msgspec

from tests.bench import quality_gangs
from tests.bench.quality_cases import (
    GPU,
    HOSTNAME,
    Case,
    Clique,
    Domain,
    Need,
    Node,
    domain,
    free,
    may_use,
)

KINDS: Final = (
    ("uniform",) * 5 + ("hidden",) * 6 + ("siblings",) * 6 + ("short", "extras", "growing")
)
_NETWORKS: Final = (
    ("block", "rack"),
    ("zone", "block", "rack"),
    ("zone", "block", "rack"),
    ("rack", HOSTNAME),
    ("block", "rack", HOSTNAME),
)
_SIZES: Final[tuple[Need, ...]] = (
    {GPU: 8, "cpu": 64, "memory": 512, "pods": 110},
    {GPU: 4, "cpu": 48, "memory": 256, "pods": 30},
    {GPU: 0, "cpu": 96, "memory": 384, "pods": 60},
)
_FEWEST: Final = 4  # nodes
_TRIES: Final = 200


def draw(seed: int, number: int) -> Case:
    """Draw one case."""
    dice = Random(f"{seed}/{number}")  # noqa: S311 - draws questions, guards no secret
    case = drawn(dice, dice.choice(KINDS))
    return msgspec.structs.replace(case, seed=seed, number=number)


def drawn(dice: Random, kind: str) -> Case:
    """Draw one case of a kind with these dice."""
    while True:
        case = quality_gangs.drawn(dice, _cluster(dice, kind))
        if len(case.nodes) < _FEWEST or not any(node.path[-1] for node in case.nodes):
            continue  # a level that no node is labelled with would be none
        made = _filled(dice, case) if kind == "uniform" else _hiding(dice, case)
        if made is not None:
            return made


def _cluster(dice: Random, kind: str) -> Case:
    levels = dice.choice(_NETWORKS)
    paths: list[Domain] = [()]
    for level in levels:
        # Half of the clusters name racks anew in every block, so that only a path tells them apart.
        again = dice.random() < 0.5
        narrow = level == levels[-1] or level == "rack"
        paths = [
            (*path, f"{level}{child}" if again else f"{level}{place}.{child}")
            for place, path in enumerate(paths)
            for child in range(1 if level == HOSTNAME else dice.randint(1, 4 if narrow else 3))
        ]
    nodes: list[Node] = []
    unlabelled = dice.random() < 0.05 and HOSTNAME not in levels
    sizes = dice.choice([(0,), (0,), (0, 0, 1), (0, 0, 0, 2)])
    pools, tainted = dice.random() < 0.3, dice.random() < 0.3
    for path in paths:
        for _ in range(dice.randint(1, 6)):
            name = f"n{len(nodes)}"
            where = (*path[:-1], name) if levels[-1] == HOSTNAME else path
            if unlabelled and dice.random() < 0.15:
                where = (*path[:-1], "")
            pool = dice.choice(("", "red")) if pools else ""
            keeps_out = tainted and dice.random() < 0.2
            size = dict(_SIZES[dice.choice(sizes)])
            if dice.random() < 0.1:
                size["pods"] = dice.randint(1, 4)
            nodes.append(Node(name, where, size, (), pool, keeps_out))
    dice.shuffle(nodes)
    count = dice.randint(4, 24)
    return Case(0, 0, kind, levels, tuple(nodes[:count]), ())


def _filled(dice: Random, case: Case) -> Case | None:
    """Take room at random until only so many times what the gang needs is free."""
    wanted = _total(case, GPU)
    slack = dice.choice((1.1, 1.3, 1.6, 2.2, 3.0))
    nodes = {node.name: node for node in case.nodes}
    for _ in range(_TRIES):
        there = {name: free(node) for name, node in nodes.items()}
        if sum(room[GPU] for room in there.values()) <= slack * wanted:
            break
        name = dice.choice([name for name, room in there.items() if room[GPU]])
        nodes[name] = _taken(nodes[name], _chunk(dice, there[name]))
    return msgspec.structs.replace(case, nodes=tuple(nodes.values()))


def _total(case: Case, resource: str) -> int:
    return sum(clique.minimum * clique.need.get(resource, 0) for clique in case.cliques)


def _taken(node: Node, hold: Need) -> Node:
    hold = {name: amount for name, amount in hold.items() if amount}
    return msgspec.structs.replace(node, held=(*node.held, hold)) if hold else node


def _chunk(dice: Random, room: Need) -> Need:
    """Draw what a foreign pod might take: devices, and of the rest about their share."""
    gpus = min(room.get(GPU, 0), dice.choice((1, 1, 2, 4, 8)))
    share = gpus / max(1, room.get(GPU, 0)) * dice.choice((0.0, 0.5, 1.0, 1.0))
    return {
        GPU: gpus,
        "cpu": int(room.get("cpu", 0) * share),
        "memory": int(room.get("memory", 0) * share),
        "pods": min(1, room.get("pods", 0)),
    }


def _hiding(dice: Random, case: Case) -> Case | None:
    """Hide a placement in the cluster: what it takes stays free, with a little beside it."""
    for _ in range(5):
        puts = _hidden(dice, case)
        if puts is not None:
            break
    else:
        return None
    if case.kind == "growing":
        case, puts = _grown(dice, case, puts)
    crumbs = dice.choice((0.1, 0.3, 0.5))
    tight = dice.random() < 0.85
    nodes = []
    for each in case.nodes:
        spare = free(each)
        for name, where in puts:
            if where == each.name:
                need = next(c.need for c in case.cliques if c.name == name)
                spare = {key: amount - need.get(key, 0) for key, amount in spare.items()}
        left = _crumbs(dice, case.cliques, spare) if dice.random() < crumbs else {}
        if not tight:
            left = {**spare, GPU: left.get(GPU, 0)}
        hold = {key: amount - left.get(key, 0) for key, amount in spare.items()}
        nodes.append(_taken(each, hold | {"pods": min(1, hold["pods"])}))
    if case.kind == "short":
        nodes = _bitten(dice, nodes, {where for _, where in puts})
    return msgspec.structs.replace(case, nodes=tuple(nodes))


def _bitten(dice: Random, nodes: list[Node], used: set[str]) -> list[Node]:
    """Take one device, or else a core, from a node of the hidden placement."""
    name = dice.choice(sorted(used))
    made = []
    for node in nodes:
        room = free(node)
        bite = {GPU: 1} if room.get(GPU) else {"cpu": 1}
        made.append(_taken(node, bite) if node.name == name else node)
    return made


def _crumbs(dice: Random, cliques: tuple[Clique, ...], spare: Need) -> Need:
    """Draw what stays free beside the hidden placement: room for a pod that tempts to be used."""
    need = dice.choice(cliques).need
    times = dice.choice((1, 1, 2))
    return {key: min(amount, times * need.get(key, 0)) for key, amount in spare.items()}


def _hidden(dice: Random, case: Case) -> list[tuple[str, str]] | None:
    """Place the minimum at random within randomly chosen domains, or fail."""
    allowed = {clique.name: list(case.nodes) for clique in case.cliques}
    wishes = sorted(case.tree(), key=lambda wish: -len(wish[0]))
    for cliques, near in wishes:
        if near.required:
            found = {domain(case, node, near.required) for node in allowed[cliques[0]]} - {None}
            if not found:
                return None
            chosen = dice.choice(sorted(found, key=str))
            for name in cliques:
                allowed[name] = [
                    n for n in allowed[name] if domain(case, n, near.required) == chosen
                ]
    room = {node.name: free(node) for node in case.nodes}
    apart = dice.choice((1, 1, 2, 3))  # some gangs lie close together and some far apart
    puts = []
    for clique in sorted(case.cliques, key=lambda each: -each.need.get(GPU, 0)):
        for _ in range(clique.minimum):
            fits = [n.name for n in allowed[clique.name] if _fits(n, clique, room[n.name])]
            if not fits:
                return None
            where = dice.choice(fits[:apart])
            for name, amount in clique.need.items():
                room[where][name] -= amount
            puts.append((clique.name, where))
    return puts


def _fits(node: Node, clique: Clique, room: Need) -> bool:
    return may_use(node, clique) and all(
        room.get(name, 0) >= amount for name, amount in clique.need.items()
    )


def _grown(
    dice: Random, case: Case, puts: list[tuple[str, str]]
) -> tuple[Case, list[tuple[str, str]]]:
    """Have some of the hidden pods be there already, and their room be taken."""
    there = [put for put in puts if dice.random() < 0.4]
    if len(there) == len(puts):
        there = there[1:]
    wanted = list(puts)
    for put in there:
        wanted.remove(put)
    needs = {clique.name: clique.need for clique in case.cliques}
    nodes = {node.name: node for node in case.nodes}
    for name, where in there:
        nodes[where] = _taken(nodes[where], needs[name])
    cliques = [
        msgspec.structs.replace(
            clique,
            minimum=sum(name == clique.name for name, _ in wanted),
            anchors=tuple(where for name, where in there if name == clique.name),
        )
        for clique in case.cliques
    ]
    made = msgspec.structs.replace(case, nodes=tuple(nodes.values()), cliques=tuple(cliques))
    return made, wanted

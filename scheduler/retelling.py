"""A refusal of one gang, told to another that asks the same under other names.

Of many sets that are alike each has cliques and groups of its own, called after it. Into the same
room they ask one question, and one answer will do for all of them.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace

from scheduler.answers import AskFewer, NoFit, Remedy, Widen
from scheduler.eligible import Constraints
from scheduler.parts import shapes
from scheduler.requests import GangRequest


def question(
    request: GangRequest, settled: Callable[[Constraints], Constraints] = lambda same: same
) -> Hashable:
    """Give what is asked, whoever asks: into the same room, equal questions get equal answers.

    `settled` leaves out of constraints what makes no difference there, so that more are alike.
    Cliques and groups go by where their names stand among the gang's: the order may matter, as
    what is equal otherwise is taken by name.
    """
    ranks = {name: rank for rank, name in enumerate(_names(request))}
    asked = [
        (ranks[shape.clique], tuple(sorted(shape.need.items())), shape.constraints, shape.count)
        for wants in (request.minimum, request.extras)
        for shape in shapes(wants, settled)
    ]
    groups = tuple(
        [
            (ranks[g.name], tuple([ranks[each] for each in g.cliques]), g.near)
            for g in request.groups
        ]
    )
    anchors = tuple([(anchor.node, ranks.get(anchor.clique)) for anchor in request.anchors])
    where = request.near, groups, request.topology, request.zone
    # Without a wish to keep apart it makes no difference who asks.
    kin = (request.spread, request.kin) if request.spread else ()
    kept = request.kept.name if request.kept else ""
    return tuple(asked), len(request.minimum), where, anchors, kin, kept


def retold(refusal: NoFit, gang: GangRequest) -> NoFit:
    """Give the refusal to a gang that asks the same question."""
    called = dict(zip(_names(refusal.gang), _names(gang), strict=True))
    if all(before == now for before, now in called.items()):
        return replace(refusal, gang=gang)
    nearest = refusal.nearest
    return replace(
        refusal,
        gang=gang,
        part=called.get(refusal.part, refusal.part),
        subject=called.get(refusal.subject, refusal.subject),
        levels=tuple([replace(e, part=called.get(e.part, e.part)) for e in refusal.levels]),
        cliques=tuple([replace(e, clique=called.get(e.clique, e.clique)) for e in refusal.cliques]),
        nearest=nearest
        and replace(
            nearest,
            part=called.get(nearest.part, nearest.part),
            left_out=_by_name(nearest.left_out, called),
        ),
        remedies=tuple([_remedy(each, called) for each in refusal.remedies]),
    )


def _names(request: GangRequest) -> list[str]:
    """List all cliques and groups that a gang speaks of, in order."""
    cliques = {want.clique for wants in (request.minimum, request.extras) for want in wants}
    grouped = {name for group in request.groups for name in (group.name, *group.cliques)}
    anchored = {anchor.clique for anchor in request.anchors if anchor.clique}
    return sorted(cliques | grouped | anchored)


def _remedy(remedy: Remedy, called: Mapping[str, str]) -> Remedy:
    match remedy:
        case Widen(part=part):
            return replace(remedy, part=called.get(part, part))
        case AskFewer(pods=pods):
            return replace(remedy, pods=_by_name(pods, called))
        case _:
            return remedy


def _by_name(told: Mapping[str, int], called: Mapping[str, str]) -> dict[str, int]:
    return {called.get(name, name): count for name, count in told.items()}

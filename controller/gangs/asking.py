"""What a gang asks for, in the engine's words: its whole tree, whichever part is placed. Pure.

Groups and anchors are those of the whole gang also where only some of its pods ask for room, so
that what was required of all of them holds for those that come later.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace

import msgspec

from api import names
from api.podgang import GangConstraint
from api.streams import Expression, NodeSelector, Term
from controller.gangs import claiming, spreading, topologies
from controller.gangs.claiming import Claiming
from controller.gangs.deciding import Place
from controller.gangs.topologies import BUILT_IN, Network
from controller.gangs.views import GangView, Member
from controller.podgang import Gang
from scheduler import needs
from scheduler.eligible import Constraints
from scheduler.filters.claims import Claims
from scheduler.filters.counted import merged
from scheduler.filters.selecting import NAME_FIELD
from scheduler.requests import Anchor, Closeness, GangRequest, Group, Sibling, Spread, Want


@dataclass(frozen=True)
class Around:
    """What bears on where a gang may go: its base, and whom it keeps apart from, to begin with.

    `before` are the nodes of a gang whose place it would like to have.
    """

    base: GangView | None = None
    apart: tuple[GangView, ...] = ()
    networks: tuple[Network, ...] = (BUILT_IN,)
    claims: Claims = field(default_factory=Claims)
    before: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Tree:
    """How close together a gang's pods are to be, and whether its base gang's count among them."""

    near: Closeness
    groups: tuple[Group, ...]
    with_base: bool

    def keys(self) -> frozenset[str]:
        """List the levels it speaks of."""
        wishes = (self.near, *(group.near for group in self.groups))
        return frozenset({key for w in wishes for key in (w.required, w.preferred)} - {""})


def request(view: GangView, place: Place, around: Around = Around()) -> GangRequest:
    """Put what a gang asks for into the engine's words."""
    gang = view.gang
    namespace, name = gang.key
    base = around.base.gang if around.base else None
    tree = _tree(gang, base)
    network = network_of(gang, base, around.networks)
    claimed = claiming.of(view, place, around.claims, tree.groups)
    born = gang.metadata.creation_timestamp
    return GangRequest(
        namespace,
        name,
        tuple(_want(member, claimed, place.avoid) for member in place.minimum),
        tuple(_want(member, claimed, place.avoid) for member in place.extras),
        near=tree.near,
        groups=(*tree.groups, *claimed.together),
        anchors=tuple(_anchors(view, place, around, with_base=tree.with_base)),
        topology=network.name,
        spread=tuple(_spread(gang, around, network)),
        kin=spreading.kin(gang),
        zone=_zone(gang),
        priority=max((member.pod.spec.priority for member in view.members), default=0),
        born=born.isoformat() if born else "",
    )


def network_of(gang: Gang, base: Gang | None, networks: Sequence[Network]) -> Network:
    """Find the topology whose levels the gang speaks of: by its name, or by the levels."""
    keys = _tree(gang, base).keys()
    every = keys | {asked.level for asked in spreading.wishes(gang)}
    name = gang.metadata.annotations.get(names.TOPOLOGY_NAME_ANNOTATION, "")
    return topologies.meant(networks, name, (every, keys))


def unheeded(gang: Gang, base: Gang | None, networks: Sequence[Network]) -> str:
    """Say what the gang would like and nobody heeds, as levels that are none; "" if nothing."""
    network, tree = network_of(gang, base, networks), _tree(gang, base)
    liked = [near.preferred for near in (tree.near, *(group.near for group in tree.groups))]
    liked += [asked.level for asked in spreading.wishes(gang) if not asked.hard]
    gone = [level for level in dict.fromkeys(liked) if level and not network.key(level)]
    said = [f"its topology has no level {', '.join(gone)}, which is not heeded"] if gone else []
    return "; ".join([*said, *(f"{each} is not heeded" for each in spreading.unread(gang))])


def _want(member: Member, claimed: Claiming, avoid: Set[str]) -> Want:
    (clique, index), pod = member.slot, member.pod
    need = merged(needs.of_pod(pod), claimed.takes[member.slot])
    constraints = Constraints.of(pod, claimed.claimed[member.slot])
    return Want(clique, index, need, _elsewhere(constraints, avoid) if avoid else constraints)


def _elsewhere(constraints: Constraints, avoid: Set[str]) -> Constraints:
    """Demand another node than these, in every term: terms are alternatives."""
    others = tuple(Expression(NAME_FIELD, "NotIn", (node,)) for node in sorted(avoid))
    asked = constraints.required
    if asked is None:
        return replace(constraints, required=NodeSelector((Term(match_fields=others),)))
    # An empty term matches nothing, and must go on doing so.
    terms = tuple(
        msgspec.structs.replace(term, match_fields=(*term.match_fields, *others))
        for term in asked.node_selector_terms
        if term.match_expressions or term.match_fields
    )
    return replace(constraints, required=NodeSelector(terms))


def _tree(gang: Gang, base: Gang | None) -> _Tree:
    """Read the gang's wishes; what its set asks of a whole replica holds for its base gang too.

    Grove leaves the set's out of a scaled gang whose group has one of its own; its base has it.
    """
    near = _closeness(gang.spec.topology_constraint)
    cliques = tuple(group.name for group in gang.spec.pod_groups)
    groups = list(_groups(gang, cliques))
    shared = _closeness(base.spec.topology_constraint) if base else Closeness()
    if shared.required and shared != near:
        if near != Closeness():
            groups.insert(0, Group(gang.metadata.name, cliques, near))
        near = shared
    return _Tree(near, tuple(groups), bool(shared.required))


def _groups(gang: Gang, cliques: Sequence[str]) -> Iterator[Group]:
    """List what is asked of some of the cliques together, then of single ones."""
    for config in gang.spec.topology_constraint_group_configs:
        near = _closeness(config.topology_constraint)
        chosen = set(config.pod_group_names)
        members = tuple(name for name in cliques if name in chosen)
        if members and near != Closeness():
            yield Group(config.name, members, near)
    for part in gang.spec.pod_groups:
        near = _closeness(part.topology_constraint)
        if near != Closeness():
            yield Group(part.name, (part.name,), near)


def _closeness(constraint: GangConstraint | None) -> Closeness:
    pack = constraint.pack_constraint if constraint else None
    return Closeness(pack.required or "", pack.preferred or "") if pack else Closeness()


def _anchors(view: GangView, place: Place, around: Around, *, with_base: bool) -> Iterator[Anchor]:
    """List where the gang's other pods are; those of its base only draw it near, unless bound to.

    A pod that is asked for is no anchor, even if it still has a slot.
    """
    asked = {member.slot for member in (*place.minimum, *place.extras)}
    for slot, node in sorted(view.homes().items()):
        if slot not in asked:
            yield Anchor(node, slot[0])
    homes = sorted(around.base.homes().items()) if around.base else []
    if with_base:
        yield from (Anchor(node, slot[0]) for slot, node in homes)
    else:
        near = {node for _, node in homes} or set(around.before)
        yield from (Anchor(node) for node in sorted(near))


def _spread(gang: Gang, around: Around, network: Network) -> Iterator[Spread]:
    kin = [(sibling, spreading.kin(sibling.gang)) for sibling in around.apart]
    asking = GangRequest(*gang.key, (), kin=spreading.kin(gang))
    for asked in spreading.wishes(gang):
        level = network.key(asked.level)
        if level or asked.hard:  # one that must be kept and is none is for the engine to refuse
            there = [
                Sibling(whose.replica, tuple(sorted(set(view.homes().values()))))
                for view, whose in kin
                if asked.concerns(asking, view.gang.metadata.namespace, whose)
            ]
            yield replace(asked, level=level or asked.level, taken=tuple(there))


def _zone(gang: Gang) -> str:
    meta = gang.metadata
    key = names.PREFERRED_ZONE
    return meta.annotations.get(key, "") or meta.labels.get(key, "")

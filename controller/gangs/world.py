"""What `gangs` knows: caches of nodes, pods, gangs and reservations, and views built from them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from api import names
from api.reservation import State
from api.streams import Custom, Node, Pod
from controller.gangs import asking, companion, metering, plain_slots, spreading, standing, watching
from controller.gangs.asking import Around
from controller.gangs.caches import Caches
from controller.gangs.deciding import has_started
from controller.gangs.entries import read_reservation
from controller.gangs.keeps import views as keeps
from controller.gangs.keeps.known import Keeps
from controller.gangs.owners import Owners
from controller.gangs.reading import Readings
from controller.gangs.shelves import Shelves
from controller.gangs.standing import Standing
from controller.gangs.stockroom import Stockroom
from controller.gangs.stocktaking import claim, same_offer
from controller.gangs.supplies import Sources, Supplies
from controller.gangs.terms import NOBODYS
from controller.gangs.topologies import Network, Topologies
from controller.gangs.views import GangView, Reservation, SlotKey, members_of, pinned_node
from controller.podgang import Gang, read_gang
from kube.cache import Added, Change, Deleted, Modified
from kube.objects import Key
from scheduler import needs
from scheduler.eligible import Constraints, obstacle
from scheduler.requests import GangRequest, Kin

# The versions of a gang and of the one that comes first, and the networks there are.
_Asked: TypeAlias = tuple[str, str, tuple[Network, ...]]


class World:
    """The caches, indexed by gang.

    `touched` is called with a gang's key for every change that could matter to it. Whenever room or
    a better node may have come, `room` counts up and `freed` is called: refusals are tried again.
    """

    def __init__(
        self,
        caches: Caches,
        touched: Callable[[Key], None],
        freed: Callable[[], None],
    ) -> None:
        self.room, self.term = 0, NOBODYS
        self.topologies = Topologies(self._more_room)
        self.nodes, self.pods = caches.nodes, caches.pods
        self.pod_map = self.pods.objects
        levels = [network.levels for network in self.topologies.networks]
        shelves = Shelves()
        self.stockroom = Stockroom(self.pod_map, self._sketch, self.orphan, levels, shelves)
        self._reservations = Readings(read_reservation, caches.stay_read)
        self.keeps = Keeps(self.stockroom, self._more_room, self._reservations)
        self.supplies = Supplies(self.stockroom.on_daemonset, self._more_room, shelves)
        self.mode = caches.mode
        self._tell = touched
        self._freed = freed
        self._gangs: Readings[Gang] = Readings(self._read, caches.stay_read)
        self._kin: dict[Key, Kin] = {}
        self._stages: dict[Key, tuple[str, str]] = {}
        self._booked: dict[str, set[Key]] = {}  # by node, whose slots are there
        self._gangs_of_set: dict[str, set[Key]] = {}  # by its UID
        self._gang_of_pod: dict[Key, Key] = {}
        self._bases: dict[Key, str] = {}  # of gangs whose pods name a base
        self._gang_of_clique: dict[Key, Key] = {}
        self._waiting_for: dict[Key, set[Key]] = {}
        self._unheeded: dict[Key, tuple[_Asked, str]] = {}
        self._keys: dict[str, tuple[str, ...]] = {}  # of each topology, those that nodes have
        caches.gangs.subscribe(self._on_gang)
        caches.reservations.subscribe(self._on_reservation)
        self._owners = Owners(caches.cliques, caches.scaling_groups, self._on_clique)
        self.pods.subscribe(self._on_pod)
        self.nodes.subscribe(self._on_node)

    def follow(self, sources: Sources) -> None:
        """Know also what bears on where gangs may go."""
        self.topologies.follow(sources.bindings)
        self.supplies.follow(sources)

    def known(self) -> tuple[Mapping[Key, Gang], Mapping[Key, Reservation]]:
        """Give gangs and reservations by key; they go on changing, and are not to be written."""
        return self._gangs, self._reservations

    def stages(self) -> Iterable[tuple[str, str]]:
        """Give of each gang the phase that it says, and why it is not scheduled, if so."""
        return self._stages.values()

    def is_member(self, pod: Pod) -> bool:
        """Whether a gang refers to the pod."""
        return (pod.metadata.namespace, pod.metadata.name) in self._gang_of_pod

    def _touched(self, key: Key) -> None:
        self.stockroom.touch(key)
        self._tell(key)

    def view(self, key: Key) -> GangView | None:
        """Look at one gang, or None if there is none."""
        gang = self._gangs.get(key)
        if gang is None:
            return None
        found = self._view(gang, base_started=self._base_started(gang))
        return replace(found, base_down=self._base_down(gang))

    def _sketch(self, key: Key) -> GangView | None:
        """Look at what a gang has, without judging any of it."""
        gang = self._gangs.get(key)
        return self._drawn(gang, base_started=True) if gang is not None else None

    def _view(self, gang: Gang, *, base_started: bool) -> GangView:
        view = self._drawn(gang, base_started=base_started)
        late = self.term.overtook(view.reservation)
        return replace(view, lost=self._lost(view), stranded=self._stranded(view), overtaken=late)

    def _drawn(self, gang: Gang, *, base_started: bool) -> GangView:
        cliques = self._owners.cliques_of(gang)
        reservation = self._reservation_of(gang)
        if self.mode.companion:
            members = companion.members_of(gang, self.pod_map, cliques)
            # Whoever makes the pods keeps their order, in the pods themselves.
            return GangView(gang, members, reservation, base_started)
        members = members_of(gang, self.pod_map, cliques)
        return GangView(gang, members, reservation, base_started, cliques=cliques)

    def around(self, gang: Gang) -> Around:
        """Look at what bears on where this one may go."""
        base = self._gangs.get(gang.base) if gang.base else None
        return Around(
            self._view(base, base_started=True) if base else None,
            tuple(self._view(other, base_started=True) for other in self._apart_from(gang)),
            self.topologies.networks,
            self.supplies.claims,
            self.keeps.before(gang),
        )

    def unheeded(self, gang: Gang) -> str:
        """Say what the gang would like and nobody heeds."""
        base = self._gangs.get(gang.base) if gang.base else None
        networks = self.topologies.networks
        based_on = base.metadata.resource_version if base else ""
        asked = gang.metadata.resource_version, based_on, networks
        # Asked at each look. Gangs themselves are not kept: they take more room than all else.
        told, said = self._unheeded.get(gang.key, (None, ""))
        if told is None or told[:2] != asked[:2] or told[2] is not networks:
            said = asking.unheeded(gang, base, networks)
            self._unheeded[gang.key] = asked, said
        both = said, self.keeps.unheeded(gang, self.pod_map)
        return "; ".join(each for each in both if each)

    def standing(self, gang: Gang, homes: Sequence[str]) -> Standing:
        """Judge how near each other slots of the gang on these nodes are."""
        base = self._gangs.get(gang.base) if gang.base else None
        network = asking.network_of(gang, base, self.topologies.networks)
        if network.name not in self._keys:
            self._keys[network.name] = standing.found(network.levels, self.nodes)
        there = ((home, self.nodes.get("", home)) for home in set(homes))
        nodes = {home: node for home, node in there if node is not None}
        return standing.of(homes, nodes, self._keys[network.name])

    def _apart_from(self, gang: Gang) -> Iterator[Gang]:
        asked = spreading.wishes(gang)
        if not asked:
            return
        asking = GangRequest(*gang.key, (), kin=spreading.kin(gang))
        owner = gang.metadata.controller_uid
        of_set = owner and all(each.among is None for each in asked)
        for key in sorted(self._gangs_of_set.get(owner, ()) if of_set else self._gangs):
            kin = self._kin[key]
            if key != gang.key and any(each.concerns(asking, key[0], kin) for each in asked):
                yield self._gangs[key]

    def orphan(self, key: Key) -> Reservation | None:
        """Give the reservation under this key if it was made for a gang that is gone."""
        found = self._reservations.get(key)
        gang = self._gangs.get(key)
        if found is None or (gang is not None and self._reservation_of(gang) is not None):
            return None
        return found

    def _reservation_of(self, gang: Gang) -> Reservation | None:
        """Give the gang's reservation, not that of a namesake which is gone."""
        found = self._reservations.get(gang.key)
        return found if found and found.spec.gang.uid == gang.metadata.uid else None

    def _base_started(self, gang: Gang) -> bool:
        if gang.base is None:
            return True
        base = self._gangs.get(gang.base)
        if base is None:
            return False
        reservation = self._reservation_of(base)
        if reservation is not None and reservation.state is State.BOUND:
            return True
        # It is taken as one that waits for nobody, whatever it says.
        return has_started(self._view(base, base_started=True))

    def _base_down(self, gang: Gang) -> bool:
        base = self._gangs.get(gang.base) if gang.base else None
        booked = self._reservation_of(base) if base else None
        return booked is not None and booked.state in (State.HELD, State.ROLLED_BACK)

    def _lost(self, view: GangView) -> frozenset[str]:
        """Name reserved nodes that would not take their pod now, or have its room no more.

        Whoever came there since the plan was made, or was let in by kube-scheduler in place of one
        of ours, their room counts beside that of our slots; that of pods which are being deleted
        does not, as it is there in a moment.
        """
        nodes = view.nodes_by_slot()
        gated = [(m.pod, nodes[m.slot]) for m in view.members if m.gated and m.slot in nodes]
        short = {node: self.stockroom.overdrawn(node) for node in {node for _, node in gated}}
        return frozenset(
            node
            for pod, node in gated
            if self._refuses(node, self._constraints(pod))
            or (short.get(node) and not short[node].isdisjoint(needs.of_pod(pod)))
        )

    def _stranded(self, view: GangView) -> frozenset[SlotKey]:
        """Name the slots of pods that are tied to a node which is gone, or are bound to it.

        So it is for lifted ones, if they were refused already and it takes no pods by what it says.
        """
        return frozenset(
            member.slot
            for member in view.members
            if not member.gated
            and (node := member.pod.spec.node_name or pinned_node(member.pod))
            and (
                self.nodes.get("", node) is None
                or (
                    not member.bound
                    and watching.refused(member.pod)
                    and self._refuses(node, self._constraints(member.pod))
                )
            )
        )

    def _constraints(self, pod: Pod) -> Constraints:
        return Constraints.of(pod, self.supplies.claims.of(pod))

    def _refuses(self, name: str, constraints: Constraints) -> bool:
        node = self.nodes.get("", name)
        return node is None or bool(obstacle(node, constraints))

    def _on_gang(self, change: Change[Custom]) -> None:
        meta = (change.old if isinstance(change, Deleted) else change.new).metadata
        key = (meta.namespace, meta.name)
        if not self.mode.heeds(meta):
            return
        gang = None if isinstance(change, Deleted) else read_gang(change.new)
        if gang is None and not isinstance(change, Deleted):
            return  # the last state that could be read is closer to the truth than none
        before = self._gangs.take(key)
        if before is not None:
            self._forget(before)
        if gang is not None and not isinstance(change, Deleted):
            self._learn(self.mode.based(gang, self._bases.get(key, "")), change.new)
        else:
            self._bases.pop(key, None)
        if isinstance(change, Deleted):
            self.keeps.went(key[0])
        self._touched(key)

    def _forget(self, gang: Gang) -> None:
        del self._kin[gang.key], self._stages[gang.key]
        self._unheeded.pop(gang.key, None)
        # A pod or a clique may have moved to another gang by now.
        for _, pod in gang.references():
            if self._gang_of_pod.get(pod) == gang.key:
                del self._gang_of_pod[pod]
        for clique in _cliques_of(gang):
            if self._gang_of_clique.get(clique) == gang.key:
                del self._gang_of_clique[clique]
        if gang.base:
            self._waiting_for.get(gang.base, set()).discard(gang.key)
        siblings = self._gangs_of_set.get(gang.metadata.controller_uid, set())
        siblings.discard(gang.key)
        if not siblings:
            self._gangs_of_set.pop(gang.metadata.controller_uid, None)

    def _read(self, found: Custom) -> Gang | None:
        gang = read_gang(found)
        return self.mode.based(gang, self._bases.get(gang.key, "")) if gang else None

    def _learn(self, gang: Gang, stored: Custom) -> None:
        key = gang.key  # one and the same everywhere
        self._gangs.put(key, stored, gang)
        self._kin[key] = spreading.kin(gang)
        self._stages[key] = metering.stage(gang)
        if gang.metadata.controller_uid:
            self._gangs_of_set.setdefault(gang.metadata.controller_uid, set()).add(key)
        for _, pod in gang.references():
            self._gang_of_pod[pod] = key
        for clique in _cliques_of(gang):
            self._gang_of_clique[clique] = key
        if gang.base:
            self._waiting_for.setdefault(gang.base, set()).add(key)

    def _on_clique(self, clique: Key) -> None:
        gang = self._gang_of_clique.get(clique)
        if gang is not None:
            self._touched(gang)

    def _on_reservation(self, change: Change[Custom]) -> None:
        meta = (change.old if isinstance(change, Deleted) else change.new).metadata
        key = (meta.namespace, meta.name)
        before = self._reservations.take(key)
        there = None if isinstance(change, Deleted) else change.new
        self.keeps.put(key, keeps.read(there) if there is not None else None)
        now = read_reservation(there) if there is not None else None
        self.keeps.follow(key, now)
        if now is not None and there is not None:
            self._reservations.put(key, there, now)
        self._book(key, before, now)
        for waiting in self._waiting_for.get(key, ()):
            self._touched(waiting)
        if before is not None and (now is None or now.size < before.size):
            self._more_room()
        self._touched(key)

    def _book(self, key: Key, before: Reservation | None, now: Reservation | None) -> None:
        """Remember on which nodes a reservation has slots."""
        there, here = _nodes_of(before), _nodes_of(now)
        for node in there - here:
            self._booked[node].discard(key)
            if not self._booked[node]:
                del self._booked[node]
        for node in here - there:
            self._booked.setdefault(node, set()).add(key)

    def _note_base(self, pod: Pod) -> None:
        """Learn from a pod whom its gang comes after: of Grove's gangs only their pods say so."""
        labels, key = pod.metadata.labels, companion.gang_of(pod)
        base = labels.get(names.BASE_PODGANG_LABEL, "")
        if not base or self._bases.get(key) == base:
            return
        gang = self._gangs.get(key)
        self._bases[key] = base
        if gang is not None:
            self._forget(gang)
            self._learn(self.mode.based(gang, base), self._gangs.stored(key))

    def _on_pod(self, change: Change[Pod]) -> None:
        pod = change.old if isinstance(change, Deleted) else change.new
        if self.mode.companion:
            self._note_base(pod)
        self.stockroom.on_pod(change)
        gang = self._gang_of_pod.get((pod.metadata.namespace, pod.metadata.name))
        if gang is not None:
            self._touched(gang)
            self._touch_followers(gang)
        elif pod.spec.node_name:
            self.keeps.on_node(pod.spec.node_name)
        if isinstance(change, Added):
            return
        if isinstance(change, Deleted):
            self.keeps.went(pod.metadata.namespace)
        before = claim(change.old)
        now = claim(change.new) if isinstance(change, Modified) else None
        if before is not None and before != now:
            self._more_room()  # it ended, moved or shrank

    def _touch_followers(self, base: Key) -> None:
        """Wake those that wait for a gang which is on its way; once it is bound they know."""
        followers = self._waiting_for.get(base)
        reservation = self._reservations.get(base) if followers else None
        if followers and reservation is not None and reservation.state is State.LIFTING:
            for waiting in followers:
                self._touched(waiting)

    def _on_node(self, change: Change[Node]) -> None:
        self.stockroom.on_node(change)
        if isinstance(change, Modified) and same_offer(change.old, change.new):
            return  # a heartbeat
        node = change.old if isinstance(change, Deleted) else change.new
        self._more_room()
        self.keeps.on_node(node.metadata.name)
        for key in self._booked.get(node.metadata.name, ()):
            self._touched(key)

    def _more_room(self) -> None:
        self.room += 1
        self._keys.clear()  # a node or a topology may have changed
        self._freed()
        self.keeps.more_room()


def _nodes_of(reservation: Reservation | None) -> frozenset[str]:
    return frozenset(s.node for _, s, _ in reservation.slots()) if reservation else frozenset()


def _cliques_of(gang: Gang) -> Iterable[Key]:
    """List the PodCliques it has; a plain gang only has a name that one could have too."""
    return () if plain_slots.is_plain(gang.metadata) else gang.cliques()

"""How far each replica of a set has followed its templates, and whose turn it is. Pure.

A pod is old when its hash label is not its PodClique's, and so are all pods of a PodClique that has
not been given the newest template. A copy of a group is old while anything in it is.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from api import names
from api.podgang import Phase
from api.streams import Pod
from controller.workloads import naming
from controller.workloads.updates import budgets
from controller.workloads.updates.budgets import Old
from controller.workloads.views import Clique, SetView
from controller.workloads.wants import Wanted, WantedClique, WantedGroup


@dataclass(frozen=True)
class Following:
    """How far a clique follows its newest template. Pods on their way out are in none of these."""

    want: WantedClique
    there: Clique | None
    old: tuple[Pod, ...]
    new: tuple[Pod, ...]

    @property
    def given(self) -> bool:
        """Whether its PodClique has the newest template; one to be made will have it."""
        return self.there is None or _label(self.there.metadata.labels) == self.want.template_hash

    @property
    def behind(self) -> bool:
        """Whether anything of it is left to be updated."""
        return bool(self.old) or not self.given

    @cached_property
    def ready(self) -> int:
        """How many pods are ready, old ones too."""
        return sum(budgets.is_ready(pod) for pod in (*self.old, *self.new))

    @property
    def new_ready(self) -> int:
        """How many pods of the newest template are ready."""
        return sum(budgets.is_ready(pod) for pod in self.new)

    @property
    def settled(self) -> bool:
        """Whether its minimum is ready."""
        return self.ready >= self.want.minimum


@dataclass(frozen=True)
class Copy:
    """A copy of a scaling group."""

    index: int
    members: tuple[Following, ...]

    @cached_property
    def behind(self) -> bool:
        """Whether anything of it is left to be updated."""
        return any(member.behind for member in self.members)

    @cached_property
    def settled(self) -> bool:
        """Whether the minimum of each member is ready."""
        return all(member.settled for member in self.members)

    @property
    def idle(self) -> bool:
        """Whether all pods of it still wait behind their gates."""
        pods = [pod for member in self.members for pod in (*member.old, *member.new)]
        return bool(pods) and all(budgets.is_idle(pod) for pod in pods)

    @property
    def begun(self) -> bool:
        """Whether some of it has been updated."""
        return self.behind and any(member.given or member.new for member in self.members)


@dataclass(frozen=True)
class Copies:
    """A scaling group in one replica."""

    want: WantedGroup
    copies: tuple[Copy, ...]

    @property
    def behind(self) -> bool:
        """Whether anything of it is left to be updated."""
        return any(copy.behind for copy in self.copies)

    @property
    def ready(self) -> int:
        """How many copies have their minimum ready."""
        return sum(copy.settled for copy in self.copies)

    @property
    def settled(self) -> bool:
        """Whether so many copies as it needs have their minimum ready."""
        return self.ready >= min(self.want.template.min_available, self.want.copies)


@dataclass(frozen=True)
class Replica:
    """One replica of the set."""

    index: int
    alone: tuple[Following, ...]
    groups: tuple[Copies, ...]

    @cached_property
    def behind(self) -> bool:
        """Whether anything of it is left to be updated."""
        return any(c.behind for c in self.alone) or any(g.behind for g in self.groups)

    @cached_property
    def settled(self) -> bool:
        """Whether its cliques and groups have their minimum ready."""
        return all(c.settled for c in self.alone) and all(g.settled for g in self.groups)

    @property
    def cliques(self) -> Iterator[Following]:
        """All cliques in it."""
        yield from self.alone
        for group in self.groups:
            for copy in group.copies:
                yield from copy.members

    @property
    def has_nodes(self) -> bool:
        """Whether any pod in it has a node."""
        return any(
            pod.spec.node_name for clique in self.cliques for pod in (*clique.old, *clique.new)
        )

    @property
    def begun(self) -> bool:
        """Whether some of it has been updated, and some not."""
        return self.behind and any(
            clique.given and (clique.new or len(clique.old) < clique.want.replicas)
            for clique in self.cliques
        )


def replicas(view: SetView, wanted: Wanted) -> tuple[Replica, ...]:
    """Look at all replicas of a set."""
    alone: dict[int, list[Following]] = defaultdict(list)
    copies: dict[str, dict[int, list[Following]]] = defaultdict(lambda: defaultdict(list))
    for clique in wanted.cliques.values():
        found = following(view, clique)
        if clique.place.group_name:
            copies[clique.place.group_name][clique.place.copy].append(found)
        else:
            alone[clique.place.replica].append(found)
    groups: dict[int, list[Copies]] = defaultdict(list)
    for group in wanted.groups:
        members = copies[group.name]
        found_copies = tuple(Copy(index, tuple(members[index])) for index in sorted(members))
        groups[group.replica].append(Copies(group, found_copies))
    return tuple(
        Replica(index, tuple(alone[index]), tuple(groups[index]))
        for index in range(view.spec.replicas)
    )


def following(view: SetView, want: WantedClique) -> Following:
    """Look at one clique."""
    there = view.cliques.get(want.name)
    alive = [pod for pod in view.pods_of(want.name) if budgets.is_alive(pod)]
    if there is None or _label(there.metadata.labels) != want.template_hash:
        return Following(want, there, tuple(alive), ())
    new = [pod for pod in alive if _label(pod.metadata.labels) == want.template_hash]
    if len(new) == len(alive):
        return Following(want, there, (), tuple(new))
    old = (pod for pod in alive if _label(pod.metadata.labels) != want.template_hash)
    return Following(want, there, tuple(old), tuple(new))


def turn(view: SetView, found: Sequence[Replica]) -> Replica | None:
    """Choose the replica that is updated now; None if there is none, or another must recover.

    The one whose turn it is keeps it until it has its minimum again. Then come those begun,
    those without any node, those that lack their minimum, and of equals the first. One that has
    no room, and had none, is not waited for.
    """
    progress = view.status.update_progress
    named = [each.replica_index for each in progress.currently_updating] if progress else []
    recovering = [r for r in found if not r.behind and not r.settled and _was_placed(view, r)]
    for replica in found:
        if replica.index in named and (replica.behind or replica in recovering):
            return replica
    # The status may not say yet whose turn it was.
    if recovering:
        return None
    behind = (replica for replica in found if replica.behind)
    return min(behind, key=_rank, default=None)


def pods_to_take(view: SetView, clique: Following) -> list[Pod]:
    """Choose which old pods of a clique that stands alone go now."""
    if not clique.given:
        return []
    budget = budgets.of_clique(view, clique.want.replicas)
    old = [Old(pod, budgets.is_ready(pod), budgets.is_idle(pod)) for pod in in_order(clique.old)]
    goal = budgets.target(view, clique.want)
    starting = max(0, goal - clique.new_ready - len(clique.old))
    return budgets.affordable(old, clique.ready, starting, clique.want.replicas, budget)


def copies_to_take(view: SetView, group: Copies) -> list[Copy]:
    """Choose which old copies of a group are replaced now."""
    budget = budgets.of_group(view, group.want.copies)
    behind = [copy for copy in copies_in_order(group.copies) if copy.behind]
    current = sum(copy.settled for copy in group.copies if not copy.behind)
    starting = max(0, group.want.copies - current - len(behind))
    old = [Old(copy, copy.settled, copy.idle) for copy in behind]
    return budgets.affordable(old, group.ready, starting, group.want.copies, budget)


def in_order(pods: Iterable[Pod]) -> list[Pod]:
    """Put pods in the order in which they are replaced: the least useful first, then the oldest."""
    return sorted(pods, key=_usefulness)


def copies_in_order(copies: Iterable[Copy]) -> list[Copy]:
    """Put copies in the order in which they are replaced: begun ones, then those not ready."""
    return sorted(copies, key=lambda copy: (not copy.begun, copy.settled, copy.index))


def _rank(replica: Replica) -> tuple[bool, bool, bool, int]:
    return not replica.begun, replica.has_nodes, replica.settled, replica.index


def _usefulness(pod: Pod) -> tuple[bool, bool, bool, float, str]:
    made = pod.metadata.creation_timestamp
    return (
        pod.containers_ready,
        bool(pod.spec.node_name),
        pod.status.phase == "Running",
        made.timestamp() if made else 0.0,
        pod.metadata.name,
    )


def _was_placed(view: SetView, replica: Replica) -> bool:
    if replica.has_nodes:
        return True
    # Room stays reserved for a gang while its pods are replaced.
    gang = view.gangs.get(naming.base_gang(view.metadata.name, replica.index))
    return gang is not None and gang.status.phase is not Phase.PENDING


def _label(labels: dict[str, str]) -> str:
    return labels.get(names.TEMPLATE_HASH_LABEL, "")

"""What is made anew together, and since when it has lacked its minimum. Pure.

A scope is one copy of a scaling group or a whole replica of the set. Its parts are what has a
minimum of its own: the cliques of a copy; the groups and lone cliques of a replica.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from api import names
from api.models import Condition
from api.objects import condition_of
from controller.workloads.story import clique_status
from controller.workloads.views import Clique, SetView
from controller.workloads.wants import Wanted, WantedClique

# Grove does not say whether a clique ever had its minimum on nodes. One that never had says so from
# its beginning; one that begins to say so later has lost it.
_BEGINNING: Final = timedelta(seconds=5)


@dataclass(frozen=True)
class Scope:
    """A copy of a scaling group, by its full name; with no group, a whole replica of the set.

    `gangs` are those that hold nothing else.
    """

    replica: int
    cliques: tuple[WantedClique, ...]
    gangs: tuple[str, ...]
    group: str = ""
    copy: int = 0

    @property
    def keeper(self) -> str:
        """The PodClique that bears what is remembered of the scope."""
        return self.cliques[0].name

    @property
    def memory(self) -> str:
        """The annotation that says it."""
        return names.COPY_TERMINATION if self.group else names.REPLICA_TERMINATION

    def groups(self) -> tuple[str, ...]:
        """Name the scaling groups that it touches, in full."""
        found = (c.place.group_name for c in self.cliques if c.place.group)
        return tuple(dict.fromkeys(found))

    @property
    def title(self) -> str:
        """What people call it."""
        return f"copy {self.copy} of {self.group}" if self.group else f"replica {self.replica}"


def replicas(wanted: Wanted) -> Iterator[Scope]:
    """List the replicas of the set."""
    cliques: dict[int, list[WantedClique]] = defaultdict(list)
    gangs: dict[int, list[str]] = defaultdict(list)
    for gang in wanted.gangs:
        gangs[gang.replica].append(gang.name)
        cliques[gang.replica] += gang.cliques
    for replica, members in cliques.items():
        if members:
            yield Scope(replica, tuple(members), tuple(gangs[replica]))


def copies(replica: Scope) -> Iterator[Scope]:
    """List the copies of scaling groups in a replica."""
    found: dict[tuple[str, int], list[WantedClique]] = defaultdict(list)
    for clique in replica.cliques:
        if clique.place.group:
            found[clique.place.group_name, clique.place.copy].append(clique)
    for (group, copy), members in found.items():
        place = members[0].place
        gangs = (place.gang,) if place.base else ()
        yield Scope(replica.replica, tuple(members), gangs, group, copy)


def losses(view: SetView, scope: Scope) -> tuple[datetime, ...]:
    """Give the instants since which parts of the scope have lacked a minimum that they once had."""
    lost = {clique.name: _loss(view, clique.name) for clique in scope.cliques}
    found = list(lost.values())
    if not scope.group:
        found = [lost[clique.name] for clique in scope.cliques if not clique.place.group]
        hit = {c.place.group_name for c in scope.cliques if c.place.group and lost[c.name]}
        found += [_since(_group_breach(view, name), "True") for name in sorted(hit)]
    return tuple(since for since in found if since is not None)


def healthy_since(view: SetView, scope: Scope) -> datetime | None:
    """Give the instant since which all parts of the scope have had their minimum."""
    if scope.group:
        said = [_clique_breach(view, clique.name) for clique in scope.cliques]
    else:
        alone = (c.name for c in scope.cliques if not c.place.group)
        said = [_clique_breach(view, name) for name in alone]
        said += [_group_breach(view, name) for name in scope.groups()]
    since = [instant for each in said if (instant := _since(each, "False"))]
    return max(since) if len(since) == len(said) else None


def spares(view: SetView, scope: Scope) -> bool:
    """Tell whether making the scope anew restores the minimum, and nothing narrower would.

    A copy is too narrow where its group lacks copies as well; and while its group is updated,
    nobody can tell.
    """
    return not scope.group or _since(_group_breach(view, scope.group), "False") is not None


def stands(view: SetView, scope: Scope) -> bool:
    """Tell whether the scope is all made and some of it has started."""
    there = [view.cliques.get(clique.name) for clique in scope.cliques]
    if any(each is None or each.metadata.deletion_timestamp is not None for each in there):
        return False
    return any(
        not pod.gates and pod.metadata.deletion_timestamp is None
        for clique in scope.cliques
        for pod in view.pods_of(clique.name)
    )


def _loss(view: SetView, name: str) -> datetime | None:
    since = _since(_clique_breach(view, name), "True")
    if since is None:
        return None
    clique = view.cliques[name]
    # The condition may be older than the pods: after an outage they are what counts.
    now = clique_status.count(view.pods_of(name), "")
    return since if _once_scheduled(clique) and clique_status.breached(clique, now) else None


def _once_scheduled(clique: Clique) -> bool:
    said = condition_of(clique.status.conditions, names.CLIQUE_SCHEDULED)
    if said is None or said.status == "True":
        return said is not None
    if said.reason == names.NEVER_SCHEDULED:
        return False
    since, made = _since(said, "False"), clique.metadata.creation_timestamp
    return since is not None and made is not None and since > made + _BEGINNING


def _clique_breach(view: SetView, name: str) -> Condition | None:
    clique = view.cliques.get(name)
    return condition_of(clique.status.conditions, names.MIN_AVAILABLE_BREACHED) if clique else None


def _group_breach(view: SetView, name: str) -> Condition | None:
    group = view.groups.get(name)
    return condition_of(group.status.conditions, names.MIN_AVAILABLE_BREACHED) if group else None


def _since(said: Condition | None, status: str) -> datetime | None:
    if said is None or said.status != status:
        return None
    return datetime.fromisoformat(said.last_transition_time)

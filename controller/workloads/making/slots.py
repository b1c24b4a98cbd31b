"""Which places a clique's pods take: which are to be made, and whom a gang refers to. Pure.

A place is an index, and with it a host name. A pod that is on its way out keeps its place until it
is gone, so that no two pods have one host name; its successor takes the same place. Scale-in picks
any place, so that there may be holes.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from api import names
from api.cliques import MAX_REPLICAS
from api.streams import Pod
from controller.workloads import naming
from controller.workloads.updates import budgets
from controller.workloads.views import SetView
from controller.workloads.wants import WantedClique

# Among pods that may go, those come first that have got least far.
_PHASES: Final = {"Pending": 0, "Failed": 0, "Succeeded": 0, "Unknown": 1, "Running": 2}
_REACH: Final = 32
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Slots:
    """What is to become of a clique's places.

    `make` are places to fill now, `remove` pods to delete: those too many, and those that have
    failed, whose successors come when they are gone; `failed` are the UIDs of these. One that is
    done keeps its place, as a Job's does. `referred` names the pods of all places that
    are to stay, sorted: also the one that is yet to be made.
    """

    make: tuple[int, ...]
    remove: tuple[Pod, ...]
    referred: tuple[str, ...]
    failed: frozenset[str] = frozenset()


def slots(view: SetView, clique: WantedClique) -> Slots:
    """Compare a clique's pods with how many there should be now."""
    count = budgets.target(view, clique)
    holders = _holders(view.pods_of(clique.name), clique)
    kept, surplus = _chosen(holders, clique, count)
    empty = _empty(view, clique, holders, count - len(kept))
    remove = [pod for index in surplus for pod in holders[index] if not _is_leaving(pod)]
    referred = [_successor(view, clique, index) for index in empty]
    failed: set[str] = set()
    for index in kept:
        first, *others = holders[index]
        # A place taken twice, as upstream leaves it for a while, is the first one's.
        remove += [pod for pod in others if not _is_leaving(pod)]
        if first.failed and not _is_leaving(first):
            remove.append(first)
            failed.add(first.metadata.uid)
        referred.append(
            first.metadata.name if _is_alive(first) else _successor(view, clique, index)
        )
    return Slots(empty, tuple(remove), tuple(sorted(referred)), frozenset(failed))


def index_of(pod: Pod, clique: str) -> int:
    """Give a pod's place: by its host name, which nobody can change, else by its label."""
    text = pod.spec.hostname.removeprefix(f"{clique}-")
    if not (text.isascii() and text.isdigit()):
        text = pod.metadata.labels.get(names.POD_INDEX_LABEL, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def _holders(pods: tuple[Pod, ...], clique: WantedClique) -> dict[int, list[Pod]]:
    """Map each place to its pods, who stays longest first."""
    found: dict[int, list[Pod]] = defaultdict(list)
    for pod in pods:
        found[index_of(pod, clique.name)].append(pod)
    for holders in found.values():
        if len(holders) > 1:
            holders.sort(key=lambda pod: _worth(pod, clique), reverse=True)
    return found


def _chosen(
    holders: dict[int, list[Pod]], clique: WantedClique, count: int
) -> tuple[list[int], list[int]]:
    """Part the places into those that stay and those that are given up."""
    places = sorted(holders)
    surplus = len(places) - count
    if surplus <= 0:
        return places, []
    # First one that has no pod to lose, then the least worthy, and of equals the last.
    given_up = sorted(places, key=lambda index: (_worth(holders[index][0], clique), -index))
    lost = set(given_up[:surplus])
    return [index for index in places if index not in lost], sorted(lost)


def _worth(pod: Pod, clique: WantedClique) -> tuple[bool, bool, int, bool, bool, float]:
    """Order pods by who goes first when there are too many, as upstream does."""
    ready = any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)
    current = pod.metadata.labels.get(names.TEMPLATE_HASH_LABEL) == clique.template_hash
    made = pod.metadata.creation_timestamp or _NEVER
    return (
        _is_alive(pod),
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 0),
        ready,
        current,
        -made.timestamp() if made is not _NEVER else 0.0,
    )


def _empty(
    view: SetView, clique: WantedClique, holders: dict[int, list[Pod]], missing: int
) -> tuple[int, ...]:
    """Choose places for pods that are missing: those the gang refers to, then the lowest."""
    if missing <= 0:
        return ()
    free = (index for index in range(len(holders) + missing) if index not in holders)
    chosen = dict.fromkeys([*_referred_before(view, clique, holders), *free])
    return tuple(sorted(list(chosen)[:missing]))


def _referred_before(
    view: SetView, clique: WantedClique, holders: dict[int, list[Pod]]
) -> list[int]:
    """Find the places that the gang's references name, of pods that are gone."""
    gang = view.gangs.get(clique.place.gang)
    if gang is None:
        return []
    named = {ref.name for g in gang.spec.pod_groups if g.name == clique.name
             for ref in g.pod_references}  # fmt: skip
    named -= {pod.metadata.name for pods in holders.values() for pod in pods}
    if not named:
        return []
    # Which place a name stands for is found by trying; hardly ever is one so far out. No further
    # than a clique can reach: a pod that we did not make may have any number in its host name.
    reach = min(max((*holders, len(named) + len(holders))), MAX_REPLICAS) + _REACH
    return [
        index
        for index in range(reach)
        if index not in holders and _successor(view, clique, index) in named
    ]


def _successor(view: SetView, clique: WantedClique, index: int) -> str:
    return naming.pod(view.metadata.uid, clique.name, index)


def _is_leaving(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def _is_alive(pod: Pod) -> bool:
    return not _is_leaving(pod) and not pod.failed

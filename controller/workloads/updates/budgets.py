"""How many pods of a clique, or copies of a group, an update may take at a time. Pure.

Whoever is missing or not ready counts, old or new and whatever the cause. So a fleet that starts
slowly is never taken down, and a new template that does not work stops at the budget. Only pods
that still wait behind their gate cost nothing: they never ran, and their successors wait as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from api import names
from api.podcliqueset import RollingUpdate, Share
from api.streams import Pod
from controller.workloads.views import SetView
from controller.workloads.wants import WantedClique

T = TypeVar("T")

_DEFAULT: Final = RollingUpdate()


@dataclass(frozen=True)
class Budget:
    """How many may be missing or not ready, and how many there may be too many. Never both 0."""

    unavailable: int
    surplus: int = 0


@dataclass(frozen=True)
class Old(Generic[T]):
    """A pod or copy that follows an older template."""

    thing: T
    ready: bool
    idle: bool = False  # still behind its gate


def of_clique(view: SetView, replicas: int) -> Budget:
    """Give the budget of a clique that stands alone."""
    written = _written(view)
    surplus = 0 if written.max_surge is None else _up(written.max_surge, replicas)
    if written.max_unavailable is None:
        # Who asks for surplus pods wants them before others go.
        return Budget(0 if surplus else 1, surplus)
    unavailable = _down(written.max_unavailable, replicas)
    return Budget(unavailable if unavailable or surplus else 1, surplus)


def of_group(view: SetView, copies: int) -> Budget:
    """Give the budget of a scaling group, in copies. They are replaced in place, at least one."""
    written = _written(view).max_unavailable
    return Budget(1 if written is None else max(1, _down(written, copies)))


def target(view: SetView, clique: WantedClique) -> int:
    """Tell how many pods a clique is to have now: its replicas, and what an update adds to them.

    Surplus pods are made in the replica whose turn it is, as the set's status says, and no more
    than there are old ones: the last old pods go without successors.
    """
    if _written(view).max_surge is None or clique.place.group:
        return clique.replicas
    progress = view.status.update_progress
    turns = () if progress is None else progress.currently_updating
    there = view.cliques.get(clique.name)
    if there is None or clique.place.replica not in {turn.replica_index for turn in turns}:
        return clique.replicas
    label = there.metadata.labels.get(names.TEMPLATE_HASH_LABEL)
    old = sum(
        is_alive(pod) and pod.metadata.labels.get(names.TEMPLATE_HASH_LABEL) != label
        for pod in view.pods_of(clique.name)
    )
    return clique.replicas + min(of_clique(view, clique.replicas).surplus, old)


def is_alive(pod: Pod) -> bool:
    """Tell whether a pod is there to stay, at work or done with it."""
    return pod.metadata.deletion_timestamp is None and not pod.failed


def is_ready(pod: Pod) -> bool:
    """Tell whether nobody waits for a pod any more: it is ready, or done."""
    return pod.containers_ready or pod.completed


def is_idle(pod: Pod) -> bool:
    """Tell whether a pod still waits behind its gate, so that nothing is lost with it."""
    return not pod.spec.node_name and names.GATE in pod.gates


def affordable(
    old: Sequence[Old[T]], ready: int, starting: int, wanted: int, budget: Budget
) -> list[T]:
    """Choose who may go now, in the order given.

    `ready` counts all that are ready, old ones too; `starting` are those missing, or new and not
    ready. One that is ready goes only while enough others are; one that is not ready costs nobody
    anything, but no more of these go than the budget lets start at a time.
    """
    chosen: list[T] = []
    for each in old:
        if each.idle:
            pass
        elif each.ready:
            if ready - 1 < wanted - budget.unavailable:
                continue
            ready -= 1
        elif starting >= budget.unavailable + budget.surplus:
            continue
        starting += 1
        chosen.append(each.thing)
    return chosen


def _written(view: SetView) -> RollingUpdate:
    strategy = view.spec.update_strategy
    return (strategy and strategy.rolling_update) or _DEFAULT


def _down(share: Share, whole: int) -> int:
    return share if isinstance(share, int) else int(share.removesuffix("%")) * whole // 100


def _up(share: Share, whole: int) -> int:
    return share if isinstance(share, int) else -(-int(share.removesuffix("%")) * whole // 100)

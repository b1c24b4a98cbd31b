"""A stockroom over gangs that a test makes up, and where it finds room taken."""

from collections.abc import Mapping, Sequence, Set

from api.streams import Pod
from controller.gangs.stockroom import Stockroom
from controller.gangs.topologies import BUILT_IN
from controller.gangs.views import GangView, Reservation, SlotKey
from kube.cache import Added, Deleted
from kube.objects import Key
from tests.support.clusters import node

NODES = [f"n{i}" for i in range(10)]
LEVELS = (BUILT_IN.levels,)


class Stand:
    """Ten nodes; what is there may be changed between two looks."""

    def __init__(self) -> None:
        self.pods: dict[Key, Pod] = {}
        self.views: dict[Key, GangView] = {}
        self.left: dict[Key, Reservation] = {}
        self.room = Stockroom(self.pods, self.views.get, self.left.get, LEVELS)
        for name in NODES:
            self.room.on_node(Added(node(name)))

    def see(self, view: GangView) -> None:
        """The gang is like this now."""
        self.views[view.gang.key] = view
        self.room.touch(view.gang.key)

    def put(self, pod: Pod) -> None:
        """The pod is there, and like this."""
        self.pods[pod.metadata.namespace, pod.metadata.name] = pod
        self.room.on_pod(Added(pod))

    def drop(self, pod: Pod) -> None:
        """The pod is gone."""
        del self.pods[pod.metadata.namespace, pod.metadata.name]
        self.room.on_pod(Deleted(pod))

    def taken(self, moving: Set[tuple[Key, SlotKey]] = frozenset()) -> list[str]:
        """Name the node of each pod that room is taken for."""
        found = self.room.snapshot(LEVELS, moving)
        column = found.resources.index("pods")
        there = found.capacity[:, column] - found.free[:, column]
        return sorted(name for name in NODES for _ in range(int(there[found.row_of[name]])))


def taken(
    pods: Mapping[Key, Pod], views: Sequence[GangView] = (), left: Sequence[Reservation] = ()
) -> list[str]:
    """Name the node of each pod that room is taken for."""
    stand = Stand()
    for pod in pods.values():
        stand.put(pod)
    for view in views:
        stand.see(view)
    for reservation in left:
        key = reservation.metadata.namespace, reservation.metadata.name
        stand.left[key] = reservation
        stand.room.touch(key)
    return stand.taken()

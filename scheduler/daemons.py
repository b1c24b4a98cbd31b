"""Pods of DaemonSets that nodes are to have: their room is spoken for before they exist."""

from dataclasses import dataclass
from typing import Final

from api import needs
from api.daemonsets import DaemonSet
from api.quantities import Amounts
from api.streams import Node, NodeSelector, PodSpec, Toleration
from scheduler import residents
from scheduler.filters.selecting import bars, selected, tolerated
from scheduler.residents import Resident

# What every pod of a DaemonSet is given by its controller, whatever its template says.
_TOLERATED: Final = tuple(
    Toleration(key=f"node.kubernetes.io/{key}", operator="Exists", effect=effect)
    for key, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)
_ON_HOST_NETWORK: Final = Toleration(
    key="node.kubernetes.io/network-unavailable", operator="Exists", effect="NoSchedule"
)


@dataclass(frozen=True)
class Daemon:
    """A DaemonSet as nodes see it: what a pod of it takes, and which of them are to have one."""

    uid: str
    need: Amounts
    resident: Resident
    node: str = ""  # the only one, if its template names one
    selector: tuple[tuple[str, str], ...] = ()
    required: NodeSelector | None = None
    tolerations: tuple[Toleration, ...] = ()


def of(daemonset: DaemonSet) -> Daemon | None:
    """Read a DaemonSet; one that is being deleted makes no pods any more."""
    meta, template = daemonset.metadata, daemonset.spec.template
    if meta.deletion_timestamp is not None:
        return None
    spec = template.spec
    affinity = spec.affinity.node_affinity if spec.affinity else None
    return Daemon(
        meta.uid,
        needs.of_spec(spec),
        residents.of_template(meta.namespace, meta.name, template.metadata.labels, spec),
        spec.node_name,
        tuple(sorted(spec.node_selector.items())),
        affinity.required if affinity else None,
        _tolerations(spec),
    )


def _tolerations(spec: PodSpec) -> tuple[Toleration, ...]:
    more = (_ON_HOST_NETWORK,) if spec.host_network else ()
    return (*spec.tolerations, *_TOLERATED, *more)


def runs_on(daemon: Daemon, node: Node) -> bool:
    """Whether the DaemonSet's controller makes a pod for the node.

    It goes by taints alone, so it makes one also where the kubelet is not ready or pods are kept
    off by a cordon.
    """
    if daemon.node and daemon.node != node.metadata.name:
        return False
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in daemon.selector):
        return False
    if not all(tolerated(taint, daemon.tolerations) for taint in node.spec.taints if bars(taint)):
        return False
    return daemon.required is None or selected(node, daemon.required)

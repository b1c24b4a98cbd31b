"""How well each filter of kube-scheduler is known: exactly, on the safe side, or not at all."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

NOT_READY: Final = "not ready"
CORDONED: Final = "cordoned"
TAINTED: Final = "tainted"
NOT_SELECTED: Final = "not selected by the pods"
PORTS: Final = "host port taken"
VOLUMES: Final = "out of reach of what the pods claim"
SPREAD: Final = "too many such pods near"
AFFINITY: Final = "not near the pods it must be near"
APART: Final = "near pods it must be away from"


class Class(Enum):
    """What can be said of a verdict."""

    EXACT = "exact"
    SAFE = "safe side"
    LEFT = "left to kube-scheduler"


@dataclass(frozen=True)
class Filter:
    """One filter: kube-scheduler's name for it, what of it is meant, and how well it is known.

    `obstacle` is what refusals call a node that it takes; empty where it takes none here.
    """

    name: str
    what: str
    stance: Class
    why: str
    obstacle: str = ""


CLASSES: Final[tuple[Filter, ...]] = (
    Filter(
        "NodeName",
        "`nodeName`",
        Class.EXACT,
        "A pod that has its node is not placed.",
    ),
    Filter(
        "NodeUnschedulable",
        "cordons",
        Class.EXACT,
        "A pod that tolerates `node.kubernetes.io/unschedulable` may use the node.",
        CORDONED,
    ),
    Filter(
        "TaintToleration",
        "taints and tolerations",
        Class.EXACT,
        "`NoSchedule` and `NoExecute` keep pods off, `PreferNoSchedule` does not.",
        TAINTED,
    ),
    Filter(
        "NodeAffinity",
        "node selector and required node affinity",
        Class.EXACT,
        "All operators, and `matchFields` on the node's name.",
        NOT_SELECTED,
    ),
    Filter(
        "NodePorts",
        "host ports",
        Class.EXACT,
        "By address, protocol and number. Two pods of one batch, though, are on the safe side: "
        "they are kept apart by protocol and number, also where their addresses differ.",
        PORTS,
    ),
    Filter(
        "NodeResourcesFit",
        "resources and pod slots",
        Class.EXACT,
        "Counted as Kubernetes counts them.",
    ),
    Filter(
        "VolumeBinding",
        "node affinity of bound volumes",
        Class.EXACT,
        "A claim that is not there, or that nobody has bound although somebody should have, "
        "keeps the pod off every node.",
        VOLUMES,
    ),
    Filter(
        "VolumeZone",
        "zone and region labels of bound volumes",
        Class.EXACT,
        "A node that has any such label must have the volume's.",
        VOLUMES,
    ),
    Filter(
        "DynamicResources",
        "device claims with an allocation",
        Class.EXACT,
        "The pod goes where the allocation says. A claim or a template that is not there keeps it "
        "off every node.",
        VOLUMES,
    ),
    Filter(
        "(none)",
        "nodes that are not ready",
        Class.SAFE,
        "kube-scheduler knows only their taint. Here no pod goes there, whatever it tolerates.",
        NOT_READY,
    ),
    Filter(
        "VolumeBinding",
        "volumes that wait for their first consumer",
        Class.SAFE,
        "Where the class allows volumes to be made; the node once it is chosen. Where nobody makes "
        "them, volumes on each node are counted that are nobody's and meet the claim by class, "
        "size, access modes, volume mode and labels.",
        VOLUMES,
    ),
    Filter(
        "DynamicResources",
        "device claims without an allocation",
        Class.SAFE,
        "Devices of each class are counted on each node, less those that are given away, and "
        "claims take them by number; see below what that sees.",
    ),
    Filter(
        "DynamicResources",
        "extended resources that a DeviceClass stands for",
        Class.SAFE,
        "Nodes have what their status lists; one that has only the devices is overlooked.",
    ),
    Filter(
        "PodTopologySpread",
        "hard topology spread",
        Class.SAFE,
        "By any node label. Of a batch only the end is judged, which is stricter than each step; "
        "pods that are pinned are judged by less.",
        SPREAD,
    ),
    Filter(
        "InterPodAffinity",
        "required affinity to pods",
        Class.SAFE,
        "By any node label. Pods of the same gang may be the ones that are meant. Of other "
        "namespaces only names are known: one that is chosen by another label is not counted on.",
        AFFINITY,
    ),
    Filter(
        "InterPodAffinity",
        "required anti-affinity, also that of pods that are there",
        Class.SAFE,
        "By any node label. A namespace that is chosen by another label than its name is taken "
        "to be meant.",
        APART,
    ),
    Filter(
        "DynamicResources",
        "which devices a claim would take beyond their number",
        Class.LEFT,
        "Selectors in forms that are not read, alternatives, sharing and parts of devices; see "
        "below.",
    ),
    Filter(
        "VolumeBinding",
        "how much storage is left",
        Class.LEFT,
        "The capacity that storage drivers tell (CSIStorageCapacity) is not read. A volume that "
        "several nodes reach is counted on each of them.",
    ),
    Filter(
        "VolumeRestrictions",
        "volumes that only one pod may use",
        Class.LEFT,
        "Who else uses a volume is not looked at.",
    ),
    Filter(
        "NodeVolumeLimits",
        "how many volumes a node takes",
        Class.LEFT,
        "The limits of storage drivers are not read.",
    ),
    Filter(
        "NodeDeclaredFeatures",
        "what a node's kubelet must be able to do",
        Class.LEFT,
        "It is known to the newest kube-schedulers only.",
    ),
)


def table() -> str:
    """Write the filters down as docs/filters.md shows them."""
    rows = [f"| {f.what} | `{f.name}` | {f.stance.value} | {f.why} |" for f in CLASSES]
    head = ["| filter | kube-scheduler's name | class | what of it |", "|---|---|---|---|"]
    return "\n".join([*head, *rows]).replace("`(none)`", "none")

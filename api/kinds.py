"""The custom kinds Penstock serves, one row each: what their definitions are generated from."""

from dataclasses import dataclass
from typing import Final

from api import names
from api.models import Model
from api.podclique import PodCliqueSpec, PodCliqueStatus
from api.podcliqueset import PodCliqueSetSpec, PodCliqueSetStatus
from api.podgang import PodGangStatus, ServedPodGangSpec
from api.reservations_served import ServedReservationSpec, ServedReservationStatus
from api.scalinggroup import PodCliqueScalingGroupSpec, PodCliqueScalingGroupStatus
from api.topology import (
    NO_PACK_DOMAIN,
    ClusterTopologyBindingSpec,
    ClusterTopologyBindingStatus,
)
from api.validations import Validation


@dataclass(frozen=True)
class Column:
    """One column of `kubectl get`."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False


@dataclass(frozen=True)
class Scale:
    """Where `kubectl scale` and autoscalers read and write counts."""

    spec: str
    status: str
    selector: str


@dataclass(frozen=True)
class Kind:
    """A custom kind and the models of its spec and status."""

    group: str
    version: str
    kind: str
    plural: str
    short: tuple[str, ...]
    about: str
    spec: type[Model]
    status: type[Model]
    columns: tuple[Column, ...]
    scale: Scale | None = None
    namespaced: bool = True
    rules: tuple[Validation, ...] = ()  # what the API server checks of the whole object

    @property
    def crd_name(self) -> str:
        """The name of its definition."""
        return f"{self.plural}.{self.group}"


_UPDATE: Final = ".status.updateProgress"
BREACHED: Final = Column(
    "MinBreached",
    f'.status.conditions[?(@.type=="{names.MIN_AVAILABLE_BREACHED}")].status',
    wide=True,
)
AGE: Final = Column("Age", ".metadata.creationTimestamp", "date")
_STATE: Final = Column("State", ".status.lastOperation.state")
_MESSAGE: Final = Column("Message", ".status.lastOperation.description", wide=True)

KINDS: Final = (
    Kind(
        names.GROVE_GROUP,
        names.GROVE_VERSION,
        "PodCliqueSet",
        "podcliquesets",
        ("pcs",),
        "A whole inference system: cliques of pods that start together or not at all.",
        PodCliqueSetSpec,
        PodCliqueSetStatus,
        (
            Column("Replicas", ".spec.replicas", "integer"),
            Column("Available", ".status.availableReplicas", "integer"),
            Column("Updated", ".status.updatedReplicas", "integer"),
            Column("PCLQs-Updated", f"{_UPDATE}.updatedPodCliquesCount", "integer"),
            Column("PCLQs-Total", f"{_UPDATE}.totalPodCliquesCount", "integer"),
            Column("PCSGs-Updated", f"{_UPDATE}.updatedPodCliqueScalingGroupsCount", "integer"),
            Column("PCSGs-Total", f"{_UPDATE}.totalPodCliqueScalingGroupsCount", "integer"),
            _STATE,
            _MESSAGE,
            AGE,
        ),
        Scale(".spec.replicas", ".status.replicas", ".status.hpaPodSelector"),
        rules=NO_PACK_DOMAIN,
    ),
    Kind(
        names.GROVE_GROUP,
        names.GROVE_VERSION,
        "PodClique",
        "podcliques",
        ("pclq",),
        "Pods of one role in one replica of a set, counted and scaled together.",
        PodCliqueSpec,
        PodCliqueStatus,
        (
            Column("MinAvail", ".spec.minAvailable", "integer"),
            Column("Replicas", ".spec.replicas", "integer"),
            Column("Ready", ".status.readyReplicas", "integer"),
            Column("Scheduled", ".status.scheduledReplicas", "integer"),
            Column("Updated", ".status.updatedReplicas", "integer"),
            Column("Gated", ".status.scheduleGatedReplicas", "integer", wide=True),
            BREACHED,
            _STATE,
            _MESSAGE,
            AGE,
        ),
        Scale(".spec.replicas", ".status.replicas", ".status.hpaPodSelector"),
    ),
    Kind(
        names.GROVE_GROUP,
        names.GROVE_VERSION,
        "PodCliqueScalingGroup",
        "podcliquescalinggroups",
        ("pcsg",),
        "Cliques of one replica of a set that are scaled as one.",
        PodCliqueScalingGroupSpec,
        PodCliqueScalingGroupStatus,
        (
            Column("MinAvail", ".spec.minAvailable", "integer"),
            Column("Replicas", ".spec.replicas", "integer"),
            Column("Available", ".status.availableReplicas", "integer"),
            Column("Scheduled", ".status.scheduledReplicas", "integer"),
            Column("Updated", ".status.updatedReplicas", "integer"),
            Column("PCLQs-Updated", f"{_UPDATE}.updatedPodCliquesCount", "integer"),
            Column("PCLQs-Total", f"{_UPDATE}.totalPodCliquesCount", "integer"),
            BREACHED,
            _STATE,
            _MESSAGE,
            AGE,
        ),
        Scale(".spec.replicas", ".status.replicas", ".status.selector"),
    ),
    Kind(
        names.GROVE_GROUP,
        names.GROVE_VERSION,
        "ClusterTopologyBinding",
        "clustertopologybindings",
        ("ct",),
        "The levels of a cluster's network, from wide to narrow, and the node labels they are on.",
        ClusterTopologyBindingSpec,
        ClusterTopologyBindingStatus,
        (Column("Domains", ".spec.levels[*].domain"), AGE),
        namespaced=False,
    ),
    Kind(
        names.GROVE_GANG_GROUP,
        names.GROVE_VERSION,
        "PodGang",
        "podgangs",
        ("pg",),
        "The pods of one gang, and what became of them.",
        ServedPodGangSpec,
        PodGangStatus,
        (
            Column("Phase", ".status.phase"),
            Column("Scheduled", '.status.conditions[?(@.type=="Scheduled")].reason'),
            Column("Score", ".status.placementScore", "number", wide=True),
            Column("Message", '.status.conditions[?(@.type=="Scheduled")].message', wide=True),
            AGE,
        ),
    ),
    Kind(
        names.GROUP,
        names.VERSION,
        "Reservation",
        "reservations",
        ("rsv",),
        "Room kept for a gang until its pods are bound, or by a person for whoever owners mean.",
        ServedReservationSpec,
        ServedReservationStatus,
        (
            Column("Gang", ".spec.gang.name"),
            Column("State", ".status.state"),
            Column("Users", ".status.users[*].gang"),
            Column("Expires", ".status.expiresAt", wide=True),
            Column("Score", ".spec.score", "number", wide=True),
            Column("Fragmentation", ".spec.fragmentation", "number", wide=True),
            Column("Domain", ".spec.domain", wide=True),
            # Not a date: kubectl shows those as ages and has none for the future.
            Column("Deadline", ".spec.deadline", wide=True),
            AGE,
        ),
    ),
)

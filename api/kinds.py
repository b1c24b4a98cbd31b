"""The custom kinds Penstock serves, one row each: what their definitions are generated from."""

from dataclasses import dataclass
from typing import Final

from api import names
from api.models import Model
from api.podcliqueset import PodCliqueSetSpec, PodCliqueSetStatus
from api.podgang import PodGangSpec, PodGangStatus
from api.reservation import ReservationSpec, ReservationStatus


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

    @property
    def crd_name(self) -> str:
        """The name of its definition."""
        return f"{self.plural}.{self.group}"


AGE: Final = Column("Age", ".metadata.creationTimestamp", "date")

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
            AGE,
        ),
        Scale(".spec.replicas", ".status.replicas", ".status.hpaPodSelector"),
    ),
    Kind(
        names.GROVE_GANG_GROUP,
        names.GROVE_VERSION,
        "PodGang",
        "podgangs",
        ("pg",),
        "The pods of one gang, and what became of them.",
        PodGangSpec,
        PodGangStatus,
        (
            Column("Phase", ".status.phase"),
            Column("Scheduled", '.status.conditions[?(@.type=="Scheduled")].reason'),
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
        "Room kept for a gang until its pods are bound.",
        ReservationSpec,
        ReservationStatus,
        (
            Column("Gang", ".spec.gang.name"),
            Column("State", ".status.state"),
            # Not a date: kubectl shows those as ages and has none for the future.
            Column("Deadline", ".spec.deadline", wide=True),
            AGE,
        ),
    ),
)

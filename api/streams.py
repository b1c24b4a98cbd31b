"""What the API server streams, decoded to the fields Penstock reads and no others.

Thousands of pods and nodes pass through these shapes, so they are msgspec structs: unknown fields
cost nothing, and nothing here is ever written back.
"""

from datetime import datetime

import msgspec


class Owner(msgspec.Struct, frozen=True, rename="camel"):
    """One owner reference."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Meta(msgspec.Struct, frozen=True, rename="camel"):
    """The part of an object's metadata that decisions read."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[Owner, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def controller_uid(self) -> str:
        """The UID of the controlling owner, or "" when nothing controls the object."""
        return next((owner.uid for owner in self.owner_references if owner.controller), "")


class Condition(msgspec.Struct, frozen=True, rename="camel"):
    """One condition of a status."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class Terminated(msgspec.Struct, frozen=True, rename="camel"):
    """How a container ended."""

    exit_code: int = 0


class ContainerState(msgspec.Struct, frozen=True):
    """Only its end is read."""

    terminated: Terminated | None = None


class ContainerStatus(msgspec.Struct, frozen=True, rename="camel"):
    """How one container is doing."""

    name: str = ""
    ready: bool = False
    started: bool | None = None
    last_state: ContainerState = ContainerState()


class Requirements(msgspec.Struct, frozen=True, rename="camel"):
    """What a container asks for; limits stand in for requests that were left out."""

    requests: dict[str, str] = {}
    limits: dict[str, str] = {}


class Container(msgspec.Struct, frozen=True, rename="camel"):
    """A container's claim on its node."""

    name: str = ""
    resources: Requirements = Requirements()
    restart_policy: str = ""


class SchedulingGate(msgspec.Struct, frozen=True):
    """A reason for kube-scheduler to leave the pod alone."""

    name: str


class Expression(msgspec.Struct, frozen=True):
    """One requirement of a node selector term."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class Term(msgspec.Struct, frozen=True, rename="camel"):
    """Requirements that must all hold; terms are alternatives."""

    match_expressions: tuple[Expression, ...] = ()
    match_fields: tuple[Expression, ...] = ()


class NodeSelector(msgspec.Struct, frozen=True, rename="camel"):
    """The terms a node is held against."""

    node_selector_terms: tuple[Term, ...] = ()


class NodeAffinity(msgspec.Struct, frozen=True):
    """Only what is required: preferences do not decide where a pod may run."""

    required: NodeSelector | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )


class Affinity(msgspec.Struct, frozen=True, rename="camel"):
    """The node part of a pod's affinity."""

    node_affinity: NodeAffinity | None = None


class Toleration(msgspec.Struct, frozen=True):
    """A taint the pod puts up with."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    """What decides where a pod may run and what it takes there."""

    node_name: str = ""
    hostname: str = ""
    scheduler_name: str = ""
    priority: int = 0
    priority_class_name: str = ""
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: dict[str, str] = {}
    resources: Requirements = Requirements()
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()


class PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    """How the pod is doing."""

    phase: str = "Pending"
    reason: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    nominated_node_name: str = ""


class Pod(msgspec.Struct, frozen=True):
    """A pod as decisions see it."""

    metadata: Meta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def finished(self) -> bool:
        """Whether its containers have ended for good, so that it takes no room."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def containers_ready(self) -> bool:
        """Whether all containers are ready, whatever readiness gates say, and it is not leaving."""
        return self.metadata.deletion_timestamp is None and any(
            c.type == "ContainersReady" and c.status == "True" for c in self.status.conditions
        )

    @property
    def gates(self) -> tuple[str, ...]:
        """Names of the scheduling gates still on it."""
        return tuple(gate.name for gate in self.spec.scheduling_gates)


class Taint(msgspec.Struct, frozen=True):
    """A mark that keeps pods off a node unless they tolerate it."""

    key: str
    effect: str
    value: str = ""


class NodeSpec(msgspec.Struct, frozen=True):
    """What keeps pods off a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(msgspec.Struct, frozen=True):
    """What a node has to give, and whether it is up."""

    allocatable: dict[str, str] = {}
    conditions: tuple[Condition, ...] = ()


class Node(msgspec.Struct, frozen=True):
    """A node as decisions see it."""

    metadata: Meta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> bool:
        """Whether its kubelet says so."""
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)


class PodCliqueSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Whom a clique's pods wait for, and how many must be up for those that wait for it."""

    replicas: int = 1
    min_available: int | None = None
    starts_after: tuple[str, ...] = ()

    @property
    def minimum(self) -> int:
        """How many of its pods it takes for the clique to be up."""
        return self.replicas if self.min_available is None else self.min_available


class PodClique(msgspec.Struct, frozen=True):
    """A PodClique as those see it who tell whose a pod is, and when it may start."""

    metadata: Meta
    spec: PodCliqueSpec = PodCliqueSpec()


class Custom(msgspec.Struct, frozen=True):
    """One of our own kinds, its spec and status still as bytes for the model that knows them."""

    metadata: Meta
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")

    def __post_init__(self) -> None:
        # As decoded they are views that would keep the whole answer they came in alive.
        msgspec.structs.force_setattr(self, "spec", self.spec.copy())
        msgspec.structs.force_setattr(self, "status", self.status.copy())

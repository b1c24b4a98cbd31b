"""What the API server streams, decoded to the fields Penstock reads and no others.

Thousands of pods and nodes pass through these shapes, so they are msgspec structs: unknown fields
cost nothing, and nothing here is ever written back. None can refer to itself, so the garbage
collector is spared them: it would stop everything else for half a second again and again.
"""

from datetime import datetime

import msgspec


class Owner(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One owner reference."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Meta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
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
        for owner in self.owner_references:
            if owner.controller:
                return owner.uid
        return ""


class Condition(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One condition of a status."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class Terminated(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """How a container ended."""

    exit_code: int = 0


class Running(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Since when a container runs."""

    started_at: datetime | None = None


class ContainerState(msgspec.Struct, frozen=True, gc=False):
    """Only its beginning and its end are read."""

    running: Running | None = None
    terminated: Terminated | None = None


class Requirements(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a container asks for; limits stand in for requests that were left out."""

    requests: dict[str, str] = {}
    limits: dict[str, str] = {}


class Granted(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a kubelet has given a container or a pod; None where it does not say."""

    requests: dict[str, str] | None = None


class ContainerStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """How one container is doing."""

    name: str = ""
    ready: bool = False
    started: bool | None = None
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    allocated_resources: dict[str, str] | None = None
    resources: Granted | None = None


class Port(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A container's port; one with a host port takes it on the node."""

    host_port: int = 0
    host_ip: str = msgspec.field(name="hostIP", default="")
    protocol: str = "TCP"


class Container(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A container's claim on its node."""

    name: str = ""
    resources: Requirements = Requirements()
    restart_policy: str = ""
    ports: tuple[Port, ...] = ()


class SchedulingGate(msgspec.Struct, frozen=True, gc=False):
    """A reason for kube-scheduler to leave the pod alone."""

    name: str


class Expression(msgspec.Struct, frozen=True, gc=False):
    """One requirement of a node selector term."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class Term(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Requirements that must all hold; terms are alternatives."""

    match_expressions: tuple[Expression, ...] = ()
    match_fields: tuple[Expression, ...] = ()


class NodeSelector(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The terms a node is held against."""

    node_selector_terms: tuple[Term, ...] = ()


class NodeAffinity(msgspec.Struct, frozen=True, gc=False):
    """Only what is required: preferences do not decide where a pod may run."""

    required: NodeSelector | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )


class LabelSelector(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Whom a term or a spread constraint is about; an empty one is about everybody."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[Expression, ...] = ()


class PodTerm(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Other pods, and which level they are looked for in: a node label key.

    The API server has merged matchLabelKeys into the selector by the time it is read.
    """

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


class PodAffinity(msgspec.Struct, frozen=True, gc=False):
    """Only what is required of other pods, or, as anti-affinity, must not be."""

    required: tuple[PodTerm, ...] = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=()
    )


class Affinity(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What a pod asks of nodes, and of pods on and near them."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class SpreadConstraint(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """How evenly pods that the selector names are to be spread over domains."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


class ClaimSource(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Which claim of the pod's namespace a volume is."""

    claim_name: str = ""


class ClaimTemplate(msgspec.Struct, frozen=True, gc=False):
    """A claim that is made for the pod, named after it and the volume; what it asks is not read."""


class Volume(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A volume, as far as it may tie a pod to nodes."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: ClaimTemplate | None = None


class PodDevices(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Devices that a pod claims, by the claim's name or by the template it is made from."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class Toleration(msgspec.Struct, frozen=True, gc=False):
    """A taint the pod puts up with."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class ReadinessGate(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A condition without which the pod is not ready, whatever its containers are."""

    condition_type: str


class PodSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What decides where a pod may run and what it takes there."""

    node_name: str = ""
    hostname: str = ""
    scheduler_name: str = ""
    priority: int = 0
    priority_class_name: str = ""
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    readiness_gates: tuple[ReadinessGate, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: dict[str, str] = {}
    resources: Requirements = Requirements()
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[SpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodDevices, ...] = ()
    host_network: bool = False


class PodClaimStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The claim that was made for the pod from a template; none where none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """How the pod is doing."""

    phase: str = "Pending"
    reason: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    nominated_node_name: str = ""
    allocated_resources: dict[str, str] | None = None
    resources: Granted | None = None
    resource_claim_statuses: tuple[PodClaimStatus, ...] = ()


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A pod as decisions see it."""

    metadata: Meta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def finished(self) -> bool:
        """Whether its containers have ended for good, so that it takes no room."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def failed(self) -> bool:
        """Whether it has ended without having done what it was made for."""
        return self.status.phase == "Failed"

    @property
    def completed(self) -> bool:
        """Whether it has ended since it was done; one that is always restarted never is."""
        return self.status.phase == "Succeeded"

    @property
    def containers_ready(self) -> bool:
        """Whether all containers are ready, whatever readiness gates say, and it is not leaving."""
        return self.metadata.deletion_timestamp is None and any(
            c.type == "ContainersReady" and c.status == "True" for c in self.status.conditions
        )

    @property
    def gates(self) -> tuple[str, ...]:
        """Names of the scheduling gates still on it."""
        return tuple([gate.name for gate in self.spec.scheduling_gates])


class Taint(msgspec.Struct, frozen=True, gc=False):
    """A mark that keeps pods off a node unless they tolerate it."""

    key: str
    effect: str
    value: str = ""


class NodeSpec(msgspec.Struct, frozen=True, gc=False):
    """What keeps pods off a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(msgspec.Struct, frozen=True, gc=False):
    """What a node has to give, and whether it is up."""

    allocatable: dict[str, str] = {}
    conditions: tuple[Condition, ...] = ()


class Node(msgspec.Struct, frozen=True, gc=False):
    """A node as decisions see it."""

    metadata: Meta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> bool:
        """Whether its kubelet says so."""
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)


class PodCliqueSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Whom a clique's pods wait for, and how many must be up for those that wait for it.

    The podSpec is kept as bytes: most never need to be read, and amounts in it may be numbers.
    """

    replicas: int = 1
    min_available: int | None = None
    starts_after: tuple[str, ...] = ()
    pod_spec: msgspec.Raw = msgspec.Raw(b"{}")

    def __post_init__(self) -> None:
        # As decoded it is a view that would keep the whole answer it came in alive.
        msgspec.structs.force_setattr(self, "pod_spec", self.pod_spec.copy())

    @property
    def minimum(self) -> int:
        """How many of its pods it takes for the clique to be up."""
        return self.replicas if self.min_available is None else self.min_available


class PodClique(msgspec.Struct, frozen=True, gc=False):
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

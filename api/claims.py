"""Claims of pods to volumes and devices, and what there is to claim, as they are streamed."""

import msgspec

from api.streams import LabelSelector, Meta, NodeSelector, Requirements, Toleration


class VolumeNodes(msgspec.Struct, frozen=True):
    """The nodes that reach a volume; all of them where nothing is required."""

    required: NodeSelector | None = None


class ClaimReference(msgspec.Struct, frozen=True):
    """The claim that a volume is kept for."""

    namespace: str = ""
    name: str = ""


class VolumeSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Which nodes reach it, what kind it is, and whose."""

    node_affinity: VolumeNodes | None = None
    storage_class_name: str = ""
    capacity: dict[str, str] = {}
    access_modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    claim_ref: ClaimReference | None = None


class VolumeStatus(msgspec.Struct, frozen=True):
    """Whose it is: Available is nobody's yet."""

    phase: str = "Pending"


class PersistentVolume(msgspec.Struct, frozen=True):
    """A volume there is."""

    metadata: Meta
    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()


class ClaimSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Which volume is claimed, or what kind of one is to be made."""

    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    selector: LabelSelector | None = None
    resources: Requirements = Requirements()


class ClaimStatus(msgspec.Struct, frozen=True):
    """How far it has come: Pending, Bound or Lost."""

    phase: str = "Pending"


class PersistentVolumeClaim(msgspec.Struct, frozen=True):
    """A claim of pods to a volume."""

    metadata: Meta
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class LabelValues(msgspec.Struct, frozen=True):
    """A node label and the values it may have."""

    key: str
    values: tuple[str, ...] = ()


class TopologyTerm(msgspec.Struct, frozen=True, rename="camel"):
    """Labels that a node must all have; terms are alternatives."""

    match_label_expressions: tuple[LabelValues, ...] = ()


class StorageClass(msgspec.Struct, frozen=True, rename="camel"):
    """How and where volumes of a kind are made."""

    metadata: Meta
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologyTerm, ...] = ()


class Given(msgspec.Struct, frozen=True, rename="camel"):
    """One device that a claim was given; with admin access others may have it too."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None


class GivenDevices(msgspec.Struct, frozen=True):
    """All that a claim was given."""

    results: tuple[Given, ...] = ()


class Allocation(msgspec.Struct, frozen=True, rename="camel"):
    """Devices that a claim was given, and the nodes that it is tied to by them."""

    node_selector: NodeSelector | None = None
    devices: GivenDevices = GivenDevices()


class DeviceClaimStatus(msgspec.Struct, frozen=True):
    """Nothing until devices are given."""

    allocation: Allocation | None = None


class Cel(msgspec.Struct, frozen=True):
    """What devices are held against, in Kubernetes' expression language."""

    expression: str = ""


class DeviceSelector(msgspec.Struct, frozen=True):
    """One condition; all of them must hold."""

    cel: Cel | None = None


class DeviceRequest(msgspec.Struct, frozen=True, rename="camel"):
    """Devices of one class: so many of them, or all that there are."""

    device_class_name: str = ""
    allocation_mode: str = "ExactCount"
    count: int = 1
    selectors: tuple[DeviceSelector, ...] = ()
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()


class DeviceRequests(msgspec.Struct, frozen=True, rename="camel"):
    """One request, or several of which the first that can be met counts."""

    exactly: DeviceRequest | None = None
    first_available: tuple[DeviceRequest, ...] = ()


class WantedDevices(msgspec.Struct, frozen=True):
    """All of these requests must be met."""

    requests: tuple[DeviceRequests, ...] = ()


class DeviceClaimSpec(msgspec.Struct, frozen=True):
    """What a claim asks for."""

    devices: WantedDevices = WantedDevices()


class DeviceClaim(msgspec.Struct, frozen=True):
    """A ResourceClaim."""

    metadata: Meta
    spec: DeviceClaimSpec = DeviceClaimSpec()
    status: DeviceClaimStatus = DeviceClaimStatus()


class DeviceTemplateSpec(msgspec.Struct, frozen=True):
    """What claims made from it ask for."""

    spec: DeviceClaimSpec = DeviceClaimSpec()


class DeviceTemplate(msgspec.Struct, frozen=True):
    """A ResourceClaimTemplate: each pod that names it gets a claim of its own."""

    metadata: Meta
    spec: DeviceTemplateSpec = DeviceTemplateSpec()


class DeviceClassSpec(msgspec.Struct, frozen=True):
    """Which devices are of it."""

    selectors: tuple[DeviceSelector, ...] = ()


class DeviceClass(msgspec.Struct, frozen=True):
    """A name for devices that are alike."""

    metadata: Meta
    spec: DeviceClassSpec = DeviceClassSpec()


class Attribute(msgspec.Struct, frozen=True):
    """What a driver says of a device; one of these is set."""

    text: str | None = msgspec.field(name="string", default=None)
    number: int | None = msgspec.field(name="int", default=None)
    truth: bool | None = msgspec.field(name="bool", default=None)


class DeviceTaint(msgspec.Struct, frozen=True):
    """A mark that keeps claims off a device unless they tolerate it."""

    key: str = ""
    effect: str = ""


class Device(msgspec.Struct, frozen=True, rename="camel"):
    """One device. In slices of several nodes' devices each says itself where it is."""

    name: str = ""
    attributes: dict[str, Attribute] = {}
    taints: tuple[DeviceTaint, ...] = ()
    allow_multiple_allocations: bool | None = None
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None


class Pool(msgspec.Struct, frozen=True, rename="camel"):
    """Slices that belong together; only those of the last generation count."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class SliceSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Devices of one driver, and which nodes reach them."""

    driver: str = ""
    pool: Pool = Pool()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()


class ResourceSlice(msgspec.Struct, frozen=True):
    """Some of the devices that a driver has to offer."""

    metadata: Meta
    spec: SliceSpec = SliceSpec()

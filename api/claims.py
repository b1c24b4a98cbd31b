"""Claims of pods to volumes and devices, and what there is to claim, as they are streamed."""

import msgspec

from api.streams import Meta, NodeSelector


class VolumeNodes(msgspec.Struct, frozen=True):
    """The nodes that reach a volume; all of them where nothing is required."""

    required: NodeSelector | None = None


class VolumeSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Which nodes reach it, and what kind it is."""

    node_affinity: VolumeNodes | None = None
    storage_class_name: str = ""


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


class Allocation(msgspec.Struct, frozen=True, rename="camel"):
    """Devices that a claim was given, as far as they tie it to nodes."""

    node_selector: NodeSelector | None = None


class DeviceClaimStatus(msgspec.Struct, frozen=True):
    """Nothing until devices are given."""

    allocation: Allocation | None = None


class DeviceClaim(msgspec.Struct, frozen=True):
    """A ResourceClaim."""

    metadata: Meta
    status: DeviceClaimStatus = DeviceClaimStatus()

"""What pods that get their node later must know of those that are there, or about to be.

Residents hold references to what was decoded of a pod and copy nothing of it.
"""

from collections.abc import Iterator, Mapping

import msgspec

from api.streams import Pod, PodSpec, PodTerm, Port


class Resident(msgspec.Struct, frozen=True, gc=False):
    """A pod on a node, or spoken for there, as others see it."""

    namespace: str
    name: str = ""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    ports: tuple[Port, ...] = ()  # those it takes on its node
    anti: tuple[PodTerm, ...] = ()  # whom it does not bear beside itself, as required anti-affinity
    claims: tuple[str, ...] = ()  # claims of its namespace that it mounts
    leaving: bool = False  # told to end; it still takes its room and its ports


def of_pod(pod: Pod) -> Resident:
    """Tell what others must know of the pod."""
    meta, spec = pod.metadata, pod.spec
    return Resident(
        meta.namespace,
        meta.name,
        meta.labels,
        host_ports(spec),
        anti_terms(spec),
        claims(spec, meta.name),
        meta.deletion_timestamp is not None,
    )


def of_template(namespace: str, name: str, labels: Mapping[str, str], spec: PodSpec) -> Resident:
    """Tell what others must know of a pod that is to be made from a template."""
    return Resident(namespace, name, labels, host_ports(spec), anti_terms(spec), claims(spec, name))


def host_ports(spec: PodSpec) -> tuple[Port, ...]:
    """List the ports that a pod takes on its node: of sidecars, and of containers."""
    ports: tuple[Port, ...] = ()
    for container in spec.init_containers:
        if container.restart_policy == "Always" and container.ports:
            ports += tuple(port for port in container.ports if port.host_port)
    for container in spec.containers:
        if container.ports:
            ports += tuple(port for port in container.ports if port.host_port)
    return ports


def anti_terms(spec: PodSpec) -> tuple[PodTerm, ...]:
    """List the terms of required anti-affinity."""
    anti = spec.affinity.pod_anti_affinity if spec.affinity else None
    return anti.required if anti else ()


def claims(spec: PodSpec, name: str) -> tuple[str, ...]:
    """Name the claims that a pod of this name mounts, those made for it included."""
    return tuple(_claims(spec, name)) if spec.volumes else ()


def _claims(spec: PodSpec, name: str) -> Iterator[str]:
    for volume in spec.volumes:
        if volume.persistent_volume_claim:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral:
            yield f"{name}-{volume.name}"

"""DaemonSets as they are streamed: what the pods are that each node is to have."""

import msgspec

from api.streams import Meta, PodSpec


class TemplateMeta(msgspec.Struct, frozen=True, gc=False):
    """What a template says about its pods' metadata."""

    labels: dict[str, str] = {}


class PodTemplate(msgspec.Struct, frozen=True, gc=False):
    """What pods are made from."""

    metadata: TemplateMeta = TemplateMeta()
    spec: PodSpec = PodSpec()


class DaemonSetSpec(msgspec.Struct, frozen=True, gc=False):
    """Only the template: a pod is a DaemonSet's by its owner."""

    template: PodTemplate = PodTemplate()


class DaemonSet(msgspec.Struct, frozen=True, gc=False):
    """Pods that are to run on each node that may take them."""

    metadata: Meta
    spec: DaemonSetSpec = DaemonSetSpec()

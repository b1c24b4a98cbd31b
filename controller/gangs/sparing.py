"""Objects as `gangs` keeps them: equal parts are one and the same, and what nobody reads is gone.

A hundred thousand pods are copies of a few templates. What is left out of them, and must not be
read from these caches:

- of pods, since when a condition holds, but for the one of ours that is written with its time;
- of pods, their addresses;
- of pods, how their containers are doing, but for what a kubelet has granted them;
- of pods, volumes that are no claims;
- of pods, annotations of others, such as network plugins write by the kilobyte: that there are any
  is all that is kept of them;
- of nodes, annotations, and since when a condition holds and why.
"""

from collections.abc import Mapping
from datetime import datetime
from sys import getrefcount
from typing import Final

import msgspec
from msgspec import msgpack
from msgspec.structs import force_setattr, replace

from api import names
from api.streams import (
    Affinity,
    ContainerState,
    ContainerStatus,
    Custom,
    Meta,
    Node,
    NodeSpec,
    NodeStatus,
    Owner,
    Pod,
    PodClique,
    PodSpec,
    PodStatus,
    Volume,
)
from kube.sharing import Ones, Pool, Words

_NO_WORDS: Final[dict[str, str]] = {}
_OTHERS: Final = {"others": ""}
_READ: Final = tuple(
    each.partition("/")[0] + "/"
    for each in (names.RELEASED_ANNOTATION, names.MNNVL_ANNOTATION, names.RESERVATION_REF)
)
_NO_STATE: Final = ContainerState()
_OWN: Final = 2  # of a template's containers: by itself, and by the question


def _has_pods(template: PodSpec) -> bool:
    """Whether there are pods of this template, which all have its containers."""
    return getrefcount(template.containers) > _OWN


class Sparing:
    """Reads objects of the API server, each sort with those before it in mind."""

    def __init__(self) -> None:
        self._pod = msgspec.json.Decoder(Pod)
        self._node = msgspec.json.Decoder(Node)
        self._clique = msgspec.json.Decoder(PodClique)
        self._custom = msgspec.json.Decoder(Custom)
        self._encode = msgpack.Encoder().encode
        self.words = Words()
        self._owners: Ones[tuple[Owner, ...]] = Ones()
        self._instants: Ones[datetime] = Ones()
        self._templates: Pool[bytes, PodSpec] = Pool(_has_pods)
        self._affinities: Pool[bytes, Affinity] = Pool()
        self._statuses: Pool[bytes, PodStatus] = Pool()
        self._node_specs: Pool[bytes, NodeSpec] = Pool()
        self._node_statuses: Pool[bytes, NodeStatus] = Pool()
        self._raw: Pool[bytes, msgspec.Raw] = Pool()
        self._pools = (
            self.words, self._owners, self._instants, self._templates, self._affinities,
            self._statuses, self._node_specs, self._node_statuses, self._raw,
        )  # fmt: skip

    def sizes(self) -> list[int]:
        """Tell how many different parts are known, of each sort."""
        return [len(pool) for pool in self._pools]

    def forget(self) -> None:
        """Let go at once of what belongs to no object any more."""
        for pool in self._pools:
            pool.forget()

    def pod(self, raw: msgspec.Raw) -> Pod:
        """Read a pod."""
        found = self._pod.decode(raw)
        self._spare(found.metadata)
        if found.metadata.annotations:
            force_setattr(found.metadata, "annotations", self._noted(found.metadata.annotations))
        force_setattr(found, "spec", self._spec(found.spec))
        force_setattr(found, "status", self._status(found.status))
        return found

    def node(self, raw: msgspec.Raw) -> Node:
        """Read a node."""
        found = self._node.decode(raw)
        force_setattr(found.metadata, "annotations", _NO_WORDS)
        self._spare(found.metadata)
        status = found.status
        for condition in status.conditions:
            force_setattr(condition, "last_transition_time", None)
            force_setattr(condition, "reason", "")
            force_setattr(condition, "message", "")
        shared = self._node_statuses.shared(self._encode(status), status)
        force_setattr(found, "status", shared)
        spec = self._node_specs.shared(self._encode(found.spec), found.spec)
        force_setattr(found, "spec", spec)
        return found

    def clique(self, raw: msgspec.Raw) -> PodClique:
        """Read a PodClique."""
        found = self._clique.decode(raw)
        self._spare(found.metadata)
        text = bytes(found.spec.pod_spec)
        force_setattr(found.spec, "pod_spec", self._raw.shared(text, msgspec.Raw(text)))
        return found

    def custom(self, raw: msgspec.Raw) -> Custom:
        """Read an object of one of our own kinds."""
        found = self._custom.decode(raw)
        self._spare(found.metadata)
        return found

    def resemble(self, held: Pod, newer: Pod) -> None:
        """Leave in a newer state of a pod what others hold of the one before: most is equal."""
        was, now = held.metadata, newer.metadata
        force_setattr(now, "name", was.name)
        if was.uid == now.uid:
            force_setattr(now, "uid", was.uid)
        if was.labels == now.labels:
            force_setattr(now, "labels", was.labels)
        if held.spec == newer.spec:
            force_setattr(newer, "spec", held.spec)

    def _spare(self, meta: Meta) -> None:
        """Share what is not the object's alone; nobody has seen it yet."""
        words = self.words
        force_setattr(meta, "namespace", words.shared(meta.namespace))
        force_setattr(meta, "labels", words.within(meta.labels) if meta.labels else _NO_WORDS)
        if not meta.annotations:
            force_setattr(meta, "annotations", _NO_WORDS)
        owners, born = meta.owner_references, meta.creation_timestamp
        if owners:
            force_setattr(meta, "owner_references", self._owners.shared(owners))
        if born is not None:
            force_setattr(meta, "creation_timestamp", self._instants.shared(born))

    def _noted(self, annotations: Mapping[str, str]) -> dict[str, str]:
        ours = {key: word for key, word in annotations.items() if key.startswith(_READ)}
        return self.words.within(ours) if ours else _OTHERS

    def _spec(self, spec: PodSpec) -> PodSpec:
        """Give the pod's own spec, of which all is its template's but for where it is and goes."""
        affinity = spec.affinity
        if affinity is not None:
            affinity = self._affinities.shared(self._encode(affinity), affinity)
        own = {
            "node_name": self.words.shared(spec.node_name),
            "hostname": spec.hostname,
            "volumes": _claims(spec.volumes) if spec.volumes else (),
            "affinity": affinity,
        }
        for name, nothing in (
            ("node_name", ""),
            ("hostname", ""),
            ("volumes", ()),
            ("affinity", None),
        ):
            force_setattr(spec, name, nothing)
        template = self._templates.shared(self._encode(spec), spec)
        return replace(template, **own)

    def _status(self, status: PodStatus) -> PodStatus:
        for condition in status.conditions:
            if condition.type != names.STARTUP_BLOCKED:
                force_setattr(condition, "last_transition_time", None)
        force_setattr(status, "pod_ip", "")
        force_setattr(status, "container_statuses", _granted(status.container_statuses))
        force_setattr(status, "init_container_statuses", _granted(status.init_container_statuses))
        return self._statuses.shared(self._encode(status), status)


def _claims(volumes: tuple[Volume, ...]) -> tuple[Volume, ...]:
    return tuple([v for v in volumes if v.persistent_volume_claim or v.ephemeral])


def _granted(statuses: tuple[ContainerStatus, ...]) -> tuple[ContainerStatus, ...]:
    """Keep of containers what a kubelet has given them, where it says so."""
    return tuple(
        [
            ContainerStatus(
                each.name, allocated_resources=each.allocated_resources, resources=each.resources
            )
            for each in statuses
            if each.allocated_resources is not None or each.resources is not None
        ]
    )

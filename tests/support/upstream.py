"""What an upstream Grove makes of a set, written down from its behaviour, not with our code.

Pods have random names, hash labels are of ten characters, members of a scaling group have three
variables of it in their PodClique, and a pod waits behind Grove's own gate. Where cliques start in
order, a pod that waits has an init container with a token of the set's own account. What stands
beside pods is in `upstream_beside`.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from api.jsons import Json, JsonObject
from api.podcliqueset import PodCliqueSetSpec, StartupType

GENERATION = "7bc4f9d6x5"
GATE = "grove.io/podgang-pending-creation"
STARTED = "2026-01-02T03:04:05Z"
WAITER = "grove-initc"


def hash_of(clique: str) -> str:
    """A hash as Grove writes it: nobody else can tell what it was made from."""
    digits = hashlib.md5(clique.encode(), usedforsecurity=False).digest()
    return "".join("bcdfghjklmnpqrstvwxz2456789"[digit % 27] for digit in digits[:10])


@dataclass(frozen=True)
class Place:
    """Where a clique stands."""

    clique: str
    gang: str
    replica: int
    base: str = ""
    group: str = ""
    copy: int = 0


@dataclass(frozen=True)
class Upstream:
    """A set that Grove manages."""

    name: str
    namespace: str
    uid: str
    spec: PodCliqueSetSpec

    def groups(self) -> Iterator[JsonObject]:
        for replica in range(self.spec.replicas):
            for group in self.spec.template.pod_clique_scaling_groups:
                name = f"{self.name}-{replica}-{group.name}"
                labels = self.labels(name, "pcs-podcliquescalinggroup", replica)
                spec: JsonObject = {
                    "replicas": group.replicas,
                    "minAvailable": group.min_available,
                    "cliqueNames": [*group.clique_names],
                }
                yield self._object(
                    ("grove.io/v1alpha1", "PodCliqueScalingGroup"), name, labels,
                    ("PodCliqueSet", self.name, self.uid), spec,
                    finalizer="grove.io/podcliquescalinggroup.grove.io",
                )  # fmt: skip

    def cliques(self, uids: Mapping[str, str]) -> Iterator[JsonObject]:
        """PodCliques; `uids` are those of the groups."""
        for name, place in self.places():
            template = next(c for c in self.spec.template.cliques if c.name == place.clique)
            owner = ("PodCliqueSet", self.name, self.uid)
            spec = template.spec.model_dump(by_alias=True, mode="json", exclude_none=True)
            if place.group:
                owner = ("PodCliqueScalingGroup", place.group, uids[place.group])
                spec["podSpec"] = self._with_group_variables(spec["podSpec"], place)
            if parents := self.parents(place):
                spec["startsAfter"] = [*parents]
            component = "pcsg-podclique" if place.group else "pcs-podclique"
            labels = {
                **template.labels,
                **self.labels(name, component, place.replica),
                **_place_labels(place),
                "grove.io/pod-template-hash": hash_of(place.clique),
            }
            yield self._object(
                ("grove.io/v1alpha1", "PodClique"), name, labels, owner, spec,
                annotations=template.annotations, finalizer="grove.io/podclique.grove.io",
            )  # fmt: skip

    def pods(self, uids: Mapping[str, str], *, gated: bool = True) -> Iterator[JsonObject]:
        """Pods; `uids` are those of the PodCliques."""
        for name, place in self.places():
            template = next(c for c in self.spec.template.cliques if c.name == place.clique)
            for index in range(template.spec.replicas):
                spec: JsonObject = {
                    **template.spec.pod_spec,
                    "hostname": f"{name}-{index}",
                    "subdomain": f"{self.name}-{place.replica}",
                    "schedulerName": "default-scheduler",
                }
                if gated:
                    spec["schedulingGates"] = [{"name": GATE}]
                if parents := self.parents(place):
                    spec |= self._waiting(spec, parents)
                component = "pcsg-podclique" if place.group else "pcs-podclique"
                labels = {
                    **template.labels,
                    **self.labels(name, component, place.replica),
                    **_place_labels(place),
                    "grove.io/pod-template-hash": hash_of(place.clique),
                    "grove.io/podclique": name,
                    "grove.io/podclique-pod-index": str(index),
                }
                suffix = hash_of(f"{name}/{index}")[:5]
                yield self._object(
                    ("v1", "Pod"), f"{name}-{suffix}", labels,
                    ("PodClique", name, uids[name]), spec, annotations=template.annotations,
                )  # fmt: skip

    def gangs(self) -> Iterator[JsonObject]:
        """PodGangs, referring to all of their pods."""
        parts: dict[str, list[Json]] = {}
        for name, place in self.places():
            template = next(c for c in self.spec.template.cliques if c.name == place.clique)
            references: list[Json] = [
                {"namespace": self.namespace, "name": f"{name}-{hash_of(f'{name}/{index}')[:5]}"}
                for index in range(template.spec.replicas)
            ]
            part: JsonObject = {
                "name": name, "podReferences": references, "minReplicas": template.spec.minimum,
            }  # fmt: skip
            parts.setdefault(place.gang, []).append(part)
        for gang, groups in parts.items():
            labels = {
                **self.labels(gang, "podgang"), "grove.io/scheduler-name": "default-scheduler",
            }  # fmt: skip
            yield self._object(
                ("scheduler.grove.io/v1alpha1", "PodGang"), gang, labels,
                ("PodCliqueSet", self.name, self.uid), {"podgroups": [*groups]},
            )  # fmt: skip

    def places(self) -> Iterator[tuple[str, Place]]:
        """All cliques by their full names."""
        template = self.spec.template
        grouped = {n for group in template.pod_clique_scaling_groups for n in group.clique_names}
        for replica in range(self.spec.replicas):
            base = f"{self.name}-{replica}"
            for clique in template.cliques:
                if clique.name not in grouped:
                    yield f"{base}-{clique.name}", Place(clique.name, base, replica)
            for group in template.pod_clique_scaling_groups:
                full = f"{base}-{group.name}"
                for copy in range(group.replicas):
                    scaled = copy - group.min_available
                    gang = base if scaled < 0 else f"{full}-{scaled}"
                    for name in group.clique_names:
                        yield (
                            f"{full}-{copy}-{name}",
                            Place(name, gang, replica, "" if scaled < 0 else base, full, copy),
                        )

    def status_of_set(self) -> JsonObject:
        return {
            "observedGeneration": 1,
            "replicas": self.spec.replicas,
            "currentGenerationHash": GENERATION,
        }

    def status_of_clique(self, clique: str) -> JsonObject:
        """The status of a PodClique, by the name of its template."""
        return {
            "observedGeneration": 1,
            "currentPodTemplateHash": hash_of(clique),
            "currentPodCliqueSetGenerationHash": GENERATION,
        }

    def parents(self, place: Place) -> dict[str, int]:
        """Whom a clique waits for in a set whose cliques start as listed, and for how many pods."""
        template = self.spec.template
        names = [clique.name for clique in template.cliques]
        index = names.index(place.clique)
        if template.clique_startup_type is not StartupType.IN_ORDER or not index:
            return {}
        before = template.cliques[index - 1]
        groups = template.pod_clique_scaling_groups
        group = next((each for each in groups if before.name in each.clique_names), None)
        base = f"{self.name}-{place.replica}"
        full = f"{base}-{group.name}" if group else ""
        if place.base:
            found = [f"{full}-{place.copy}-{before.name}"] if place.group == full else []
        elif group:
            found = [f"{full}-{copy}-{before.name}" for copy in range(group.min_available)]
        else:
            found = [f"{base}-{before.name}"]
        return dict.fromkeys(found, before.spec.minimum)

    def _waiting(self, spec: JsonObject, parents: Mapping[str, int]) -> JsonObject:
        """What a pod has more that waits for others."""
        info, token = "pod-info-vol", "sa-token-secret-vol"
        account = "/var/run/secrets/kubernetes.io/serviceaccount"
        files: list[Json] = [
            {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}},
            {"path": "podgangname",
             "fieldRef": {"fieldPath": "metadata.labels['grove.io/podgang']"}},
        ]  # fmt: skip
        volumes: list[Json] = [
            {"name": info, "downwardAPI": {"items": files}},
            {"name": token, "secret": {"secretName": f"{self.name}-ic-sat", "defaultMode": 420}},
        ]
        waiter: JsonObject = {
            "name": WAITER,
            "image": f"registry.example/{WAITER}:v0.1.0-alpha.8",
            "args": [f"--podcliques={name}:{count}" for name, count in parents.items()],
            "volumeMounts": [
                {"name": info, "mountPath": "/var/grove/pod-info", "readOnly": True},
                {"name": token, "mountPath": account, "readOnly": True},
            ],
        }
        written = [spec.get(field, []) for field in ("initContainers", "volumes")]
        before, there = ([*each] if isinstance(each, list) else [] for each in written)
        return {"initContainers": [*before, waiter], "volumes": [*there, *volumes]}

    def _with_group_variables(self, pod_spec: JsonObject, place: Place) -> JsonObject:
        members = {
            c.name: c.spec.replicas
            for group in self.spec.template.pod_clique_scaling_groups
            for c in self.spec.template.cliques
            if place.group.endswith(f"-{group.name}") and c.name in group.clique_names
        }
        variables: list[Json] = [
            _from_label("GROVE_PCSG_NAME", "grove.io/podcliquescalinggroup"),
            {"name": "GROVE_PCSG_TEMPLATE_NUM_PODS", "value": str(sum(members.values()))},
            _from_label("GROVE_PCSG_INDEX", "grove.io/podcliquescalinggroup-replica-index"),
        ]
        containers = pod_spec["containers"]
        assert isinstance(containers, list)
        told: list[Json] = []
        for each in containers:
            assert isinstance(each, dict)
            env = each.get("env", [])
            assert isinstance(env, list)
            # As Go writes a struct, whether anything is in it or not.
            told.append({"resources": {}, **each, "env": [*variables, *env]})
        return {**pod_spec, "containers": told}

    def labels(self, name: str, component: str, replica: int | None = None) -> dict[str, str]:
        """The labels of whatever Grove makes for the set."""
        index = {} if replica is None else {"grove.io/podcliqueset-replica-index": str(replica)}
        return {
            "app.kubernetes.io/managed-by": "grove-operator",
            "app.kubernetes.io/part-of": self.name,
            "app.kubernetes.io/name": name.replace(":", "-"),
            "app.kubernetes.io/component": component,
            **index,
        }

    def metadata(
        self, name: str, labels: Mapping[str, str], owner: tuple[str, str, str] | None = None
    ) -> JsonObject:
        """The metadata of an object; without another owner the set is."""
        kind, called, uid = owner or ("PodCliqueSet", self.name, self.uid)
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": {**labels},
            "ownerReferences": [
                {
                    "apiVersion": "grove.io/v1alpha1", "kind": kind, "name": called, "uid": uid,
                    "controller": True, "blockOwnerDeletion": True,
                }
            ],
        }  # fmt: skip

    def _object(
        self,
        kind: tuple[str, str],
        name: str,
        labels: Mapping[str, str],
        owner: tuple[str, str, str],
        spec: JsonObject,
        *,
        annotations: Mapping[str, str] | None = None,
        finalizer: str = "",
    ) -> JsonObject:
        metadata = self.metadata(name, labels, owner)
        if annotations:
            metadata["annotations"] = {**annotations}
        if finalizer:
            metadata["finalizers"] = [finalizer]
        return {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": spec}


def _place_labels(place: Place) -> dict[str, str]:
    labels = {"grove.io/podgang": place.gang}
    if place.base:
        labels["grove.io/base-podgang"] = place.base
    if place.group:
        labels["grove.io/podcliquescalinggroup"] = place.group
        labels["grove.io/podcliquescalinggroup-replica-index"] = str(place.copy)
    return labels


def _from_label(name: str, label: str) -> JsonObject:
    field: JsonObject = {"apiVersion": "v1", "fieldPath": f"metadata.labels['{label}']"}
    return {"name": name, "valueFrom": {"fieldRef": field}}

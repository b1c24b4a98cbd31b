"""Manifests judged as admission would judge them if they were created now. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final

from pydantic import ValidationError

from api.jsons import JsonObject
from api.topology import ClusterTopologyBindingSpec
from policies import (
    binding_admission,
    pod_admission,
    pod_claims,
    podcliqueset_admission,
    reading,
)
from policies.admission import Judge, Operation, Request, User
from policies.answers import Answer
from policies.known import Known, Snapshot
from policies.policy import Policy

DEFAULT_NAMESPACE: Final = "default"
MOST_NESTED: Final = 4

JUDGES: Final[Mapping[str, Judge]] = MappingProxyType(
    {
        podcliqueset_admission.KIND: podcliqueset_admission.judge,
        binding_admission.KIND: binding_admission.judge,
        "Pod": pod_admission.judge,
    }
)

# What makes pods of a template, and which of Kubernetes' controllers does it.
MAKERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Job": "job-controller",
        "CronJob": "job-controller",
        "Deployment": "replicaset-controller",
        "ReplicaSet": "replicaset-controller",
        "StatefulSet": "statefulset-controller",
        "ReplicationController": "replication-controller",
        "DaemonSet": "daemon-set-controller",
    }
)


NOBODY: Final = User()


@dataclass(frozen=True)
class Submitter:
    """Who is taken to apply the manifests, and where; nobody leaves rules about users out."""

    user: User = NOBODY
    namespace: str = ""
    """Where to, whatever the manifests say; empty for where they say."""


@dataclass(frozen=True)
class Tried:
    """One object that admission is asked about: as written, or a pod of its template."""

    kind: str
    namespace: str
    name: str
    request: Request

    @property
    def title(self) -> str:
        """Name it as people do: kind and name, with the namespace where there is one."""
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {place}{self.name or '(unnamed)'}"


def asked(manifest: JsonObject, submitter: Submitter, now: datetime | None) -> Tried | None:
    """Give what admission would be asked; None where it would not be."""
    kind = reading.text(manifest.get("kind")) or ""
    metadata = reading.mapping(manifest.get("metadata"))
    name = reading.text(metadata.get("name")) or reading.text(metadata.get("generateName")) or ""
    written = submitter.namespace or reading.text(metadata.get("namespace"))
    request = Request(
        Operation.CREATE,
        kind,
        manifest,
        namespace=written or DEFAULT_NAMESPACE,
        name=reading.text(metadata.get("name")) or "",
        user=submitter.user,
        now=now,
    )
    if kind in MAKERS:
        pod = _template(manifest, kind)
        if not pod_claims.is_gang_pod(pod):
            return None
        # The pods come later, from a controller, which is not the one who applies this.
        user = User(f"system:serviceaccount:kube-system:{MAKERS[kind]}", _OF_CONTROLLERS)
        request = replace(request, kind="Pod", object=pod, name="", user=user)
    elif kind == "Pod" and not pod_claims.is_gang_pod(manifest):
        return None
    elif kind == binding_admission.KIND:
        request = replace(request, namespace="")
    elif kind not in JUDGES:
        return None
    return Tried(kind, request.namespace, name, request)


_OF_CONTROLLERS: Final = (
    "system:serviceaccounts",
    "system:serviceaccounts:kube-system",
    "system:authenticated",
)


def judged(policy: Policy, known: Known, tried: Tried) -> Answer:
    """Judge it by the very judges of the webhook."""
    return JUDGES[tried.request.kind](policy, known, tried.request)


def known_from(manifests: Iterable[JsonObject]) -> Snapshot:
    """Give a cluster that has the topologies among these manifests, and no other."""
    found: dict[str, ClusterTopologyBindingSpec] = {}
    for each in manifests:
        name = reading.text(reading.mapping(each.get("metadata")).get("name"))
        if each.get("kind") == binding_admission.KIND and name:
            try:
                found[name] = ClusterTopologyBindingSpec.model_validate(each.get("spec"))
            except ValidationError:
                continue  # what is wrong with it is told when it is judged itself
    return Snapshot(found)


def objects(manifest: JsonObject, depth: int = MOST_NESTED) -> Iterator[JsonObject]:
    """Give the objects in a manifest, which may be a list of them, as `kubectl get` writes it."""
    kind = reading.text(manifest.get("kind")) or ""
    items = manifest.get("items")
    if not kind.endswith("List") or not isinstance(items, list) or depth == 0:
        yield manifest
        return
    for item in items:
        if isinstance(item, dict):
            # Items of a typed list need not say what they are.
            yield from objects({"kind": kind.removesuffix("List"), **item}, depth - 1)


def _template(manifest: JsonObject, kind: str) -> JsonObject:
    spec = reading.mapping(manifest.get("spec"))
    if kind == "CronJob":
        spec = reading.mapping(reading.mapping(spec.get("jobTemplate")).get("spec"))
    found = reading.mapping(spec.get("template"))
    name = f"{reading.text(reading.mapping(manifest.get('metadata')).get('name')) or ''}-"
    metadata: JsonObject = {
        **reading.mapping(found.get("metadata")),
        "generateName": name,
    }
    return {**found, "apiVersion": "v1", "kind": "Pod", "metadata": metadata}

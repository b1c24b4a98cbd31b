"""A Lease object in the cluster, read and written for the elector."""

import math
from datetime import UTC, datetime

import msgspec

from kube.client import Client
from kube.errors import NotFound
from kube.lease import Claim, LeaseRecord
from kube.objects import ObjectMeta
from kube.resources import LEASES


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct):
    metadata: ObjectMeta
    spec: _Spec | None = None


class ClusterLease:
    """One coordination.k8s.io/v1 Lease, made when first needed."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name

    async def read(self) -> LeaseRecord | None:
        """Return what the Lease says, or None if there is none."""
        try:
            return _record(await self._client.get(LEASES, _Lease, self._name, self._namespace))
        except NotFound:
            return None

    async def create(self, claim: Claim) -> LeaseRecord:
        """Make the Lease."""
        body = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": _spec(claim),
        }
        answer = await self._client.create(LEASES, body, self._namespace)
        return _record(msgspec.json.decode(answer, type=_Lease))

    async def update(self, claim: Claim, resource_version: str) -> LeaseRecord:
        """Change the Lease if it still has this version."""
        body = {"metadata": {"resourceVersion": resource_version}, "spec": _spec(claim)}
        answer = await self._client.merge_patch(LEASES, self._name, body, self._namespace)
        return _record(msgspec.json.decode(answer, type=_Lease))


def _record(lease: _Lease) -> LeaseRecord:
    spec = lease.spec or _Spec()
    return LeaseRecord(
        spec.holder_identity or "",
        float(spec.lease_duration_seconds or 0),
        spec.lease_transitions or 0,
        lease.metadata.resource_version,
    )


def _spec(claim: Claim) -> dict[str, object]:
    spec: dict[str, object] = {
        # No holder is an absent field: the API does not take an empty one everywhere.
        "holderIdentity": claim.holder or None,
        # Whole seconds only; rounding up keeps candidates patient enough.
        "leaseDurationSeconds": max(1, math.ceil(claim.lease_seconds)),
        "leaseTransitions": claim.transitions,
        "renewTime": _micro_time(claim.renewed),
    }
    if claim.acquired is not None:
        spec["acquireTime"] = _micro_time(claim.acquired)
    return spec


def _micro_time(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

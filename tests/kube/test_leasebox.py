import msgspec
import pytest

from api.jsons import JsonObject
from kube.access import Credentials
from kube.client import Client
from kube.errors import Conflict
from kube.lease import Claim, LeaseRecord
from kube.leasebox import ClusterLease
from kube.tokens import FixedHeader
from tests.support import fakeapi
from tests.support.fakeapi import FakeApi
from tests.support.manualclock import START, LeapingClock

LEASE: JsonObject = {
    "metadata": {"name": "l", "namespace": "n", "resourceVersion": "7"},
    "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 3},
}
RECORD = LeaseRecord("me", 15.0, 3, "7")


async def test_a_lease_is_read_made_changed_and_given_back_as_the_api_has_it() -> None:
    async with (
        fakeapi.serving(FakeApi()) as api,
        Client(Credentials(api.url, None, FixedHeader()), "gangs", LeapingClock()) as client,
    ):
        box = ClusterLease(client, "n", "l")
        api.answers.extend(
            [
                fakeapi.status(404),
                fakeapi.json(LEASE),
                fakeapi.json(LEASE),
                fakeapi.json(LEASE),
                fakeapi.json(LEASE),
                fakeapi.json({"metadata": {"resourceVersion": "9"}}),
                fakeapi.status(409, "Conflict"),
            ]
        )
        assert await box.read() is None
        assert await box.read() == RECORD
        assert await box.create(Claim("me", 14.2, 3, START, START)) == RECORD
        assert await box.update(Claim("me", 15.0, 3, START, None), "6") == RECORD
        assert await box.update(Claim("", 15.0, 3, START, None), "7") == RECORD
        assert await box.read() == LeaseRecord("", 0.0, 0, "9")
        with pytest.raises(Conflict):
            await box.update(Claim("me", 15.0, 3, START, None), "6")

        create, renew, release = api.seen[2:5]
        when = "2026-01-01T00:00:00.000000Z"
        spec = {
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "leaseTransitions": 3,
            "renewTime": when,
        }
        path = "/apis/coordination.k8s.io/v1/namespaces/n/leases"
        assert (create.method, create.path) == ("POST", path)
        assert msgspec.json.decode(create.body) == {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "l", "namespace": "n"},
            "spec": {**spec, "acquireTime": when},
        }
        assert (renew.method, renew.path) == ("PATCH", f"{path}/l")
        assert renew.headers["Content-Type"] == "application/merge-patch+json"
        assert msgspec.json.decode(renew.body) == {
            "metadata": {"resourceVersion": "6"},
            "spec": spec,
        }
        assert msgspec.json.decode(release.body) == {
            "metadata": {"resourceVersion": "7"},
            "spec": {**spec, "holderIdentity": None},
        }

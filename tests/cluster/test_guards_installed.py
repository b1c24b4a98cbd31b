"""`penstock lab install` returns when the guards act, and brings back one that was taken away."""

import os

import pytest

from kube import credentials
from kube.client import Client
from kube.clock import SystemClock
from kube.resources import Resource
from kube.transport import Patience, Transport
from penstock.lab import readiness
from tests.support.installed import Installed
from tests.support.living import Cluster

pytestmark = pytest.mark.cluster

GUARD = "penstock-guard-owners"
BINDINGS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)


async def test_install_returns_when_the_guards_act(installed: Installed, person: Client) -> None:
    clock = SystemClock()
    found = credentials.load(installed.lab.kubeconfig, None, clock, os.environ)
    transport = Transport(found, "penstock/test", clock, Patience())
    transport.open()
    try:
        assert await readiness.guards_act(transport) == ""
        await person.delete(BINDINGS, GUARD)

        async def missed() -> str | None:
            return await readiness.guards_act(transport) or None

        said = await Cluster(person, "default").until(missed, "the guard to be missed")
        assert said == f"the guard {GUARD} does not act yet"
        steps = await installed.again()
        assert "waiting: guards act" in steps
        assert await readiness.guards_act(transport) == ""
    finally:
        await transport.close()

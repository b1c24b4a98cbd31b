"""Whether an installed Penstock works, seen from outside: by what the API server says and does."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import msgspec

from api import names
from api.jsons import JsonObject
from api.streams import Pod
from kube.client import Client
from kube.errors import ApiError, NotFound
from kube.resources import (
    LEASES,
    MUTATING_WEBHOOKS,
    PODS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from kube.transport import Call, Transport
from penstock import proving
from penstock.lab.balancer import https_readyz
from penstock.lab.layout import Settings
from penstock.lab.ports import LOOPBACK

DAEMONSETS = Resource("apps", "v1", "daemonsets", "DaemonSet", namespaced=True)

Answer = Awaitable[str]
"""Empty when all is well, else what is still missing."""


@dataclass(frozen=True)
class Check:
    """One thing that must be true, and which components are to blame while it is not, if any."""

    step: str
    blame: Sequence[str]
    ask: Callable[[], Answer]


@dataclass(frozen=True)
class Person:
    """The two ways in which a person reaches the API server here: Client has no dry run."""

    client: Client
    transport: Transport


def checks(settings: Settings, person: Person) -> list[Check]:
    """Return what must be true of an installation, in the order in which it comes true."""
    webhooks = [name for name in settings.components() if name.startswith("webhook")]
    features = settings.features
    found = [
        Check("certificate issued", ["gangs"], lambda: ca_bundles(person.client)),
        Check("webhooks ready", webhooks, lambda: balanced(settings.balancer_port)),
        Check("gangs leads", ["gangs"], lambda: led(person.client, names.GANGS_LEASE)),
    ]
    if features.gang_scheduling:
        # Nobody of ours is to blame for these: the API server takes about a second to act by them.
        found.insert(0, Check("guards act", [], lambda: guards_act(person.transport)))
    if not settings.companion:
        # Nobody else does it where the processes run outside the cluster.
        found += [
            Check("admission answers", webhooks, lambda: proving.missing(person.client)),
            Check("webhooks fail closed", webhooks, lambda: proving.closed(person.client)),
        ]
    if not features.sets:
        let_go = lambda: none_waits(person.client, sets=features.gang_scheduling)  # noqa: E731 - too long for its line
        found.append(Check("no pod waits behind the gate", ["gangs"], let_go))
    if settings.workloads:
        ask = lambda: led(person.client, names.WORKLOADS_LEASE)  # noqa: E731 - too long for its line
        found.append(Check("workloads leads", ["workloads"], ask))
    return found


class _ClientConfig(msgspec.Struct, rename="camel"):
    ca_bundle: str = ""


class _Webhook(msgspec.Struct, rename="camel"):
    client_config: _ClientConfig


class _Configuration(msgspec.Struct):
    webhooks: list[_Webhook] = []


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None


class _Lease(msgspec.Struct):
    spec: _LeaseSpec = _LeaseSpec()


async def ca_bundles(person: Client) -> str:
    """Ask whether the API server trusts the webhooks' certificate in both configurations."""
    for resource in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS):
        found = await person.get(resource, _Configuration, names.WEBHOOK_CONFIGURATION)
        if not all(webhook.client_config.ca_bundle for webhook in found.webhooks):
            return f"no caBundle in the {resource.kind} yet"
    return ""


async def none_waits(person: Client, *, sets: bool) -> str:
    """Ask whether all pods were let go; with `sets`, those of sets only."""
    pods = (await person.list_pages(PODS, Pod, labels=names.PODGANG_LABEL if sets else "")).items
    gated = [pod for pod in pods if names.GATE in pod.gates]
    return f"{len(gated)} pods wait behind {names.GATE}" if gated else ""


async def balanced(port: int) -> str:
    """Ask whether a webhook answers behind the balancer."""
    return "" if await https_readyz(LOOPBACK, port) else "no webhook is ready behind the balancer"


async def led(person: Client, lease: str) -> str:
    """Ask whether a process holds a Lease."""
    try:
        found = await person.get(LEASES, _Lease, lease, names.NAMESPACE)
    except NotFound:
        return f"nobody holds the lease {lease} yet"
    return "" if found.spec.holder_identity else f"nobody holds the lease {lease}"


async def guards_act(transport: Transport) -> str:
    """Ask whether the API server judges by the guards already.

    It takes all of them up together, about once a second. What is tried is refused to everybody,
    also to the person, who may make pods of gangs and lift gates.
    """
    for guard, resource, body in (
        ("penstock-guard-gang-pods", PODS, a_forged_mirror_pod()),
        ("penstock-guard-owners", DAEMONSETS, a_gang_of_a_daemonset()),
    ):
        try:
            await _dry_run(transport, resource, body)
        except ApiError as error:
            if guard not in error.message:
                return f"the guard {guard} does not act: {error}"
        else:
            return f"the guard {guard} does not act yet"
    return ""


def a_forged_mirror_pod() -> JsonObject:
    """Return a pod that says a kubelet runs it, as no kubelet would: no webhook looks at it."""
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            "name": "install-check",
            "labels": {names.GANG_LABEL: "install-check", names.GANG_SIZE_LABEL: "2"},
            "annotations": {"kubernetes.io/config.mirror": "install-check"},
        },
        "spec": {"nodeName": "install-check", "containers": [{"name": "main", "image": "none"}]},
    }


def a_gang_of_a_daemonset() -> JsonObject:
    """Return a DaemonSet whose pods would wait for ever."""
    label: JsonObject = {"penstock": "install-check"}
    return {
        "apiVersion": DAEMONSETS.api_version,
        "kind": DAEMONSETS.kind,
        "metadata": {"name": "install-check"},
        "spec": {
            "selector": {"matchLabels": label},
            "template": {
                "metadata": {
                    "labels": {**label, names.GANG_LABEL: "check", names.GANG_SIZE_LABEL: "2"}
                },
                "spec": {"containers": [{"name": "main", "image": "none"}]},
            },
        },
    }


async def _dry_run(transport: Transport, resource: Resource, body: JsonObject) -> None:
    path = resource.path(proving.NAMESPACE)
    await transport.send(Call("POST", path, {"dryRun": "All"}, msgspec.json.encode(body)))

"""Steps that the API server refused, in the codes that Grove's tools know. Pure."""

from collections.abc import Mapping
from typing import Final

from controller.voicing import Tell
from controller.workloads.stepping import Again, Change, Create, Remove, Say, Step
from controller.workloads.views import Trouble
from kube.resources import (
    AUTOSCALERS,
    COMPUTE_DOMAINS,
    PODCLIQUES,
    PODCLIQUESETS,
    PODGANGS,
    PODS,
    RESOURCE_CLAIMS,
    ROLE_BINDINGS,
    ROLES,
    SCALING_GROUPS,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
    Resource,
)

_OBJECTS: Final[Mapping[Resource, str]] = {
    AUTOSCALERS: "HPA",
    COMPUTE_DOMAINS: "COMPUTE_DOMAIN",
    PODCLIQUES: "PODCLIQUE",
    PODCLIQUESETS: "PODCLIQUESET",
    PODGANGS: "PODGANG",
    PODS: "POD",
    RESOURCE_CLAIMS: "RESOURCE_CLAIM",
    ROLE_BINDINGS: "ROLE_BINDING",
    ROLES: "ROLE",
    SCALING_GROUPS: "PODCLIQUE_SCALING_GROUP",
    SECRETS: "SECRET",
    SERVICEACCOUNTS: "SERVICE_ACCOUNT",
    SERVICES: "HEADLESS_SERVICE",
}


def trouble(step: Step, description: str, *, over_quota: bool = False) -> Trouble:
    """Say which step was refused, and why."""
    match step:
        case Create(resource, body):
            metadata = body.get("metadata")
            name = metadata.get("name") if isinstance(metadata, dict) else ""
            return Trouble(_code("CREATE", resource), description, str(name), over_quota)
        case Change(resource, name):
            return Trouble(_code("UPDATE", resource), description, name)
        case Remove(resource, name):
            return Trouble(_code("DELETE", resource), description, name)
        case Say(resource, name):
            return Trouble(_code("UPDATE_STATUS", resource), description, name)
        case Tell(resource, name):
            return Trouble("ERR_CREATE_EVENT", description, name)
        case Again():
            raise ValueError("a wish to look again is never refused")


def unread(resource: Resource, name: str, why: str) -> Trouble:
    """Say which object says what it cannot, and is left as it is."""
    return Trouble(_code("READ", resource), f"{name} cannot be read and is left alone: {why}", name)


def too_large(description: str, name: str) -> Trouble:
    """Say of which set nothing more is made."""
    return Trouble("ERR_TOO_MANY_PODS", description, name)


def refused(code: str) -> tuple[str, Resource | None]:
    """Read what a code says: the verb, and the kind of object if it is one of ours."""
    said = code.removeprefix("ERR_")
    found = (kind for kind, word in _OBJECTS.items() if said.endswith(f"_{word}"))
    return said.partition("_")[0], next(found, None)


def _code(verb: str, resource: Resource) -> str:
    return f"ERR_{verb}_{_OBJECTS.get(resource, resource.kind.upper())}"

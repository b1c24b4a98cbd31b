"""Rules 2.9 and 12.12: who may change what was made for a set, and how far /scale goes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from api import names
from api.jsons import Json, JsonObject
from kube.resources import (
    AUTOSCALERS,
    PODCLIQUES,
    PODGANGS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SCALING_GROUPS,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
    Resource,
)
from tests.cluster.rules.manifests import clique, container

# The set that everything here was made for, and one that lets everybody.
KEPT: Final = "kept"
FREE: Final = "free"
NOBODY: Final = "nobody"

KEEPER: Final = f"system:serviceaccount:{names.NAMESPACE}:{names.WORKLOADS_ACCOUNT}"
PERSON: Final = "alice"

_RBAC: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class Managed:
    """Somebody does something to an object that was made for a set."""

    rule: str
    what: str
    resource: Resource
    verb: str
    allowed: bool
    user: str = PERSON
    parent: str | None = KEPT
    warned: bool = False

    @property
    def id(self) -> str:
        """What the case is called in the test's report."""
        verdict = "stored" if self.allowed else "refused"
        return f"{self.rule}-{verdict}-{self.what.replace(' ', '-')}"

    @property
    def name(self) -> str:
        """What the object is called."""
        return f"of-{self.parent or 'none'}"

    def body(self) -> JsonObject:
        """The object as it is stored, or to be stored."""
        labels: JsonObject = {names.MANAGED_BY_LABEL: names.MANAGED_BY}
        if self.parent is not None:
            labels[names.PART_OF_LABEL] = self.parent
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": {"name": self.name, "labels": labels},
            **_CONTENT.get(self.resource, {}),
        }


def _gated_pod() -> JsonObject:
    # Under somebody's gate, so that it stays as it is.
    return {"containers": [container()], "schedulingGates": [{"name": "a.example/stay"}]}


_CONTENT: Final[Mapping[Resource, JsonObject]] = {
    PODS: {"spec": _gated_pod()},
    SERVICES: {"spec": {"clusterIP": "None", "selector": {"app": "llm"}}},
    ROLES: {"rules": []},
    ROLE_BINDINGS: {
        # As a set's waiters need one: guards let its keeper write no other.
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": f"grove.io:pcs:{KEPT}"},
        "subjects": [{"kind": "ServiceAccount", "name": KEPT}],
    },
    AUTOSCALERS: {
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": "c"},
        }
    },
    PODCLIQUES: {"spec": clique("worker")["spec"]},
    SCALING_GROUPS: {"spec": {"replicas": 1, "minAvailable": 1, "cliqueNames": ["worker"]}},
    PODGANGS: {"spec": {"podgroups": []}},
}
_SUPPORTING: Final = (SECRETS, SERVICEACCOUNTS, SERVICES, ROLES, ROLE_BINDINGS, AUTOSCALERS)
_OWN: Final = (PODCLIQUES, SCALING_GROUPS, PODGANGS)


def _table() -> tuple[tuple[str, Resource, str], ...]:
    changed = [(f"2.9.{r.plural}", r, verb) for r in _SUPPORTING for verb in ("update", "delete")]
    changed += [("2.9.pods", PODS, "update")]
    changed += [
        (f"2.9.{r.plural}", r, verb) for r in _OWN for verb in ("create", "update", "delete")
    ]
    return tuple(changed)


def _whose(who: str) -> str:
    return "its keeper" if who == KEEPER else "a person"


MANAGED: Final[tuple[Managed, ...]] = (
    *(
        Managed(rule, f"{verb} by {_whose(user)}", resource, verb, user == KEEPER, user)
        for rule, resource, verb in _table()
        for user in (KEEPER, PERSON)
    ),
    Managed("2.9.pods", "delete by a person", PODS, "delete", allowed=True),
    *(
        Managed(f"2.9.{resource.plural}", "create by a person", resource, "create", allowed=True)
        for resource in _SUPPORTING
    ),
    Managed("2.9.absent-set", "a set there is not", SERVICES, "update", allowed=True,
            parent=NOBODY, warned=True),
    Managed("2.9.absent-set", "a set there is", SERVICES, "update", allowed=False),
    Managed("2.9.no-label", "no label of a set", SERVICES, "update", allowed=True,
            parent=None, warned=True),
    Managed("2.9.no-label", "a label of a set", SERVICES, "delete", allowed=False),
    Managed("2.9.annotation", "a set that lets everybody", SERVICES, "update", allowed=True,
            parent=FREE),
    Managed("2.9.annotation", "a set that does not", AUTOSCALERS, "update", allowed=False),
    Managed("2.9.own-account", "the account in our namespace", PODGANGS, "update", allowed=True,
            user=KEEPER),
    Managed("2.9.own-account", "the account's namesake elsewhere", PODGANGS, "update",
            allowed=False, user=KEEPER.replace(names.NAMESPACE, "default")),
)  # fmt: skip

MANAGED_ROWS: Final = (
    *(f"2.9.{resource.plural}" for resource in (*_SUPPORTING, PODS, *_OWN)),
    "2.9.absent-set", "2.9.no-label", "2.9.annotation", "2.9.own-account",
)  # fmt: skip


@dataclass(frozen=True)
class Scaled:
    """An object of three replicas with a minimum of two, and what /scale makes of it."""

    resource: Resource
    spec: JsonObject = field(hash=False)
    replicas: int
    allowed: bool

    @property
    def id(self) -> str:
        """What the case is called in the test's report."""
        verdict = "stored" if self.allowed else "refused"
        return f"12.12-{verdict}-{self.resource.plural}-to-{self.replicas}"

    def body(self) -> JsonObject:
        """The object as it is stored, made for no set."""
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": {"name": "scaled"},
            "spec": self.spec,
        }


def _clique_spec() -> JsonObject:
    spec = clique("worker", 3, minAvailable=2)["spec"]
    assert isinstance(spec, dict)
    return spec


_SCALABLE: Final[tuple[tuple[Resource, JsonObject], ...]] = (
    (PODCLIQUES, _clique_spec()),
    (SCALING_GROUPS, {"replicas": 3, "minAvailable": 2, "cliqueNames": ["worker"]}),
)
SCALED: Final = tuple(
    Scaled(resource, spec, replicas, allowed)
    for resource, spec in _SCALABLE
    for replicas, allowed in ((5, True), (2, True), (0, True), (1, False), (-1, False))
)


def touched() -> Json:
    """A change that matters to nobody."""
    return {"metadata": {"annotations": {"example.com/touched": "yes"}}}

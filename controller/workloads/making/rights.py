"""What waiters need to read pods: an account of the set, its Role, and its token. Pure.

They are there only while a clique of the set waits in an init container. An account that has the
set's name and is not the set's own is given no rights and no token: else whoever may write sets
could call one like an account that may do more, and have its token handed out. The token is bound
to the account's UID, too, so that it is worth nothing once somebody else's account has the name.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from api import names
from api.jsons import Json, JsonObject
from api.streams import Meta, Pod
from controller.voicing import Tell
from controller.workloads import belonging, naming
from controller.workloads.making import waiting
from controller.workloads.making.covering import covers, kept
from controller.workloads.stepping import Again, Create, Remove, Step
from controller.workloads.views import SetView, Thing, Trouble
from controller.workloads.wants import Wanted, WantedClique
from kube.resources import (
    PODCLIQUESETS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICEACCOUNTS,
    Resource,
)

_CONFLICT: Final = "ERR_SECRET_CONFLICT"
IN_VAIN: Final = timedelta(seconds=60)  # a waiter that can see needs a moment for it
ANOTHER_WAY: Final = "StartupWayUnavailable"
ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"

_KEPT: Final = (ROLE_BINDINGS, ROLES, SERVICEACCOUNTS)
_RBAC: Final = "rbac.authorization.k8s.io"
_READ: Final[JsonObject] = {
    "apiGroups": [""],
    "resources": ["pods", "pods/status"],
    "verbs": ["get", "list", "watch"],
}


def steps(view: SetView, wanted: Wanted, now: datetime) -> Iterator[Step]:
    """Keep the rights of waiters where there are any, and nowhere else."""
    owner = view.metadata
    if trouble := waiting.way_trouble(view):
        yield Tell(PODCLIQUESETS, owner.name, owner.uid, ANOTHER_WAY, f"{trouble}.", warning=True)
    yield from _looks(view, wanted, now)
    if waiting.waits(view, wanted):
        yield from _rights(view)
        if _waiters_are_missing(view, wanted):
            yield from _token(view)
    elif any(map(view.things_of, _KEPT)) and not _has_waiters(view):
        for resource in (ROLE_BINDINGS, ROLES):
            yield from kept(resource, view.things_of(resource), {})
        # Grove made one for every set, and somebody may have come to run pods as it.
        if not _runs_as(view, naming.waiter_account(owner.name)):
            yield from kept(SERVICEACCOUNTS, view.things_of(SERVICEACCOUNTS), {})


def troubles(view: SetView, wanted: Wanted, now: datetime) -> Iterator[Trouble]:
    """Tell of waiters that do not see that those before them are up.

    Of all they need to see it, the Secret alone cannot be looked at, so that somebody else's under
    its name is found out only by what comes of it.
    """
    blind = [name for name, since in _blind(view, wanted) if now >= since + IN_VAIN]
    if blind:
        secret, others = naming.waiter_token(view.metadata.name), len(blind) - 1
        more = f" and {others} more pods" if others else ""
        yield Trouble(
            _CONFLICT,
            f"{min(blind)}{more} wait in {names.WAITER} though those before them are up: either"
            f" the Secret {secret} is somebody else's and has no token of the set's account, or the"
            " API server cannot be reached from there. See the log of that container, and delete"
            " the Secret to have it made anew with the next pod",
            secret,
        )


def _looks(view: SetView, wanted: Wanted, now: datetime) -> Iterator[Again]:
    due = [since + IN_VAIN for _, since in _blind(view, wanted) if now < since + IN_VAIN]
    if due:
        yield Again(min(due))


def _blind(view: SetView, wanted: Wanted) -> Iterator[tuple[str, datetime]]:
    """List pods whose waiters run and need not wait any more, and since when."""
    for clique in wanted.cliques.values():
        waiters = [
            (pod.metadata.name, since)
            for pod in (view.pods_of(clique.name) if clique.waits_for else ())
            if (since := _waiting_since(pod)) is not None
        ]
        up = _up_since(view, clique) if waiters else None
        if up is not None:
            yield from ((name, max(since, up)) for name, since in waiters)


def _waiting_since(pod: Pod) -> datetime | None:
    if pod.metadata.deletion_timestamp is not None or not waiting.has_waiter(pod):
        return None
    for container in pod.status.init_container_statuses:
        running = container.state.running
        if container.name == names.WAITER and running is not None:
            return running.started_at
    return None


def _up_since(view: SetView, clique: WantedClique) -> datetime | None:
    """Tell since when all whom a clique waits for are as they are; None if they are not up."""
    latest: list[datetime] = []
    for parent in clique.waits_for:
        ready = [pod for pod in view.pods_of(parent.clique) if pod.containers_ready]
        if len(ready) < parent.minimum:
            return None
        latest += [
            condition.last_transition_time
            for pod in ready
            for condition in pod.status.conditions
            if condition.type == "ContainersReady" and condition.last_transition_time is not None
        ]
    return max(latest, default=None)


def _rights(view: SetView) -> Iterator[Step]:
    """Keep each only when what it speaks of is known to be the set's own."""
    owner = view.metadata
    account = naming.waiter_account(owner.name)
    yield from kept(
        SERVICEACCOUNTS,
        view.things_of(SERVICEACCOUNTS),
        {account: {**_head(owner, SERVICEACCOUNTS, account), "automountServiceAccountToken": True}},
    )
    if _own(view, SERVICEACCOUNTS, account) is None:
        return
    role = naming.waiter_role(owner.name)
    rules: list[Json] = [{**_READ}]
    yield from kept(
        ROLES, view.things_of(ROLES), {role: {**_head(owner, ROLES, role), "rules": rules}}
    )
    if _own(view, ROLES, role) is not None:
        yield from _binding(owner, role, account, view.things_of(ROLE_BINDINGS))


def _binding(owner: Meta, role: str, account: str, there: Mapping[str, Thing]) -> Iterator[Step]:
    body: JsonObject = {
        **_head(owner, ROLE_BINDINGS, role),
        "roleRef": {"apiGroup": _RBAC, "kind": ROLES.kind, "name": role},
        "subjects": [{"kind": SERVICEACCOUNTS.kind, "name": account, "namespace": owner.namespace}],
    }
    thing = there.get(role)
    if thing is not None and not covers(thing.body.get("roleRef"), body["roleRef"]):
        # What a binding binds can never be changed.
        if thing.metadata.deletion_timestamp is None:
            yield Remove(ROLE_BINDINGS, role, thing.metadata.uid)
        return
    yield from kept(ROLE_BINDINGS, there, {role: body})


def _token(view: SetView) -> Iterator[Step]:
    """Make the token's Secret, which cannot be seen; one that is there already is enough."""
    owner = view.metadata
    account = _own(view, SERVICEACCOUNTS, naming.waiter_account(owner.name))
    if account is None:
        return
    head = _head(owner, SECRETS, naming.waiter_token(owner.name))
    metadata = head["metadata"]
    if isinstance(metadata, dict):
        metadata["annotations"] = {
            ACCOUNT_NAME: account.metadata.name,
            ACCOUNT_UID: account.metadata.uid,
        }
    yield Create(SECRETS, {**head, "type": "kubernetes.io/service-account-token"})


def _waiters_are_missing(view: SetView, wanted: Wanted) -> bool:
    return any(
        clique.waits_for and len(view.pods_of(clique.name)) < clique.replicas
        for clique in wanted.cliques.values()
    )


def _has_waiters(view: SetView) -> bool:
    return any(waiting.has_waiter(pod) for pods in view.pods.values() for pod in pods)


def _runs_as(view: SetView, account: str) -> bool:
    fields = ("serviceAccountName", "serviceAccount")
    cliques = view.spec.template.cliques
    return any(account == clique.spec.pod_spec.get(f) for clique in cliques for f in fields)


def _own(view: SetView, resource: Resource, name: str) -> Thing | None:
    """Give an object of the set's own that is going to stay; a view holds no others' objects."""
    thing = view.things_of(resource).get(name)
    return thing if thing is not None and thing.metadata.deletion_timestamp is None else None


_COMPONENTS: Final[Mapping[Resource, str]] = {
    SERVICEACCOUNTS: "pod-service-account",
    ROLES: "pod-role",
    ROLE_BINDINGS: "pod-role-binding",
    SECRETS: "pod-sa-token-secret",
}


def _head(owner: Meta, resource: Resource, name: str) -> JsonObject:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": {
                names.MANAGED_BY_LABEL: names.MANAGED_BY,
                names.PART_OF_LABEL: owner.name,
                # A label's value has no colons.
                names.NAME_LABEL: name.replace(":", "-"),
                names.COMPONENT_LABEL: _COMPONENTS[resource],
            },
            "ownerReferences": [belonging.owned_by(PODCLIQUESETS, owner)],
        },
    }

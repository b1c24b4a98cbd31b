"""What is made for a set, changed by hand: only with the set's leave.

An object made for a set says so by two labels. It is judged by what it was, so that nobody slips it
out of its set first: a request that takes the labels off is held against the set they named.
"""

from collections.abc import Mapping
from typing import Final

from api import names
from api.jsons import Json, JsonObject
from policies.admission import Operation, Request, is_leaving
from policies.answers import Allow, Answer, Code, Refuse
from policies.known import Known
from policies.policy import Policy

# In a release elsewhere the webhook's own conditions let its accounts pass before they get here.
MAKERS: Final = tuple(
    f"system:serviceaccount:{names.NAMESPACE}:{account}"
    for account in (names.WORKLOADS_ACCOUNT, names.GANGS_ACCOUNT)
)
SCALED: Final = ("PodClique", "PodCliqueScalingGroup")
# What the API server itself changes in every update.
BOOKKEEPING: Final = ("managedFields", "resourceVersion", "generation")


def judge(policy: Policy, known: Known, request: Request) -> Answer:
    """Refuse a change to what was made for a set, but by who makes it or with the set's leave."""
    protection = policy.managed_resources
    if not protection.enabled or request.operation is Operation.CONNECT or request.subresource:
        return Allow()
    judged = request.object if request.operation is Operation.CREATE else request.old_object
    if judged is None:
        return Refuse(
            Code.BAD_REQUEST,
            f"the review of a {request.operation} carries no {request.kind} to judge by",
        )
    parent = _parent(judged)
    if parent is None or request.user.name in (*MAKERS, *protection.exempt_user_names):
        return Allow()
    if _is_free(request):
        return Allow()
    return _by_leave_of(parent, judged, known, request)


def _parent(judged: JsonObject) -> str | None:
    """Give the set that it was made for; None if it was not made for one."""
    labels = _part(judged, "metadata", "labels")
    if labels.get(names.MANAGED_BY_LABEL) != names.MANAGED_BY:
        return None
    parent = labels.get(names.PART_OF_LABEL, "")
    return parent if isinstance(parent, str) else ""


def _is_free(request: Request) -> bool:
    """Whether anybody with the right to it may do this."""
    if request.operation is Operation.DELETE:
        # Deleting a pod is how a person restarts it; another takes its slot.
        return request.kind == "Pod"
    old, new = request.old_object, request.object
    if request.operation is not Operation.UPDATE or old is None or new is None:
        return False
    if is_leaving(old) and _alike(old, new, "metadata", "finalizers"):
        # Else it could be stuck for ever, and its namespace with it.
        return True
    # What the scale subresource may do, an update may.
    return request.kind in SCALED and _alike(old, new, "spec", "replicas")


def _by_leave_of(parent: str, judged: JsonObject, known: Known, request: Request) -> Answer:
    name = request.name or str(_part(judged, "metadata").get("name", ""))
    what = f"{request.kind} {name}"
    if not parent:
        return Allow(warnings=(f"{what} has no label {names.PART_OF_LABEL}: no set keeps it",))
    annotations = known.set_annotations(request.namespace, parent)
    if annotations is None:
        return Allow(warnings=(f"{what}: there is no PodCliqueSet {parent}; nothing keeps it",))
    if _lets(annotations):
        return Allow()
    return Refuse(
        Code.FORBIDDEN,
        f"{what} is made and kept by Penstock for PodCliqueSet {parent}: change the set instead, "
        f"or annotate the set {names.UNPROTECTED_ANNOTATION}=true to change by hand what belongs "
        "to it",
    )


def _lets(annotations: Mapping[str, str]) -> bool:
    return annotations.get(names.UNPROTECTED_ANNOTATION) == "true"


def _alike(old: JsonObject, new: JsonObject, parent: str, field: str) -> bool:
    """Whether they differ in that field at most."""
    return _without(old, parent, field) == _without(new, parent, field)


def _without(raw: JsonObject, parent: str, field: str) -> JsonObject:
    rest: JsonObject = {**raw}
    rest["metadata"] = _but(raw.get("metadata"), *BOOKKEEPING)
    rest[parent] = _but(rest.get(parent), field)
    return rest


def _but(part: Json, *fields: str) -> Json:
    if not isinstance(part, dict):
        return part
    return {key: value for key, value in part.items() if key not in fields}


def _part(raw: JsonObject, *path: str) -> JsonObject:
    found: Json = raw
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}

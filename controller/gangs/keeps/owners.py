"""Who may use what a person has kept, by the rules of its author. Pure.

Only gangs of the reservation's own namespace are ever asked about. A gang is meant if one rule
holds of the gang itself, or of each of its pods.
"""

from collections.abc import Mapping, Sequence

import msgspec

from api import names
from api.keep import LabelSelector, OwnerReference, OwnerRule
from api.streams import LabelSelector as Selector
from api.streams import Meta, Pod
from controller.gangs.keeps.views import Keep
from controller.podgang import Gang
from kube.objects import Key
from scheduler.filters.constraints import requirements, selects

_FOLLOWED = ("PodGang", "Pod")  # whose end is noticed


def meant(keep: Keep, gang: Gang, pods: Sequence[Pod]) -> bool:
    """Whether a gang with these pods may use the room."""
    if keep.metadata.namespace != gang.metadata.namespace:
        return False
    return any(_holds(rule, gang, pods) for rule in keep.spec.owners)


def asked_for(gang: Gang, pods: Sequence[Pod]) -> Key | None:
    """Name the reservation that a gang asks for: in its spec, else by annotation, its own first."""
    reference = gang.spec.reuse_reservation_ref
    if reference is not None:
        return reference.namespace, reference.name
    for metadata in (gang.metadata, *(pod.metadata for pod in pods)):
        said = metadata.annotations.get(names.RESERVATION_REF, "")
        if said:
            namespace, _, name = said.rpartition("/")
            return namespace or gang.metadata.namespace, name
    return None


def named(keep: Keep) -> list[OwnerReference]:
    """List the objects that rules mean by their UID, if they are all that is meant; else none.

    Once these are gone, nobody will ever come: a namesake is not meant.
    """
    found: list[OwnerReference] = []
    for rule in keep.spec.owners:
        if rule.object is None or rule.object.uid is None or rule.object.kind not in _FOLLOWED:
            return []
        found.append(rule.object)
    return found


def _holds(rule: OwnerRule, gang: Gang, pods: Sequence[Pod]) -> bool:
    if _of_gang(rule, gang):
        return True
    return bool(pods) and all(_of_pod(rule, pod.metadata) for pod in pods)


def _of_gang(rule: OwnerRule, gang: Gang) -> bool:
    meta = gang.metadata
    is_it = rule.object is None or (
        _is(rule.object, "PodGang", meta.name, meta.uid) or _controls(rule.object, meta)
    )
    controlled = rule.controller is None or _controls(rule.controller, meta)
    return is_it and controlled and _selects(rule.label_selector, meta.labels)


def _of_pod(rule: OwnerRule, pod: Meta) -> bool:
    is_it = rule.object is None or _is(rule.object, "Pod", pod.name, pod.uid)
    controlled = rule.controller is None or _controls(rule.controller, pod)
    return is_it and controlled and _selects(rule.label_selector, pod.labels)


def _controls(reference: OwnerReference, meta: Meta) -> bool:
    return any(
        owner.controller and _is(reference, owner.kind, owner.name, owner.uid)
        for owner in meta.owner_references
    )


def _is(reference: OwnerReference, kind: str, name: str, uid: str) -> bool:
    same = reference.kind == kind and reference.name == name
    return same and reference.uid in (None, uid)


def _selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    if selector is None:
        return True
    written = selector.model_dump(mode="json", by_alias=True)
    return selects(requirements(msgspec.convert(written, Selector)), labels)

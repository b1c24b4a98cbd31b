"""What is otherwise where somebody else makes gangs: of theirs only conditions of ours are written.

Grove's definition keeps conditions as one list, which is written as a whole: so what others say is
written along as it was read, in the state it was read in, and whoever was faster wins. Pure.
"""

from collections.abc import Mapping

from api import names
from api.jsons import JsonObject
from api.podgang import PodGangStatus
from api.streams import Pod, PodClique
from controller.gangs import plain_slots, views
from controller.gangs.views import Member, SlotKey
from controller.podgang import Gang
from kube.objects import Key


def gang_of(pod: Pod) -> Key:
    """Give the gang that a pod says was made for it; its name may be empty."""
    return pod.metadata.namespace, pod.metadata.labels.get(names.PODGANG_LABEL, "")


def members_of(
    gang: Gang, pods: Mapping[Key, Pod], cliques: Mapping[str, PodClique]
) -> tuple[Member, ...]:
    """Find the gang's pods, as in any gang; of one that nobody owns, the labels of its pods tell.

    Guards let only the makers of gangs write these labels, and such PodGangs.
    """
    if gang.metadata.controller_uid or plain_slots.is_plain(gang.metadata):
        return views.members_of(gang, pods, cliques)
    found: dict[SlotKey, Member] = {}
    for group, key in gang.references():
        pod = pods.get(key)
        if pod is None or pod.failed or pod.metadata.deletion_timestamp is not None:
            continue
        of_clique = pod.metadata.labels.get(names.PODCLIQUE_LABEL) == group.name
        if of_clique and gang_of(pod) == gang.key:
            slot = (group.name, views.index_of(pod, group.name))
            found.setdefault(slot, Member(slot, pod))
    return tuple(member for _, member in sorted(found.items()))


def ours(gang: Gang, wanted: PodGangStatus) -> PodGangStatus:
    """Give what of a status is ours to say: how far a gang has come is its maker's."""
    if plain_slots.is_plain(gang.metadata):
        return wanted
    there = gang.status
    said = {"phase": there.phase, "placement_score": there.placement_score}
    return wanted.model_copy(update=said)


def status_patch(gang: Gang, wanted: PodGangStatus) -> JsonObject:
    """Write the merge patch that has it said; it fails if the PodGang has changed since."""
    mine = {condition.type for condition in wanted.conditions}
    # As they were read: nothing that their writer left out is filled in.
    kept = [c.model_dump(mode="json", by_alias=True, exclude_unset=True)
            for c in gang.status.conditions if c.type not in mine]  # fmt: skip
    said = [c.model_dump(mode="json", by_alias=True) for c in wanted.conditions]
    status: JsonObject = {"conditions": [*kept, *said]}
    if plain_slots.is_plain(gang.metadata):
        status["phase"] = wanted.phase.value
        if wanted.placement_score is not None:
            status["placementScore"] = wanted.placement_score
    return {"metadata": {"resourceVersion": gang.metadata.resource_version}, "status": status}

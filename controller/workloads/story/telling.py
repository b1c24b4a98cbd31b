"""Events, for people who ask what happened to a set. Pure.

What was made or removed is told once a pass and kind, with a number, on the object that has it.
What was refused, and what was lost, is a warning. Told of the same object in the same words a
second time, an Event is dropped by whoever writes it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from api.jsons import JsonObject
from controller.voicing import Tell
from controller.workloads.stepping import Create, Remove, Step
from controller.workloads.story import troubles
from controller.workloads.story.statuses import LEFT_ALONE
from controller.workloads.views import SetView, Trouble
from controller.workloads.wants import Wanted
from kube.resources import (
    COMPUTE_DOMAINS,
    PODCLIQUES,
    PODCLIQUESETS,
    PODGANGS,
    PODS,
    SCALING_GROUPS,
    Resource,
)

LOST_ALL: Final = "AllScheduledReplicasLost"
_PARTS: Final = {kind.kind: kind for kind in (PODCLIQUES, SCALING_GROUPS, PODCLIQUESETS)}
_FEW: Final = 8  # objects that are told of their pods one by one; of more, their set is told
_NAMED: Final = 4  # objects that are named in one Event; of more, their number is told
_USED: Final = re.compile(r" used: .*?(?=, limited:|$)")  # changes with every pod of anybody
_LONGEST: Final = 900  # characters; an Event's note may have 1,024


@dataclass(frozen=True)
class _Words:
    """Grove's reasons for what happens to one kind."""

    made: str
    not_made: str
    gone: str
    not_gone: str


_WORDS: Final[Mapping[Resource, _Words]] = {
    PODS: _Words(
        "PodCreateSuccessful", "PodCreateFailed", "PodDeleteSuccessful", "PodDeleteFailed"
    ),
    PODCLIQUES: _Words(
        "PodCliqueCreateSuccessful",
        "PodCliqueCreateOrUpdateFailed",
        "PodCliqueDeleteSuccessful",
        "PodCliqueDeleteFailed",
    ),
    SCALING_GROUPS: _Words(
        "PodCliqueScalingGroupCreateSuccessful",
        "PodCliqueScalingGroupCreateOrUpdateFailed",
        "PodCliqueScalingGroupDeleteSuccessful",
        "PodCliqueScalingGroupDeleteFailed",
    ),
    PODGANGS: _Words(
        "PodGangCreateOrUpdateSuccessful",
        "PodGangCreateOrUpdateFailed",
        "PodGangDeleteSuccessful",
        "PodGangDeleteFailed",
    ),
    COMPUTE_DOMAINS: _Words(
        "ComputeDomainCreateSuccessful",
        "ComputeDomainCreateFailed",
        "ComputeDomainDeleteSuccessful",
        "ComputeDomainDeleteFailed",
    ),
}


def steps(view: SetView, _wanted: Wanted, _now: datetime) -> Iterator[Step]:
    """Tell of pods that were all lost, and of what the API server refused."""
    yield from _lost(view)
    yield from _refused(view)


def done(view: SetView, carried_out: Iterable[Step]) -> Iterator[Tell]:
    """Tell of steps that were carried out, a number at a time; of a set that goes, nothing."""
    if view.metadata.deletion_timestamp is not None:
        return
    made: dict[tuple[Resource, _Whom], list[str]] = defaultdict(list)
    gone: dict[tuple[Resource, _Whom], list[str]] = defaultdict(list)
    for step in carried_out:
        match step:
            case Create(resource, body) if resource in _WORDS:
                made[resource, _owner(view, body)].append(_name(body))
            case Remove(resource, name, uid) if resource in _WORDS:
                gone[resource, _holder(view, resource, name, uid)].append(name)
    for (resource, whom), names in _gathered(view, made):
        yield whom.told(_WORDS[resource].made, f"made {_counted(resource, names)}")
    for (resource, whom), names in _gathered(view, gone):
        yield whom.told(_WORDS[resource].gone, f"removed {_counted(resource, names)}")


def _counted(resource: Resource, names: list[str]) -> str:
    if len(names) == 1:
        return f"{resource.kind} {names[0]}"
    told = f": {', '.join(sorted(names))}" if len(names) <= _NAMED else ""
    return f"{len(names)} {resource.kind}s{told}"


def _name(body: JsonObject) -> str:
    metadata = body.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


@dataclass(frozen=True)
class _Whom:
    """The object that an Event is about."""

    resource: Resource
    name: str
    uid: str

    def told(self, reason: str, note: str, *, warning: bool = False, topic: str = "") -> Tell:
        """Tell something of it."""
        return Tell(self.resource, self.name, self.uid, reason, note[:_LONGEST], warning, topic)


@dataclass(frozen=True)
class _Refusal:
    """What was refused in the same words, but for names and for how much of a quota is used."""

    resource: Resource | None
    reason: str
    words: str


def _the_set(view: SetView) -> _Whom:
    return _Whom(PODCLIQUESETS, view.metadata.name, view.metadata.uid)


def _owner(view: SetView, body: JsonObject) -> _Whom:
    """Give the owner that an object is made with, if it is one of the set's parts."""
    metadata = body.get("metadata")
    owners = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    for owner in owners if isinstance(owners, list) else []:
        if isinstance(owner, dict) and owner.get("kind") in _PARTS:
            part = _PARTS[str(owner["kind"])]
            return _Whom(part, str(owner.get("name")), str(owner.get("uid")))
    return _the_set(view)


def _holder(view: SetView, resource: Resource, name: str, uid: str) -> _Whom:
    """Give the owner of an object that is removed, if it is one of the set's parts."""
    if resource is PODS:
        return _clique_of_pod(view, name)
    there = view.cliques.get(name) if resource is PODCLIQUES else None
    if there is not None and there.metadata.uid == uid:
        for owner in there.metadata.owner_references:
            if owner.controller and owner.kind in _PARTS:
                return _Whom(_PARTS[owner.kind], owner.name, owner.uid)
    return _the_set(view)


def _clique_of_pod(view: SetView, name: str) -> _Whom:
    # A pod is called like its clique, with a suffix of one word.
    there = view.cliques.get(name.rpartition("-")[0])
    if there is None:
        return _the_set(view)
    return _Whom(PODCLIQUES, there.metadata.name, there.metadata.uid)


def _gathered(
    view: SetView, names: Mapping[tuple[Resource, _Whom], list[str]]
) -> Iterable[tuple[tuple[Resource, _Whom], list[str]]]:
    """Tell many objects' news of one kind on their set, so that no pass makes many Events."""
    spread = Counter(resource for resource, _ in names)
    found: dict[tuple[Resource, _Whom], list[str]] = defaultdict(list)
    for (resource, whom), told in names.items():
        found[resource, whom if spread[resource] <= _FEW else _the_set(view)] += told
    return found.items()


def _refused(view: SetView) -> Iterator[Tell]:
    """Tell what was refused, once for all objects that were refused alike."""
    alike: dict[_Refusal, dict[_Whom, list[Trouble]]] = defaultdict(lambda: defaultdict(list))
    for trouble in view.troubles:
        refusal = _refusal(trouble)
        of_pod = refusal.resource is PODS
        whom = _clique_of_pod(view, trouble.name) if of_pod else _the_set(view)
        alike[refusal][whom].append(trouble)
    for refusal, by_whom in alike.items():
        many = len(by_whom) > _FEW
        all_of_them = [each for found in by_whom.values() for each in found]
        told = {_the_set(view): all_of_them} if many else by_whom
        for whom, found in told.items():
            yield whom.told(
                refusal.reason, _note(refusal, found), warning=True, topic=refusal.words
            )


def _refusal(trouble: Trouble) -> _Refusal:
    verb, resource = troubles.refused(trouble.code)
    gone = verb == "DELETE"
    if resource is None:
        reason = LEFT_ALONE
    elif resource in _WORDS:
        reason = _WORDS[resource].not_gone if gone else _WORDS[resource].not_made
    else:
        reason = f"{resource.kind}{'Delete' if gone else 'CreateOrUpdate'}Failed"
    words = trouble.description.replace(trouble.name, "…") if trouble.name else trouble.description
    return _Refusal(resource, reason, _USED.sub("", words))


def _note(refusal: _Refusal, found: list[Trouble]) -> str:
    first = found[0]
    if len(found) == 1 or refusal.resource is None:
        return f"{first.name}: {first.description}"
    counted = _counted(refusal.resource, [trouble.name for trouble in found])
    return f"{counted}: {first.description}"


def _lost(view: SetView) -> Iterator[Tell]:
    """Tell of cliques and groups that had something on nodes and have nothing there any more."""
    for name, clique in view.cliques.items():
        before = clique.status.scheduled_replicas
        if before and clique.spec.replicas and not _scheduled(view, name):
            whom = _Whom(PODCLIQUES, name, clique.metadata.uid)
            yield whom.told(LOST_ALL, f"all {before} pods that had a node are gone", warning=True)
    for name, group in view.groups.items():
        before = group.status.scheduled_replicas
        members = [
            clique
            for clique, there in view.cliques.items()
            if there.metadata.controller_uid == group.metadata.uid
        ]
        if before and group.spec.replicas and not any(_scheduled(view, m) for m in members):
            whom = _Whom(SCALING_GROUPS, name, group.metadata.uid)
            note = f"all {before} copies that had their nodes are gone"
            yield whom.told(LOST_ALL, note, warning=True)


def _scheduled(view: SetView, clique: str) -> bool:
    return any(
        pod.spec.node_name and not pod.failed and pod.metadata.deletion_timestamp is None
        for pod in view.pods_of(clique)
    )

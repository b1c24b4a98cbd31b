"""How a change of the templates reaches pods that run: what is done next, and what is said. Pure.

`rollout` looks at a set and gives a `Rollout`; `steps` is the planner that yields what it does.
Whoever writes statuses takes the words from the same value:

- `generation_hash` is the set's `currentGenerationHash`, and what PodCliques and groups follow.
- `progress` is the set's `updateProgress`; None while there has been no update.
- `progressing` is what the set's condition `Progressing` says: status, reason and message; None
  where it says nothing, since no update has been or nobody waits for it.
- `cliques` and `groups` hold, by full name, the `updateProgress` of those an update has reached.
- `newest` has for each clique, by full name, the label `grove.io/pod-template-hash` of pods that
  follow its newest template; it is empty for a PodClique that has not been given that template.

A PodClique is given the newest template first, and its pods are taken at a later look. So whoever
comes back has the newest template, wherever a process may die. PodCliques that stand alone are
given it in all replicas at once, as Grove does it; members of a group when it is their copy's turn.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from api import names
from api.jsons import JsonObject
from api.podclique import PodCliqueUpdate
from api.podcliqueset import SetUpdate, UpdateType
from api.scalinggroup import ScalingGroupUpdate
from api.streams import Pod
from controller.workloads.making import cliques
from controller.workloads.stepping import Again, Change, Remove, Step
from controller.workloads.updates import adopting, budgets, merging, rolling, update_progress
from controller.workloads.updates.rolling import Copies, Following, Replica
from controller.workloads.updates.update_progress import Course
from controller.workloads.views import Clique, SetView
from controller.workloads.wants import Wanted, WantedClique
from kube.resources import PODCLIQUES, PODS
from policies import membership


@dataclass(frozen=True)
class Rollout:
    """What an update does next, and how far it has come."""

    generation_hash: str
    changes: tuple[Change, ...] = ()
    removals: tuple[Remove, ...] = ()
    again: datetime | None = None
    progress: SetUpdate | None = None
    progressing: tuple[str, str, str] | None = None
    cliques: Mapping[str, PodCliqueUpdate] = field(default_factory=dict)
    groups: Mapping[str, ScalingGroupUpdate] = field(default_factory=dict)
    newest: Mapping[str, str] = field(default_factory=dict)


def rollout(view: SetView, wanted: Wanted, now: datetime) -> Rollout:
    """Decide what an update does next, and word how far it has come."""
    found = rolling.replicas(view, wanted)
    course = _course(view, wanted, found)
    said = update_progress.said(view, wanted.generation_hash, found, course, now)
    return Rollout(
        wanted.generation_hash,
        tuple(_changes(view, found, course)),
        tuple(_removals(view, course.turn)),
        said.again,
        said.progress,
        said.progressing,
        said.cliques,
        said.groups,
        {
            clique.want.name: clique.want.template_hash if clique.given else ""
            for replica in found
            for clique in replica.cliques
        },
    )


def steps(view: SetView, wanted: Wanted, now: datetime) -> Iterator[Step]:
    """Give PodCliques their newest templates, and take pods that are old, within the budget."""
    decided = rollout(view, wanted, now)
    yield from decided.changes
    yield from decided.removals
    if decided.again is not None:
        yield Again(decided.again)


def is_to_be_told(view: SetView) -> bool:
    """Tell whether the status does not know yet of templates that people have changed.

    Nothing else shows that there was an update once its last old pod is gone, and that may be soon.
    """
    told = view.status
    if view.metadata.generation <= max(1, told.observed_generation or 0):
        return False
    newest = adopting.versions(view)
    if told.current_generation_hash:
        return told.current_generation_hash != newest.generation
    # It may have been scaled only.
    there = [clique.metadata for clique in view.cliques.values()]
    there += [pod.metadata for pods in view.pods.values() for pod in pods]
    labels = {*newest.labels.values()}
    return any(meta.labels.get(names.TEMPLATE_HASH_LABEL) not in labels for meta in there)


def _course(view: SetView, wanted: Wanted, found: tuple[Replica, ...]) -> Course:
    """Tell whether an update is under way, and where."""
    strategy = view.spec.update_strategy
    by_hand = strategy is not None and strategy.type is UpdateType.ON_DELETE
    paused = strategy is not None and bool(strategy.paused)
    before, progress = view.status.current_generation_hash, view.status.update_progress
    # Whoever changes a set so soon that no status has told of the templates it was made with.
    early = not before and progress is None and view.metadata.generation > 1
    changed = before not in ("", wanted.generation_hash) or (
        early and any(replica.behind for replica in found)
    )
    lacking = any(not clique.given for replica in found for clique in replica.cliques)
    unfinished = progress is not None and progress.update_ended_at is None
    # Old pods that OnDelete has left stay until the next change; such an update ends as it begins.
    # Others are of an update that no status has told of yet.
    left = progress is not None and progress.update_ended_at == progress.update_started_at
    unsaid = not left and any(replica.behind for replica in found)
    active = not by_hand and (changed or lacking or unfinished or unsaid)
    turn = rolling.turn(view, found) if active and not paused else None
    return Course(changed, active, by_hand, paused, turn)


def _changes(view: SetView, found: tuple[Replica, ...], course: Course) -> Iterator[Change]:
    if course.paused:
        return
    for replica in found:
        everybody = replica.cliques if course.by_hand else replica.alone
        for clique in everybody:
            yield from _given(view, clique)
    if course.turn is not None:
        for group in course.turn.groups:
            for copy in rolling.copies_to_take(view, group):
                for member in copy.members:
                    yield from _given(view, member)


def _removals(view: SetView, turn: Replica | None) -> Iterator[Remove]:
    if turn is None:
        return
    for clique in turn.alone:
        for pod in rolling.pods_to_take(view, clique):
            yield _removal(pod)
    for group in turn.groups:
        yield from _removals_of(view, group)


def _removals_of(view: SetView, group: Copies) -> Iterator[Remove]:
    for copy in rolling.copies_to_take(view, group):
        # As a whole, and only when none of them can come back as it was.
        if all(member.given for member in copy.members):
            for member in copy.members:
                for pod in member.old:
                    yield _removal(pod)


def _removal(pod: Pod) -> Remove:
    meta = pod.metadata
    # One that is lifted meanwhile costs something.
    version = meta.resource_version if budgets.is_idle(pod) else ""
    return Remove(PODS, meta.name, meta.uid, version)


def _given(view: SetView, clique: Following) -> Iterator[Change]:
    there = clique.there
    if there is None or clique.given or cliques.is_leaving(view, clique.want, there):
        return
    meta = there.metadata
    yield Change(PODCLIQUES, meta.name, meta.uid, _patch(view, clique.want, there))


def _patch(view: SetView, want: WantedClique, there: Clique) -> JsonObject:
    """Write the newest template into a PodClique, and take out what an older one had."""
    meta = there.metadata
    marks = adopting.marks(view, want)
    # Of ours, only the mark belongs to the template; the others note what was done to the clique.
    notes = {
        key: text
        for key, text in meta.annotations.items()
        if key.startswith(membership.OURS) and key != names.TEMPLATE_HASH_ANNOTATION
    }
    labels = merging.patch({**meta.labels}, {**cliques.labels(view, want)})
    annotations = merging.patch(
        {**meta.annotations}, {**notes, **cliques.annotations(want), **marks}
    )
    return {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": {"podSpec": merging.patch(there.spec.pod_spec, cliques.pod_spec(view, want))},
    }

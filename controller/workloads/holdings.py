"""What `workloads` knows of sets and all that is made for them, and views built of it."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from api.jsons import JsonObject
from api.podclique import PodCliqueSpec, PodCliqueStatus
from api.podcliqueset import PodCliqueSetSpec, PodCliqueSetStatus, SetTemplate
from api.scalinggroup import PodCliqueScalingGroupSpec, PodCliqueScalingGroupStatus
from api.streams import Custom, Meta, Pod
from api.topology import ClusterTopologyBindingSpec
from controller.podgang import Gang, read_gang
from controller.workloads.caches import OPTIONAL_THINGS, THINGS, Caches
from controller.workloads.leaving import Estate
from controller.workloads.owning import Ancestry
from controller.workloads.quota.rivals import Rivals
from controller.workloads.story import troubles as words
from controller.workloads.views import Choices, Clique, Group, SetView, Thing, Trouble, Unread
from kube.cache import Added, Change, Deleted
from kube.objects import Key
from kube.resources import (
    CLAIM_TEMPLATES,
    PODCLIQUES,
    PODCLIQUESETS,
    PODGANGS,
    PODS,
    SCALING_GROUPS,
    TOPOLOGY_BINDINGS,
    Resource,
)

_log = logging.getLogger(__name__)

_MOST_FAULTS: Final = 3  # of one object are told
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class Parsed(Generic[T]):
    """What raw objects say, read once for each of their states."""

    def __init__(self, read: Callable[[Custom], T]) -> None:
        self._read = read
        self._known: dict[str, tuple[str, T]] = {}

    def of(self, found: Custom) -> T:
        """Read an object, or give what was read of this state of it before."""
        meta = found.metadata
        known = self._known.get(meta.uid)
        if known is not None and known[0] == meta.resource_version:
            return known[1]
        read = self._read(found)
        self._known[meta.uid] = meta.resource_version, read
        return read

    def forget(self, uid: str) -> None:
        """Let go of an object that is gone."""
        self._known.pop(uid, None)


class _Specs(Generic[M]):
    """Specs by generation: a status changes all the time, and the spec beside it does not."""

    def __init__(self, model: type[M]) -> None:
        self._model = model
        self._known: dict[str, tuple[int, M]] = {}

    def of(self, found: Custom) -> M:
        meta = found.metadata
        known = self._known.get(meta.uid)
        if known is not None and known[0] == meta.generation:
            return known[1]
        read = self._model.model_validate_json(bytes(found.spec))
        self._known[meta.uid] = meta.generation, read
        return read

    def forget(self, uid: str) -> None:
        self._known.pop(uid, None)


class Holdings:
    """The caches, indexed by set. `wake` is called with the key of a set for all that concerns it.

    A key without a name stands for what is left in a namespace of sets that are gone.
    """

    def __init__(self, caches: Caches, wake: Callable[[Key], None]) -> None:
        customs, things = caches.customs, caches.things
        self._wake = wake
        ancestry = self._ancestry = Ancestry(wake)
        self._sets = customs[PODCLIQUESETS]
        self._groups = ancestry.follow(SCALING_GROUPS, customs[SCALING_GROUPS])
        self._cliques = ancestry.follow(PODCLIQUES, customs[PODCLIQUES])
        self._gangs = ancestry.follow(PODGANGS, customs[PODGANGS])
        self._pods = ancestry.follow(PODS, caches.pods)
        self._served = things
        self._things = {
            kind: ancestry.follow(kind, things[kind]) for kind in (*THINGS, *OPTIONAL_THINGS)
        }
        self._rivals = Rivals(customs[PODGANGS])
        self._levels: dict[str, dict[str, str]] = {}
        self._templates: dict[Key, JsonObject] = {}
        # Owners that were seen to go, by namespace: what is left of them is for nobody.
        self._gone: dict[str, set[str]] = defaultdict(set)
        self._set_specs = _Specs(PodCliqueSetSpec)
        self._group_specs = _Specs(PodCliqueScalingGroupSpec)
        self._clique_specs = _Specs(PodCliqueSpec)
        self._read_sets = Parsed(self._set)
        self._read_groups = Parsed(self._group)
        self._read_cliques = Parsed(self._clique)
        self._read_gangs = Parsed(read_gang)
        self._sets.subscribe(self._on_set)
        for kind in (PODCLIQUESETS, SCALING_GROUPS, PODCLIQUES):
            customs[kind].subscribe(self._on_end)
        customs[PODGANGS].subscribe(self._on_gang)
        customs[TOPOLOGY_BINDINGS].subscribe(self._on_binding)
        things[CLAIM_TEMPLATES].subscribe(self._on_template)

    def _set(self, found: Custom) -> tuple[PodCliqueSetSpec, PodCliqueSetStatus] | Unread:
        return _reading(
            PODCLIQUESETS,
            found,
            lambda: (
                self._set_specs.of(found),
                PodCliqueSetStatus.model_validate_json(bytes(found.status)),
            ),
            lambda: (
                PodCliqueSetSpec.model_construct(
                    replicas=0, template=SetTemplate.model_construct(cliques=[])
                ),
                PodCliqueSetStatus(),
            ),
        )

    def _group(self, found: Custom) -> Group | Unread:
        return _reading(
            SCALING_GROUPS,
            found,
            lambda: Group(
                found.metadata,
                self._group_specs.of(found),
                PodCliqueScalingGroupStatus.model_validate_json(bytes(found.status)),
            ),
            lambda: Group(
                found.metadata,
                PodCliqueScalingGroupSpec.model_construct(replicas=0, clique_names=[]),
                PodCliqueScalingGroupStatus(),
            ),
        )

    def _clique(self, found: Custom) -> Clique | Unread:
        return _reading(
            PODCLIQUES,
            found,
            lambda: Clique(
                found.metadata,
                self._clique_specs.of(found),
                PodCliqueStatus.model_validate_json(bytes(found.status)),
            ),
            lambda: Clique(
                found.metadata,
                PodCliqueSpec.model_construct(replicas=0, pod_spec={}),
                PodCliqueStatus(),
            ),
        )

    def view(self, key: Key, choices: Choices, troubles: tuple[Trouble, ...]) -> SetView | None:
        """Look at a set, or None if there is none that can be read."""
        found = self._sets.get(*key)
        told = self._read_sets.of(found) if found is not None else None
        if found is None or told is None or isinstance(told, Unread):
            return None
        meta = found.metadata
        unread: list[Unread] = []
        groups = self._groups_of(meta.namespace, meta.uid, unread)
        cliques = self._cliques_of(meta.namespace, meta.uid, unread)
        for group in groups.values():
            cliques.update(self._cliques_of(meta.namespace, group.metadata.uid, unread))
        return SetView(
            metadata=meta,
            spec=told[0],
            status=told[1],
            groups=groups,
            cliques=cliques,
            gangs=self._gangs_of(meta.namespace, meta.uid),
            pods=self._pods_of(meta.namespace, cliques),
            things=self._things_of(
                meta.namespace,
                [meta.uid, *_uids(groups), *_uids(cliques)],
            ),
            levels=self._levels,
            claim_templates=self._templates,
            choices=choices,
            troubles=(*troubles, *(each.trouble for each in unread)),
            rivals=self._rivals.of(meta.namespace, meta.uid),
            unread=frozenset(each.metadata.name for each in unread),
        )

    def unread(self, key: Key) -> tuple[Unread, PodCliqueSetStatus] | None:
        """Give what is wrong with a set that cannot be read, and its status as far as that can."""
        found = self._sets.get(*key)
        told = self._read_sets.of(found) if found is not None else None
        if found is None or not isinstance(told, Unread):
            return None
        try:
            return told, PodCliqueSetStatus.model_validate_json(bytes(found.status))
        except ValidationError:
            return told, PodCliqueSetStatus()

    def generation(self, key: Key) -> int:
        """Tell which generation of a set is known; 0 if there is none."""
        found = self._sets.get(*key)
        return found.metadata.generation if found is not None else 0

    def strays(self, namespace: str) -> Estate:
        """Find what is left in a namespace of owners that are gone, or is going without one."""
        gone = self._gone.get(namespace, set())
        groups: dict[str, Group] = {}
        cliques: dict[str, Clique] = {}
        for uid in gone:
            groups.update(self._groups_of(namespace, uid))
        for raw in self._groups.leaving(namespace):
            if self._is_stray(raw.metadata):
                group = self._read_groups.of(raw)
                groups |= {} if isinstance(group, Unread) else {raw.metadata.name: group}
        for uid in (*gone, *_uids(groups)):
            cliques.update(self._cliques_of(namespace, uid))
        for raw in self._cliques.leaving(namespace):
            if self._is_stray(raw.metadata):
                clique = self._read_cliques.of(raw)
                cliques |= {} if isinstance(clique, Unread) else {raw.metadata.name: clique}
        gangs: dict[str, Gang] = {}
        pods = self._pods_of(namespace, cliques)
        for uid in gone:
            gangs.update(self._gangs_of(namespace, uid))
            if left := tuple(self._pods.of(namespace, uid).values()):
                pods[uid] = left
        things = self._things_of(namespace, [*gone, *_uids(groups), *_uids(cliques)])
        return Estate(groups, cliques, gangs, pods, things)

    def settled(self, namespace: str) -> None:
        """Forget the owners of a namespace that have left nothing."""
        left = {uid for uid in self._gone.get(namespace, ()) if self._leaves(namespace, uid)}
        if left:
            self._gone[namespace] = left
        else:
            self._gone.pop(namespace, None)

    def _leaves(self, namespace: str, uid: str) -> bool:
        return (
            bool(self._groups.of(namespace, uid))
            or bool(self._cliques.of(namespace, uid))
            or bool(self._gangs.of(namespace, uid))
            or bool(self._pods.of(namespace, uid))
            or any(kind.of(namespace, uid) for kind in self._things.values())
        )

    def _is_stray(self, meta: Meta) -> bool:
        found = self._sets.get(*self._ancestry.set_of(meta))
        return found is None or self._ancestry.root_of(meta) != found.metadata.uid

    def _groups_of(
        self, namespace: str, uid: str, unread: list[Unread] | None = None
    ) -> dict[str, Group]:
        return _readable(self._groups.of(namespace, uid), self._read_groups, unread)

    def _cliques_of(
        self, namespace: str, uid: str, unread: list[Unread] | None = None
    ) -> dict[str, Clique]:
        return _readable(self._cliques.of(namespace, uid), self._read_cliques, unread)

    def _gangs_of(self, namespace: str, uid: str) -> dict[str, Gang]:
        found = self._gangs.of(namespace, uid).items()
        return {name: gang for name, raw in found if (gang := self._read_gangs.of(raw))}

    def _pods_of(self, namespace: str, cliques: Mapping[str, Clique]) -> dict[str, tuple[Pod, ...]]:
        held = (
            (name, self._pods.of(namespace, clique.metadata.uid))
            for name, clique in cliques.items()
        )
        return {name: tuple(pods.values()) for name, pods in held if pods}

    def _things_of(self, namespace: str, owners: list[str]) -> dict[Resource, Mapping[str, Thing]]:
        found: dict[Resource, Mapping[str, Thing]] = {}
        for kind, held in self._things.items():
            if self._served[kind].is_synced:
                found[kind] = {
                    name: thing for uid in owners for name, thing in held.of(namespace, uid).items()
                }
        return found

    def _on_set(self, change: Change[Custom]) -> None:
        meta = (change.old if isinstance(change, Deleted) else change.new).metadata
        self._wake((meta.namespace, meta.name))

    def _on_end(self, change: Change[Custom]) -> None:
        if not isinstance(change, Deleted):
            return
        meta = change.old.metadata
        for memory in (
            self._read_sets, self._read_groups, self._read_cliques,
            self._set_specs, self._group_specs, self._clique_specs,
        ):  # fmt: skip
            memory.forget(meta.uid)
        self._gone[meta.namespace].add(meta.uid)
        self._wake((meta.namespace, ""))

    def _on_gang(self, change: Change[Custom]) -> None:
        if isinstance(change, Deleted):
            self._read_gangs.forget(change.old.metadata.uid)

    def _on_binding(self, change: Change[Custom]) -> None:
        name = (change.old if isinstance(change, Deleted) else change.new).metadata.name
        before = self._levels.get(name)
        now = None if isinstance(change, Deleted) else _levels(change.new)
        if now == before:
            return
        if now is None:
            self._levels = {key: value for key, value in self._levels.items() if key != name}
        else:
            self._levels = {**self._levels, name: now}
        self.wake_all()

    def _on_template(self, change: Change[Thing]) -> None:
        meta = (change.old if isinstance(change, Deleted) else change.new).metadata
        key = (meta.namespace, meta.name)
        if isinstance(change, Deleted):
            self._templates.pop(key, None)
            return
        self._templates[key] = change.new.body
        if isinstance(change, Added):
            self.wake_all()

    def wake_all(self) -> None:
        """Have every set looked at."""
        for found in self._sets:
            self._wake((found.metadata.namespace, found.metadata.name))


def _uids(things: Mapping[str, Group] | Mapping[str, Clique]) -> Iterable[str]:
    return [thing.metadata.uid for thing in things.values()]


def _readable(
    found: Mapping[str, Custom], read: "Parsed[T | Unread]", unread: list[Unread] | None
) -> dict[str, T]:
    """Read objects, and put those that cannot be read into a list of their own."""
    kept: dict[str, T] = {}
    for name, raw in found.items():
        told = read.of(raw)
        if not isinstance(told, Unread):
            kept[name] = told
        elif unread is not None:
            unread.append(told)
    return kept


def _reading(
    kind: Resource, found: Custom, read: Callable[[], T], blank: Callable[[], T]
) -> T | Unread:
    """Read an object, or say why it cannot be read and is left as it is.

    Of one that is on its way out nothing more is wanted than that it can go.
    """
    try:
        return read()
    except ValidationError as error:
        meta = found.metadata
        if meta.deletion_timestamp is not None:
            return blank()
        # Admission refuses such a one, but not what was stored before it was there.
        why = "; ".join(
            f"{'.'.join(map(str, each['loc']))}: {each['msg']}"
            for each in error.errors(include_url=False, include_input=False)[:_MOST_FAULTS]
        )
        trouble = words.unread(kind, meta.name, why)
        _log.error("%s: %s", meta.namespace, trouble.description)
        return Unread(meta, trouble)


def _levels(found: Custom) -> dict[str, str] | None:
    try:
        spec = ClusterTopologyBindingSpec.model_validate_json(bytes(found.spec))
    except ValidationError as error:
        _log.error("topology %s cannot be read: %s", found.metadata.name, error)
        return None
    return {level.domain: level.key for level in spec.levels}

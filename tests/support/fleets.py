"""A set under updates, without an API server: planners' steps are carried out, and pods made ready.

Pods start gated, get a node and become ready only when a test says so; a pod that is deleted is
gone at once unless the fleet is told to let them linger.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count

import msgspec

from api import names
from api.jsons import Json, JsonObject
from api.objects import timestamp
from api.podclique import PodCliqueSpec, PodCliqueStatus
from api.podcliqueset import PodCliqueSetSpec, PodCliqueSetStatus
from api.scalinggroup import PodCliqueScalingGroupSpec, PodCliqueScalingGroupStatus
from api.streams import (
    Condition,
    ContainerState,
    ContainerStatus,
    Meta,
    Pod,
    PodStatus,
    Terminated,
)
from controller.workloads.expansion import expand
from controller.workloads.making import cliques, groups, pods
from controller.workloads.stepping import Again, Change, Create, Remove, Say, Step
from controller.workloads.story import statuses
from controller.workloads.updates import adopting, updating
from controller.workloads.updates.updating import Rollout
from controller.workloads.views import Clique, Group, SetView
from kube.resources import PODCLIQUES, PODCLIQUESETS, PODS, SCALING_GROUPS
from tests.support.sets import NOW, set_meta
from tests.support.setviews import gang_of

_uids = count(1)


@dataclass
class Fleet:
    """A set and all that was made for it."""

    spec: PodCliqueSetSpec
    now: datetime = NOW
    lingering: bool = False  # deleted pods stay until `gone`
    silent: bool = False  # no status is ever written
    removed: list[str] = field(default_factory=list)
    again: list[datetime] = field(default_factory=list)
    view: SetView = field(init=False)

    def __post_init__(self) -> None:
        self.view = SetView(set_meta(), self.spec, PodCliqueSetStatus())

    @classmethod
    def running(cls, spec: PodCliqueSetSpec) -> "Fleet":
        """A set all of whose pods are ready."""
        fleet = cls(spec)
        fleet.settle()
        return fleet

    def edit(self, spec: PodCliqueSetSpec) -> None:
        """Change the set's spec."""
        meta = msgspec.structs.replace(
            self.view.metadata, generation=self.view.metadata.generation + 1
        )
        self.view = replace(self.view, metadata=meta, spec=spec)

    def look(self) -> list[str]:
        """Do all there is to do now; give the pods that were deleted by it."""
        before = len(self.removed)
        for _ in range(50):
            if not self.step():
                return self.removed[before:]
        raise AssertionError("there was always more to do")

    def step(self) -> list[Step]:
        """Look once, and do what is to be done; give it. Later looks are left out."""
        wanted = expand(self.view)
        planners = (
            adopting.steps, groups.steps, cliques.steps, updating.steps, pods.steps, statuses.steps,
        )  # fmt: skip
        done: list[Step] = []
        self.again = []
        for planner in planners:
            for step in planner(self.view, wanted, self.now):
                if isinstance(step, Again):
                    self.again.append(step.at)
                elif not self._is_leaving(step) and not (self.silent and isinstance(step, Say)):
                    done.append(step)
        for step in done:
            self.carry(step)
        return done

    def rollout(self) -> Rollout:
        """What the update is about to do, and says."""
        return updating.rollout(self.view, expand(self.view), self.now)

    def settle(self) -> None:
        """Make everything ready, and look, until there is nothing to do."""
        for _ in range(500):
            self.ready()
            self.gone()
            self.now += timedelta(seconds=3)
            if not self.step():
                return
        raise AssertionError("the set never settles")

    def pods(self, clique: str = "") -> list[Pod]:
        """Pods of a clique named in full, or of all; those on their way out are among them."""
        return [
            pod
            for name, found in sorted(self.view.pods.items())
            for pod in found
            if clique in ("", name)
        ]

    def ready(self, which: Callable[[Pod], bool] = lambda _: True) -> None:
        """Let pods become ready."""
        self.change(lambda pod: _as(pod, "True", self.now) if which(pod) else pod)
        self._place()

    def bound(self) -> None:
        """Give every pod a node; none is ready for that."""
        self.change(lambda pod: pod if pod.spec.node_name else _as(pod, "False", self.now))

    def unready(self, which: Callable[[Pod], bool] = lambda _: True) -> None:
        """Let pods lose their readiness."""
        self.change(lambda pod: _as(pod, "False", self.now) if which(pod) else pod)
        self._place()

    def crash(self, which: Callable[[Pod], bool] = lambda _: True) -> None:
        """Let containers of pods fail."""
        self.unready(which)
        self.change(lambda pod: _crashed(pod) if which(pod) else pod)

    def gone(self) -> None:
        """Let pods that were deleted go."""
        self.change(lambda pod: None if pod.metadata.deletion_timestamp else pod)

    def lose(self, which: Callable[[Pod], bool]) -> None:
        """Let pods disappear."""
        self.change(lambda pod: None if which(pod) else pod)

    def change(self, how: Callable[[Pod], Pod | None]) -> None:
        """Change pods, or take them away."""
        found = {
            name: tuple(new for pod in old if (new := how(pod)) is not None)
            for name, old in self.view.pods.items()
        }
        self.view = replace(self.view, pods=found)

    def _place(self) -> None:
        """A gang whose pods all have nodes is placed, and stays so."""
        placed = dict(self.view.gangs)
        for gang in expand(self.view).gangs:
            pods = [pod for clique in gang.cliques for pod in self.view.pods_of(clique.name)]
            if pods and all(pod.spec.node_name for pod in pods):
                placed[gang.name] = gang_of(gang)
        self.view = replace(self.view, gangs=placed)

    def scale(self, clique: str, replicas: int) -> None:
        """Scale a clique, named in full."""
        there = self.view.cliques[clique]
        spec = there.spec.model_copy(update={"replicas": replicas})
        self.view = replace(
            self.view, cliques={**self.view.cliques, clique: replace(there, spec=spec)}
        )

    def images(self) -> dict[str, list[str]]:
        """By clique, what its pods run, as their hash labels say: `new`, or `old`."""
        wanted = expand(self.view)
        return {
            name: sorted(
                "new" if _hash(pod) == wanted.cliques[name].template_hash else "old"
                for pod in self.pods(name)
            )
            for name in wanted.cliques
        }

    def _is_leaving(self, step: Step) -> bool:
        """Whether it is the deletion of a pod that was deleted already."""
        return isinstance(step, Remove) and any(
            pod.metadata.uid == step.uid and pod.metadata.deletion_timestamp for pod in self.pods()
        )

    def carry(self, step: Step) -> None:
        """Carry out one step."""
        match step:
            case Create(resource, body) if resource is PODS:
                pod = _pod(body, self.now)
                clique = pod.metadata.labels[names.PODCLIQUE_LABEL]
                there = self.view.pods.get(clique, ())
                assert pod.metadata.name not in {p.metadata.name for p in there}
                self.view = replace(self.view, pods={**self.view.pods, clique: (*there, pod)})
            case Create(resource, body) if resource is PODCLIQUES:
                made = Clique(
                    _meta(body, self.now),
                    PodCliqueSpec.model_validate(body["spec"]),
                    PodCliqueStatus(),
                )
                name = made.metadata.name
                self.view = replace(self.view, cliques={**self.view.cliques, name: made})
            case Create(resource, body) if resource is SCALING_GROUPS:
                spec = PodCliqueScalingGroupSpec.model_validate(body["spec"])
                group = Group(_meta(body, self.now), spec, PodCliqueScalingGroupStatus())
                name = group.metadata.name
                self.view = replace(self.view, groups={**self.view.groups, name: group})
            case Change(resource, name, _, patch) if resource is PODCLIQUES:
                patched = {name: _patched(self.view.cliques[name], patch)}
                self.view = replace(self.view, cliques={**self.view.cliques, **patched})
            case Remove(resource, name, uid) if resource is PODS:
                self.removed.append(name)
                left = timestamp(self.now) if self.lingering else None
                self.change(lambda pod: _leaving(pod, left) if pod.metadata.uid == uid else pod)
            case Say():
                self._say(step)
            case _:
                raise AssertionError(f"not expected here: {step}")

    def _say(self, step: Say) -> None:
        if step.resource is PODCLIQUESETS:
            self.view = replace(self.view, status=PodCliqueSetStatus.model_validate(step.status))
        elif step.resource is PODCLIQUES:
            clique = self.view.cliques[step.name]
            clique = replace(clique, status=PodCliqueStatus.model_validate(step.status))
            self.view = replace(self.view, cliques={**self.view.cliques, step.name: clique})
        else:
            group = self.view.groups[step.name]
            said = PodCliqueScalingGroupStatus.model_validate(step.status)
            group = replace(group, status=said)
            self.view = replace(self.view, groups={**self.view.groups, step.name: group})


def merged(there: Json, patch: Json) -> Json:
    """What a merge patch makes of something."""
    if not isinstance(patch, dict):
        return patch
    found = dict(there) if isinstance(there, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def _patched(there: Clique, patch: JsonObject) -> Clique:
    metadata = patch.get("metadata", {})
    assert isinstance(metadata, dict)
    meta = msgspec.structs.replace(
        there.metadata,
        labels=merged({**there.metadata.labels}, metadata.get("labels", {})),
        annotations=merged({**there.metadata.annotations}, metadata.get("annotations", {})),
    )
    spec = merged(there.spec.model_dump(by_alias=True, mode="json"), patch.get("spec", {}))
    return replace(there, metadata=meta, spec=PodCliqueSpec.model_validate(spec))


def _meta(body: JsonObject, now: datetime) -> Meta:
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    return msgspec.convert(
        {
            **metadata,
            "uid": f"uid-{next(_uids)}",
            "resourceVersion": str(next(_uids)),
            "generation": 1,
            "creationTimestamp": timestamp(now),
        },
        Meta,
    )


def _pod(body: JsonObject, now: datetime) -> Pod:
    return msgspec.structs.replace(msgspec.convert(body, Pod), metadata=_meta(body, now))


def _leaving(pod: Pod, since: str | None) -> Pod | None:
    if since is None:
        return None
    meta = msgspec.structs.replace(pod.metadata, deletion_timestamp=datetime.fromisoformat(since))
    return msgspec.structs.replace(pod, metadata=meta)


def _as(pod: Pod, ready: str, now: datetime) -> Pod:
    before = [c.status for c in pod.status.conditions if c.type == "ContainersReady"]
    if before == [ready]:
        return pod
    kinds = ("ContainersReady", "Ready")
    told = tuple(Condition(kind, ready, last_transition_time=now) for kind in kinds)
    spec = msgspec.structs.replace(pod.spec, node_name="n", scheduling_gates=())
    return msgspec.structs.replace(
        pod, spec=spec, status=PodStatus(phase="Running", conditions=told)
    )


def _crashed(pod: Pod) -> Pod:
    failed = ContainerStatus("main", last_state=ContainerState(terminated=Terminated(1)))
    status = msgspec.structs.replace(pod.status, container_statuses=(failed,))
    return msgspec.structs.replace(pod, status=status)


def _hash(pod: Pod) -> str:
    return pod.metadata.labels.get(names.TEMPLATE_HASH_LABEL, "")


def of_clique(*cliques_named: str) -> Callable[[Pod], bool]:
    """Tell pods of these cliques, named in full."""
    return lambda pod: pod.metadata.labels[names.PODCLIQUE_LABEL] in cliques_named

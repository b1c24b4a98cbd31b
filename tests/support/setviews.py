"""Sets as `workloads` sees them, with all that was made for them, their pods in any state."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec

from api import names
from api.jsons import Json, JsonObject
from api.models import Condition
from api.objects import timestamp
from api.podclique import PodCliqueSpec, PodCliqueStatus
from api.podcliqueset import PodCliqueSetSpec, PodCliqueSetStatus
from api.podgang import Phase, PodGangSpec, PodGangStatus
from api.scalinggroup import PodCliqueScalingGroupSpec, PodCliqueScalingGroupStatus
from api.streams import Meta, Pod
from controller.podgang import Gang
from controller.workloads import naming
from controller.workloads.expansion import expand
from controller.workloads.views import Clique, Group, SetView
from controller.workloads.wants import Wanted, WantedClique, WantedGang, WantedGroup
from tests.support.sets import OWNER, clique, set_meta, set_spec

__all__ = ["clique", "set_spec"]

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)

STARTED: JsonObject = {"name": "main", "started": True, "ready": False}
CRASHED: JsonObject = {"name": "main", "lastState": {"terminated": {"exitCode": 3}}}

# What there is of a pod in each state, beside its name.
STATES: dict[str, JsonObject] = {
    "gated": {"spec": {"schedulingGates": [{"name": names.GATE}]}},
    "lifted": {},
    "bound": {"spec": {"nodeName": "n"}},
    "started": {"spec": {"nodeName": "n"}, "status": {"containerStatuses": [STARTED]}},
    "crashed": {"spec": {"nodeName": "n"}, "status": {"containerStatuses": [CRASHED]}},
    "up": {"spec": {"nodeName": "n"}, "status": {"conditions": ["ContainersReady"]}},
    "ready": {"spec": {"nodeName": "n"}, "status": {"conditions": ["ContainersReady", "Ready"]}},
    "done": {"spec": {"nodeName": "n"}, "status": {"phase": "Succeeded"}},
    "failed": {"spec": {"nodeName": "n"}, "status": {"phase": "Failed"}},
}


def pod_in(state: str, of: WantedClique, index: int = 0, *, newest: bool = True) -> Pod:
    """A pod of a clique; `leaving` before the state says that it is going away."""
    leaving, _, state = state.rpartition(" ")
    parts = STATES[state]
    spec, status = dict(_part(parts, "spec")), dict(_part(parts, "status"))
    kinds = status.get("conditions", [])
    status["conditions"] = [
        {"type": kind, "status": "True"} for kind in (kinds if isinstance(kinds, list) else [])
    ]
    spec["hostname"] = naming.hostname(of.name, index)
    if "status" in parts:
        status["podIP"] = "10.0.0.1"
    metadata: JsonObject = {
        "name": naming.pod("set-uid", of.name, index),
        "namespace": "default",
        "uid": f"uid-{of.name}-{index}",
        "labels": {
            names.PODCLIQUE_LABEL: of.name,
            names.TEMPLATE_HASH_LABEL: of.template_hash if newest else "older",
        },
    }
    if leaving:
        metadata["deletionTimestamp"] = timestamp(NOW)
    raw: dict[str, Json] = {"metadata": metadata, "spec": spec, "status": status}
    return msgspec.convert(raw, Pod)


def _part(parts: JsonObject, name: str) -> JsonObject:
    part = parts.get(name, {})
    assert isinstance(part, dict)
    return part


def made(spec: PodCliqueSetSpec, state: str = "ready") -> SetView:
    """A set long after all was made for it, each of its pods in this state."""
    meta = msgspec.structs.replace(set_meta(), creation_timestamp=LONG_AGO)
    view = SetView(meta, spec, PodCliqueSetStatus())
    wanted = expand(view)
    return replace(
        view,
        cliques={name: _clique(want) for name, want in wanted.cliques.items()},
        groups={want.name: _group(want) for want in wanted.groups},
        gangs={want.name: gang_of(want) for want in wanted.gangs},
        pods={
            name: tuple(pod_in(state, want, index) for index in range(want.replicas))
            for name, want in wanted.cliques.items()
        },
    )


def with_pods(view: SetView, clique_name: str, *states: str, newest: bool = True) -> SetView:
    """The same with these pods in one clique."""
    want = expand(view).cliques[clique_name]
    pods = tuple(pod_in(state, want, i, newest=newest) for i, state in enumerate(states))
    return replace(view, pods={**view.pods, clique_name: pods})


def with_gang(view: SetView, name: str, reason: str, message: str = "") -> SetView:
    """The same with a gang that waits for this reason."""
    want = next(gang for gang in expand(view).gangs if gang.name == name)
    return replace(view, gangs={**view.gangs, name: gang_of(want, reason, message)})


def gang_of(want: WantedGang, reason: str = names.REASON_BOUND, message: str = "") -> Gang:
    bound = reason == names.REASON_BOUND
    spec = PodGangSpec.model_validate(
        {
            "podgroups": [
                {
                    "name": part.name,
                    "minReplicas": part.minimum,
                    "podReferences": [
                        {"namespace": "default", "name": naming.pod("set-uid", part.name, index)}
                        for index in range(part.replicas)
                    ],
                }
                for part in want.cliques
            ]
        }
    )
    said = [
        (names.INITIALIZED, "True", names.PODS_CREATED, ""),
        (names.SCHEDULED, "True" if bound else "False", reason, message),
    ]
    status = PodGangStatus(
        phase=Phase.RUNNING if bound else Phase.PENDING,
        conditions=[
            Condition(
                type=kind, status=is_so, reason=why, message=words,
                last_transition_time=timestamp(LONG_AGO),
            )
            for kind, is_so, why, words in said
        ],
    )  # fmt: skip
    return Gang(_meta(want.name), spec, status)


def wanted(view: SetView) -> Wanted:
    return expand(view)


def _clique(want: WantedClique) -> Clique:
    meta = _meta(want.name, {names.TEMPLATE_HASH_LABEL: want.template_hash})
    spec = PodCliqueSpec.model_validate(
        want.template.spec.model_dump(by_alias=True) | {"minAvailable": want.template.spec.minimum}
    )
    return Clique(meta, spec, PodCliqueStatus())


def _group(want: WantedGroup) -> Group:
    spec = PodCliqueScalingGroupSpec(
        replicas=want.copies,
        min_available=want.template.min_available,
        clique_names=want.template.clique_names,
    )
    return Group(_meta(want.name), spec, PodCliqueScalingGroupStatus())


def _meta(name: str, labels: dict[str, str] | None = None) -> Meta:
    return Meta(
        name=name,
        namespace="default",
        uid=f"uid-{name}",
        generation=1,
        creation_timestamp=LONG_AGO,
        labels={names.PART_OF_LABEL: "demo", **(labels or {})},
        owner_references=(OWNER,),
    )

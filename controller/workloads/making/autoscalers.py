"""HorizontalPodAutoscalers of the cliques and scaling groups whose templates ask for one. Pure.

What an autoscaler changes is the live scale of its target; the set's template is left alone. How
fast it may scale is not ours to say: a `behavior` that people write into one stays.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from api import names
from api.cliques import AutoScalingConfig
from api.jsons import Json, JsonObject
from controller.workloads import belonging
from controller.workloads.making.covering import kept
from controller.workloads.stepping import Step
from controller.workloads.views import SetView
from controller.workloads.wants import Wanted
from kube.resources import AUTOSCALERS, PODCLIQUES, PODCLIQUESETS, SCALING_GROUPS, Resource

COMPONENT: Final = "pcs-hpa"

# What the API server writes where no metric is given. Written out, since an autoscaler whose
# metrics were taken back would else keep the old ones.
_WITHOUT_METRICS: Final[JsonObject] = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}


@dataclass(frozen=True)
class _Target:
    """What is scaled, and between which counts; `replicas` is what its template says."""

    resource: Resource
    name: str
    config: AutoScalingConfig
    replicas: int


def steps(view: SetView, wanted: Wanted, _now: datetime) -> Iterator[Step]:
    """Keep one autoscaler for each target that there is, called like it."""
    there = view.things_of(AUTOSCALERS)
    # Made only when its target is there: until then it would tell people that it finds nothing.
    bodies = {
        target.name: _body(view, target)
        for target in _targets(view, wanted)
        if target.name in there or _is_there(view, target)
    }
    yield from kept(AUTOSCALERS, there, bodies)


def _targets(view: SetView, wanted: Wanted) -> Iterator[_Target]:
    templates = view.spec.template
    if any(clique.spec.auto_scaling_config for clique in templates.cliques):
        for clique in wanted.cliques.values():
            config = clique.template.spec.auto_scaling_config
            # Members are scaled by their group only.
            if config is not None and not clique.place.group:
                yield _Target(PODCLIQUES, clique.name, config, clique.template.spec.replicas)
    for group in wanted.groups:
        config = group.template.scale_config
        if config is not None:
            yield _Target(SCALING_GROUPS, group.name, config, group.template.replicas)


def _is_there(view: SetView, target: _Target) -> bool:
    return target.name in (view.cliques if target.resource is PODCLIQUES else view.groups)


def _body(view: SetView, target: _Target) -> JsonObject:
    owner, config = view.metadata, target.config
    metrics: list[Json] = [*config.metrics] or [_WITHOUT_METRICS]
    return {
        "apiVersion": AUTOSCALERS.api_version,
        "kind": AUTOSCALERS.kind,
        "metadata": {
            "name": target.name,
            "namespace": owner.namespace,
            "labels": {
                names.MANAGED_BY_LABEL: names.MANAGED_BY,
                names.PART_OF_LABEL: owner.name,
                names.NAME_LABEL: target.name,
                names.COMPONENT_LABEL: COMPONENT,
            },
            "ownerReferences": [belonging.owned_by(PODCLIQUESETS, owner)],
        },
        "spec": {
            "scaleTargetRef": {
                "apiVersion": target.resource.api_version,
                "kind": target.resource.kind,
                "name": target.name,
            },
            "minReplicas": (
                target.replicas if config.min_replicas is None else config.min_replicas
            ),
            "maxReplicas": config.max_replicas,
            "metrics": metrics,
        },
    }

"""Whatever admission takes, `workloads` expands: all that the set asks for, and nothing else."""

from typing import cast

from hypothesis import HealthCheck, Phase, given, settings

from api.jsons import JsonObject
from api.podcliqueset import PodCliqueSetSpec
from api.sharing import ResourceSharing
from kube.resources import PODCLIQUES, PODGANGS, PODS, SCALING_GROUPS, SERVICES, Resource
from tests.cluster.rules import judging
from tests.cluster.rules.manifests import BROAD, LEVELS, OTHER
from tests.support.generated_sets import podcliquesets
from tests.support.worlds import World


def counted(spec: PodCliqueSetSpec) -> dict[Resource, int]:
    """How many of each kind a set asks for."""
    template, one = spec.template, spec.replicas
    sizes = {clique.name: clique.spec.replicas for clique in template.cliques}
    copies = {
        name: group.replicas
        for group in template.pod_clique_scaling_groups
        for name in group.clique_names
    }
    scaled = sum(g.replicas - g.min_available for g in template.pod_clique_scaling_groups)
    return {
        SERVICES: one,
        SCALING_GROUPS: one * len(template.pod_clique_scaling_groups),
        PODCLIQUES: one * sum(copies.get(name, 1) for name in sizes),
        PODGANGS: one * (1 + scaled),
        PODS: one * sum(size * copies.get(name, 1) for name, size in sizes.items()),
    }


@settings(
    max_examples=20,
    derandomize=True,
    phases=[Phase.generate],
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(body=podcliquesets({BROAD: LEVELS, OTHER: LEVELS}))
def test_whatever_admission_takes_is_expanded(body: JsonObject) -> None:
    answer = judging.judged(body)
    assert answer.stored, answer.message
    written = cast("dict[str, JsonObject]", answer.body)["spec"]
    spec = PodCliqueSetSpec.model_validate(written)
    template: JsonObject = {"spec": {"devices": {"requests": []}}}
    shared: list[ResourceSharing] = [*spec.template.resource_sharing]
    for clique in spec.template.cliques:
        shared += clique.resource_sharing
    for group in spec.template.pod_clique_scaling_groups:
        shared += group.resource_sharing
    world = World(spec, templates={(s.namespace or "default", s.name): template for s in shared})
    world.settle()
    assert {kind: len(world.of(kind)) for kind in counted(spec)} == counted(spec)
    assert len({pod.spec.hostname for pod in world.pods().values()}) == counted(spec)[PODS]

"""Whatever admission takes, `workloads` expands: all that the set asks for, and nothing else."""

from collections.abc import Iterator, Sequence
from typing import Final, cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from api import names
from api.cliques import CliqueTemplate
from api.jsons import Json, JsonObject
from api.podcliqueset import PodCliqueSetSpec, ScalingGroupTemplate
from api.sharing import ResourceSharing
from controller.workloads.views import Choices
from kube.resources import (
    AUTOSCALERS,
    COMPUTE_DOMAINS,
    PODCLIQUES,
    PODGANGS,
    PODS,
    RESOURCE_CLAIMS,
    SCALING_GROUPS,
    SERVICES,
    Resource,
)
from policies.policy import BUILT_IN, MnnvlPolicy
from tests.cluster.rules import judging
from tests.cluster.rules.manifests import BROAD, LEVELS, OTHER
from tests.support.generated_sets import podcliquesets
from tests.support.sets import set_meta
from tests.support.worlds import admitted

NAME: Final = set_meta().name
LINKS: Final = "fabric"

sets = podcliquesets({BROAD: LEVELS, OTHER: LEVELS})
few = settings(
    max_examples=25,
    derandomize=True,
    phases=[Phase.generate],
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def counted(spec: PodCliqueSetSpec) -> dict[Resource, int]:
    """How many of each kind a set asks for."""
    template, one = spec.template, spec.replicas
    sizes = {clique.name: clique.spec.replicas for clique in template.cliques}
    copies = _copies(spec)
    scaled = sum(g.replicas - g.min_available for g in template.pod_clique_scaling_groups)
    autoscaled = sum(
        c.spec.auto_scaling_config is not None and c.name not in copies for c in template.cliques
    ) + sum(g.scale_config is not None for g in template.pod_clique_scaling_groups)
    return {
        SERVICES: one,
        AUTOSCALERS: one * autoscaled,
        SCALING_GROUPS: one * len(template.pod_clique_scaling_groups),
        PODCLIQUES: one * sum(copies.get(name, 1) for name in sizes),
        PODGANGS: one * (1 + scaled),
        PODS: one * sum(size * copies.get(name, 1) for name, size in sizes.items()),
    }


def claims(spec: PodCliqueSetSpec) -> Iterator[str]:
    """The names of all claims that a set's parts share."""
    template = spec.template
    groups = template.pod_clique_scaling_groups
    yield from _shared(template.resource_sharing, NAME, spec.replicas)
    for replica in range(spec.replicas):
        for group in groups:
            yield from _shared(
                group.resource_sharing, f"{NAME}-{replica}-{group.name}", group.replicas
            )
        for clique in template.cliques:
            home = next((group for group in groups if clique.name in group.clique_names), None)
            places = [""] if home is None else [f"{home.name}-{j}-" for j in range(home.replicas)]
            for place in places:
                full = f"{NAME}-{replica}-{place}{clique.name}"
                yield from _shared(clique.resource_sharing, full, clique.spec.replicas)


def domains(spec: PodCliqueSetSpec, annotations: JsonObject) -> set[str]:
    """The names of the NVLink domains of a set with these annotations."""
    groups = spec.template.pod_clique_scaling_groups
    found: set[str] = set()
    for clique in spec.template.cliques:
        home = next((group for group in groups if clique.name in group.clique_names), None)
        group = _linked(clique, home, annotations)
        if group not in ("", "none") and _has_gpus(clique.spec.pod_spec):
            found |= {f"{NAME}-{replica}-{group}" for replica in range(spec.replicas)}
    return found


def _copies(spec: PodCliqueSetSpec) -> dict[str, int]:
    groups = spec.template.pod_clique_scaling_groups
    return {name: group.replicas for group in groups for name in group.clique_names}


def _shared(rules: Sequence[ResourceSharing], owner: str, replicas: int) -> Iterator[str]:
    for rule in rules:
        if rule.scope.value == "AllReplicas":
            yield f"{owner}-all-{rule.name}"
        else:
            yield from (f"{owner}-{index}-{rule.name}" for index in range(replicas))


def _linked(
    clique: CliqueTemplate, home: ScalingGroupTemplate | None, annotations: JsonObject
) -> str:
    said = (clique.annotations, home.annotations if home else {}, annotations)
    return next((str(each[names.MNNVL_ANNOTATION]) for each in said
                 if names.MNNVL_ANNOTATION in each), "")  # fmt: skip


def _has_gpus(pod_spec: JsonObject) -> bool:
    for kind in ("containers", "initContainers"):
        for container in cast("list[JsonObject]", pod_spec.get(kind) or []):
            resources = cast("dict[str, JsonObject]", container.get("resources") or {})
            if any("nvidia.com/gpu" in (resources.get(k) or {}) for k in ("limits", "requests")):
                return True
    return False


def linked(found: Json) -> Json:
    """The same set, with an NVLink group wherever one had been declined."""
    if isinstance(found, dict):
        return {
            key: LINKS if key == names.MNNVL_ANNOTATION else linked(value)
            for key, value in found.items()
        }
    return [*map(linked, found)] if isinstance(found, list) else found


def expanded(body: JsonObject) -> dict[Resource, int]:
    """Have a set admitted and all of it made; say how much of each kind there is in excess."""
    policy = BUILT_IN.model_copy(update={"mnnvl": MnnvlPolicy(enabled=True)})
    answer = judging.judged(body, policy=policy)
    assert answer.stored, answer.message
    template: JsonObject = {"spec": {"spec": {"devices": {"requests": []}}}}
    world = admitted(answer.body, template, Choices(mnnvl=True))
    world.settle()
    spec, annotations = world.spec, world.annotations
    wanted = counted(spec)
    assert {kind: len(world.of(kind)) for kind in wanted} == wanted
    assert len({pod.spec.hostname for pod in world.pods().values()}) == wanted[PODS]
    assert world.of(RESOURCE_CLAIMS).keys() == {*claims(spec)}
    assert world.of(COMPUTE_DOMAINS).keys() == domains(spec, annotations)
    return {kind: len(world.of(kind)) for kind in (*wanted, RESOURCE_CLAIMS, COMPUTE_DOMAINS)}


@few
@given(body=sets, links=st.booleans())
def test_whatever_admission_takes_is_expanded(body: JsonObject, *, links: bool) -> None:
    expanded(cast("JsonObject", linked(body)) if links else body)


@pytest.mark.long
@settings(few, max_examples=300, derandomize=False, phases=[Phase.generate, Phase.shrink])
@given(body=sets, links=st.booleans())
def test_whatever_admission_takes_is_expanded_three_hundred_times(
    body: JsonObject, *, links: bool
) -> None:
    expanded(cast("JsonObject", linked(body)) if links else body)


@pytest.mark.no_cover
def test_what_is_counted_is_among_the_sets_that_are_generated() -> None:
    """Else a kind could be counted for ever and never be there."""
    seen: dict[Resource, int] = {}

    @few
    @given(body=sets)
    def count(body: JsonObject) -> None:
        for kind, number in expanded(cast("JsonObject", linked(body))).items():
            seen[kind] = seen.get(kind, 0) + number

    count()
    assert [kind.plural for kind, number in seen.items() if not number] == []

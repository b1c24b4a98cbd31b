"""Sets of small parts, what they consist of right now, and how tests wait until that is right."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from api import names
from api.jsons import Json, JsonObject
from api.streams import Custom, Pod
from controller.podgang import read_gang
from kube.resources import (
    AUTOSCALERS,
    PODCLIQUES,
    PODGANGS,
    PODS,
    SCALING_GROUPS,
    SERVICES,
    Resource,
)
from tests.support.living import Cluster

KINDS = (PODCLIQUES, SCALING_GROUPS, PODGANGS, SERVICES, AUTOSCALERS)


def role(name: str, pods: int, **more: Json) -> JsonObject:
    """A clique of pods that ask for nothing and go at once; `more` is said in its spec."""
    container: JsonObject = {"name": "main", "image": "registry.example/engine:1.0"}
    pod_spec: JsonObject = {"containers": [container], "terminationGracePeriodSeconds": 1}
    return {"name": name, "spec": {"replicas": pods, "podSpec": pod_spec, **more}}


def system(name: str, roles: list[Json], groups: list[Json] | None = None) -> JsonObject:
    """A set of one replica."""
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "template": {"cliques": roles, "podCliqueScalingGroups": groups or []},
        },
    }


@dataclass(frozen=True)
class Parts:
    """A set's objects of each kind by name, and its pods, those that are going left out."""

    names: dict[Resource, set[str]]
    gangs: dict[str, dict[str, int]]
    """By gang and clique, to how many pods it refers."""
    pods: tuple[Pod, ...]

    @property
    def up(self) -> Counter[str]:
        """By clique, how many pods are ready."""
        return Counter(
            pod.metadata.labels[names.PODCLIQUE_LABEL] for pod in self.pods if pod.containers_ready
        )

    def of_clique(self, clique: str) -> dict[int, Pod]:
        """A clique's pods by index."""
        return {
            int(pod.metadata.labels[names.POD_INDEX_LABEL]): pod
            for pod in self.pods
            if pod.metadata.labels[names.PODCLIQUE_LABEL] == clique
        }


async def parts(cluster: Cluster, set_name: str) -> tuple[Parts, bool]:
    """Read a set's parts, and whether none of them is on its way out."""
    label = f"{names.PART_OF_LABEL}={set_name}"
    found: dict[Resource, list[Custom]] = {}
    for kind in KINDS:
        listing = await cluster.client.list_pages(kind, Custom, cluster.namespace, labels=label)
        found[kind] = listing.items
    pods = (await cluster.client.list_pages(PODS, Pod, cluster.namespace, labels=label)).items
    leaving = [pod for pod in pods if pod.metadata.deletion_timestamp]
    gangs = [gang for raw in found[PODGANGS] if (gang := read_gang(raw))]
    return (
        Parts(
            {kind: {each.metadata.name for each in items} for kind, items in found.items()},
            {
                gang.metadata.name: {
                    group.name: len(group.pod_references) for group in gang.spec.pod_groups
                }
                for gang in gangs
            },
            tuple(pod for pod in pods if pod not in leaving),
        ),
        not leaving,
    )


async def reached(
    cluster: Cluster,
    set_name: str,
    gangs: dict[str, dict[str, int]],
    names_of: Mapping[Resource, set[str]] | None = None,
) -> Parts:
    """Wait until the set has these gangs, with so many pods of each clique, all of them ready.

    No other clique or pod may be left of it then, and of kinds in `names_of` nothing else at all.
    """
    cliques = {name: count for gang in gangs.values() for name, count in gang.items()}

    async def attempt() -> Parts | None:
        seen, whole = await parts(cluster, set_name)
        ready = seen.up == Counter({name: n for name, n in cliques.items() if n})
        known = seen.names[PODCLIQUES] == cliques.keys()
        known &= all(seen.names[kind] == called for kind, called in (names_of or {}).items())
        done = whole and ready and known and seen.gangs == gangs
        return seen if done and len(seen.pods) == sum(cliques.values()) else None

    return await cluster.until(attempt, f"{set_name} with {gangs}")

"""Small clusters and pods that care for each other, drawn from a seed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Final

from api import names
from api.jsons import Json, JsonObject
from api.streams import Node, Pod
from scheduler.filters.masks import Masks
from scheduler.residents import Resident, of_pod
from tests.support.clusters import node, pod

KEYS: Final = (names.HOSTNAME_KEY, "zone", "rack")
NAMESPACES: Final = ("here", "there")
_ADDRESSES: Final = ("", "0.0.0.0", "10.0.0.1", "10.0.0.2")  # noqa: S104
_TAINTS: Final[tuple[Json, ...]] = (
    {"key": "dear", "value": "1", "effect": "NoSchedule"},
    {"key": "frail", "effect": "NoExecute"},
    {"key": "busy", "effect": "PreferNoSchedule"},
)


@dataclass(frozen=True)
class Housed:
    """Nodes, and the pods on them by name of the node."""

    nodes: tuple[Node, ...]
    places: Mapping[str, tuple[Pod, ...]]
    earlier: Mapping[int, tuple[Resident, ...]]  # by which tuple of pods they were read from

    @cached_property
    def residents(self) -> tuple[tuple[Resident, ...], ...]:
        """Pods as the engine keeps them; the same tuple for pods that stayed."""
        there = [self.places[node.metadata.name] for node in self.nodes]
        return tuple(self.earlier.get(id(each)) or tuple(map(of_pod, each)) for each in there)

    def masks(self) -> Masks:
        """Made from nothing."""
        return Masks(self.nodes, self.residents)


def housed(chance: Random, most: int = 5) -> Housed:
    """A few nodes, with few pods or none on each."""
    nodes = tuple(_node(chance, f"n{i}") for i in range(chance.randint(2, most)))
    places = {
        node.metadata.name: tuple(
            drawn_pod(chance, spread=False) for _ in range(chance.choice([0, 0, 1, 2]))
        )
        for node in nodes
    }
    return Housed(nodes, places, {})


def changed(chance: Random, cluster: Housed) -> Housed:
    """The cluster with other pods on some of its nodes, or other labels, or another order."""
    nodes: list[Node] = []
    places = dict(cluster.places)
    for before in cluster.nodes:
        name = before.metadata.name
        what = chance.choice(["same", "same", "pods", "labels"])
        if what == "pods":
            places[name] = (drawn_pod(chance, spread=False),)
        nodes.append(_node(chance, name) if what == "labels" else before)
    if chance.random() < 0.1:
        nodes.reverse()
    stayed = {
        id(cluster.places[node.metadata.name]): there
        for node, there in zip(cluster.nodes, cluster.residents, strict=True)
    }
    return Housed(tuple(nodes), places, stayed)


def drawn_pod(chance: Random, *, spread: bool = True) -> Pod:
    """A pod with a few demands, or none."""
    labels: JsonObject = {"app": chance.choice("abc")}
    if chance.random() < 0.3:
        labels["tier"] = "1"
    metadata: JsonObject = {"labels": labels}
    if chance.random() < 0.1:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    near = _some(chance, _term, (0, 0, 0, 1, 2))
    apart = _some(chance, _term, (0, 0, 1, 2))
    ports = _some(chance, _port, (0, 0, 1, 2))
    spec: JsonObject = {
        "containers": [{"name": "main", "ports": ports if chance.random() < 0.7 else []}],
        "initContainers": [{"name": "first", "ports": ports, "restartPolicy": _restart(chance)}],
        "affinity": {"podAffinity": _required(near), "podAntiAffinity": _required(apart)},
        "topologySpreadConstraints": _some(chance, _spread, (0, 1, 2)) if spread else [],
    }
    if chance.random() < 0.3:
        spec["nodeSelector"] = {"big": "yes"}
    if chance.random() < 0.3:
        spec["tolerations"] = [{"key": "dear", "operator": "Exists"}]
    number = chance.randrange(10**6)
    namespace = chance.choice(NAMESPACES)
    return pod(f"p-{number}", namespace=namespace, spec=spec, metadata=metadata)


def _node(chance: Random, name: str) -> Node:
    labels = {names.HOSTNAME_KEY: name}
    for key, values in (("zone", ["a", "b", ""]), ("rack", ["1", "2"]), ("big", ["yes"])):
        if chance.random() < 0.8:
            labels[key] = chance.choice(values)
    taints: list[Json] = [taint for taint in _TAINTS if chance.random() < 0.15]
    return node(name, labels=labels, spec={"taints": taints}, ready=chance.random() < 0.9)


def _required(terms: list[Json]) -> Json:
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def _some(chance: Random, draw: Callable[[Random], Json], most: tuple[int, ...]) -> list[Json]:
    return [draw(chance) for _ in range(chance.choice(most))]


def _restart(chance: Random) -> str:
    return chance.choice(["Always", ""])


def _selector(chance: Random) -> Json:
    one: Json = {"matchLabels": {"app": chance.choice("ab")}}
    key = chance.choice(["app", "tier"])
    there: Json = {"key": key, "operator": chance.choice(["Exists", "DoesNotExist"])}
    values: list[Json] = list(chance.sample("abc", chance.randint(1, 2)))
    among: Json = {"key": "app", "operator": chance.choice(["In", "NotIn"]), "values": values}
    expressed: Json = {"matchExpressions": [chance.choice([there, among])]}
    return chance.choice([one, one, one, {}, None, expressed])


def _term(chance: Random) -> Json:
    found: JsonObject = {"topologyKey": chance.choice(KEYS), "labelSelector": _selector(chance)}
    where = chance.choice(["own", "own", "named", "all"])
    if where == "named":
        found["namespaces"] = list(chance.sample(NAMESPACES, chance.randint(1, 2)))
    elif where == "all":
        found["namespaceSelector"] = {}
    return found


def _spread(chance: Random) -> Json:
    return {
        "topologyKey": chance.choice(KEYS),
        "maxSkew": chance.randint(1, 2),
        "whenUnsatisfiable": chance.choice(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
        "nodeAffinityPolicy": chance.choice(["Honor", "Ignore"]),
        "nodeTaintsPolicy": chance.choice(["Honor", "Ignore"]),
        "labelSelector": _selector(chance),
    }


def _port(chance: Random) -> Json:
    return {
        "hostPort": chance.choice([0, 80, 81]),
        "hostIP": chance.choice(_ADDRESSES),
        "protocol": chance.choice(["TCP", "UDP"]),
    }

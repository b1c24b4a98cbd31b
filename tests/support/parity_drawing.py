"""Varied nodes and pods on the edge of what they take, drawn from a seed and nothing else."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from api import names, quantities
from api.jsons import Json, JsonObject
from api.streams import Node, Taint

GPU: Final = "nvidia.com/gpu"
WIDGET: Final = "example.com/widget"
HUGE: Final = "hugepages-2Mi"
EPHEMERAL: Final = "ephemeral-storage"
IMAGE: Final = "registry.example/anything:1"
RUNTIME_CLASS: Final = "heavy"
OVERHEAD: Final[Mapping[str, str]] = {"cpu": "13m", "memory": "1234567"}

_LABELS: Final[Mapping[str, Sequence[str | None]]] = {
    "zone": ("a", "b", "c", "d"),
    "disk": ("ssd", "nvme", "hdd", "", None),
    "slots": (
        "0",
        "7",
        "42",
        "100",
        "007",
        "x1",
        "9223372036854775807",
        "9223372036854775808",
        None,
    ),
    "tier": ("1", "2", "3", None, None),
    names.ZONE_KEY: ("north", "south", None),
}
_OFFERS: Final[Mapping[str, Sequence[str | None]]] = {
    "cpu": ("1", "1.5", "2", "7910m", "16"),
    "memory": ("1Gi", "1G", "1500000000", "1234567890", "3072Mi", "64Gi"),
    "pods": ("4", "6", "110", "110", "1k"),
    EPHEMERAL: ("10Gi", "9999999999", "5e9", None),
    GPU: ("0", "1", "8", None, "8"),
    WIDGET: ("3", "1k", None, None),
    HUGE: ("64Mi", "10Mi", None),
}
_TAINTS: Final[Sequence[JsonObject]] = (
    {"key": "dedicated", "value": "a", "effect": "NoSchedule"},
    {"key": "dedicated", "value": "b", "effect": "NoSchedule"},
    {"key": "dedicated", "value": "a", "effect": "NoExecute"},
    {"key": "fragile", "effect": "NoExecute"},
    {"key": "busy", "value": "yes", "effect": "PreferNoSchedule"},
    {"key": "example.com/odd", "value": "1", "effect": "NoSchedule"},
)
_PORTS: Final[Sequence[int]] = (8080, 9090, 9100)
_ADDRESSES: Final[Sequence[str]] = ("", "", "0.0.0.0", "127.0.0.1", "10.0.0.1")  # noqa: S104
_EVERYTHING: Final[Json] = [{"operator": "Exists"}]


@dataclass(frozen=True)
class Case:
    """A pod and the node it is pinned to; `demands` says which filters it was drawn to try."""

    body: JsonObject
    node: str
    demands: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True)
class DrawnNode:
    """What is odd about a node."""

    name: str
    labels: dict[str, str]
    spec: JsonObject
    offer: dict[str, str]


def drawn_node(chance: Random, index: int) -> DrawnNode:
    """A node with some labels, taints and amounts, cordoned or not."""
    taints = {(t["key"], t["effect"]): t for t in _TAINTS if chance.random() < 0.08}
    spec: JsonObject = {"taints": list(taints.values())} if taints else {}
    if chance.random() < 0.1:
        spec["unschedulable"] = True
    return DrawnNode(f"odd-{index:03d}", _some(chance, _LABELS), spec, _some(chance, _OFFERS))


def _some(chance: Random, known: Mapping[str, Sequence[str | None]]) -> dict[str, str]:
    drawn = {key: chance.choice(list(values)) for key, values in known.items()}
    return {key: value for key, value in drawn.items() if value is not None}


def daemonset(name: str, spec: JsonObject) -> JsonObject:
    """A DaemonSet whose pods take a little of each node."""
    labels: JsonObject = {"daemon": name}
    container: JsonObject = {
        "name": "agent",
        "image": IMAGE,
        "resources": {"requests": {"cpu": "7m", "memory": "5Mi"}},
        **({"ports": [{"containerPort": 9100, "hostPort": 9100}]} if name == "ported" else {}),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], **spec},
            },
        },
    }


def foreign_pod(chance: Random, index: int, node: str) -> JsonObject:
    """A pod that somebody else has put on a node, whatever it would take there."""
    requests: JsonObject = {"cpu": chance.choice(["50m", "333m", "0.1"])}
    requests["memory"] = chance.choice(["64Mi", "100M", "12345678"])
    if chance.random() < 0.2:
        requests[EPHEMERAL] = "1234567"
    container: JsonObject = {"name": "main", "image": IMAGE, "resources": {"requests": requests}}
    if chance.random() < 0.4:
        container["ports"] = [_port(chance, chance.choice(list(_PORTS)))]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"foreign-{index}"},
        "spec": {
            "nodeName": node,
            "containers": [container],
            "tolerations": _EVERYTHING,
            "terminationGracePeriodSeconds": 0,
        },
    }


def drawn_case(chance: Random, name: str, target: "Target", *, pin: bool = True) -> Case:
    """A pod for one node: most of what it demands is there, and some of it just not."""
    spec: JsonObject = {"terminationGracePeriodSeconds": 0, "tolerations": []}
    demands: set[str] = set()
    tolerations = _tolerations(chance, target.node)
    if tolerations:
        spec["tolerations"] = tolerations
    demands.update(_in_the_way(target.node))
    labels = target.node.metadata.labels
    if chance.random() < 0.2:
        key = chance.choice(sorted(_LABELS))
        spec["nodeSelector"] = {key: _value(chance, key, labels)}
        demands.add("NodeAffinity")
    terms: list[Json] = [{}]
    if chance.random() < 0.3:
        terms = [_term(chance, labels) for _ in range(chance.choice([1, 1, 2, 3]))]
        demands.add("NodeAffinity")
    required: JsonObject = {
        "nodeSelectorTerms": _pinned(chance, terms, target.node.metadata.name) if pin else terms
    }
    spec["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
    }
    containers, initial, whole = _containers(chance, target, demands)
    spec["containers"] = containers
    if initial:
        spec["initContainers"] = initial
    if whole:
        spec["resources"] = whole
    if chance.random() < 0.1:
        spec["runtimeClassName"] = RUNTIME_CLASS
        demands.add("overhead")
    if chance.random() < 0.2:
        claim = chance.choice(target.claims)
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        demands.add("VolumeBinding")
    body: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"case": "yes"}},
        "spec": spec,
    }
    return Case(body, target.node.metadata.name, frozenset(demands))


def _in_the_way(node: Node) -> Iterator[str]:
    if node.spec.unschedulable:
        yield "NodeUnschedulable"
    if any(taint.effect != "PreferNoSchedule" for taint in node.spec.taints):
        yield "TaintToleration"


@dataclass(frozen=True)
class Target:
    """The node a case is drawn for, what is free there, and the claims there are."""

    node: Node
    free: Mapping[str, int]
    claims: Sequence[str]


def _containers(
    chance: Random, target: Target, demands: set[str]
) -> tuple[list[Json], list[Json], JsonObject]:
    """Containers, init containers and resources of the pod as a whole."""
    requests: JsonObject = {}
    for resource in ("cpu", "memory", EPHEMERAL, GPU, WIDGET, HUGE):
        if chance.random() < {"cpu": 0.5, "memory": 0.35}.get(resource, 0.08):
            requests[resource] = _amount(chance, resource, target.free.get(resource, 0))
            demands.add(resource)
    if HUGE in requests:
        requests.setdefault("cpu", "1m")
    main: JsonObject = {"name": "main", "image": IMAGE, "resources": _resources(requests)}
    if chance.random() < 0.25:
        numbers = chance.sample(_PORTS, chance.choice([1, 1, 2]))
        main["ports"] = [_port(chance, number) for number in numbers]
        demands.add("NodePorts")
    small: JsonObject = {"requests": {"cpu": "3m", "memory": "1000001"}}
    containers: list[Json] = [main]
    initial: list[Json] = []
    form = chance.choice(["plain", "plain", "plain", "two", "init", "sidecar", "both", "whole"])
    if form == "two":
        containers.append({"name": "second", "image": IMAGE, "resources": small})
    if form in ("sidecar", "both"):
        side: JsonObject = {"name": "side", "image": IMAGE, "restartPolicy": "Always"}
        initial.append({**side, "resources": small})
    if form in ("init", "both"):
        # What starts first may take more than what runs later.
        first = _amount(chance, "cpu", target.free.get("cpu", 0))
        asked: JsonObject = {"requests": {"cpu": first}}
        initial.append({"name": "first", "image": IMAGE, "resources": asked})
        demands.add("cpu")
    whole: JsonObject = {}
    if form == "whole" and HUGE not in requests:
        free = target.free.get("cpu", 0)
        whole = {
            "requests": {
                "cpu": f"{max(_thousandths(requests), free + chance.choice([-5, -50, 0, 0, 1]))}m"
            }
        }
        demands.add("cpu")
    if form != "plain":
        demands.add(form)
    return containers, initial, whole


def _thousandths(requests: JsonObject) -> int:
    asked = requests.get("cpu")
    return quantities.whole("cpu", str(asked)) if asked is not None else 1


def _resources(requests: JsonObject) -> JsonObject:
    # What cannot be overcommitted must be limited to what is requested.
    limits = {key: value for key, value in requests.items() if key in (GPU, WIDGET, HUGE)}
    return {"requests": requests, **({"limits": limits} if limits else {})}


def _amount(chance: Random, resource: str, free: int) -> str:
    """An amount around what is free, written in one of many ways."""
    step = 2**21 if resource == HUGE else 1
    here = max(0, free) // step
    fits = [max(1, here), max(1, here // 2), max(1, here // 2), 1, 1]
    found = step * chance.choice([*fits, *fits, here + 1, here * 3 + 1])
    if resource == "cpu":
        return chance.choice([f"{found}m", f"{found / 1000:.3f}"])
    if resource in (GPU, WIDGET):
        return str(found)
    if resource == HUGE:
        return f"{found // 2**20}Mi"
    return chance.choice([str(found), f"{found}", f"{found}e0", f"{found}000m"])


def _port(chance: Random, number: int) -> JsonObject:
    port: JsonObject = {"containerPort": number, "hostPort": number}
    protocol = chance.choice(["TCP", "TCP", "UDP"])
    address = chance.choice(list(_ADDRESSES))
    return {**port, "protocol": protocol, **({"hostIP": address} if address else {})}


def _value(chance: Random, key: str, labels: Mapping[str, str]) -> str:
    """A label's value: mostly the node's own."""
    if key in labels and chance.random() < 0.85:
        return labels[key]
    return chance.choice([value for value in _LABELS[key] if value is not None])


def _term(chance: Random, labels: Mapping[str, str]) -> Json:
    if chance.random() < 0.05:
        return {"matchExpressions": []}
    return {
        "matchExpressions": [_expression(chance, labels) for _ in range(chance.choice([1, 1, 2]))]
    }


def _expression(chance: Random, labels: Mapping[str, str]) -> Json:
    key = chance.choice([*sorted(_LABELS), "slots", names.HOSTNAME_KEY])
    usual = ["In", "In", "NotIn", "Exists" if key in labels else "DoesNotExist"]
    operator = chance.choice(["Gt", "Lt", "Exists"] if key == "slots" else usual)
    if chance.random() < 0.1:
        operator = chance.choice(["DoesNotExist", "Exists", "Gt", "Lt"])
    found: JsonObject = {"key": key, "operator": operator}
    if operator in ("In", "NotIn"):
        own = key == names.HOSTNAME_KEY and (operator == "In" or chance.random() < 0.2)
        values = [labels.get(key, "z")] if own else []
        values += [_value(chance, key, labels)] if key in _LABELS else []
        values += [chance.choice(["q", "r"])]
        found["values"] = list(dict.fromkeys(values))
    elif operator in ("Gt", "Lt"):
        found["values"] = [
            chance.choice(["0", "7", "41", "42", "99", "9223372036854775807", "nan"])
        ]
    return found


def _pinned(chance: Random, terms: Sequence[Json], node: str) -> list[Json]:
    """Add to each term the pin that the product gives pods; a person may bar a node beside it."""
    fields: list[Json] = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    if chance.random() < 0.1:
        barred = node if chance.random() < 0.3 else "another"
        fields.append({"key": "metadata.name", "operator": "NotIn", "values": [barred]})
    return [{**term, "matchFields": fields} if isinstance(term, dict) else term for term in terms]


def _tolerations(chance: Random, node: Node) -> list[Json]:
    found: list[Json] = []
    if chance.random() < 0.05:
        return [{"operator": "Exists"}]
    found += [_toleration(chance, taint) for taint in node.spec.taints if chance.random() < 0.88]
    if node.spec.unschedulable and chance.random() < 0.6:
        found.append({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"})
    if chance.random() < 0.1:
        found.append({"key": "dedicated", "operator": "Equal", "value": "c"})
    return found


def _toleration(chance: Random, taint: Taint) -> Json:
    """A toleration that mostly fits the taint."""
    found: JsonObject = {"key": taint.key}
    if chance.random() < 0.5:
        found["operator"] = "Exists"
    else:
        found["value"] = taint.value if chance.random() < 0.85 else "other"
    if chance.random() < 0.5:
        found["effect"] = taint.effect if chance.random() < 0.85 else "NoExecute"
    return found

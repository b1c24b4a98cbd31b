"""Which nodes a pod may use, apart from room: each filter exactly as kube-scheduler applies it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from api.streams import Expression, Node, NodeSelector, Pod, Taint, Term, Toleration

NOT_READY: Final = "not ready"
CORDONED: Final = "cordoned"
TAINTED: Final = "tainted"
NOT_SELECTED: Final = "not selected by the pods"

_UNSCHEDULABLE_TAINT: Final = Taint("node.kubernetes.io/unschedulable", "NoSchedule")
_KEEPS_OUT: Final = ("NoSchedule", "NoExecute")


@dataclass(frozen=True)
class Constraints:
    """What a pod demands of a node beside room. Pods with equal constraints share one answer."""

    selector: tuple[tuple[str, str], ...] = ()
    required: NodeSelector | None = None
    tolerations: tuple[Toleration, ...] = ()

    @classmethod
    def of(cls, pod: Pod) -> "Constraints":
        """Read a pod's constraints."""
        affinity = pod.spec.affinity
        node_affinity = affinity.node_affinity if affinity else None
        return cls(
            tuple(sorted(pod.spec.node_selector.items())),
            node_affinity.required if node_affinity else None,
            pod.spec.tolerations,
        )


def obstacle(node: Node, constraints: Constraints) -> str:
    """Name the first filter that keeps the pod off the node, or "" when none does."""
    if not node.ready:
        return NOT_READY
    if node.spec.unschedulable and not _tolerated(_UNSCHEDULABLE_TAINT, constraints.tolerations):
        return CORDONED
    if not all(_tolerated(t, constraints.tolerations) for t in node.spec.taints if _bars(t)):
        return TAINTED
    if not _selected(node, constraints):
        return NOT_SELECTED
    return ""


def _bars(taint: Taint) -> bool:
    return taint.effect in _KEEPS_OUT


def _tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    # An empty key without Exists is not valid at the API and tolerates nothing.
    return bool(toleration.key) and toleration.value == taint.value


def _selected(node: Node, constraints: Constraints) -> bool:
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in constraints.selector):
        return False
    if constraints.required is None:
        return True
    return any(_matches(term, node) for term in constraints.required.node_selector_terms)


def _matches(term: Term, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False  # an empty term matches nothing, as the API has it
    fields = {"metadata.name": node.metadata.name}
    return all(_holds(e, node.metadata.labels) for e in term.match_expressions) and all(
        _holds(e, fields) for e in term.match_fields
    )


def _holds(expression: Expression, labels: Mapping[str, str]) -> bool:
    check = _OPERATORS.get(expression.operator)
    return check is not None and check(labels.get(expression.key), expression.values)


def _compared(present: str | None, values: tuple[str, ...], sign: int) -> bool:
    try:
        return present is not None and (int(present) - int(values[0])) * sign > 0
    except (ValueError, IndexError):
        return False


_OPERATORS: Final[Mapping[str, Callable[[str | None, tuple[str, ...]], bool]]] = {
    "In": lambda present, values: present is not None and present in values,
    "NotIn": lambda present, values: present is None or present not in values,
    "Exists": lambda present, _: present is not None,
    "DoesNotExist": lambda present, _: present is None,
    "Gt": lambda present, values: _compared(present, values, 1),
    "Lt": lambda present, values: _compared(present, values, -1),
}

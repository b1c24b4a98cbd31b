"""Labels, taints and names held against what pods demand: one node or one pod at a time."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from api.streams import Expression, Node, NodeSelector, Taint, Term, Toleration

Labels = Mapping[str, str]

UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable", "NoSchedule")
NAME_FIELD: Final = "metadata.name"

_KEEPS_OUT: Final = ("NoSchedule", "NoExecute")
_NUMBER: Final = re.compile("[0-9]{1,63}")  # labels have no signs
_LARGEST: Final = 2**63 - 1


def bars(taint: Taint) -> bool:
    """Whether it keeps pods off, and not only makes others dearer."""
    return taint.effect in _KEEPS_OUT


def tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    """Whether one of these puts up with the taint."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    # An empty key without Exists is not valid at the API and tolerates nothing. Neither does an
    # operator that compares numbers, unless a cluster switches that on; then nodes are overlooked.
    return (
        bool(toleration.key)
        and toleration.operator in ("", "Equal")
        and toleration.value == taint.value
    )


def selected(node: Node, selector: NodeSelector) -> bool:
    """Whether one of the terms matches the node."""
    return any(matches(term, node) for term in selector.node_selector_terms)


def matches(term: Term, node: Node) -> bool:
    """Whether the node is as every requirement of the term has it."""
    if not term.match_expressions and not term.match_fields:
        return False  # an empty term matches nothing, as the API has it
    return all(holds(e, node.metadata.labels) for e in term.match_expressions) and all(
        named(e, node.metadata.name) for e in term.match_fields
    )


def named(field: Expression, name: str) -> bool:
    """Whether a requirement on a node's fields holds: there is only its name to ask for."""
    if field.key != NAME_FIELD or len(field.values) != 1:
        return False
    if field.operator == "In":
        return name == field.values[0]
    return field.operator == "NotIn" and name != field.values[0]


def holds(expression: Expression, labels: Labels) -> bool:
    """Whether labels are as the requirement has it."""
    return accepts(expression, labels.get(expression.key))


def accepts(expression: Expression, value: str | None) -> bool:
    """Whether the requirement takes this value of its key; None where there is no such label."""
    check = _OPERATORS.get(expression.operator)
    return check is not None and check(value, expression.values)


def _whole(text: str) -> int | None:
    """Read a number as Go reads one of 64 bits."""
    number = int(text) if _NUMBER.fullmatch(text) else -1
    return number if 0 <= number <= _LARGEST else None


def _compared(present: str | None, values: tuple[str, ...], sign: int) -> bool:
    if present is None or len(values) != 1:
        return False
    here, bound = _whole(present), _whole(values[0])
    return here is not None and bound is not None and (here - bound) * sign > 0


_OPERATORS: Final[Mapping[str, Callable[[str | None, tuple[str, ...]], bool]]] = {
    "In": lambda present, values: present is not None and present in values,
    "NotIn": lambda present, values: bool(values) and (present is None or present not in values),
    "Exists": lambda present, values: present is not None and not values,
    "DoesNotExist": lambda present, values: present is None and not values,
    "Gt": lambda present, values: _compared(present, values, 1),
    "Lt": lambda present, values: _compared(present, values, -1),
}

"""Kube-scheduler's filters again, one node and one pod at a time, as its documentation tells them.

Nothing here knows of masks, columns or counts by row: tests hold those against this.
"""

from collections.abc import Iterable, Mapping, Sequence

from api.streams import (
    Expression,
    LabelSelector,
    Node,
    Pod,
    PodTerm,
    SpreadConstraint,
    Taint,
    Toleration,
)

Places = Mapping[str, Sequence[Pod]]
"""Pods by the name of their node."""


def ports_free(node: Node, pod: Pod, places: Places) -> bool:
    """Whether no host port of the pod is taken on the node."""
    return not any(
        mine[1:] == taken[1:] and ("0.0.0.0" in (mine[0], taken[0]) or mine[0] == taken[0])  # noqa: S104
        for mine in _ports(pod)
        for other in places.get(node.metadata.name, ())
        for taken in _ports(other)
    )


def _ports(pod: Pod) -> list[tuple[str, str, int]]:
    lasting = [c for c in pod.spec.init_containers if c.restart_policy == "Always"]
    return [
        (port.host_ip or "0.0.0.0", port.protocol, port.host_port)  # noqa: S104
        for container in (*lasting, *pod.spec.containers)
        for port in container.ports
        if port.host_port
    ]


def near_enough(node: Node, pod: Pod, nodes: Iterable[Node], places: Places) -> bool:
    """Whether required pod affinity holds, the first of its kind included."""
    terms = _terms(pod, anti=False)
    if not terms:
        return True
    labels = node.metadata.labels
    if any(term.topology_key not in labels for term in terms):
        return False
    matching = [
        home
        for home in nodes
        for other in places.get(home.metadata.name, ())
        if all(_meant(term, pod, other) for term in terms)
    ]
    somewhere = any(t.topology_key in home.metadata.labels for home in matching for t in terms)
    if not somewhere and all(_meant(term, pod, pod) for term in terms):
        return True
    return all(
        any(home.metadata.labels.get(t.topology_key) == labels[t.topology_key] for home in matching)
        for t in terms
    )


def far_enough(node: Node, pod: Pod, nodes: Iterable[Node], places: Places) -> bool:
    """Whether required anti-affinity holds, that of the pod and that of pods that are there."""
    for home in nodes:
        for other in places.get(home.metadata.name, ()):
            against = [t for t in _terms(pod, anti=True) if _meant(t, pod, other)]
            against += [t for t in _terms(other, anti=True) if _meant(t, other, pod)]
            for term in against:
                here = node.metadata.labels.get(term.topology_key)
                if here is not None and here == home.metadata.labels.get(term.topology_key):
                    return False
    return True


def even_enough(node: Node, pod: Pod, nodes: Sequence[Node], places: Places) -> bool:
    """Whether each hard spread constraint holds."""
    hard = [
        each
        for each in pod.spec.topology_spread_constraints
        if each.when_unsatisfiable == "DoNotSchedule"
    ]
    for each in hard:
        if each.topology_key not in node.metadata.labels:
            return False
        counts: dict[str, int] = {}
        for home in nodes:
            if not all(other.topology_key in home.metadata.labels for other in hard):
                continue
            if each.node_affinity_policy == "Honor" and not _chosen(home, pod):
                continue
            if each.node_taints_policy == "Honor" and not _borne(home, pod):
                continue
            domain = home.metadata.labels[each.topology_key]
            counts[domain] = counts.get(domain, 0) + sum(
                _counts(each, pod, other) for other in places.get(home.metadata.name, ())
            )
        least = min(counts.values(), default=10**9)
        if len(counts) < (1 if each.min_domains is None else each.min_domains):
            least = 0
        itself = int(_selects(each.label_selector, pod.metadata.labels))
        there = counts.get(node.metadata.labels[each.topology_key], 0)
        if there + itself - least > each.max_skew:
            return False
    return True


def _chosen(node: Node, pod: Pod) -> bool:
    """Only node selectors are drawn with spread constraints."""
    return pod.spec.node_selector.items() <= node.metadata.labels.items()


def _borne(node: Node, pod: Pod) -> bool:
    """Only tolerations of any value of a key are drawn."""
    keys = {toleration.key for toleration in pod.spec.tolerations}
    hard = [t for t in node.spec.taints if t.effect in ("NoSchedule", "NoExecute")]
    return all(taint.key in keys for taint in hard)


def _counts(constraint: SpreadConstraint, pod: Pod, other: Pod) -> bool:
    selector = constraint.label_selector
    if selector is not None and not selector.match_labels and not selector.match_expressions:
        return False
    return (
        other.metadata.namespace == pod.metadata.namespace
        and other.metadata.deletion_timestamp is None
        and _selects(selector, other.metadata.labels)
    )


def _terms(pod: Pod, *, anti: bool) -> tuple[PodTerm, ...]:
    affinity = pod.spec.affinity
    part = affinity and (affinity.pod_anti_affinity if anti else affinity.pod_affinity)
    return part.required if part else ()


def _meant(term: PodTerm, owner: Pod, other: Pod) -> bool:
    """Namespaces are drawn by name, or all of them."""
    if term.namespace_selector is not None:
        there = True
    else:
        there = other.metadata.namespace in (term.namespaces or (owner.metadata.namespace,))
    return there and _selects(term.label_selector, other.metadata.labels)


def _selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    if selector is None:
        return False
    if not selector.match_labels.items() <= labels.items():
        return False
    for expression in selector.match_expressions:
        value = labels.get(expression.key)
        holds = {
            "In": value in expression.values,
            "NotIn": value not in expression.values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }
        if not holds[expression.operator]:
            return False
    return True


def taken_alone(node: Node, pod: Pod) -> bool:
    """Whether the node takes the pod by what the node itself says; volumes are not looked at."""
    bearing = pod.spec.tolerations
    if node.spec.unschedulable and not any(
        _bears(t, Taint("node.kubernetes.io/unschedulable", "NoSchedule")) for t in bearing
    ):
        return False
    for taint in node.spec.taints:
        if taint.effect != "PreferNoSchedule" and not any(_bears(t, taint) for t in bearing):
            return False
    labels = node.metadata.labels
    if not pod.spec.node_selector.items() <= labels.items():
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if affinity is None or affinity.required is None:
        return True
    for term in affinity.required.node_selector_terms:
        if not term.match_expressions and not term.match_fields:
            continue
        fields = {"metadata.name": node.metadata.name}
        if all(_node_holds(e, labels) for e in term.match_expressions) and all(
            _node_holds(e, fields) for e in term.match_fields
        ):
            return True
    return False


def _bears(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    return toleration.key == taint.key and toleration.value == taint.value


def _node_holds(expression: Expression, labels: Mapping[str, str]) -> bool:
    there, values = expression.key in labels, expression.values
    value = labels.get(expression.key, "")
    if expression.operator in ("Gt", "Lt"):
        numbers = [value, *values]
        if not there or not all(n.isdecimal() and int(n) < 2**63 for n in numbers):
            return False
        here, bound = map(int, numbers)
        return here > bound if expression.operator == "Gt" else here < bound
    if expression.operator in ("In", "NotIn"):
        return (there and value in values) == (expression.operator == "In")
    return there == (expression.operator == "Exists")

"""What a pod demands of a node beside room, as a value that pods of one clique share."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final, TypeAlias

from typing_extensions import override

from api import names
from api.quantities import Amounts
from api.streams import (
    Expression,
    LabelSelector,
    NodeSelector,
    Pod,
    PodTerm,
    Port,
    SpreadConstraint,
    Toleration,
)
from scheduler import residents
from scheduler.filters.counted import merged
from scheduler.filters.selecting import Labels, holds

Requirements: TypeAlias = tuple[Expression, ...]
"""All of them must hold; none at all takes everything."""

NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"  # every namespace is labelled with its own

# These tell pods of one clique apart, and hardly ever does anybody select by them.
_EACH_POD: Final = frozenset(
    {
        names.POD_INDEX_LABEL,
        names.STATEFULSET_INDEX_LABEL,
        names.STATEFULSET_POD_LABEL,
        names.JOB_INDEX_LABEL,
    }
)


@dataclass(frozen=True)
class Others:
    """Pods that a term is about, and the node label whose value says who is near."""

    key: str
    selector: Requirements | None  # None takes nobody
    namespaces: tuple[str, ...] = ()
    by_label: Requirements | None = None  # namespaces by their labels, beside those by name
    met: bool = False  # by pods that are placed together with this one

    @classmethod
    def of(cls, term: PodTerm, namespace: str) -> "Others":
        """Read a term of a pod in this namespace."""
        own = () if term.namespaces or term.namespace_selector is not None else (namespace,)
        return cls(
            term.topology_key,
            requirements(term.label_selector),
            tuple(sorted(term.namespaces)) or own,
            requirements(term.namespace_selector),
        )

    def reach(self, namespace: str, *, doubtful: bool) -> bool:
        """Whether pods of the namespace are meant.

        Of a namespace nothing is known but its name; where other labels of it are asked for, the
        answer is `doubtful`.
        """
        if namespace in self.namespaces:
            return True
        if self.by_label is None:
            return False
        known = [e for e in self.by_label if e.key == NAMESPACE_NAME]
        if not all(holds(e, {NAMESPACE_NAME: namespace}) for e in known):
            return False
        return doubtful or len(known) == len(self.by_label)

    def take(self, namespace: str, labels: Labels, *, doubtful: bool) -> bool:
        """Whether a pod with these labels is meant."""
        return selects(self.selector, labels) and self.reach(namespace, doubtful=doubtful)


@dataclass(frozen=True)
class HardSpread:
    """How evenly pods that it selects in the namespace must be spread over a label's values."""

    key: str
    max_skew: int
    selector: Requirements | None
    min_domains: int = 1
    by_affinity: bool = True  # only nodes that the pod selects count
    by_taints: bool = False  # only nodes whose taints the pod tolerates count


@dataclass(frozen=True)
class Common:
    """A claim to devices that nobody has met yet and that several pods may use.

    If it is `local`, they must all be on the node that has the devices.
    """

    name: str
    takes: Amounts
    local: bool


@dataclass(frozen=True)
class Claimed:
    """What a pod's claims say of nodes: each selector must hold; `left` names what is not known.

    `takes` is what they take of the node by number, beside resources; claims that other pods may
    use too are in `common`, by name.
    """

    nodes: tuple[NodeSelector, ...] = ()
    left: tuple[str, ...] = ()
    takes: Amounts = field(default_factory=dict)
    common: tuple[Common, ...] = ()

    @property
    def needs(self) -> Amounts:
        """All that is taken if nobody else uses any of the claims."""
        found = self.takes
        for each in self.common:
            found = merged(found, each.takes)
        return found


@dataclass(frozen=True)
class Constraints:
    """What a pod demands of a node beside room. Pods with equal constraints share one answer.

    `near` and `apart` are required affinity and anti-affinity to other pods; `namespace` and
    `labels` are what others know the pod by. `left` names what only kube-scheduler will tell.
    """

    selector: tuple[tuple[str, str], ...] = ()
    required: NodeSelector | None = None
    tolerations: tuple[Toleration, ...] = ()
    volumes: tuple[NodeSelector, ...] = ()
    ports: tuple[Port, ...] = ()
    near: tuple[Others, ...] = ()
    apart: tuple[Others, ...] = ()
    spread: tuple[HardSpread, ...] = ()
    namespace: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    left: tuple[str, ...] = ()

    @classmethod
    def of(cls, pod: Pod, claimed: Claimed | None = None) -> "Constraints":
        """Read a pod's constraints. What its claims say is looked up by whoever knows them."""
        spec, namespace = pod.spec, pod.metadata.namespace
        affinity = spec.affinity
        node = affinity.node_affinity if affinity else None
        near = affinity.pod_affinity if affinity else None
        apart = affinity.pod_anti_affinity if affinity else None
        terms = _others(near.required, namespace) if near else ()
        against = _others(apart.required, namespace) if apart else ()
        spread = tuple(_spread(spec.topology_spread_constraints, pod.metadata.labels))
        asked = _keys(terms, against, spread)
        if claimed is None:
            claimed = Claimed(left=_unknown(pod))
        return shared(
            cls(
                tuple(sorted(spec.node_selector.items())),
                node.required if node else None,
                spec.tolerations,
                claimed.nodes,
                residents.host_ports(spec),
                terms,
                against,
                spread,
                namespace,
                tuple(
                    sorted(
                        each
                        for each in pod.metadata.labels.items()
                        if each[0] not in _EACH_POD or each[0] in asked
                    )
                ),
                claimed.left,
            )
        )

    @cached_property
    def alone(self) -> "Constraints":
        """What of it can be told from a node by itself; many gangs have the same."""
        if self.lonely and not (self.namespace or self.labels or self.left):
            return self
        return _bare(self.selector, self.required, self.tolerations, self.volumes)

    @cached_property
    def lonely(self) -> bool:
        """Whether other pods matter to it only by what they themselves demand."""
        return not (self.ports or self.near or self.apart or self.spread)

    @cached_property
    def asked(self) -> frozenset[str]:
        """Keys of the labels that it selects other pods by."""
        return _keys(self.near, self.apart, self.spread)

    @cached_property
    def label_map(self) -> dict[str, str]:
        """The labels others know the pod by."""
        return dict(self.labels)

    @cached_property
    def _hash(self) -> int:
        return hash(
            (
                self.selector,
                self.required,
                self.tolerations,
                self.volumes,
                self.ports,
                self.near,
                self.apart,
                self.spread,
                self.namespace,
                self.labels,
            )
        )

    @override
    def __hash__(self) -> int:
        return self._hash


@lru_cache(maxsize=4096)
def shared(constraints: Constraints) -> Constraints:
    """Give one object for equal constraints: who looks them up later compares nothing."""
    return constraints


@lru_cache(maxsize=4096)
def _bare(
    selector: tuple[tuple[str, str], ...],
    required: NodeSelector | None,
    tolerations: tuple[Toleration, ...],
    volumes: tuple[NodeSelector, ...],
) -> Constraints:
    return Constraints(selector, required, tolerations, volumes)


def requirements(selector: LabelSelector | None) -> Requirements | None:
    """Write a label selector as requirements that can be compared; None where there is none."""
    if selector is None:
        return None
    by_label = [Expression(key, "In", (value,)) for key, value in selector.match_labels.items()]
    return tuple(
        sorted(
            {*by_label, *selector.match_expressions},
            key=lambda e: (e.key, e.operator, e.values),
        )
    )


def selects(selector: Requirements | None, labels: Labels) -> bool:
    """Whether labels are as all requirements have them; no selector selects nothing."""
    return selector is not None and all(holds(e, labels) for e in selector)


def _others(terms: Iterable[PodTerm], namespace: str) -> tuple[Others, ...]:
    return tuple(Others.of(term, namespace) for term in terms)


def _spread(constraints: Iterable[SpreadConstraint], labels: Labels) -> Iterator[HardSpread]:
    for each in constraints:
        if each.when_unsatisfiable != "DoNotSchedule":
            continue
        selector = requirements(each.label_selector)
        if selector is not None:
            # The API server merges these as well, where it is new enough.
            own = {Expression(k, "In", (labels[k],)) for k in each.match_label_keys if k in labels}
            selector = (*selector, *sorted(own - set(selector), key=lambda e: e.key))
        yield HardSpread(
            each.topology_key,
            each.max_skew,
            selector,
            1 if each.min_domains is None else each.min_domains,
            each.node_affinity_policy == "Honor",
            each.node_taints_policy == "Honor",
        )


def _keys(
    near: Iterable[Others], apart: Iterable[Others], spread: Iterable[HardSpread]
) -> frozenset[str]:
    selectors = [*(term.selector for term in (*near, *apart)), *(each.selector for each in spread)]
    return frozenset(requirement.key for found in selectors for requirement in found or ())


def _unknown(pod: Pod) -> tuple[str, ...]:
    """Name what would have to be looked up."""
    volumes = any(v.persistent_volume_claim or v.ephemeral for v in pod.spec.volumes)
    return (*(("volumes",) if volumes else ()), *(("devices",) if pod.spec.resource_claims else ()))

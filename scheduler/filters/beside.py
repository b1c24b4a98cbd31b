"""Which nodes pods may use as far as the pods that are there decide it, for all nodes at once."""

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np

from scheduler.filters.classes import AFFINITY, APART, PORTS, SPREAD
from scheduler.filters.columns import Column
from scheduler.filters.company import Company
from scheduler.filters.constraints import Constraints, HardSpread, Others, Requirements, selects
from scheduler.filters.nodes import Nodes
from scheduler.filters.ports import addresses, clash
from scheduler.residents import Resident
from scheduler.topology import Bools, Ints

_MANY: Final = 2**31  # stands for the least of no domains at all


def barriers(nodes: Nodes, company: Company, pod: Constraints) -> tuple[tuple[str, Bools], ...]:
    """Give for each filter the nodes it keeps such a pod off, in kube-scheduler's order.

    Filters that have nothing to say of the pod are left out.
    """
    found: list[tuple[str, Bools]] = []
    if pod.ports:
        found.append((PORTS, ports_taken(nodes, company, pod)))
    if pod.spread:
        found.append((SPREAD, uneven(nodes, company, pod)))
    if pod.near:
        found.append((AFFINITY, ~nearby(nodes, company, pod)))
    apart = too_near(nodes, company, pod)
    if apart is not None:
        found.append((APART, apart))
    return tuple(found)


def ports_taken(nodes: Nodes, company: Company, pod: Constraints) -> Bools:
    """On which nodes one of the pod's host ports is taken."""
    found = np.zeros(len(nodes.nodes), dtype=np.bool_)
    for number, address in addresses(pod.ports):
        for row, taken in company.taken(number):
            if clash(address, taken):
                found[row] = True
    return found


def too_near(nodes: Nodes, company: Company, pod: Constraints) -> Bools | None:
    """Which nodes are near residents that the pod shuns or that shun it; None for no shunning."""
    found: Bools | None = None
    for term, rows in company.shunning(pod):
        near = around(nodes.column(term.key), rows)
        found = near if found is None else found | near
    for term in pod.apart:
        counts = matching(company, (term,), doubtful=True)
        near = around(nodes.column(term.key), np.flatnonzero(counts))
        found = near if found is None else found | near
    return found


def nearby(nodes: Nodes, company: Company, pod: Constraints) -> Bools:
    """Which nodes are near residents that the pod must be near.

    One resident must be all that is asked for. The first of pods that are to be near each other
    may go wherever there is a label to tell who is near.
    """
    columns = [nodes.column(term.key) for term in pod.near]
    labelled = np.ones(len(nodes.nodes), dtype=np.bool_)
    for column in columns:
        labelled &= column.codes != 0
    if all(term.met for term in pod.near):
        return labelled
    there = np.flatnonzero(matching(company, pod.near, doubtful=False))
    if first_of_its_kind(pod) and not _found(columns, matching(company, pod.near, doubtful=True)):
        return labelled
    for column in columns:
        labelled &= around(column, there)
    return labelled


def first_of_its_kind(pod: Constraints) -> bool:
    """Whether the pod is one of those that it must be near."""
    return all(t.take(pod.namespace, pod.label_map, doubtful=False) for t in pod.near)


def _found(columns: Sequence[Column], counts: Ints) -> bool:
    """Whether anybody is where one of the labels is."""
    return any(bool(counts[column.codes != 0].any()) for column in columns)


def uneven(nodes: Nodes, company: Company, pod: Constraints) -> Bools:
    """On which nodes the pod would be one too many of its kind.

    Once the pod is pinned, only its own node counts for kube-scheduler, if it counts only those
    that the pod selects; where a least number of domains is asked for, it must pass that as well.
    """
    found = np.zeros(len(nodes.nodes), dtype=np.bool_)
    for each in pod.spread:
        codes = nodes.column(each.key).codes
        counting = eligible(nodes, pod, each)
        counts = np.where(counting, alike(company, pod.namespace, each), 0)
        here, least = levels(codes, counting, counts, each)
        itself = int(selects(each.selector, pod.label_map))
        found |= (codes == 0) | (here + itself - least > each.max_skew)
        if each.by_affinity and each.min_domains > 1:
            found |= counts + itself > each.max_skew
    return found


def levels(codes: Ints, counting: Bools, counts: Ints, spread: HardSpread) -> tuple[Ints, int]:
    """Give how many are in the domain of each row, and how many in the emptiest domain."""
    size = int(codes.max(initial=0)) + 1
    sums = np.bincount(codes, weights=counts, minlength=size).astype(np.int64)
    domains = np.bincount(codes[counting], minlength=size) > 0
    enough = int(domains.sum()) >= spread.min_domains
    return sums[codes], int(sums[domains].min(initial=_MANY)) if enough else 0


def eligible(nodes: Nodes, pod: Constraints, spread: HardSpread) -> Bools:
    """Which nodes count when it is judged how even the pods are."""
    counting = np.ones(len(nodes.nodes), dtype=np.bool_)
    for each in pod.spread:
        counting &= nodes.column(each.key).codes != 0
    if spread.by_affinity:
        counting &= nodes.selected(pod)
    if spread.by_taints:
        counting &= nodes.tolerating(pod.tolerations)
    return counting


def alike(company: Company, namespace: str, spread: HardSpread) -> Ints:
    """Count by row those among whom the pod is to be spread; who is leaving does not count."""
    if not spread.selector:  # kube-scheduler counts nobody where everybody is meant
        return np.zeros(len(company.rows), dtype=np.int64)

    key, values = telling(spread.selector)

    def judge(resident: Resident) -> bool:
        return (
            resident.namespace == namespace
            and resident.labels.get(key) in values
            and not resident.leaving
            and selects(spread.selector, resident.labels)
        )

    return company.count((namespace, spread.selector), judge)


def matching(company: Company, terms: tuple[Others, ...], *, doubtful: bool) -> Ints:
    """Count by row the residents that all of the terms mean."""

    key, values = telling(terms[0].selector)

    def judge(resident: Resident) -> bool:
        # Most residents are none of those that are meant, and one label tells.
        return resident.labels.get(key) in values and all(
            term.take(resident.namespace, resident.labels, doubtful=doubtful) for term in terms
        )

    who = tuple((term.selector, term.namespaces, term.by_label) for term in terms)
    return company.count((who, doubtful), judge)


def telling(selector: Requirements | None) -> tuple[str, Collection[str | None]]:
    """Give a label and the values that whoever is selected has of it; any label for everybody."""
    found = next((each for each in selector or () if each.operator == "In"), None)
    return ("", (None,)) if found is None else (found.key, frozenset(found.values))


def around(column: Column, rows: Ints) -> Bools:
    """Which rows share a label's value with one of these; without the label nobody is near."""
    near = np.zeros(column.size, dtype=np.bool_)
    near[column.codes[rows]] = True
    near[0] = False
    return near[column.codes]

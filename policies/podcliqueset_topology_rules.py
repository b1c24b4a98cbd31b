"""How close together a set's pods are asked to be, and NVLink domains over several nodes."""

from collections.abc import Iterator
from operator import attrgetter
from typing import Final

from api import names
from api.topology import ClusterTopologyBindingSpec
from policies import reading, syntax
from policies.known import Known
from policies.podcliqueset_case import Case
from policies.podcliqueset_view import Constraint, Resolved, SetView
from policies.problems import Problem, choice
from policies.rules import Rule

# Tools compare these with what upstream's definitions say.
NO_PACK_DOMAIN: Final = (
    "packDomain is deprecated and cannot be used on new workloads; use pack.required"
)
NO_PACK: Final = "topologyConstraint must specify pack or deprecated packDomain"
EMPTY_PACK: Final = "pack must specify at least one of required or preferred"
TWO_PACKS: Final = "must not set both pack.required and deprecated packDomain"

OPT_OUT: Final = "none"


def constraints_are_whole(case: Case) -> Iterator[Problem]:
    """Refuse constraints that say nothing, or the same twice."""
    for each in case.set.constraints:
        deprecated = each.raw.get("packDomain") is not None
        pack = each.raw.get("pack")
        if not each.has_pack and not deprecated:
            yield Problem(each.path, NO_PACK)
        if isinstance(pack, dict) and not any(pack.get(k) for k in ("required", "preferred")):
            yield Problem(f"{each.path}.pack", EMPTY_PACK)
        if deprecated and each.required:
            yield Problem(each.path, TWO_PACKS)
        if deprecated and case.is_new:
            yield Problem(f"{each.path}.packDomain", NO_PACK_DOMAIN)


def topology_is_switched_on(case: Case) -> Iterator[Problem]:
    """Refuse constraints where nobody would heed them."""
    if not case.policy.topology.enabled:
        for each in case.set.constraints:
            yield Problem(
                each.path,
                "placing by topology is switched off in this cluster; leave topologyConstraint "
                "out, or have topology.enabled set in the policy",
            )


def one_binding_is_meant(case: Case) -> Iterator[Problem]:
    """Refuse constraints of no binding, of two, or of one that does not exist."""
    if not case.policy.topology.enabled:
        return
    meant: Resolved | None = None
    readable = _can_be_read(case.set)
    for each in case.set.resolved:
        path = f"{each.constraint.path}.topologyName"
        if each.topology is None:
            # What cannot be read may well have had the name.
            if readable:
                yield Problem(
                    path,
                    "is required: name a ClusterTopologyBinding here or further up"
                    f"{choice(case.known.bindings())}",
                )
            continue
        meant = meant or each
        if each.topology != meant.topology:
            yield Problem(
                path,
                f"means {each.topology!r}, but {meant.constraint.path} means {meant.topology!r}; "
                "all constraints of a set need the same",
            )
        # Said once, where it is written, and not at each that inherits it.
        if each.constraint.topology and case.known.binding(each.topology) is None:
            yield Problem(
                path,
                f"there is no ClusterTopologyBinding {each.topology!r}"
                f"{choice(case.known.bindings())}",
            )


def domains_are_levels(case: Case) -> Iterator[Problem]:
    """Refuse domains that the binding has no level for."""
    if not case.policy.topology.enabled:
        return
    for each in case.set.resolved:
        levels = levels_of(case.known, each)
        if levels is None:
            continue
        constraint = each.constraint
        preferred = f"{constraint.path}.pack.preferred"
        asked = [(constraint.must_path, constraint.must), (preferred, constraint.preferred)]
        for path, domain in asked:
            if domain is not None and domain not in levels:
                yield Problem(
                    path,
                    f"{domain!r} is no level of {each.topology!r}; its levels are "
                    f"{', '.join(levels)}, widest first",
                )


def parents_are_not_narrower(case: Case) -> Iterator[Problem]:
    """Refuse a part that would reach beyond the domain that the whole is kept in."""
    if not case.policy.topology.enabled:
        return
    of = {each.constraint.path: each for each in case.set.resolved}
    for parent, child in _families(case.set):
        levels = levels_of(case.known, of[child.path])
        if levels is None or of[parent.path].topology != of[child.path].topology:
            continue
        yield from _narrower(levels, "required", parent.must, child.must, child.must_path, parent)
        path = f"{child.path}.pack.preferred"
        yield from _narrower(levels, "preferred", parent.preferred, child.preferred, path, parent)


def nvlink_groups_are_named(case: Case) -> Iterator[Problem]:
    """Refuse NVLink groups that are no names."""
    for path, value in nvlink_groups(case.set):
        if not syntax.is_label(value):
            yield Problem(
                path,
                f"{value!r} is neither {OPT_OUT!r} nor a DNS label: {syntax.LABEL_RULE}",
            )


def nvlink_is_switched_on(case: Case) -> Iterator[Problem]:
    """Refuse NVLink groups where nobody would make them."""
    for path, value in nvlink_groups(case.set):
        if value != OPT_OUT and not case.policy.mnnvl.enabled:
            yield Problem(
                path,
                "NVLink domains over several nodes are switched off in this cluster; write "
                f"{OPT_OUT!r} or leave the annotation out, or have mnnvl.enabled set in the policy",
            )


_CONSTRAINTS: Final = attrgetter("set.resolved")
_ANNOTATIONS: Final = attrgetter("set.annotated")

RULES: Final[tuple[Rule[Case], ...]] = (
    Rule(topology_is_switched_on, ("2.5.1", "2.3.19"), about=_CONSTRAINTS),
    Rule(one_binding_is_meant, ("2.5.2", "2.3.19"), about=_CONSTRAINTS),
    Rule(domains_are_levels, ("2.5.3", "2.3.19"), about=_CONSTRAINTS),
    Rule(parents_are_not_narrower, ("2.5.4", "2.3.19"), about=_CONSTRAINTS),
    Rule(constraints_are_whole, ("1.2",), about=_CONSTRAINTS),
    Rule(nvlink_groups_are_named, ("2.6.1", "2.3.19"), about=_ANNOTATIONS),
    Rule(nvlink_is_switched_on, ("2.6.2", "2.3.19"), about=_ANNOTATIONS),
)


def levels_of(known: Known, of: Resolved) -> list[str] | None:
    """Give the domains of a constraint's binding, widest first; None if it is not known."""
    binding = known.binding(of.topology) if of.topology else None
    return None if binding is None else _domains(binding)


def nvlink_groups(of: SetView) -> Iterator[tuple[str, str]]:
    """Give every NVLink group that is written, with its path."""
    for path, annotations in of.annotated:
        value = reading.text(annotations.get(names.MNNVL_ANNOTATION))
        if value is not None:
            yield f"{path}.annotations[{names.MNNVL_ANNOTATION}]", value


def _can_be_read(of: SetView) -> bool:
    """Tell whether all constraints and the names in them can be read."""
    for holder in (of.template, *(part.raw for part in of.parts)):
        constraint = holder.get("topologyConstraint")
        if constraint is None:
            continue
        if not isinstance(constraint, dict):
            return False
        name = constraint.get("topologyName")
        if name is not None and reading.name(name) is None:
            return False
    return True


def _domains(binding: ClusterTopologyBindingSpec) -> list[str]:
    return [level.domain for level in binding.levels]


def _families(of: SetView) -> Iterator[tuple[Constraint, Constraint]]:
    """Give each constraint that lies inside another, with that one first."""
    for group in of.groups:
        if of.constraint and group.constraint:
            yield of.constraint, group.constraint
    for clique in of.cliques:
        if clique.constraint is None:
            continue
        if of.constraint:
            yield of.constraint, clique.constraint
        home = of.home(clique)
        if home and home.constraint:
            yield home.constraint, clique.constraint


def _narrower(
    levels: list[str], what: str, outer: str | None, inner: str | None, path: str, by: Constraint
) -> Iterator[Problem]:
    if outer is None or inner is None or outer not in levels or inner not in levels:
        return
    if levels.index(outer) > levels.index(inner):
        yield Problem(
            path,
            f"{inner!r} is wider than {outer!r}, which {by.path} has as {what}; a part cannot "
            "reach beyond its whole",
        )

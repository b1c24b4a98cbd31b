"""Names and counts in a PodCliqueSet: what its parts are called and how many there are."""

import re
from collections.abc import Iterator
from operator import attrgetter
from typing import Final

from api import durations
from api.durations import BadDurationError
from api.jsons import Json
from api.podcliqueset import MAX_PODS
from policies import reading, syntax
from policies.podcliqueset_case import Case
from policies.podcliqueset_view import CLIQUES, GROUPS, Clique, Group, SetView
from policies.problems import Problem, choice
from policies.rules import Rule

# A pod is called <set>-<i>-<group>-<j>-<clique>-<5 random>, in at most 63 characters. What is left
# after dashes, the random part and room for indices is for the names that people choose.
NAME_BUDGET: Final = 45
DELAY: Final = "spec.template.terminationDelay"
BUDGET: Final = "spec.updateStrategy.rollingUpdate.maxUnavailable"

_COPY: Final = re.compile(r"-(?=([0-9]+)-)")


def names_are_labels(case: Case) -> Iterator[Problem]:
    """Refuse names that cannot be part of a pod's name and host name."""
    if case.set.name is not None and not syntax.is_label(case.set.name):
        yield _no_label("metadata", case.set.name)
    named: list[Clique | Group] = [*case.set.cliques, *case.set.groups]
    for part in named:
        if part.name is not None and not syntax.is_label(part.name):
            yield _no_label(part.path, part.name)


def names_differ(case: Case) -> Iterator[Problem]:
    """Refuse two cliques, or two groups, of one name."""
    yield from _repeated(CLIQUES, "clique", case.set.clique_names)
    yield from _repeated(GROUPS, "scaling group", case.set.group_names)


def roles_differ(case: Case) -> Iterator[Problem]:
    """Refuse two cliques of one role."""
    first: dict[str, Clique] = {}
    for clique in case.set.cliques:
        if clique.role is None:
            continue
        before = first.setdefault(clique.role, clique)
        # Two of one name are told by the name, which is the role where none is written.
        if before is not clique and before.name != clique.name:
            yield Problem(
                f"{clique.path}.spec.roleName",
                f"{clique.role!r} is the role of {before.path} already; name another, or none to "
                "have the clique's name",
            )


def replicas_are_counted(case: Case) -> Iterator[Problem]:
    """Refuse fewer copies of a set than none."""
    if case.set.replicas is not None and case.set.replicas < 0:
        yield Problem("spec.replicas", f"must be at least 0, got {case.set.replicas}")


def clique_counts_fit(case: Case) -> Iterator[Problem]:
    """Refuse a clique of no pods, or with a minimum it cannot reach."""
    for clique in case.set.cliques:
        yield from _counts(f"{clique.path}.spec", clique)


def group_counts_fit(case: Case) -> Iterator[Problem]:
    """Refuse a group of no copies, or with a minimum it cannot reach."""
    for group in case.set.groups:
        yield from _counts(group.path, group)


def cliques_scale_within_reach(case: Case) -> Iterator[Problem]:
    """Refuse autoscaling of a clique below its minimum, or to less than is asked for."""
    for clique in case.set.cliques:
        yield from _reach(clique)
        scaling, replicas = clique.scaling, clique.replicas
        if scaling is None or scaling.highest is None or replicas is None:
            continue
        if scaling.highest < replicas:
            yield Problem(
                f"{scaling.path}.maxReplicas",
                f"must be at least replicas ({replicas}), got {scaling.highest}",
            )


def groups_scale_within_reach(case: Case) -> Iterator[Problem]:
    """Refuse autoscaling of a group below its minimum, or between counts the wrong way round."""
    for group in case.set.groups:
        yield from _reach(group)


def members_scale_with_their_group(case: Case) -> Iterator[Problem]:
    """Refuse autoscaling of a clique that a group scales already."""
    for clique, home in case.set.housed:
        if home and clique.scaling:
            yield Problem(
                clique.scaling.path,
                f"the clique is scaled with its group {home.name!r}; write scaleConfig there",
            )


def groups_hold_cliques(case: Case) -> Iterator[Problem]:
    """Refuse a group that is empty, names no clique, or takes one that is in a group already."""
    known = case.set.known_cliques
    group_of: dict[str, Group] = {}
    for group in case.set.groups:
        if group.raw.get("cliqueNames") == []:
            yield Problem(f"{group.path}.cliqueNames", "is empty; name the cliques to scale")
        for j, name in group.cliques:
            if name in group_of:
                said = f"clique {name!r} is in group {group_of[name].name!r} already"
            elif known is not None and name not in known:
                said = f"there is no clique {name!r}{choice(known)}"
            else:
                group_of[name] = group
                continue
            yield Problem(f"{group.path}.cliqueNames[{j}]", said)


def delay_is_a_duration(case: Case) -> Iterator[Problem]:
    """Refuse a termination delay that is none, or is over before it begins."""
    written = reading.text(case.set.template.get("terminationDelay"))
    if written is None:
        return
    try:
        if durations.nanoseconds(written) <= 0:
            yield Problem(DELAY, f"must be longer than nothing, got {written!r}; write 4h, say")
    except BadDurationError as error:
        yield Problem(DELAY, str(error))


def updates_can_begin(case: Case) -> Iterator[Problem]:
    """Refuse budgets under which no pod could ever be replaced."""
    budget = reading.mapping(case.set.updates.get("rollingUpdate"))
    if not _is_none(budget.get("maxUnavailable")):
        return
    if _is_none(budget.get("maxSurge", 0)):
        yield Problem(BUDGET, "is 0, and so is maxSurge: nothing could be replaced; raise one")
    elif case.set.groups:
        yield Problem(
            BUDGET,
            "is 0, but copies of scaling groups are replaced in place, with no surplus: "
            "must be at least 1",
        )


def names_leave_room(case: Case) -> Iterator[Problem]:
    """Refuse names so long together that pods could not be named after them."""
    longest: dict[str, tuple[int, str]] = {}
    own = case.set.name or ""
    for clique, home in case.set.housed:
        group, name = (home.name if home else None) or "", clique.name or ""
        total = len(own) + len(group) + len(name)
        if total <= NAME_BUDGET:
            continue
        shown = " + ".join(f"{part!r} ({len(part)})" for part in (own, group, name) if part)
        # Told at each name that counts, once: the set's is in all of them.
        for holder in ("metadata", *([home.path] if home else ()), clique.path):
            path = f"{holder}.name"
            longest[path] = max(longest.get(path, (0, "")), (total, shown))
    for path, (total, shown) in longest.items():
        yield Problem(
            path,
            f"pods are named after {shown}: {total} characters, and {NAME_BUDGET} fit; "
            "shorten one of them",
        )


def pods_are_not_too_many(case: Case) -> Iterator[Problem]:
    """Refuse a set of more pods than anybody means."""
    total = _pods(case.set)
    if total > MAX_PODS:
        yield Problem(
            "spec.replicas",
            f"the set would have {total} pods, all replicas and copies counted; "
            f"at most {MAX_PODS} are taken: make several sets of it",
        )


def full_names_differ(case: Case) -> Iterator[Problem]:
    """Refuse a clique called like one that a copy of a scaling group will have."""
    named = {group.name: group for group in case.set.groups if group.name}
    beginnings = tuple(f"{name}-" for name in named)
    for clique, home in case.set.housed:
        if clique.name is None or len(clique.name) > syntax.LONGEST_NAME:
            continue
        own = home.name if home else None
        if len(named) == 1 and own in named:
            continue
        # A clique of another group stands for itself by its first copy.
        full = f"{own}-0-{clique.name}" if own else clique.name
        if not full.startswith(beginnings):
            continue
        for match in _COPY.finditer(full[: 2 * syntax.LONGEST_NAME]):
            group, copy = full[: match.start()], match[1]
            member = full[match.end(1) + 1 :]
            if group != own and group in named and member in named[group].members:
                yield Problem(
                    f"{clique.path}.name",
                    f"{full!r} is also what clique {member!r} is called in copy {copy} "
                    f"of group {group!r}; rename one",
                )


def autoscalers_differ(case: Case) -> Iterator[Problem]:
    """Refuse a clique and a group of one name that both scale: their autoscalers' names follow."""
    groups = {group.name: group for group in case.set.groups if group.name and group.scaling}
    for clique, home in case.set.housed:
        namesake = groups.get(clique.name or "")
        if namesake and clique.scaling and home is None:
            yield Problem(
                f"{clique.path}.name",
                f"{clique.name!r} is also the name of {namesake.path}, and the autoscaler of each "
                "would be called alike; rename one",
            )


_GROUPS: Final = attrgetter("set.groups")
_SCALING: Final = attrgetter("set.scaling")

RULES: Final[tuple[Rule[Case], ...]] = (
    Rule(names_are_labels, ("2.3.1", "2.3.6", "2.3.13")),
    Rule(names_differ, ("2.3.6", "2.3.13")),
    Rule(roles_differ, ("2.3.6",)),
    Rule(replicas_are_counted, ("2.3.1",)),
    Rule(clique_counts_fit, ("2.3.9",)),
    Rule(groups_hold_cliques, ("2.3.13",), about=_GROUPS),
    Rule(group_counts_fit, ("2.3.13",), about=_GROUPS),
    Rule(cliques_scale_within_reach, ("2.3.12",), about=_SCALING),
    Rule(groups_scale_within_reach, ("2.3.13",), about=_SCALING),
    Rule(members_scale_with_their_group, ("2.3.13",), about=_SCALING),
    Rule(autoscalers_differ, about=_SCALING),
    Rule(delay_is_a_duration, ("2.3.14",)),
    Rule(updates_can_begin),
    Rule(names_leave_room, ("2.3.15", "2.4")),
    Rule(full_names_differ, about=_GROUPS),
    Rule(pods_are_not_too_many),
)


def _no_label(holder: str, name: str) -> Problem:
    return Problem(f"{holder}.name", f"{name!r} is not a DNS label: {syntax.LABEL_RULE}")


def _pods(of: SetView) -> int:
    """Count the pods a set asks for, as far as its counts can be read."""
    one = 0
    for clique, home in of.housed:
        copies = 1 if home is None or home.replicas is None else home.replicas
        one += max(0, clique.replicas or 0) * max(0, copies)
    return (of.replicas or 0) * one


def _is_none(share: Json) -> bool:
    # Percentages too: 0%, as well as 00%.
    return reading.number(share) == 0 or (reading.text(share) or "").lstrip("0") == "%"


def _repeated(path: str, what: str, found: list[str | None]) -> Iterator[Problem]:
    if len({*found}) == len(found):
        return
    seen: set[str] = set()
    for i, name in enumerate(found):
        if name is None:
            continue
        if name in seen:
            yield Problem(f"{path}[{i}].name", f"there is another {what} {name!r}; rename one")
        seen.add(name)


def _counts(path: str, of: Clique | Group) -> Iterator[Problem]:
    replicas, minimum = of.replicas, of.minimum
    if replicas is not None and replicas < 1:
        yield Problem(f"{path}.replicas", f"must be at least 1, got {replicas}")
    if minimum is None:
        return
    if minimum < 1:
        yield Problem(f"{path}.minAvailable", f"must be at least 1, got {minimum}")
    elif replicas is not None and 1 <= replicas < minimum:
        yield Problem(
            f"{path}.minAvailable", f"must be from 1 to replicas ({replicas}), got {minimum}"
        )


def _reach(of: Clique | Group) -> Iterator[Problem]:
    scaling = of.scaling
    if scaling is None or scaling.lowest is None:
        return
    if of.minimum is not None and scaling.lowest < of.minimum:
        yield Problem(
            f"{scaling.path}.minReplicas",
            f"must be at least minAvailable ({of.minimum}), got {scaling.lowest}",
        )
    if scaling.highest is not None and scaling.highest < scaling.lowest:
        yield Problem(
            f"{scaling.path}.maxReplicas",
            f"must be at least minReplicas ({scaling.lowest}), got {scaling.highest}",
        )

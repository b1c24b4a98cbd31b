"""What a PodCliqueSet must satisfy to be stored. Each rule is one function; all always run."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from api.cliques import CliqueTemplate
from api.podcliqueset import MAX_PODS, PodCliqueSetSpec, ScalingGroupTemplate
from policies import startup_graph
from policies.problems import Problem

CLIQUES: Final = "spec.template.cliques"
GROUPS: Final = "spec.template.podCliqueScalingGroups"
DEFAULT_SCHEDULER: Final = "default-scheduler"
# A pod is called <set>-<i>-<group>-<j>-<clique>-<5 random>, in at most 63 characters. What is left
# after dashes, the random part and room for indices is for the names that people choose.
NAME_BUDGET: Final = 45

_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_LABEL_RULE: Final = "use 1 to 63 of a-z, 0-9 and '-', with a letter or digit first and last"


@dataclass(frozen=True)
class NamedSet:
    """What the rules look at: the name counts because the names of pods are made from it."""

    name: str
    spec: PodCliqueSetSpec

    @property
    def cliques(self) -> list[CliqueTemplate]:
        """The set's cliques."""
        return self.spec.template.cliques

    @property
    def groups(self) -> list[ScalingGroupTemplate]:
        """The set's scaling groups."""
        return self.spec.template.pod_clique_scaling_groups


def has_cliques(of: NamedSet) -> Iterator[Problem]:
    """Refuse a set without anything to run."""
    if not of.cliques:
        yield Problem(CLIQUES, "is empty; a set needs at least one clique")


def startup_is_acyclic(of: NamedSet) -> Iterator[Problem]:
    """Refuse cliques that wait for each other, whatever the startup type is today."""
    edges: dict[str, list[str]] = {}
    for clique in of.cliques:
        # A clique that waits for itself is another rule's problem.
        after = [name for name in clique.spec.starts_after if name != clique.name]
        edges.setdefault(clique.name, []).extend(after)
    index = {clique.name: i for i, clique in reversed(list(enumerate(of.cliques)))}
    for cycle in startup_graph.cycles(edges):
        path = " → ".join([*cycle, cycle[0]])
        yield Problem(
            f"{CLIQUES}[{index[cycle[0]]}].spec.startsAfter",
            f"cliques wait for each other: {path}; take one of these dependencies out",
        )


def names_are_labels(of: NamedSet) -> Iterator[Problem]:
    """Refuse names that cannot be part of a pod's name and host name."""
    named = [("metadata.name", of.name)]
    named += [(f"{CLIQUES}[{i}].name", clique.name) for i, clique in enumerate(of.cliques)]
    named += [(f"{GROUPS}[{i}].name", group.name) for i, group in enumerate(of.groups)]
    for path, name in named:
        if not _LABEL.fullmatch(name):
            yield Problem(path, f"{name!r} is not a DNS label: {_LABEL_RULE}")


def names_differ(of: NamedSet) -> Iterator[Problem]:
    """Refuse two cliques, or two groups, of one name."""
    yield from _repeated(CLIQUES, "clique", [clique.name for clique in of.cliques])
    yield from _repeated(GROUPS, "scaling group", [group.name for group in of.groups])


def clique_counts_fit(of: NamedSet) -> Iterator[Problem]:
    """Refuse a clique of no pods, or with a minimum it cannot reach."""
    for i, clique in enumerate(of.cliques):
        yield from _counts(f"{CLIQUES}[{i}].spec", clique.spec.replicas, clique.spec.min_available)


def starts_after_is_known(of: NamedSet) -> Iterator[Problem]:
    """Refuse a dependency on nothing, on itself, or named twice."""
    known = {clique.name for clique in of.cliques}
    for i, clique in enumerate(of.cliques):
        seen: set[str] = set()
        for j, name in enumerate(clique.spec.starts_after):
            path = f"{CLIQUES}[{i}].spec.startsAfter[{j}]"
            if name == clique.name:
                yield Problem(path, f"clique {name!r} cannot start after itself")
            elif name in seen:
                yield Problem(path, f"names {name!r} a second time")
            elif name not in known:
                yield Problem(path, f"there is no clique {name!r}{_choice(known)}")
            seen.add(name)


def groups_hold_cliques(of: NamedSet) -> Iterator[Problem]:
    """Refuse a group that is empty, names no clique, or takes one that is in a group already."""
    known = {clique.name for clique in of.cliques}
    group_of: dict[str, str] = {}
    for i, group in enumerate(of.groups):
        if not group.clique_names:
            yield Problem(f"{GROUPS}[{i}].cliqueNames", "is empty; name the cliques to scale")
        for j, name in enumerate(group.clique_names):
            path = f"{GROUPS}[{i}].cliqueNames[{j}]"
            if name not in known:
                yield Problem(path, f"there is no clique {name!r}{_choice(known)}")
            elif name in group_of:
                yield Problem(path, f"clique {name!r} is in group {group_of[name]!r} already")
            else:
                group_of[name] = group.name


def group_counts_fit(of: NamedSet) -> Iterator[Problem]:
    """Refuse a group of no copies, or with a minimum it cannot reach."""
    for i, group in enumerate(of.groups):
        yield from _counts(f"{GROUPS}[{i}]", group.replicas, group.min_available)


def names_leave_room(of: NamedSet) -> Iterator[Problem]:
    """Refuse names so long together that pods could not be named after them."""
    group_of = {name: group.name for group in of.groups for name in group.clique_names}
    for i, clique in enumerate(of.cliques):
        parts = [of.name, clique.name]
        if clique.name in group_of:
            parts.insert(1, group_of[clique.name])
        total = sum(len(part) for part in parts)
        if total > NAME_BUDGET:
            shown = " + ".join(f"{part!r} ({len(part)})" for part in parts)
            yield Problem(
                f"{CLIQUES}[{i}].name",
                f"pods are named after {shown}: {total} characters, and {NAME_BUDGET} fit; "
                "shorten one of them",
            )


def pods_can_be_gated(of: NamedSet) -> Iterator[Problem]:
    """Refuse pods that the API server would not take, or that would never be released."""
    for i, clique in enumerate(of.cliques):
        path = f"{CLIQUES}[{i}].spec.podSpec"
        spec = clique.spec.pod_spec
        if not isinstance(spec.get("containers"), list) or not spec["containers"]:
            yield Problem(f"{path}.containers", "a pod needs at least one container")
        if spec.get("nodeName"):
            yield Problem(
                f"{path}.nodeName",
                "a pod that waits for its gang cannot be on a node already; "
                "leave nodeName out and use nodeSelector or affinity",
            )
        scheduler = spec.get("schedulerName")
        if scheduler and scheduler != DEFAULT_SCHEDULER:
            yield Problem(
                f"{path}.schedulerName",
                f"gangs are placed for {DEFAULT_SCHEDULER}, and {scheduler!r} would not heed "
                f"their places; leave schedulerName out or write {DEFAULT_SCHEDULER}",
            )


Rule = Callable[[NamedSet], Iterable[Problem]]


def pods_are_not_too_many(of: NamedSet) -> Iterator[Problem]:
    """Refuse a set of more pods than anybody means."""
    if of.spec.pods > MAX_PODS:
        yield Problem(
            "spec.replicas",
            f"the set would have {of.spec.pods} pods, all replicas and copies counted; "
            f"at most {MAX_PODS} are taken: make several sets of it",
        )


def full_names_differ(of: NamedSet) -> Iterator[Problem]:
    """Refuse a clique called like one that a copy of a scaling group will have."""
    home = {name: group.name for group in of.groups for name in group.clique_names}
    for i, clique in enumerate(of.cliques):
        for group in of.groups:
            if home.get(clique.name) == group.name:
                continue
            # A clique of another group stands for itself by its first copy.
            own = home.get(clique.name)
            full = f"{own}-0-{clique.name}" if own else clique.name
            for member in group.clique_names:
                copy = full.removeprefix(f"{group.name}-").removesuffix(f"-{member}")
                if copy.isdigit() and full == f"{group.name}-{copy}-{member}":
                    yield Problem(
                        f"{CLIQUES}[{i}].name",
                        f"{full!r} is also what clique {member!r} is called in copy {copy} "
                        f"of group {group.name!r}; rename one",
                    )


# The most telling first, since a long message is cut at its end.
RULES: Final[tuple[Rule, ...]] = (
    has_cliques,
    startup_is_acyclic,
    names_are_labels,
    names_differ,
    starts_after_is_known,
    clique_counts_fit,
    groups_hold_cliques,
    group_counts_fit,
    pods_can_be_gated,
    names_leave_room,
    full_names_differ,
    pods_are_not_too_many,
)


def check(name: str, spec: PodCliqueSetSpec) -> list[Problem]:
    """Hold the set of that name against every rule, so its author sees all problems at once."""
    return [problem for rule in RULES for problem in rule(NamedSet(name, spec))]


def _repeated(path: str, what: str, names: list[str]) -> Iterator[Problem]:
    twice = {name for name, times in Counter(names).items() if times > 1}
    seen: set[str] = set()
    for i, name in enumerate(names):
        if name in twice and name in seen:
            yield Problem(f"{path}[{i}].name", f"there is another {what} {name!r}; rename one")
        seen.add(name)


def _counts(path: str, replicas: int, minimum: int | None) -> Iterator[Problem]:
    if replicas < 1:
        yield Problem(f"{path}.replicas", f"must be at least 1, got {replicas}")
    elif minimum is not None and not 1 <= minimum <= replicas:
        yield Problem(
            f"{path}.minAvailable", f"must be from 1 to replicas ({replicas}), got {minimum}"
        )


def _choice(known: set[str]) -> str:
    if not known:
        return ""
    names = sorted(known)
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"; there are {', '.join(names[:5])}{more}"

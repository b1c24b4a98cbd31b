"""What is let in, although its author should know of it."""

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Final

from api import needs, quantities
from api.jsons import Json, JsonObject
from api.quantities import Amounts, BadQuantityError
from api.streams import Container, PodSpec, Requirements
from policies import podcliqueset_startup_rules, podcliqueset_topology_rules, reading
from policies.podcliqueset_case import Case
from policies.podcliqueset_view import Constraint
from policies.problems import Problem
from policies.rules import Rule

# The API server cuts longer ones.
LONGEST_WARNING: Final = 120
# Pods of more containers and amounts are not weighed: it would cost, and is only for a warning.
MOST_ASKED: Final = 128


def old_spelling(case: Case) -> Iterator[Problem]:
    """Warn of packDomain, which a new set may no longer have."""
    if case.is_new:
        return
    for each in case.set.constraints:
        if each.deprecated:
            said = f"{each.path}.packDomain is deprecated; write"
            whole = f"{said} {each.path}.pack.required instead"
            short = f"{said} pack.required instead"
            yield Problem("", whole if len(whole) <= LONGEST_WARNING else short)


def preference_adds_nothing(case: Case) -> Iterator[Problem]:
    """Warn of a preferred level that the required one goes beyond."""
    for each in case.set.resolved:
        levels = podcliqueset_topology_rules.levels_of(case.known, each) or []
        required, preferred = each.constraint.must, each.constraint.preferred
        if required not in levels or preferred not in levels:
            continue
        if levels.index(preferred or "") < levels.index(required or ""):
            yield Problem(
                f"{each.constraint.path}.pack.preferred",
                f"{preferred!r} adds nothing: {required!r} is narrower",
            )


def dependencies_do_nothing(case: Case) -> Iterator[Problem]:
    """Warn of dependencies that would be refused if the order counted."""
    if not podcliqueset_startup_rules.is_explicit(case.set):
        yield from podcliqueset_startup_rules.loose_dependencies(case.set)


def spreading_is_not_looked_at(case: Case) -> Iterator[Problem]:
    """Warn of spreading that came to a set later."""
    for clique in case.set.cliques:
        if not case.is_new and clique.pod.get("topologySpreadConstraints"):
            yield Problem(
                f"{clique.pod_path}.topologySpreadConstraints",
                "not looked at when gangs are placed",
            )


def minima_fit_somewhere(case: Case) -> Iterator[Problem]:
    """Warn of pods that no node could take, and of minima that no domain could."""
    capacity = case.known.capacity()
    if capacity is None:
        return
    of = {clique.path: _needs(clique.pod) for clique in case.set.cliques}
    for clique in case.set.cliques:
        if capacity.node:
            path = clique.pod_path
            yield from _beyond(path, "a pod needs", of[clique.path], "node", capacity.node)
    keys = _level_keys(case)
    for constraint, minimum in _minima(case, of):
        largest = capacity.domains.get(keys.get(constraint.path, ""))
        if largest:
            yield from _beyond(
                constraint.path, "needs at least", minimum, str(constraint.must), largest
            )


def services_may_be_refused(case: Case) -> Iterator[Problem]:
    """Warn of a set whose services older API servers do not take, which leaves pods nameless."""
    name = case.set.name
    if case.is_new and name and name[0].isdigit():
        yield Problem(
            "metadata.name",
            "begins with a digit: before Kubernetes 1.36 its services are refused, "
            "so pods get no host names",
        )


_CONSTRAINTS: Final = attrgetter("set.resolved")

RULES: Final[tuple[Rule[Case], ...]] = (
    Rule(minima_fit_somewhere),
    Rule(old_spelling, ("2.5.5",), about=_CONSTRAINTS),
    Rule(preference_adds_nothing, ("2.5.5",), about=_CONSTRAINTS),
    Rule(dependencies_do_nothing, ("2.3.11",), about=podcliqueset_startup_rules.TANGLED),
    Rule(spreading_is_not_looked_at),
    Rule(services_may_be_refused),
)


def _beyond(
    path: str, needed: str, amounts: Amounts, what: str, largest: Amounts
) -> Iterator[Problem]:
    for resource, amount in sorted(amounts.items()):
        most = largest.get(resource, 0)
        if amount > most:
            yield Problem(
                path,
                f"{needed} {quantities.text(resource, amount)} {resource}; "
                f"the largest {what} has {quantities.text(resource, most)}",
            )


def _minima(case: Case, of: Mapping[str, Amounts]) -> Iterator[tuple[Constraint, dict[str, int]]]:
    """Give for each constraint what the minimum of pods under it takes."""
    members: dict[str, dict[str, int]] = {}
    whole: dict[str, int] = {}
    for clique in case.set.cliques:
        minimum = _times(of[clique.path], clique.minimum)
        if clique.constraint:
            yield clique.constraint, minimum
        home = case.set.home(clique)
        if home:
            members[home.path] = quantities.plus(members.get(home.path, {}), minimum)
        else:
            whole = quantities.plus(whole, minimum)
    for group in case.set.groups:
        copy = members.get(group.path, {})
        if group.constraint:
            yield group.constraint, copy
        whole = quantities.plus(whole, _times(copy, group.minimum))
    if case.set.constraint:
        yield case.set.constraint, whole


def _level_keys(case: Case) -> dict[str, str]:
    """Give for each required level the node label whose values are its domains."""
    keys: dict[str, str] = {}
    for each in case.set.resolved:
        binding = case.known.binding(each.topology) if each.topology else None
        for level in binding.levels if binding else ():
            if level.domain == each.constraint.must:
                keys[each.constraint.path] = level.key
    return keys


def _times(amounts: Amounts, count: int | None) -> dict[str, int]:
    times = 1 if count is None else max(0, count)
    return {name: min(quantities.MOST, amount * times) for name, amount in amounts.items()}


def _needs(pod: JsonObject) -> Amounts:
    """Count what a pod takes, or nothing if its amounts cannot be read or are past counting."""
    if _asked(pod) > MOST_ASKED:
        return {}
    try:
        return needs.of_spec(
            PodSpec(
                containers=_containers(pod.get("containers")),
                init_containers=_containers(pod.get("initContainers")),
                overhead=_amounts(pod.get("overhead")),
                resources=_requirements(pod.get("resources")),
            )
        )
    except BadQuantityError:
        return {}


def _asked(pod: JsonObject) -> int:
    """Count what a pod's amounts are spread over, and as long as that is little, the amounts."""
    lists = [reading.items(pod.get(which)) for which in ("containers", "initContainers")]
    if sum(map(len, lists)) > MOST_ASKED:
        return sum(map(len, lists))
    containers = [container for each in lists for container in each]
    held = [reading.mapping(reading.mapping(each).get("resources")) for each in (*containers, pod)]
    named = [resources.get(kind) for resources in held for kind in ("requests", "limits")]
    return sum(len(reading.mapping(each)) for each in (*named, pod.get("overhead")))


def _containers(raw: Json) -> tuple[Container, ...]:
    return tuple(
        Container(
            resources=_requirements(container.get("resources")),
            restart_policy=reading.text(container.get("restartPolicy")) or "",
        )
        for container in map(reading.mapping, reading.items(raw))
    )


def _requirements(raw: Json) -> Requirements:
    found = reading.mapping(raw)
    return Requirements(_amounts(found.get("requests")), _amounts(found.get("limits")))


def _amounts(raw: Json) -> dict[str, str]:
    # A custom resource keeps an amount as it is written, be it text or a number.
    return {
        name: str(amount)
        for name, amount in reading.mapping(raw).items()
        if isinstance(amount, str | int | float) and not isinstance(amount, bool)
    }
